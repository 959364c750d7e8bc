// SPDX-License-Identifier: Apache-2.0
// Large windows over networks that write memory: straight between arrays in slabs. Ranks are processes; the argument
// names the transport (named_transport.hpp).
#include "named_transport.hpp"
#include "window_bodies.hpp"
#include "window_connection_bodies.hpp"

#include <halocline_test/run_tests.hpp>

#include <cstring>
#include <optional>

namespace {

using namespace halocline_test;

std::string transport;

constexpr std::size_t least = 64 * 1024 / sizeof(std::uint64_t); ///< words of the smallest window that goes straight
/// Around that, and around the sizes at which writes into TCP sockets are split.
constexpr std::size_t sizes[] = {least - 1, least, least + 1, 32'767, 32'768, 32'769, 65'537, 131'073};

/// Nobody leaves while others still poll this rank.
class StraightWindow : public testing::Test {
  protected:
    ~StraightWindow() override { job_.barrier(); }
    job job_ = job::from_environment(options_over(transport));
    const bool writes_memory_ = transport != "ofi-tagged";
    const bool slow_ = job_.ranks() > 2 || transport == "verbs"; // verbs runs in an emulated machine
    [[nodiscard]] std::uint64_t steps(std::uint64_t alone) const {
        return slow_ ? std::max<std::uint64_t>(4, alone / 10) : alone;
    }
};

/// "12 bytes copied here" -> 12
std::uint64_t copied(const std::string& how) {
    const std::size_t end = how.find(" bytes copied here");
    const std::size_t start = how.rfind(' ', end - 1);
    return end == std::string::npos ? ~std::uint64_t{0} : std::stoull(how.substr(start));
}

/// Both directions of two connections at once, whole and in part.
TEST_F(StraightWindow, EveryMessageArrivesAndOnlyWhatLiesElsewhereIsCopied) {
    constexpr std::array kinds{kind::in_slab, kind::elsewhere, kind::buffered};
    for (const std::size_t count : sizes) {
        for (const kind s : kinds) {
            for (const kind r : kinds) {
                auto links = ring_of_links(job_, count, s, r);
                std::size_t wrong = 0;
                for (std::uint64_t k = 1; k <= steps(12); ++k) step_in_order(links, k, wrong);
                EXPECT_EQ(wrong, 0u) << links.front().describe();
                job_.barrier(); // else an early rank's farewell would arrive instead of a message
                if (!writes_memory_) continue;
                const std::string from = links.front().describe_sender(), to = links.front().describe();
                EXPECT_EQ(copied(from) > 0, s == kind::elsewhere || (count < least && s == kind::in_slab)) << from;
                EXPECT_EQ(copied(to) > 0, r == kind::elsewhere || (count < least && r == kind::in_slab)) << to;
                const bool straight = count >= least && s == kind::in_slab && r == kind::in_slab;
                for (const std::string& how : {from, to}) {
                    const bool said = how.find("from the sender's array, straight into the receiver's array, 0 bytes "
                                               "copied here") != std::string::npos;
                    EXPECT_EQ(said, straight) << how;
                }
            }
        }
    }
}

/// A thousand steps with a late sender, then with a late receiver, which is still reading the previous message.
TEST_F(StraightWindow, OneWayStream) { expect_one_way_stream(job_, steps(1000), least + 1); }
TEST_F(StraightWindow, PostedMessagesMoveInAnyWait) { expect_posted_messages_move_in_any_wait(job_, 50'000); }
TEST_F(StraightWindow, FarewellEndsTheWait) { expect_farewell_ends_the_wait(job_, least); }
TEST_F(StraightWindow, NoAllocationBetweenInitAndWait) {
    if (transport == "verbs") GTEST_SKIP() << "promised once the peer has connected, too";
    expect_no_allocation(job_, {least, 50'000});
}

/// The sender's side of one step. It also fills what follows the part, which must not arrive.
void send_part(send_window<std::uint64_t>& w, words& out, std::uint64_t step, std::size_t n) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = word(0, 0, step, i);
    ASSERT_EQ(w.init(), status::ok);
    ASSERT_EQ(w.post(n), status::ok);
    ASSERT_EQ(w.wait(), status::ok) << w.pending();
}

TEST_F(StraightWindow, APartLeavesTheRestOfTheArrayAlone) {
    constexpr std::size_t count = 2 * 32'768 + 5;
    if (job_.rank() < 2 && job_.ranks() >= 2) {
        words buffer(count, 0, &job_.memory());
        connection c(job_, 1 - job_.rank());
        std::optional<send_window<std::uint64_t>> to;
        std::optional<recv_window<std::uint64_t>> from;
        job_.rank() == 0 ? void(to.emplace(c, buffer)) : void(from.emplace(c, buffer));
        c.connect();
        std::uint64_t k = 0;
        for (const std::size_t n : {count, std::size_t{0}, std::size_t{1}, std::size_t{32'768}, std::size_t{0}, count,
                                    std::size_t{32'769}, std::size_t{65'536}, std::size_t{17}, count}) {
            ++k;
            if (job_.rank() == 0) {
                send_part(*to, buffer, k, n);
                continue;
            }
            constexpr std::uint64_t untouched = 0xabcdef;
            std::fill(buffer.begin(), buffer.end(), untouched);
            ASSERT_EQ(from->start(), status::ok);
            ASSERT_EQ(from->wait(), status::ok) << from->pending();
            ASSERT_EQ(from->count(), n);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < count; ++i) wrong += buffer[i] != (i < n ? word(0, 0, k, i) : untouched);
            EXPECT_EQ(wrong, 0u) << n;
        }
    }
    job_.barrier();
}

/// post() precedes the receiver's token; the message leaves while its sender waits for other things.
TEST_F(StraightWindow, APostWaitsForTheReceiversWord) {
    for (std::uint64_t k = 1; k <= 5; ++k) {
        words buffer(least, 0, &job_.memory());
        if (job_.rank() == 0) {
            connection c(job_, 1);
            send_window<std::uint64_t> w(c, buffer);
            c.connect();
            std::fill(buffer.begin(), buffer.end(), k);
            ASSERT_EQ(w.start(), status::ok);
            for (int look = 0; look < 100 && writes_memory_; ++look) ASSERT_FALSE(w.test());
            job_.barrier();
            job_.barrier(); // during which the message is sent
            ASSERT_EQ(w.wait(), status::ok) << w.pending();
            job_.barrier();
        } else if (job_.rank() == 1) {
            connection c(job_, 0);
            recv_window<std::uint64_t> w(c, buffer);
            c.connect();
            job_.barrier();
            EXPECT_EQ(buffer, words(least, 0)) << "nothing comes before init()";
            ASSERT_EQ(w.start(), status::ok);
            ASSERT_EQ(w.wait(), status::ok) << w.pending();
            EXPECT_EQ(buffer, words(least, k));
            job_.barrier();
            job_.barrier();
        } else {
            for (int i = 0; i < 3; ++i) job_.barrier();
        }
    }
}

/// A buffered sender is as early as with slots: it fills its buffer while the receiver reads the previous message.
TEST_F(StraightWindow, ABufferIsFilledBeforeTheArrayIsFree) {
    if (job_.rank() == 0) {
        connection c(job_, 1);
        buffered_send_window<std::uint64_t> w(c, least);
        c.connect();
        for (std::uint64_t k = 1; k <= 20; ++k) {
            ASSERT_EQ(w.init(), status::ok); // in step 1 before the receiver has begun any
            std::fill(w.target().begin(), w.target().end(), k);
            if (k == 1) job_.barrier();
            ASSERT_EQ(w.post(), status::ok);
            ASSERT_EQ(w.wait(), status::ok) << w.pending();
        }
    } else if (job_.rank() == 1) {
        words buffer(least, 0, &job_.memory());
        connection c(job_, 0);
        recv_window<std::uint64_t> w(c, buffer);
        c.connect();
        job_.barrier();
        for (std::uint64_t k = 1; k <= 20; ++k) {
            ASSERT_EQ(w.start(), status::ok);
            ASSERT_EQ(w.wait(), status::ok) << w.pending();
            EXPECT_EQ(buffer, words(least, k));
        }
    } else {
        job_.barrier();
    }
    job_.barrier();
}

/// The array of a receiver that leaves in the middle of a step stays reserved until the sender has left, too.
TEST_F(StraightWindow, AnArrayThatThePeerMayWriteIsNotGivenAway) {
    if (!writes_memory_) GTEST_SKIP() << "nothing is written there";
    constexpr int rounds = 20;
    constexpr std::size_t size = 50'000, bytes = size * sizeof(std::uint64_t);
    if (job_.rank() == 0) {
        connection c(job_, 1);
        const std::size_t before = job_.memory().used();
        {
            words buffer(size, 0, &job_.memory());
            recv_window<std::uint64_t> w(c, buffer);
            c.connect();
            ASSERT_EQ(w.start(), status::ok);
            ASSERT_EQ(w.wait(), status::ok) << w.pending(); // from now on tokens go at once
            ASSERT_EQ(w.start(), status::ok);               // the peer may write
            for (int look = 0; look < 20; ++look) {
                EXPECT_FALSE(w.test());
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        }
        words other(size, 7, &job_.memory());
        EXPECT_GE(job_.memory().used(), before + 2 * bytes);
        job_.barrier();
        job_.barrier();
        EXPECT_EQ(other, words(size, 7));
        for (int round = 0; round < rounds; ++round) {
            job_.barrier(); // which makes progress
            connection own(job_, 0);
            const send_window<std::uint64_t> looks_for_farewells(own, other);
        }
        EXPECT_LT(job_.memory().used(), before + 2 * bytes) << "the sender has left";
    } else if (job_.rank() == 1) {
        connection c(job_, 0);
        {
            words out(size, 3, &job_.memory());
            send_window<std::uint64_t> w(c, out);
            c.connect();
            ASSERT_EQ(w.start(), status::ok);
            ASSERT_EQ(w.wait(), status::ok) << w.pending();
            job_.barrier();
            ASSERT_EQ(w.start(), status::ok);
            for (int look = 0; look < 1000 && !w.test(); ++look)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            EXPECT_TRUE(w.test()) << "the token came before the farewell";
        }
        job_.barrier();
        for (int round = 0; round < rounds; ++round) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            job_.barrier();
        }
    } else {
        for (int i = 0; i < 2 + rounds; ++i) job_.barrier();
    }
    job_.barrier();
}

/// Likewise for a sender that leaves while its bytes may be on their way: what its receiver gets is the message.
TEST_F(StraightWindow, AnArrayThatIsStillReadIsNotGivenAway) {
    constexpr std::size_t size = 1 << 19; // more than a socket takes at once
    words in(size, 0, &job_.memory());
    for (std::uint64_t k = 1; k <= 5; ++k) {
        if (job_.rank() == 0) {
            connection c(job_, 1);
            recv_window<std::uint64_t> w(c, in);
            c.connect();
            ASSERT_EQ(w.start(), status::ok);
            job_.barrier();
            if (w.wait() == status::ok) {
                EXPECT_EQ(in, words(size, k));
            }
        } else if (job_.rank() == 1) {
            connection c(job_, 0);
            {
                words out(size, k, &job_.memory());
                send_window<std::uint64_t> w(c, out);
                c.connect();
                job_.barrier();
                ASSERT_EQ(w.start(), status::ok);
                static_cast<void>(w.test());
            }
            const words others(size, 77, &job_.memory()), more(size, 78, &job_.memory());
            job_.barrier();
            continue;
        } else {
            job_.barrier();
        }
        job_.barrier();
    }
}

/// A sender leaves before its message could go: the receiver learns that none will come.
TEST_F(StraightWindow, AMessageThatNeverWentEndsTheReceiversWait) {
    words buffer(least, 1, &job_.memory());
    if (job_.rank() == 0) {
        connection c(job_, 1);
        {
            send_window<std::uint64_t> w(c, buffer);
            c.connect();
            ASSERT_EQ(w.start(), status::ok);
        }
        job_.barrier();
    } else if (job_.rank() == 1) {
        connection c(job_, 0);
        recv_window<std::uint64_t> w(c, buffer);
        c.connect();
        job_.barrier();
        ASSERT_EQ(w.start(), status::ok);
        const status s = w.wait();
        EXPECT_TRUE(s == status::aborted || !writes_memory_) << "else it may have gone into a slot";
    } else {
        job_.barrier();
    }
    job_.barrier();
}

/// One end is large enough to go straight, the other is not: both report it.
TEST_F(StraightWindow, UnlikeSizesOnBothSidesOfTheLeastAreRefused) {
    if (job_.rank() < 2) {
        words data(least, 0, &job_.memory());
        connection c(job_, 1 - job_.rank(), {"sizes"});
        const std::string text = refusal([&] {
            if (job_.rank() == 0) {
                const send_window<std::uint64_t> w(c, data);
                c.connect();
            } else {
                const recv_window<std::uint64_t> w(c, std::span(data).first(least - 1));
                c.connect();
            }
        });
        EXPECT_NE(text.find(std::to_string(least) + " of uint64"), std::string::npos) << text;
        EXPECT_NE(text.find(std::to_string(least - 1) + " of uint64"), std::string::npos) << text;
    }
    job_.barrier();
}

} // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    transport = argc > 1 ? argv[1] : "ofi-tcp";
    return halocline_test::run_tests(halocline_test::skips::of_some_runs);
}
