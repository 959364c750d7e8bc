// SPDX-License-Identifier: Apache-2.0
// Matched messages. Without launcher the ranks are threads, under halocline-run processes: the same bodies.
#include <halocline/comm/messenger.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/comm/two_sided.hpp>
#include <halocline_test/allocation_counter.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace halocline;
using namespace halocline::comm;
using bytes = std::vector<std::byte, std::pmr::polymorphic_allocator<std::byte>>;

/// "verbs", "ofi", "mpi"; empty: shared memory.
std::string network() {
    const char* const named = std::getenv("HALOCLINE_TEST_TRANSPORT");
    return named != nullptr ? named : "";
}

bool ranks_are_processes() { return std::getenv("HALOCLINE_RANK") != nullptr || !network().empty(); }

job start() {
    job_options options;
    options.deadline = std::chrono::seconds(30);
    if (!network().empty()) options.transports = {network()};
    return job::from_environment(options);
}

void on_ranks(std::initializer_list<int> thread_counts, const std::function<void(const job&)>& body) {
    if (ranks_are_processes()) {
        static const job j = start();
        body(j);
        j.barrier();
    } else {
        for (const int n : thread_counts) run_threads(n, body);
    }
}

void ok_or_fail(const messenger& m, status s) {
    if (s != status::ok) m.owner().fail(s, m.pending());
}

std::byte letter(int sender, std::uint64_t message, std::size_t place) {
    return static_cast<std::byte>((static_cast<std::size_t>(sender) * 31 + message * 7 + place * 13 + place / 255) %
                                  251);
}
void fill(std::span<std::byte> to, int sender, std::uint64_t message) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = letter(sender, message, i);
}
std::size_t wrong(std::span<const std::byte> got, int sender, std::uint64_t message) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < got.size(); ++i) n += got[i] != letter(sender, message, i);
    return n;
}

constexpr std::size_t sizes[] = {0,     1,      39,     40,     41,     63,     64,      65,           255,
                                 256,   257,    295,    296,    297,    511,    512,     513,          1023,
                                 1024,  1025,   8191,   8192,   8193,   24575,  24576,   65535,        65536,
                                 65537, 131071, 131072, 262143, 262144, 262145, 1 << 20, (1 << 20) + 1};

/// Round a ring; sender's and receiver's memory in slabs or outside; receives posted before and after.
void expect_every_size(const job& j, const messenger_options& options) {
    messenger m(j, options);
    const int next = (j.rank() + 1) % j.ranks(), before = (j.rank() + j.ranks() - 1) % j.ranks();
    std::uint64_t number = 0;
    for (const std::size_t n : sizes) {
        for (int how = 0; how < 8; ++how) {
            std::pmr::memory_resource* heap = std::pmr::new_delete_resource();
            bytes out(n, how & 1 ? heap : &j.memory()), in(n + 3, how & 2 ? heap : &j.memory());
            fill(out, j.rank(), ++number);
            message_request send, receive;
            if (how & 4) m.irecv(receive, in, before, 5);
            m.isend(send, out, next, 5);
            if (!(how & 4)) m.irecv(receive, in, before, 5);
            ok_or_fail(m, m.wait(receive));
            ok_or_fail(m, m.wait(send));

            EXPECT_EQ(receive.info().bytes, n);
            EXPECT_EQ(receive.info().source, before);
            EXPECT_EQ(receive.info().tag, 5);
            EXPECT_EQ(wrong(std::span(in).first(n), before, number), 0u) << n << " bytes, way " << how;
        }
    }
    j.barrier();
}

TEST(Messenger, PayloadOfEverySizeArrives) {
    on_ranks({1, 2, 3}, [](const job& j) { expect_every_size(j, {}); });
}

