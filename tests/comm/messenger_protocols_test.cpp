// SPDX-License-Identifier: Apache-2.0
// Matched messages: every way in which bytes travel.
#include "messenger_bodies.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline/comm/processors.hpp>

#include <halocline_test/idle_barrier.hpp>
#include <halocline_test/secret_memory.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <sys/mman.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace halocline_test::messages;
using halocline_test::idle_barrier;
using halocline_test::secret_memory;

constexpr std::size_t sizes[] = {0,     1,      39,     40,     41,     63,     64,      65,           255,
                                 256,   257,    295,    296,    297,    511,    512,     513,          1023,
                                 1024,  1025,   8191,   8192,   8193,   24575,  24576,   65535,        65536,
                                 65537, 131071, 131072, 262143, 262144, 262145, 1 << 20, (1 << 20) + 1};

void expect_every_size(const job& j, const messenger_options& options) {
    messenger m(j, options);
    std::uint64_t number = 0;
    for (const std::size_t n : sizes)
        for (int way = 0; way < ways; ++way) expect_round_the_ring(m, n, way, ++number);
    j.barrier();
}

TEST(Messenger, PayloadOfEverySizeArrives) {
    on_ranks({1, 2, 3}, [](const job& j) { expect_every_size(j, {}); });
}

TEST(MessengerOverNetwork, PayloadOfEverySizeArrivesWhereBeginningMakesNoProgress) {
    on_ranks({2}, [](const job& j) { expect_every_size(j, {.test_on_init = false}); });
}

