// SPDX-License-Identifier: Apache-2.0
// Windows between ranks that are threads: what the thread sanitizer can judge, and what counts allocations.
#include "window_bodies.hpp"
#include "window_connection_bodies.hpp"

namespace {

using namespace halocline_test;

TEST(WindowThreads, StepsInOrder) {
    for (const int ranks : {1, 2, 3}) run_threads(ranks, [](const job& j) { expect_steps_in_order(j, 20); });
}

TEST(WindowThreads, OneWayStream) {
    run_threads(2, [](const job& j) { expect_one_way_stream(j, 500); });
}

TEST(WindowThreads, AnyOrderOfConnections) {
    for (const int ranks : {1, 3, 5}) run_threads(ranks, expect_any_order_of_connections);
}

TEST(WindowThreads, ConnectionsOfAPairKeepTheirOrder) {
    for (const int ranks : {1, 2}) run_threads(ranks, expect_connections_of_a_pair_keep_their_order);
}

TEST(WindowThreads, PostedMessagesMoveInAnyWait) { run_threads(2, expect_posted_messages_move_in_any_wait); }

TEST(WindowThreads, UnlikeEndsAreRefused) { run_threads(2, expect_unlike_ends_are_refused); }

TEST(WindowThreads, MisuseIsTold) { run_threads(1, expect_misuse_is_told); }

TEST(WindowThreads, FarewellEndsTheWait) { run_threads(2, expect_farewell_ends_the_wait); }

TEST(WindowThreads, NoAllocationBetweenInitAndWait) { run_threads(1, expect_no_allocation); }

TEST(WindowThreads, MemoryComesBack) {
    run_threads(2, [](const job& j) {
        const auto once = [&] {
            auto links = ring_of_links(j, 4000, kind::elsewhere, kind::elsewhere);
            std::size_t wrong = 0;
            step_in_order(links, 1, wrong);
            j.barrier();
        };
        once();
        j.barrier();
        const std::size_t before = j.memory().used();
        for (int i = 0; i < 20; ++i) once();
        EXPECT_LE(j.memory().used(), before + 4 * 2 * 4000 * 8);
    });
}

TEST(WindowThreads, ABufferThatThePeerMayWriteIsNotGivenAway) {
    run_threads(2, [](const job& j) {
        connection c(j, 1 - j.rank());
        if (j.rank() == 0) {
            auto buffer = std::make_unique<words>(5000, 0, &j.memory());
            const std::uint64_t* place = buffer->data();
            {
                recv_window<std::uint64_t> w(c, *buffer);
                c.connect();
                ASSERT_EQ(w.init(), status::ok); // the peer may write from now on
            }
            buffer.reset();
            words other(5000, 7, &j.memory());
            EXPECT_NE(other.data(), place);
            j.barrier();
            j.barrier(); // the message and the farewell are there
            EXPECT_EQ(other, words(5000, 7));
            connection own(j, 0);
            const send_window<std::uint64_t> looks_for_farewells(own, other);
            const words again(5000, 0, &j.memory());
            EXPECT_TRUE(again.data() >= place && again.data() < place + 5000) << "now it is";
        } else {
            words out(5000, 3);
            {
                send_window<std::uint64_t> w(c, out);
                c.connect();
                j.barrier();
                ASSERT_EQ(w.init(), status::ok);
                ASSERT_EQ(w.post(), status::ok);
            }
            j.barrier();
        }
    });
}

TEST(WindowThreads, TeamsOfEverySizeCopyEachByteOnce) {
    run_threads(1, [](const job& j) {
        for (const std::size_t count : {1, 63, 64, 65, 1000}) {
            for (const int size : {1, 2, 3, 7, 100}) {
                connection c(j, 0);
                buffered_send_window<char> out(c, count);
                buffered_recv_window<char> in(c, count);
                c.connect();
                std::vector<char> from(count), to(count);
                for (std::size_t i = 0; i < count; ++i) from[i] = static_cast<char>(i * 7 + 1);
                ASSERT_EQ(in.init(), status::ok);
                ASSERT_EQ(out.init(), status::ok);
                for (int t = size; t-- > 0;) out.insert(from, 0, {t, size});
                ASSERT_EQ(out.post(), status::ok);
                ASSERT_EQ(in.post(), status::ok);
                ASSERT_EQ(in.wait(), status::ok);
                for (int t = 0; t < size; ++t) in.extract(to, 0, {t, size});
                ASSERT_EQ(out.wait(), status::ok);
                EXPECT_EQ(from, to) << count << " by " << size;
            }
        }
    });
}

} // namespace