// With ranks as threads only: their jobs ask for it, and share memory.
TEST(MessengerPush, LargePayloadIsPushedWhereTheJobStreams) {
    job_options options;
    for (const streaming wish : {streaming::always, streaming::never}) {
        options.streaming = wish;
        run_threads(
            3, [](const job& j) { expect_every_size(j, {}); }, options);
        run_threads(
            2,
            [&](const job& j) {
                messenger m(j, {.streamed_bytes = 1});
                bytes out(32 * 1024, &j.memory()), in(32 * 1024, &j.memory());
                message_request send;
                m.isend(send, out, 1 - j.rank(), 0);
                ok_or_fail(m, m.recv(in, 1 - j.rank(), 0));
                ok_or_fail(m, m.wait(send));

                EXPECT_EQ(m.counts().pushed, wish == streaming::always ? 1u : 0u);
            },
            options);
    }
}

TEST(MessengerPush, LargeMessagesBothWaysArePushed) {
    run_threads(2, [](const job& j) {
        constexpr std::uint64_t rounds = 100;
        messenger m(j, {.streamed_bytes = 100'000});
        const int peer = 1 - j.rank();
        bytes out(1'000'003, &j.memory()), in(1'000'003, &j.memory());
        for (std::uint64_t round = 0; round < rounds; ++round) {
            fill(std::span(out).first(100), j.rank(), round);
            fill(std::span(out).last(100), j.rank(), round);
            message_request send, receive;
            m.isend(send, out, peer, 0);
            m.irecv(receive, in, peer, 0);
            ok_or_fail(m, m.wait(receive));
            ok_or_fail(m, m.wait(send));
            ASSERT_EQ(wrong(std::span(in).first(100), peer, round) + wrong(std::span(in).last(100), peer, round), 0u);
        }
        // Whoever finds its own send over is not one of two any more; that never happens to both.
        const std::uint64_t here = m.counts().pushed;
        std::uint64_t there = 0;
        ok_or_fail(m, m.send(std::as_bytes(std::span(&here, 1)), peer, 0));
        ok_or_fail(m, m.recv(std::as_writable_bytes(std::span(&there, 1)), peer, 0));
        EXPECT_GE(here + there, rounds);
        j.barrier();
    });
}

/// More than there are payload slots.
TEST(Messenger, WindowsOfImmediateMessagesTakeTurnsInTheSlots) {
    on_ranks({2}, [](const job& j) {
        messenger m(j);
        const int peer = j.ranks() - 1 - j.rank();
        std::vector<message_request> sends(64), receives(64);
        std::vector<bytes> out, in;
        for (std::size_t i = 0; i < sends.size(); ++i) {
            out.emplace_back(257 + 12 * i, &j.memory());
            in.emplace_back(1024, &j.memory());
        }
        for (std::uint64_t round = 0; round < 20; ++round) {
            for (std::size_t i = 0; i < sends.size(); ++i) {
                fill(out[i], j.rank(), 100 * round + i);
                m.isend(sends[i], out[i], peer, 0);
            }
            for (std::size_t i = 0; i < sends.size(); ++i) m.irecv(receives[i], in[i], peer, 0);
            ok_or_fail(m, m.wait_all(receives));
            ok_or_fail(m, m.wait_all(sends));
            for (std::size_t i = 0; i < sends.size(); ++i)
                ASSERT_EQ(wrong(std::span(in[i]).first(out[i].size()), peer, 100 * round + i), 0u);
        }
        EXPECT_TRUE(peer == j.rank() || m.counts().immediate == 20 * 64);
        j.barrier();
    });
}

TEST(Messenger, PayloadArrivesThroughCopiesInTheSlab) {
    on_ranks({2}, [](const job& j) {
        expect_every_size(j, {.read_processes = false});
        messenger m(j, {.read_processes = false});
        const bool copies =
            m.describe().find("through copies in its slab (process_vm_readv: not wanted)") != std::string::npos;
        EXPECT_EQ(copies, ranks_are_processes() && j.ranks() > 1);
        j.barrier();
    });
}

TEST(Messenger, EqualTagsKeepTheirOrder) {
    on_ranks({2, 3}, [](const job& j) {
        messenger m(j, {.synergistic_bytes = 1500});
        const int next = (j.rank() + 1) % j.ranks(), before = (j.rank() + j.ranks() - 1) % j.ranks();
        constexpr std::size_t at_once = 16;
        const std::size_t rounds = network().empty() ? 200 : 40;
        const auto size_of = [](std::uint64_t n) { return n * 97 % 2000; }; // all protocols in turn
        std::vector<bytes> out(at_once), in(at_once);
        for (auto* set : {&out, &in})
            for (bytes& b : *set) b = bytes(2000, &j.memory());
        for (std::uint64_t round = 0; round < rounds; ++round) {
            std::array<message_request, at_once> sends, receives;
            for (std::size_t i = 0; i < at_once; ++i) {
                const std::uint64_t n = round * at_once + i;
                const std::span<std::byte> message = std::span(out[i]).first(size_of(n));
                fill(message, j.rank(), n);
                m.isend(sends[i], message, next, 7);
            }
            for (std::size_t i = 0; i < at_once; ++i) m.irecv(receives[i], in[i], before, 7);
            ok_or_fail(m, m.wait_all(receives));
            ok_or_fail(m, m.wait_all(sends));
            for (std::size_t i = 0; i < at_once; ++i) {
                const std::uint64_t n = round * at_once + i;
                ASSERT_EQ(receives[i].info().bytes, size_of(n));
                ASSERT_EQ(wrong(std::span(in[i]).first(size_of(n)), before, n), 0u);
            }
        }
        j.barrier();
    });
}

TEST(Messenger, WildcardsTellSourceAndTag) {
    on_ranks({2, 4, 12}, [](const job& j) {
        messenger m(j);
        constexpr int each = 60;
        if (j.rank() == 0) {
            std::vector<int> seen(static_cast<std::size_t>(j.ranks()), 0);
            for (int i = 0; i < each * (j.ranks() - 1); ++i) {
                bytes in(3000, &j.memory());
                message_info info;
                ok_or_fail(m, m.recv(in, any_source, any_tag, &info));
                const int n = seen[static_cast<std::size_t>(info.source)]++;
                ASSERT_EQ(info.tag, n); // in the order of its source
                ASSERT_EQ(info.bytes, static_cast<std::size_t>(n * 50));
                ASSERT_EQ(wrong(std::span(in).first(info.bytes), info.source, static_cast<std::uint64_t>(n)), 0u);
            }
        } else {
            for (int n = 0; n < each; ++n) {
                bytes out(static_cast<std::size_t>(n * 50), &j.memory());
                fill(out, j.rank(), static_cast<std::uint64_t>(n));
                ok_or_fail(m, m.send(out, 0, n));
            }
        }
        j.barrier();
    });
}

TEST(Messenger, ContextsAreApart) {
    on_ranks({2}, [](const job& j) {
        messenger m(j);
        const int peer = j.ranks() - 1 - j.rank();
        int one = 1, two = 2, got = 0;
        message_request a, b;
        m.isend(a, std::as_bytes(std::span(&one, 1)), peer, 3, 1);
        m.isend(b, std::as_bytes(std::span(&two, 1)), peer, 3, 2);
        ok_or_fail(m, m.recv(std::as_writable_bytes(std::span(&got, 1)), any_source, any_tag, nullptr, 2));
        EXPECT_EQ(got, 2);
        ok_or_fail(m, m.recv(std::as_writable_bytes(std::span(&got, 1)), any_source, any_tag, nullptr, 1));
        EXPECT_EQ(got, 1);
        j.barrier();
    });
}

TEST(Messenger, LargeMessagesOfAllPairsCross) {
    on_ranks({2, 4, 12}, [](const job& j) {
        messenger m(j);
        const auto ranks = static_cast<std::size_t>(j.ranks());
        constexpr std::size_t n = 290'000;
        std::vector<message_request> requests(2 * ranks);
        std::vector<bytes> out, in;
        for (std::size_t r = 0; r < ranks; ++r) {
            out.emplace_back(n, &j.memory());
            in.emplace_back(n, &j.memory());
            fill(out[r], j.rank(), r);
        }
        for (std::size_t r = 0; r < ranks; ++r) m.isend(requests[r], out[r], static_cast<int>(r), 1);
        for (std::size_t r = 0; r < ranks; ++r) m.irecv(requests[ranks + r], in[r], static_cast<int>(r), 1);
        ok_or_fail(m, m.wait_all(requests));
        for (std::size_t r = 0; r < ranks; ++r)
            EXPECT_EQ(wrong(in[r], static_cast<int>(r), static_cast<std::uint64_t>(j.rank())), 0u);
        j.barrier();
    });
}

TEST(Messenger, SenderCopiesPiecesOfAMessageThatItWaitsFor) {
    on_ranks({2}, [](const job& j) {
        if (j.ranks() < 2) return;
        messenger m(j);
        bytes data(8 << 20, &j.memory());
        message_info info;
        std::uint64_t received = 0;
        if (j.rank() == 0) { // on a loaded machine it may not be running while its receiver copies
            for (int i = 0; i < 5000 && m.counts().pieces_sent == 0; ++i) ok_or_fail(m, m.send(data, 1, 0));
            if (j.ranks() == 2) {
                EXPECT_GT(m.counts().pieces_sent, 0u);
            } // further ranks take the sender's core
            ok_or_fail(m, m.send({}, 1, 1));
        }
        for (; j.rank() == 1 && info.tag != 1; ++received) ok_or_fail(m, m.recv(data, 0, any_tag, &info));
        if (j.rank() == 1) {
            EXPECT_EQ(m.counts().synergistic, received - 1);
        }
        j.barrier();
    });
}

TEST(Messenger, AFloodOfOtherTagsDoesNotHideAMessage) {
    on_ranks({2}, [](const job& j) {
        if (j.ranks() < 2) return;
        constexpr int flood = 500;
        messenger m(j, {.unexpected = flood + 1});
        const int peer = j.ranks() - 1 - j.rank();
        if (j.rank() == 0) {
            for (int i = 0; i < flood; ++i) {
                message_request r;
                m.isend(r, std::as_bytes(std::span(&i, 1)), peer, 1);
                ASSERT_TRUE(!network().empty() || i >= 64 || r.done()); // buffered at once
                ok_or_fail(m, m.wait(r));
            }
            ok_or_fail(m, m.send({}, peer, 2));
        }
        if (peer == 0) {
            ok_or_fail(m, m.recv({}, 0, 2));
            for (int i = 0, got = -1; i < flood; ++i) {
                ok_or_fail(m, m.recv(std::as_writable_bytes(std::span(&got, 1)), 0, 1));
                ASSERT_EQ(got, i);
            }
        }
        j.barrier();
    });
}

TEST(Messenger, AFloodBeyondTheRoomStaysWithItsSender) {
    on_ranks({2}, [](const job& j) {
        if (j.ranks() < 2) return;
        messenger m(j, {.unexpected = 100});
        constexpr std::size_t flood = 5000;
        if (j.rank() == 0) {
            std::vector<message_request> requests(flood + 1);
            std::vector<std::size_t> words(flood);
            for (std::size_t i = 0; i < flood; ++i) {
                words[i] = i;
                m.isend(requests[i], std::as_bytes(std::span(&words[i], 1)), 1, 1);
            }
            m.isend(requests[flood], {}, 1, 2);
            EXPECT_EQ(m.wait_all_for(requests, std::chrono::milliseconds(20)), status::timed_out);
            EXPECT_EQ(m.state(), status::ok);
            ok_or_fail(m, m.wait_all(requests));
        } else if (j.rank() == 1) {
            std::vector<message_request> hidden(1);
            m.irecv(hidden[0], {}, 0, 2);
            // Until there is no room; and a little longer, in which no more may come.
            for (int tries = 0; m.counts().unexpected < 100 && tries < 200; ++tries)
                ASSERT_EQ(m.wait_all_for(hidden, std::chrono::milliseconds(60)), status::timed_out);
            EXPECT_EQ(m.wait_all_for(hidden, std::chrono::milliseconds(60)), status::timed_out);
            EXPECT_EQ(m.counts().unexpected, 100u);
            for (std::size_t i = 0, got = 0; i < flood; ++i) {
                ok_or_fail(m, m.recv(std::as_writable_bytes(std::span(&got, 1)), 0, 1));
                ASSERT_EQ(got, i);
            }
            ok_or_fail(m, m.wait_all(hidden));
        }
        j.barrier();
    });
}

TEST(Messenger, MessagesToSelfWaitForTheirReceive) {
    on_ranks({1, 2}, [](const job& j) {
        messenger m(j, {.unexpected = 2});
        for (const std::size_t n : {std::size_t{8}, std::size_t{1000}, std::size_t{300'000}}) {
            std::vector<bytes> out(4), in(4);
            std::array<message_request, 8> r;
            for (std::size_t i = 0; i < 4; ++i) {
                out[i] = bytes(n);
                in[i] = bytes(n);
                fill(out[i], j.rank(), i);
                m.isend(r[i], out[i], j.rank(), 1);
            }
            for (std::size_t i = 0; i < 4; ++i) m.irecv(r[4 + i], in[i], i % 2 ? any_source : j.rank(), 1);
            ok_or_fail(m, m.wait_all(r));
            for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(wrong(in[i], j.rank(), i), 0u);
        }
    });
}

TEST(Messenger, ProbeLooksWithoutTaking) {
    on_ranks({2}, [](const job& j) {
        messenger m(j);
        const int peer = j.ranks() - 1 - j.rank();
        bytes out(777, &j.memory()), in(777);
        message_request r;
        m.isend(r, out, peer, 4);
        message_info info;
        EXPECT_FALSE(m.probe(any_source, 5, info));
        while (!m.probe(any_source, any_tag, info)) std::this_thread::yield();
        EXPECT_EQ(info.source, peer);
        EXPECT_EQ(info.tag, 4);
        EXPECT_EQ(info.bytes, 777u);
        ok_or_fail(m, m.recv(in, info.source, info.tag));
        ok_or_fail(m, m.wait(r));
        j.barrier();
    });
}

TEST(Messenger, NothingIsAllocatedAfterSetUp) {
    static std::atomic<std::uint64_t> before{0}, after{0};
    on_ranks({2}, [](const job& j) {
        messenger m(j);
        const int peer = j.ranks() - 1 - j.rank();
        bytes out(300'000, &j.memory()), in(300'000, &j.memory());
        const auto steps = [&](int count) {
            for (int i = 0; i < count; ++i)
                for (const std::size_t n :
                     {std::size_t{8}, std::size_t{200}, std::size_t{5000}, std::size_t{300'000}}) {
                    message_request a, b, c;
                    m.isend(a, std::span(out).first(n), peer, 1);
                    m.isend(c, std::span(out).first(n), peer, 2);
                    m.irecv(b, in, any_source, 2);
                    ok_or_fail(m, m.wait(b));
                    ok_or_fail(m, m.recv(in, peer, any_tag));
                    ok_or_fail(m, m.wait(a));
                    ok_or_fail(m, m.wait(c));
                }
        };
        steps(20);
        if (j.rank() == 0) before = halocline_test::allocations();
        steps(20); // nobody is in its set-up any more
        if (j.rank() == 0) after = halocline_test::allocations();
        steps(1); // neither goes on before the count is taken
        j.barrier();
    });
    EXPECT_EQ(before, after);
}

TEST(Messenger, StartAllWaitsForReceiversAndNoLongerThanItsDeadline) {
    on_ranks({2}, [](const job& j) {
        if (j.ranks() < 2) return;
        messenger m(j);
        bytes data(20'000, &j.memory());
        if (j.rank() == 0) {
            fill(data, 0, 1);
            std::array<message_request, 3> sends;
            for (message_request& s : sends) m.isend(s, data, 1, 4);
            // Within a node a receiver needs nobody to get the message; over a network it has to call.
            const status expected = network().empty() ? status::ok : status::timed_out;
            EXPECT_EQ(m.start_all(sends, std::chrono::milliseconds(20)), expected);
            EXPECT_EQ(m.state(), status::ok);
            j.barrier();
            EXPECT_EQ(m.start_all(sends, std::chrono::seconds(20)), status::ok);
            ok_or_fail(m, m.wait_all(sends));
        } else {
            j.barrier();
            for (int i = 0; j.rank() == 1 && i < 3; ++i) {
                std::fill(data.begin(), data.end(), std::byte{0});
                ok_or_fail(m, m.recv(data, 0, 4));
                EXPECT_EQ(wrong(data, 0, 1), 0u);
            }
        }
        j.barrier();
    });
}

TEST(Messenger, WaitOnSendEndsWithTheReceiversCallOrInTime) {
    on_ranks({2}, [](const job& j) {
        if (j.ranks() < 2) return;
        const auto longest = std::chrono::milliseconds(50);
        messenger m(j, {.wait_on_send = longest});
        bytes data(20'000, &j.memory());
        message_request r;
        if (j.rank() == 0) {
            const auto since = std::chrono::steady_clock::now();
            m.isend(r, data, 1, 4);
            const auto took = std::chrono::steady_clock::now() - since;
            EXPECT_EQ(took >= longest, !network().empty()) << "waits for a receive over a network only";
        }
        j.barrier();
        if (j.rank() == 1) m.irecv(r, data, 0, 4);
        ok_or_fail(m, m.wait(r));
        if (j.rank() == 0) { // the receive is there already
            ok_or_fail(m, m.recv({}, 1, 5));
            m.isend(r, data, 1, 6);
        } else if (j.rank() == 1) {
            m.irecv(r, data, 0, 6);
            ok_or_fail(m, m.send({}, 0, 5));
        }
        ok_or_fail(m, m.wait(r));
        j.barrier();
    });
}

TEST(Messenger, AMessageOfMoreThan2GiBArrives) {
    on_ranks({2}, [](const job& j) {
        if (j.ranks() > 2) return;
        messenger m(j);
        const int peer = j.ranks() - 1 - j.rank();
        constexpr std::size_t n = (std::size_t{1} << 31) + 4099, chunk = std::size_t{32} << 20;
        // The source costs memory only where it is written. All chunks of the target are the same memory: the last
        // one's bytes stay.
        const auto map = [](std::size_t length, int fd, void* at) {
            void* p =
                mmap(at, length, PROT_READ | PROT_WRITE,
                     MAP_NORESERVE | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | (at ? MAP_FIXED : 0), fd, 0);
            EXPECT_NE(p, MAP_FAILED);
            return static_cast<std::byte*>(p);
        };
        constexpr std::size_t places[] = {n - chunk / 2, (std::size_t{1} << 31) - 1, std::size_t{1} << 31, n - 1};
        message_request send;
        std::byte *out = nullptr, *in = nullptr;
        if (j.rank() == 0) {
            out = map(n, -1, nullptr);
            madvise(out, n, MADV_HUGEPAGE);
            for (const std::size_t at : places) out[at] = letter(0, 9, at);
            m.isend(send, {out, n}, peer, 0);
        }
        if (peer == 0) {
            const int fd = memfd_create("target", MFD_CLOEXEC);
            ASSERT_EQ(ftruncate(fd, chunk), 0);
            in = map(n + chunk, -1, nullptr);
            for (std::size_t at = 0; at < n; at += chunk) map(chunk, fd, in + at);
            ::close(fd);
            message_info info;
            ok_or_fail(m, m.recv({in, n}, 0, 0, &info));
            EXPECT_EQ(info.bytes, n);
            for (const std::size_t at : places) EXPECT_EQ(in[at], letter(0, 9, at)) << at;
            EXPECT_EQ(in[n - 2], std::byte{0});
            munmap(in, n + chunk);
        }
        ok_or_fail(m, m.wait(send));
        if (out != nullptr) munmap(out, n);
        j.barrier();
    });
}

TEST(Messenger, ARequestMayBeDestroyedEarly) {
    on_ranks({2}, [](const job& j) {
        messenger m(j);
        const int peer = j.ranks() - 1 - j.rank();
        bytes data(100'000, &j.memory());
        {
            message_request posted, any, self;
            m.irecv(posted, data, peer, 1);
            m.irecv(any, data, any_source, 2);
            m.isend(self, data, j.rank(), 3);
        }
        j.barrier(); // what the peer sends now meets none of them
        int x = 5, y = 0;
        message_request r;
        m.isend(r, std::as_bytes(std::span(&x, 1)), peer, 1);
        ok_or_fail(m, m.recv(std::as_writable_bytes(std::span(&y, 1)), peer, 1));
        EXPECT_EQ(y, 5);
        message_info info;
        EXPECT_FALSE(m.probe(j.rank(), 3, info));
        j.barrier();
    });
}

TEST(Messenger, TwoSidedCallsBehaveLikeTheirNamesakes) {
    on_ranks({1, 2, 5}, [](const job& j) {
        namespace api = two_sided;
        api::communicator c(j);
        const int next = (c.rank() + 1) % c.size(), before = (c.rank() + c.size() - 1) % c.size();
        // A number goes round the ring and grows.
        int sum = 0;
        api::request r[2];
        if (c.rank() == 0) api::isend(&sum, 1, api::datatype::int32, next, 3, c, &r[0]);
        int got = -1;
        api::receive_status s;
        api::recv(&got, 1, api::datatype::int32, api::any_source, 3, c, &s);
        EXPECT_EQ(s.source, before);
        EXPECT_EQ(api::get_count(s, api::datatype::int32), 1);
        if (c.rank() == 0)
            api::wait(&r[0], c);
        else
            api::send(&(sum = got + 1), 1, api::datatype::int32, next, 3, c);
        if (c.rank() == 0) {
            EXPECT_EQ(got, c.size() - 1);
        }
        // Everybody's halves both ways, late waits.
        double out[2] = {c.rank() + 0.25, c.rank() + 0.5}, in[2] = {};
        api::irecv(&in[0], 1, api::datatype::float64, before, 1, c, &r[0]);
        api::isend(&out[0], 1, api::datatype::float64, next, 1, c, &r[1]);
        api::barrier(c);
        bool done = false;
        while (!done) api::test(&r[0], &done, c, &s);
        api::waitall(2, r, c); // one of them is request_null
        api::sendrecv(&out[1], 1, api::datatype::float64, before, 2, &in[1], 1, api::datatype::float64, next, 2, c);
        EXPECT_EQ(in[0], before + 0.25);
        EXPECT_EQ(in[1], next + 0.5);
        api::iprobe(api::any_source, api::any_tag, c, &done);
        EXPECT_FALSE(done);
        api::barrier(c);
    });
}

// Rows that end a messenger or the job: ranks as threads only.

std::string failure_of(int ranks, int rank, const std::function<void(const job&)>& body) {
    std::string text;
    try {
        run_threads(ranks, [&](const job& j) {
            try {
                body(j);
            } catch (const std::exception& e) {
                if (j.rank() == rank) text = e.what();
                throw;
            }
        });
    } catch (const std::exception&) {
    }
    return text;
}

TEST(MessengerFailure, AMessageThatIsTooLongIsWrongData) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    for (const std::size_t n : {std::size_t{72}, std::size_t{5000}, std::size_t{300'000}}) {
        const std::string text = failure_of(2, 1, [&](const job& j) {
            messenger m(j);
            bytes data(n, &j.memory());
            if (j.rank() == 0) ok_or_fail(m, m.send(data, 1, 5)); // its sender is let go
            if (j.rank() == 1) ok_or_fail(m, m.recv(std::span(data).first(64), 0, 5));
            j.barrier();
        });
        EXPECT_NE(
            text.find("a receive of up to 64 bytes that got a message of " + std::to_string(n) + " from rank 0, tag 5"),
            std::string::npos)
            << text;
    }
}

TEST(MessengerFailure, APeerThatClosesEndsTheWait) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    const std::string text = failure_of(2, 0, [](const job& j) {
        {
            messenger m(j);
            if (j.rank() == 0) {
                std::array<message_request, 2> r;
                m.irecv(r[0], {}, 1, 6);
                m.irecv(r[1], {}, 1, 7);
                ok_or_fail(m, m.wait_all(r));
            }
        }
        j.barrier();
    });
    EXPECT_NE(text.find("a receive from rank 1, tag 6, and 1 more"), std::string::npos) << text;
}

TEST(MessengerFailure, OptionsThatDifferAreOneError) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    const std::string text = failure_of(
        2, 1, [](const job& j) { messenger m(j, {.unexpected = j.rank() == 0 ? std::size_t{10} : std::size_t{20}}); });
    EXPECT_NE(text.find("10 unexpected"), std::string::npos) << text;
    EXPECT_NE(text.find("20 unexpected"), std::string::npos) << text;
}

} // namespace