/// Does rank 0 see a message of rank 1 although it only calls irecv(), for other messages? It tries for a while.
void expect_irecv_takes_what_came(const job& j, bool test_on_init) {
    ASSERT_FALSE(network().empty());
    messenger m(j, {.test_on_init = test_on_init});
    std::byte word{};
    j.barrier();
    if (j.rank() == 1) ok_or_fail(m, m.send({&word, 1}, 0, 1));
    if (j.rank() == 0) {
        using clock = std::chrono::steady_clock;
        const auto end = clock::now() + (test_on_init ? std::chrono::seconds(20) : std::chrono::milliseconds(300));
        while (m.counts().arrived == 0 && clock::now() < end) {
            message_request other;
            m.irecv(other, {}, 1, 2);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        EXPECT_EQ(m.counts().arrived, test_on_init ? 1u : 0u);
        ok_or_fail(m, m.recv({&word, 1}, 1, 1));
        EXPECT_EQ(m.counts().arrived, 1u);
    }
    j.barrier();
}

TEST(MessengerOverNetwork, BeginningMakesProgressUnlessTestOnInitIsFalse) {
    on_ranks({2}, [](const job& j) {
        expect_irecv_takes_what_came(j, true);
        expect_irecv_takes_what_came(j, false);
    });
}

/// More messages than there are slots.
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

/// Interrupts this process 20000 times per second of its processor time: many times more often than messages take.
class interruptions {
  public:
    interruptions() {
        struct sigaction now {};
        now.sa_handler = [](int) {
            const timespec nap{0, 1'000};
            nanosleep(&nap, nullptr);
        };
        sigaction(SIGVTALRM, &now, &before_);
        every(50);
    }
    ~interruptions() {
        every(0);
        sigaction(SIGVTALRM, &before_, nullptr);
    }
    interruptions(const interruptions&) = delete;
    interruptions& operator=(const interruptions&) = delete;

  private:
    static void every(suseconds_t us) {
        const itimerval timer{{0, us}, {0, us}};
        setitimer(ITIMER_VIRTUAL, &timer, nullptr);
    }
    struct sigaction before_ {};
};

/// A sender that stops between two lines of a message: nobody reads what is not there yet, expected or not.
TEST(Messenger, SlotsInTheSlabOfInterruptedSendersAreReadWhole) {
    on_ranks({2}, [](const job& j) {
        messenger m(j);
        const int peer = j.ranks() - 1 - j.rank();
        const interruptions often;
        std::vector<std::byte> out(1024), in(1024);
        const std::uint64_t messages = 40'000 / static_cast<std::uint64_t>(j.ranks());
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5); // for machines with other load
        enum : int { more, last };
        for (std::uint64_t k = 0, tag = more; tag == more; ++k) {
            const bool is_last = k + 1 >= messages || (k % 64 == 0 && std::chrono::steady_clock::now() > end);
            const std::size_t n = 1024 - k % 500;
            for (const std::size_t at : {std::size_t{41}, n / 2, n - 1}) out[at] = letter(j.rank(), k, at);
            message_request send;
            m.isend(send, std::span(out).first(n), peer, is_last ? last : more);
            message_info info;
            while (k % 2 == 0 && !m.probe(peer, any_tag, info)) { // it becomes an unexpected message
                ok_or_fail(m, m.state());
                std::this_thread::yield(); // probe() keeps the core, which may also be the sender's
            }
            ok_or_fail(m, m.recv(in, peer, any_tag, &info));
            ok_or_fail(m, m.wait(send));
            ASSERT_EQ(info.bytes, n);
            for (const std::size_t at : {std::size_t{41}, n / 2, n - 1}) ASSERT_EQ(in[at], letter(peer, k, at)) << k;
            if (is_last || info.tag == last) tag = last; // either end of a pair may want to stop first
        }
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

/// Where copies are moved, two of them are quicker than the kernel, near up to 256 KiB. Not if the sender does not begin
/// at once, which on a machine with other load may take many messages.
TEST(MessengerBetweenRanks, MovedMessagesFromElsewhereGoThroughTheSlab) {
    on_ranks({2}, [](const job& j) {
        costs c;
        c.moves_skip_waits = true; // not measured: near
        assume_costs(j, c);
        messenger m(j);
        const bool may = m.describe().find("other memory by process_vm_readv") != std::string::npos &&
                         usable_processors().size() >= 2;
        for (const std::size_t n : {16385, 32767, 32768, 262144, 262145}) {
            const bool expected = n >= 32768 && n <= 262144;
            const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(may && expected ? 30 : 0);
            bytes data(n);
            std::byte over{};
            for (std::uint64_t number = 1; j.rank() < 2 && over == std::byte{}; ++number) {
                const std::uint64_t before = m.counts().staged;
                if (j.rank() == 0) {
                    fill(data, 0, number);
                    ok_or_fail(m, m.send(data, 1, 5));
                    ok_or_fail(m, m.recv({&over, 1}, 1, 6));
                    continue;
                }
                ok_or_fail(m, m.recv(data, 0, 5));
                EXPECT_EQ(wrong(data, 0, number), 0u) << n;
                const bool staged = m.counts().staged > before;
                if (may && !expected) {
                    EXPECT_FALSE(staged) << n;
                }
                over = std::byte{staged || std::chrono::steady_clock::now() > end};
                if (may && over != std::byte{}) {
                    EXPECT_EQ(staged, expected) << n;
                }
                ok_or_fail(m, m.send({&over, 1}, 0, 6));
            }
            j.barrier();
        }
    });
}

/// One buffer for all, changed as soon as send() returns; more messages than there are copies, mixed with shorter and
/// longer ones.
TEST(MessengerBetweenRanks, SenderOfAStreamGoesOnOnceItsMessagesAreInTheSlab) {
    on_ranks({2}, [](const job& j) {
        constexpr std::size_t stream[] = {2048, 16384, 100, 1025, 20000, 8, 4096, 65536, 16383};
        assume_costs(j, {}); // nothing is copied because of the distance
        messenger m(j);
        bytes data(65536, &j.memory());
        std::uint64_t direct = 0, small_enough = 0;
        for (std::uint64_t number = 0; number < 200; ++number) {
            const std::size_t n = stream[number % std::size(stream)];
            direct += n > 1024;
            small_enough += n > 1024 && n <= 16384;
            if (j.rank() == 0) {
                fill(std::span(data).first(n), 0, number);
                ok_or_fail(m, m.send(std::span(data).first(n), 1, 5));
                fill(data, 1, number);
            } else if (j.rank() == 1) {
                if (number == 50) std::this_thread::sleep_for(std::chrono::milliseconds(20));
                ok_or_fail(m, m.recv(data, 0, 5));
                EXPECT_EQ(wrong(std::span(data).first(n), 0, number), 0u) << "message " << number;
            }
        }
        EXPECT_EQ(m.counts().copied, j.rank() == 0 ? small_enough - 1 : 0); // all but the first
        EXPECT_EQ(m.counts().direct + m.counts().synergistic, j.rank() == 1 ? direct : 0);
        j.barrier();
    });
}

/// A sender that gets an answer to each message waits anyway. (Larger ones are copied where they bypass the cache.)
TEST(MessengerBetweenRanks, MessagesThatAreAnsweredAreNotCopiedIntoTheSlab) {
    on_ranks({2}, [](const job& j) {
        assume_costs(j, {}); // nothing is copied because of the distance
        messenger m(j);
        bytes data(4095, &j.memory());
        for (int i = 0; i < 50 && j.rank() < 2; ++i) {
            const int peer = 1 - j.rank();
            if (j.rank() == 0) ok_or_fail(m, m.send(data, peer, 5));
            ok_or_fail(m, m.recv(data, peer, 5));
            if (j.rank() == 1) ok_or_fail(m, m.send(data, peer, 5));
        }
        EXPECT_EQ(m.counts().copied, 0u);
        j.barrier();
    });
}

/// As long as there is room for copies, of which a longer one takes two places; the receiver gets the others in another
/// way.
TEST(MessengerBetweenRanks, SmallMessagesFromElsewhereAreCopiedIntoTheSlab) {
    struct load {
        std::vector<std::size_t> sizes; // in turn
        std::size_t room;
    };
    for (const load& l : {load{{4095}, 16}, load{{16384}, 16}, load{{16385}, 8}, load{{32767}, 8}, load{{32768}, 0},
                          load{{2000, 20'000}, 8}, load{{20'000, 3000, 3000, 3000}, 11}})
        on_ranks({2}, [&](const job& j) {
            constexpr std::size_t all = 40;
            assume_costs(j, {}); // nothing is copied because of the distance
            messenger m(j);
            std::vector<bytes> data;
            for (std::size_t i = 0; i < all; ++i) data.emplace_back(l.sizes[i % l.sizes.size()]);
            std::vector<message_request> sends(all);
            if (j.rank() == 0) {
                for (std::size_t i = 0; i < all; ++i) {
                    fill(data[i], 0, i);
                    m.isend(sends[i], data[i], 1, 5);
                    EXPECT_EQ(sends[i].done(), i < l.room && ranks_are_processes()) << data[i].size() << ", " << i;
                    if (sends[i].done()) fill(data[i], 1, i);
                }
                EXPECT_EQ(m.counts().copied, ranks_are_processes() ? l.room : 0);
            }
            j.barrier();
            if (j.rank() == 0) {
                ok_or_fail(m, m.wait_all(sends));
            } else if (j.rank() == 1) {
                for (std::size_t i = 0; i < all; ++i) {
                    ok_or_fail(m, m.recv(data[i], 0, 5));
                    EXPECT_EQ(wrong(data[i], 0, i), 0u) << "message " << i;
                }
            }
            j.barrier();
        });
}

/// A copy that has been received makes room for the next, whatever this rank has called in between.
TEST(MessengerBetweenRanks, AnsweredMessagesFromElsewhereAllGoThroughTheSlab) {
    on_ranks({2}, [](const job& j) {
        constexpr std::uint64_t all = 100;
        assume_costs(j, {}); // nothing is copied because of the distance
        messenger m(j);
        bytes data(2048);
        for (std::uint64_t i = 0; i < all && j.rank() < 2; ++i) {
            const int peer = 1 - j.rank();
            if (j.rank() == 0) ok_or_fail(m, m.send(data, peer, 5));
            ok_or_fail(m, m.recv(data, peer, 5));
            if (j.rank() == 1) ok_or_fail(m, m.send(data, peer, 5));
        }
        EXPECT_EQ(m.counts().copied, ranks_are_processes() && j.rank() < 2 ? all : 0);
        EXPECT_EQ(m.counts().read, 0u);
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

/// The costs of the job are `c` as long as this lives.
class assumed_costs {
  public:
    assumed_costs(const job& j, const costs& c) : job_(j), measured_(measured_costs(j)) { assume_costs(j, c); }
    ~assumed_costs() { assume_costs(job_, measured_); }
    assumed_costs(const assumed_costs&) = delete;
    assumed_costs& operator=(const assumed_costs&) = delete;

  private:
    job job_;
    costs measured_;
};

/// Sends from rank 0 to rank 1 until the sender has copied pieces of a message, if both ranks have a core.
void expect_sender_copies_pieces(const job& j, std::pmr::memory_resource& from, std::pmr::memory_resource& to) {
    ASSERT_GE(j.ranks(), 2);
    messenger m(j);
    bytes data(8 << 20, j.rank() == 0 ? &from : &to);
    message_info info;
    std::uint64_t k = 0;
    if (j.rank() == 0) {
        // Both have to run at the same time: on a loaded machine they may share a core until the system has moved one,
        // and further ranks take the sender's core.
        using clock = std::chrono::steady_clock;
        const bool at_once = usable_processors().size() >= static_cast<std::size_t>(j.ranks());
        const auto patience = clock::now() + std::chrono::seconds(at_once ? 30 : 0);
        do {
            fill(data, 0, k++);
            ok_or_fail(m, m.send(data, 1, 0));
        } while (m.counts().pieces_sent == 0 && clock::now() < patience);
        if (at_once) {
            EXPECT_GT(m.counts().pieces_sent, 0u);
        }
        ok_or_fail(m, m.send({}, 1, 1));
    } else if (j.rank() == 1) {
        for (;; ++k) {
            ok_or_fail(m, m.recv(data, 0, any_tag, &info));
            if (info.tag == 1) break;
            ASSERT_EQ(wrong(data, 0, k), 0u);
        }
        const bool by_the_system = ranks_are_processes() && &from != &j.memory();
        EXPECT_EQ(m.counts().synergistic, k);
        EXPECT_EQ(m.counts().read, by_the_system ? k : 0);
        EXPECT_EQ(m.counts().staged, 0u);
    }
    j.barrier();
}

TEST(MessengerBetweenRanks, SenderCopiesPiecesOfAMessageThatItWaitsFor) {
    on_ranks({2}, [](const job& j) {
        const assumed_costs nothing_is_streamed(j, {});
        std::pmr::memory_resource* const heap = std::pmr::new_delete_resource();
        for (std::pmr::memory_resource* from : {static_cast<std::pmr::memory_resource*>(&j.memory()), heap})
            for (std::pmr::memory_resource* to : {static_cast<std::pmr::memory_resource*>(&j.memory()), heap})
                expect_sender_copies_pieces(j, *from, *to);
    });
}

/// Rank 0 sends `data` to rank 1, `rounds` times.
void expect_to_arrive(messenger& m, std::span<std::byte> data, std::uint64_t rounds) {
    for (std::uint64_t k = 0; k < rounds; ++k) {
        if (m.job().rank() == 0) {
            fill(data, 0, k);
            ok_or_fail(m, m.send(data, 1, 0));
        } else if (m.job().rank() == 1) {
            ok_or_fail(m, m.recv(data, 0, 0));
            EXPECT_EQ(wrong(data, 0, k), 0u) << "round " << k;
        }
    }
}

/// Writing into the peer's lines is expensive, bypassing the cache is not.
costs far_apart() { return {.cached = {.line_seconds = 30e-9}, .streamed = {.line_seconds = 5e-9}}; }

/// There slabs are pushed, and ordinary memory goes through the sender's slab, past its cache.
TEST(MessengerBetweenProcesses, FarSendersCopyPastTheirCaches) {
    on_ranks({}, [](const job& j) {
        const assumed_costs far(j, far_apart());
        constexpr std::uint64_t rounds = 8;
        std::pmr::memory_resource* const heap = std::pmr::new_delete_resource();
        for (std::pmr::memory_resource* where : {static_cast<std::pmr::memory_resource*>(&j.memory()), heap})
            for (const std::size_t n : {32768, 32769, 1'000'003}) {
                messenger m(j);
                bytes data(n, where);
                expect_to_arrive(m, data, rounds);
                if (j.rank() == 1) { // a sender that is interrupted may not begin in time: its receiver copies
                    EXPECT_EQ(m.counts().staged + m.counts().direct, where == heap ? rounds : 0);
                    EXPECT_EQ(m.counts().pushed, where == heap ? 0 : rounds);
                }
                j.barrier();
            }
    });
}

/// Nobody waits for a sender that does something else; its next message finds everything as it should be.
TEST(MessengerBetweenProcesses, FarReceiversReadOrdinaryMemoryOfAnIdleSender) {
    on_ranks({}, [](const job& j) {
        const assumed_costs far(j, far_apart());
        constexpr std::uint64_t rounds = 5;
        messenger m(j);
        idle_barrier meet(j);
        bytes data(300'000, std::pmr::new_delete_resource());
        for (std::uint64_t k = 0; k < rounds; ++k) {
            message_request r;
            fill(data, 0, j.rank() == 0 ? k : k + 1);
            if (j.rank() == 0) m.isend(r, data, 1, 0);
            meet();
            if (j.rank() == 1) {
                ok_or_fail(m, m.recv(data, 0, 0));
                EXPECT_EQ(wrong(data, 0, k), 0u) << "round " << k;
                EXPECT_EQ(m.counts().read, k + 1);
                EXPECT_EQ(m.counts().staged, 0u);
            }
            meet(); // the sender has waited for nothing else
            if (j.rank() == 0) ok_or_fail(m, m.wait(r));
        }
        expect_to_arrive(m, data, rounds);
        j.barrier();
    });
}

/// A copy by both ends, one of which is refused, is made again through the slab.
TEST(MessengerBetweenProcesses, MemoryThatTheSystemDoesNotCopyGoesThroughTheSlab) {
    on_ranks({}, [](const job& j) {
        constexpr std::size_t n = 1'000'003;
        constexpr std::uint64_t rounds = 20;
        const secret_memory secret(1 << 20);
        for (const std::string& missing : j.gather(secret.exists() ? "" : "missing"))
            if (!missing.empty()) GTEST_SKIP() << "no memfd_secret here";
        bytes heap(n, std::pmr::new_delete_resource());
        for (const int hidden : {0, 1}) { // whose memory is hidden
            messenger m(j);
            const std::span<std::byte> data = j.rank() == hidden ? secret.all().first(n) : std::span(heap);
            expect_to_arrive(m, data, rounds);
            if (j.rank() == 1 && hidden == 0) {
                EXPECT_EQ(m.counts().staged, rounds);
            }
            j.barrier();
        }
    });
}

/// From one rank to itself, or from rank 0 to rank 1.
TEST(Messenger, AMessageOfMoreThan2GiBArrives) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer takes longer than the deadline";
#endif
    on_ranks({2}, [](const job& j) {
        ASSERT_LE(j.ranks(), 2);
        messenger m(j);
        const int peer = j.ranks() - 1 - j.rank();
        constexpr std::size_t n = (std::size_t{1} << 31) + 4099, chunk = std::size_t{32} << 20, mib = 1 << 20;
        // Checked byte by byte: both ends, the middle, and where signed 32-bit numbers end. The source uses memory only
        // there; all chunks of the target outside them are the same memory. Both ranks copy pieces, in any order.
        struct stretch {
            std::size_t first, last;
        };
        constexpr stretch stretches[] = {{0, mib}, {n / 2 - mib, n / 2 + mib}, {(std::size_t{1} << 31) - mib, n}};
        const auto map = [](std::size_t length, int fd, void* at) {
            void* p =
                mmap(at, length, PROT_READ | PROT_WRITE,
                     MAP_NORESERVE | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | (at ? MAP_FIXED : 0), fd, 0);
            EXPECT_NE(p, MAP_FAILED);
            return static_cast<std::byte*>(p);
        };
        message_request send;
        std::byte *out = nullptr, *in = nullptr;
        if (j.rank() == 0) {
            out = map(n, -1, nullptr);
            madvise(out, n, MADV_HUGEPAGE);
            for (const stretch& s : stretches)
                for (std::size_t at = s.first; at < s.last; ++at) out[at] = letter(0, 9, at);
            m.isend(send, {out, n}, peer, 0);
        }
        if (peer == 0) {
            const int fd = memfd_create("target", MFD_CLOEXEC);
            ASSERT_EQ(ftruncate(fd, chunk), 0);
            in = map(n + chunk, -1, nullptr);
            for (std::size_t at = 0; at < n; at += chunk) {
                const bool looked_at = std::ranges::any_of(
                    stretches, [&](const stretch& s) { return s.first < at + chunk + 1 && at < s.last + 1; });
                if (!looked_at) map(chunk, fd, in + at);
            }
            ::close(fd);
            message_info info;
            ok_or_fail(m, m.recv({in, n}, 0, 0, &info));
            EXPECT_EQ(info.bytes, n);
            std::size_t wrong = 0;
            for (const stretch& s : stretches) {
                for (std::size_t at = s.first; at < s.last; ++at) wrong += in[at] != letter(0, 9, at);
                if (s.first > 0) wrong += in[s.first - 1] != std::byte{0};
                wrong += in[s.last] != std::byte{0}; // from the source, or after the message
            }
            EXPECT_EQ(wrong, 0u);
            munmap(in, n + chunk);
        }
        ok_or_fail(m, m.wait(send));
        if (out != nullptr) munmap(out, n);
        j.barrier();
    });
}

} // namespace
