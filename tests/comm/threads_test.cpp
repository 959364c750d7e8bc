// SPDX-License-Identifier: Apache-2.0
// What only ranks of one process can show: counts of their common heap, deadlines, the end of a rank that does not end
// the program. Delivery is tested in contract/.
#include "contract/messages.hpp"
#include "node/node_slab.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/connection.hpp>
#include <halocline/comm/costs.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/messenger.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/comm/slab_full.hpp>
#include <halocline/comm/window.hpp>
#include <halocline_test/allocation_counter.hpp>
#include <halocline_test/idle_barrier.hpp>
#include <halocline_test/other_user.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

using namespace halocline;
using namespace halocline_test;

TEST(Channels, NothingIsAllocatedBetweenSendAndWait) {
    std::atomic<std::uint64_t> before{0}, after{0};
    run_threads(2, [&](const job& j) {
        channel_set set(j, ring(j, 256), {"ring", ""});
        global_sum sum(j, 8);
        double v[3]{1, 2, 3};
        j.barrier();
        std::uint64_t k = 0;
        const auto steps = [&] {
            for (int i = 0; i < 100; ++i) {
                ++k;
                set.for_each([&](auto& c) { c.send(k, ticks()); });
                ASSERT_EQ(set.wait(k), status::ok);
                ASSERT_EQ(sum(v), status::ok);
            }
        };
        steps();
        if (j.rank() == 0) before = allocations();
        ASSERT_EQ(sum(v), status::ok); // both are past set-up now
        ASSERT_EQ(sum(v), status::ok);
        steps();
        if (j.rank() == 0) after = allocations();
        ASSERT_EQ(sum(v), status::ok); // neither continues before the count is taken
    });
    EXPECT_EQ(before, after);
}

TEST(Job, ARankWithoutAThreadIsAnErrorForAll) {
    if (!can_drop_privileges()) GTEST_SKIP() << "there is no user but root, for whom the limit doesn't hold";
    const pid_t child = fork();
    if (child == 0) {
        constexpr rlimit processes{1, 1};
        setrlimit(RLIMIT_NPROC, &processes);
        if (!drop_privileges()) _exit(3);
        alarm(20);
        std::string text = "no exception";
        try {
            run_threads(3, [](const job& j) { j.barrier(); });
        } catch (const std::exception& e) {
            text = e.what();
        }
        const bool clear = text.starts_with("no thread for rank 1 of 3") && text.find("ulimit -u") != text.npos;
        if (!clear) std::fprintf(stderr, "%s\n", text.c_str());
        _exit(clear ? 0 : 1);
    }
    int how = 0;
    ASSERT_EQ(waitpid(child, &how, 0), child);
    EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << how;
}

TEST(Job, RefusesChoicesThatNoEnumeratorStandsFor) {
    const auto refused = [](const job_options& options) { return refusal([&] { (void)job::single(options); }); };
    job_options path, mpi;
    path.path = static_cast<comm::path>(5);
    mpi.mpi = static_cast<mpi_mode>(-2);

    EXPECT_EQ(refused(path), "job_options::path 5: must be one of automatic, direct, streamed, joint, packed");
    EXPECT_EQ(refused(mpi), "job_options::mpi -2: must be one of two-sided, one-sided");
}

TEST(Job, SaysThatItWasMovedFrom) {
    job j = job::single();
    const job taken = std::move(j);

    EXPECT_EQ(taken.rank(), 0);
    EXPECT_THROW((void)j.rank(), input_error);
    EXPECT_THROW(global_sum{j}, input_error);
}

TEST(Job, AbortEndsTheWaitsOfAllWithItsReason) {
    std::atomic<int> told{0};
    EXPECT_THROW(run_threads(3,
                             [&](const job& j) {
                                 if (j.rank() == 1) {
                                     j.abort("no more sites");
                                     throw error("no more sites");
                                 }
                                 try {
                                     j.barrier();
                                 } catch (const rank_failure& e) {
                                     EXPECT_EQ(e.culprit(), 1);
                                     EXPECT_NE(std::string(e.what()).find("no more sites"), std::string::npos)
                                         << e.what();
                                     ++told;
                                     throw;
                                 }
                             }),
                 error);
    EXPECT_EQ(told, 2);
}

/// Also of waits for what has arrived already, and of the rank that gives up: no program goes on without having been told.
TEST(Job, AbortEndsTheNextWaitWhateverHasArrived) {
    run_threads(2, [](const job& j) {
        const int peer = 1 - j.rank();
        idle_barrier meet(j);
        global_sum sum(j, 1);
        messenger m(j), keeps(j), is_done(j), sends(j);
        message_request done;
        connection c(j, peer);
        std::array<double, 4> out{}, in{};
        send_window<double> to(c, out);
        recv_window<double> from(c, in);
        c.connect();
        double v = 1;
        ASSERT_EQ(sum(std::span(&v, 1)), status::ok);
        ASSERT_EQ(from.init(), status::ok);
        ASSERT_EQ(to.init(), status::ok);
        ASSERT_EQ(from.post(), status::ok);
        ASSERT_EQ(to.post(), status::ok);
        const auto all_out = std::as_bytes(std::span(out));
        const auto all_in = std::as_writable_bytes(std::span(in));
        for (messenger* const one : {&m, &keeps, &is_done}) ASSERT_EQ(one->send(all_out, peer, 1), status::ok);
        is_done.irecv(done, all_in, peer, 1);
        for (message_info info; !keeps.probe(peer, 1, info) || !is_done.test(done);) std::this_thread::yield();
        sum.start(std::span(&v, 1));
        meet(); // all of it has arrived
        if (j.rank() == 1) j.abort("no more sites");
        meet();

        EXPECT_EQ(sum.finish(std::span(&v, 1)), status::aborted);
        EXPECT_EQ(from.wait(), status::aborted);
        EXPECT_EQ(m.recv(all_in, peer, 1), status::aborted);
        EXPECT_EQ(keeps.recv(all_in, peer, 1), status::aborted);
        EXPECT_EQ(is_done.wait(done), status::aborted);
        EXPECT_TRUE(is_done.pending().ends_with(": a wait for messages that were done")) << is_done.pending();
        EXPECT_EQ(sends.send(all_out, peer, 1), status::aborted);
        EXPECT_THROW(j.barrier(), rank_failure);
    });
}

TEST(Job, AWaitEndsAtTheDeadline) {
    job_options options;
    options.deadline = std::chrono::milliseconds(1500); // set-up on a busy machine must not exceed it
    std::atomic<bool> timed_out{false}, over{false};
    run_threads(
        2,
        [&](const job& j) {
            global_sum sum(j, 1);
            double v = 1;
            if (j.rank() == 1) {
                over.wait(false); // alive, but silent
                return;
            }
            timed_out = sum({&v, 1}) == status::timed_out;
            over = true;
            over.notify_one();
        },
        options);
    EXPECT_TRUE(timed_out);
}

/// A part of a large file may take one rank much longer than the others.
TEST(Job, WorkTogetherMayBeGivenMoreTimeThanTheDeadline) {
    job_options options;
    options.deadline = std::chrono::milliseconds(1500);
    std::atomic<int> done{0}, timed_out{0};
    run_threads(
        2,
        [&](const job& j) {
            const auto work = [&] {
                if (j.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
            };
            j.collectively(work, std::chrono::seconds(60));
            ++done;
            try {
                j.collectively(work); // the time was for that call only
            } catch (const rank_failure& e) {
                timed_out += e.why() == status::timed_out ? 1 : 0;
                EXPECT_NE(std::string(e.what()).find("1500 ms"), std::string::npos) << e.what();
            }
        },
        options);
    EXPECT_EQ(done, 2);
    EXPECT_EQ(timed_out, 2);
}

TEST(Job, WorkTogetherMayBeGivenAllTheTimeThereIs) {
    run_threads(2, [](const job& j) {
        const auto work = [&] {
            if (j.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
        };
        EXPECT_NO_THROW(j.collectively(work, std::chrono::milliseconds::max()));
        EXPECT_NO_THROW(j.collectively([&] { j.collectively(work, std::chrono::milliseconds::max()); },
                                       std::chrono::milliseconds::max()));
        j.barrier();
    });
}

/// Rank 2 waits longest, for rank 0, which waits for rank 1; that one computes, or sleeps while it waits for rank 0.
TEST(Job, TheDeadlineNamesWhomTheOthersWaitForInTheEnd) {
    job_options options;
    options.deadline = std::chrono::milliseconds(1500);
    enum class wait { gather, channels, of_one_asleep };
    for (const wait what : {wait::gather, wait::channels, wait::of_one_asleep}) {
        std::atomic<int> named{0}, over{0};
        const auto stay_silent = [&over] {
            for (int n = 0; n < 2; n = over) over.wait(n);
        };
        const auto body = [&](const job& j) {
            assume_costs(j, {}); // measuring them may take longer than the deadline
            const auto between = [&](int a, int b) {
                std::vector<channel_request> ends;
                if (j.rank() == a || j.rank() == b) ends.push_back({a + b - j.rank(), 0, 0, 8, 8, "chain"});
                return channel_set(j, ends, {"chain", ""});
            };
            channel_set first = between(0, 1), second = between(0, 2);
            if (j.rank() == 1) {
                const std::uint64_t began = ticks();
                auto fall_asleep = [&] {
                    if (seconds(ticks() - began) > 0.1) stay_silent();
                };
                if (what == wait::of_one_asleep)
                    EXPECT_NE(first.wait(1, fall_asleep), status::ok); // the deadline, or rank 0 has left
                else
                    stay_silent();
                return;
            }
            if (j.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
            try {
                if (what == wait::gather)
                    static_cast<void>(j.gather("here"));
                else
                    wait_for(j, j.rank() == 0 ? first : second, 1);
                ADD_FAILURE() << "nobody was there";
            } catch (const rank_failure& e) {
                EXPECT_EQ(e.why(), status::timed_out) << e.what();
                named += e.culprit() == 1 ? 1 : 0;
            }
            ++over;
            over.notify_all();
        };
        run_threads(3, body, options);

        EXPECT_EQ(named, 2) << static_cast<int>(what);
    }
}

TEST(Job, ARankThatLeftIsNamed) {
    run_threads(2, [](const job& j) {
        if (j.rank() == 1) return;
        try {
            j.barrier();
            FAIL() << "nobody was there";
        } catch (const rank_failure& e) {
            EXPECT_EQ(e.culprit(), 1);
            EXPECT_NE(std::string(e.what()).find("left the job"), std::string::npos) << e.what();
        }
    });
}

TEST(Job, UnknownAndUnusableTransportsAreErrors) {
    const auto with = [](const char* t) {
        job_options options;
        options.transports = {t};
        return options;
    };
    const auto refused = [&](const char* t) {
        return halocline_test::refusal([&] {
            run_threads(
                2, [](const job&) {}, with(t));
        });
    };
    const std::string unknown = halocline_test::refusal([&] { job::single(with("smoke")); });
    EXPECT_EQ(unknown.find("unknown transport 'smoke'; known are self, shm, "), 0U) << unknown;
    const std::string rdma = refused("verbs"); // it serves processes only, where it is built in
    EXPECT_TRUE(rdma.find("no transport of [verbs] reaches rank ") == 0 ||
                rdma.find("transport 'verbs' is not built in; this build has self, shm, ") == 0)
        << rdma;
    EXPECT_TRUE(rdma.find("(verbs: the ranks are threads of one process)") != std::string::npos ||
                rdma.find("; install libibverbs-dev and configure again") != std::string::npos)
        << rdma;
    EXPECT_EQ(refused("mpi").find("transport 'mpi' needs an MPI launcher: mpirun -n 2 "), 0U) << refused("mpi");
    EXPECT_EQ(
        refused("self").find("transport 'self' serves only the own rank; 2 ranks need another; known are self, shm"),
        0U)
        << refused("self");
}

TEST(Slab, MemoryIsAlignedReusedAndCounted) {
    const job j = job::single();
    slab& memory = j.memory();
    const std::size_t before = memory.used();

    void* a = memory.allocate(1000, 4096);
    void* b = memory.allocate(3 << 20);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 4096, 0u);
    EXPECT_TRUE(memory.contains(b));
    EXPECT_GT(memory.used(), before);
    memory.deallocate(a, 1000, 4096);
    memory.deallocate(b, 3 << 20);

    EXPECT_EQ(memory.used(), before);
    EXPECT_GE(memory.peak(), before + (3u << 20));
}

TEST(Slab, ReservedMemoryTakesPagesOnlyWhenTouched) {
    const auto slab = std::make_unique<node_slab>(std::size_t{64} << 20);
    const auto pages = [&] {
        struct stat s {};
        fstat(slab->fd(), &s);
        return static_cast<std::size_t>(s.st_blocks) * 512;
    };
    constexpr std::size_t bytes = 20'000'000;
    const std::size_t used = slab->used(), before = pages();

    auto* const p = static_cast<char*>(slab->reserve(bytes, 128));
    EXPECT_EQ(pages(), before);
    void* const behind = slab->allocate(bytes); // must not commit what is reserved
    EXPECT_LT(pages(), before + bytes + (4u << 20));
    p[0] = p[bytes - 1] = 1;
    EXPECT_GT(pages(), before);
    EXPECT_TRUE(slab->contains(p + bytes - 1));
    EXPECT_THROW((void)slab->reserve(std::size_t{30} << 20, 128), slab_full);

    slab->deallocate(p, bytes, 128);
    slab->deallocate(behind, bytes);
    EXPECT_EQ(slab->used(), used);
    void* const whole = slab->allocate(std::size_t{62} << 20); // the pieces have become one again
    slab->deallocate(whole, std::size_t{62} << 20);
}

/// Bytes that the kernel has mapped in pages of 2 MiB, in the mapping that begins at p.
std::size_t mapped_huge(const void* p) {
    std::ostringstream begins;
    begins << std::hex << reinterpret_cast<std::uintptr_t>(p) << '-';
    std::ifstream maps("/proc/self/smaps");
    std::string line;
    while (std::getline(maps, line) && !line.starts_with(begins.str())) {
    }
    while (std::getline(maps, line))
        if (line.starts_with("ShmemPmdMapped:")) return std::stoul(line.substr(line.find(':') + 1)) << 10;
    return 0;
}

TEST(Slab, KnowsItsHugePages) {
    const job j = job::single();
    slab& memory = j.memory();
    constexpr std::size_t bytes = 32 << 20;
    void* const a = memory.allocate(bytes);
    std::memset(a, 1, bytes);

    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.base()) % (2 << 20), 0u);
    EXPECT_EQ(memory.huge() > 0, mapped_huge(memory.base()) > 0) << memory.huge();
    std::printf("%zu MiB in huge pages, %zu mapped\n", memory.huge() >> 20, mapped_huge(memory.base()) >> 20);
    memory.deallocate(a, bytes);
}

TEST(Threads, DifferentCollectiveCallsAreTold) {
    std::array<std::string, 5> texts;
    run_threads(5, [&](const job& j) {
        try {
            if (j.rank() == 3)
                j.barrier();
            else
                j.agree("the grid", "4.4.4.4");
        } catch (const rank_failure& e) {
            texts[j.rank()] = e.what();
        }
    });
    EXPECT_TRUE(texts[0].starts_with("rank 2 is in a check that settings agree, but rank 3 (pid ")) << texts[0];
    EXPECT_TRUE(texts[0].ends_with(") is in barrier: the ranks make different collective calls; make the same "
                                   "ones on all ranks, in one order"))
        << texts[0];
    for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
}

TEST(Threads, AGatherIsToldFromEveryOtherCall) {
    using collective = void (*)(const job&);
    const collective gather = [](const job& j) { (void)j.gather("part"); };
    const std::pair<std::string, collective> calls[] = {
        {"broadcast", [](const job& j) { (void)j.broadcast("value", 0); }},
        {"barrier", [](const job& j) { j.barrier(); }},
        {"a check that settings agree", [](const job& j) { j.agree("the grid", "4.4.4.4"); }},
        {"a decision on errors", [](const job& j) { j.collectively([] {}); }},
        {"exchange",
         [](const job& j) {
             const int peer = 1 - j.rank();
             const std::string part = "part";
             (void)j.exchange({&peer, 1}, {&part, 1});
         }},
    };
    for (const auto& [name, call] : calls) {
        for (const int gathers : {0, 1}) {
            std::array<std::string, 2> texts;
            run_threads(2, [&, other = call](const job& j) {
                try {
                    (j.rank() == gathers ? gather : other)(j);
                } catch (const rank_failure& e) {
                    texts[j.rank()] = e.what();
                }
            });
            for (const std::string& text : texts) {
                EXPECT_NE(text.find(" is in gather"), std::string::npos) << name << ": " << text;
                EXPECT_NE(text.find(" is in " + name), std::string::npos) << text;
            }
        }
    }
}

/// Wherever the ranks are in the tree, nobody waits until the deadline.
TEST(Threads, OneRankThatDoesNotGatherIsToldToAll) {
    for (int other = 0; other < 4; ++other) {
        std::array<std::string, 4> texts;
        run_threads(4, [&](const job& j) {
            try {
                if (j.rank() == other)
                    j.barrier();
                else
                    (void)j.gather("part");
            } catch (const rank_failure& e) {
                texts[j.rank()] = e.what();
            }
        });
        for (const std::string& text : texts) {
            EXPECT_NE(text.find(" is in gather"), std::string::npos) << text;
            EXPECT_NE(text.find(" is in barrier"), std::string::npos) << text;
        }
    }
}

TEST(Threads, ObjectsOfDifferentKindsAreTold) {
    std::array<std::string, 3> texts;
    run_threads(3, [&](const job& j) {
        texts[j.rank()] =
            refusal([&] { j.agree(j.rank() == 2 ? "the largest global sum" : "the shape of halo 'psi'", "64"); });
    });
    for (const std::string& text : texts)
        EXPECT_EQ(text, "rank 0 compares the shape of halo 'psi', rank 2 the largest global sum: the ranks make "
                        "different collective calls; make the same ones on all ranks, in one order");
}

/// Wherever the ranks are in the tree, whichever rank names another root.
TEST(Threads, RootsOfABroadcastThatDifferAreToldToAll) {
    for (const int ranks : {2, 5, 8})
        for (int odd = 1; odd < ranks; ++odd) {
            std::vector<std::string> texts(static_cast<std::size_t>(ranks));
            run_threads(ranks, [&](const job& j) {
                const int root = j.rank() == odd ? odd : 0;
                texts[j.rank()] = refusal([&] { (void)j.broadcast("of " + std::to_string(j.rank()), root); });
                EXPECT_EQ(j.broadcast("next " + std::to_string(j.rank()), odd), "next " + std::to_string(odd));
            });
            const std::string other = std::to_string(odd);
            for (const std::string& text : texts)
                EXPECT_EQ(text, "ranks disagree on the root of a broadcast: rank 0 names rank 0, rank " + other +
                                    " names rank " + other + "; name the same one on all ranks");
        }
}

TEST(Threads, ARootThatOneRankNamesAndIsNoneIsToldToAll) {
    for (const int odd : {0, 1, 2})
        run_threads(3, [&](const job& j) {
            const std::string text = refusal([&] { (void)j.broadcast("x", j.rank() == odd ? 7 : 1); });
            EXPECT_TRUE(text.starts_with("ranks disagree on the root of a broadcast: rank 0 names rank ")) << text;
            EXPECT_NE(text.find("names rank 7"), std::string::npos) << text;
            j.barrier();
        });
}

TEST(Threads, CallsOfRanksThatThereAreNotAreRefused) {
    run_threads(2, [&](const job& j) {
        const std::vector<int> nobody{2}, zero{0};
        const std::vector<std::string> none, one{"x"};
        EXPECT_EQ(refusal([&] { (void)j.broadcast("x", 2); }), "broadcast of rank 2, which is none of 0 to 1");
        EXPECT_EQ(refusal([&] { (void)j.exchange(nobody, one); }), "exchange with rank 2, which is none of 0 to 1");
        EXPECT_EQ(refusal([&] { (void)j.exchange(zero, none); }),
                  "exchange with 1 peers of 0 messages: one for each peer is expected");
    });
}

TEST(Threads, AnExceptionOfAnyTypeIsDecidedOnByAll) {
    std::atomic<int> told{0}, own{0};
    run_threads(2, [&](const job& j) {
        try {
            j.collectively([&] {
                if (j.rank() == 1) throw 5;
            });
        } catch (const error& e) {
            told += std::string(e.what()) == "rank 1 threw something that is no std::exception";
        } catch (int n) {
            own += n;
        }
    });
    EXPECT_EQ(told, 1);
    EXPECT_EQ(own, 5);
}

/// A peer's end may be closed without the job being over.
TEST(Threads, AFailureThatLeavesTheJobAliveIsDecidedOnByAll) {
    run_threads(2, [&](const job& j) {
        const auto work = [&] {
            if (j.rank() == 0) j.fail(status::aborted, "a window");
        };
        const std::string text = refusal<job_error>([&] { j.collectively(work); });
        EXPECT_NE(text.find("while this rank waited for a window"), std::string::npos) << text;
        j.barrier();
    });
}

/// Memory that can't be registered with a device, for one: a program that catches it does so on all ranks.
TEST(Threads, AJobErrorOfOneRankIsOneOfAll) {
    run_threads(3, [&](const job& j) {
        const auto work = [&] {
            if (j.rank() == 1) throw job_error("registering 512 bytes");
        };
        EXPECT_EQ(refusal<job_error>([&] { j.collectively(work); }), "registering 512 bytes");
        j.barrier();
    });
}

TEST(Slab, AFullOneIsAnErrorThatNamesNeedAndRemedy) {
    job_options options;
    options.slab_bytes = 4 << 20;
    const job j = job::single(options);
    try {
        (void)j.memory().allocate(8 << 20);
        FAIL();
    } catch (const error& e) {
        EXPECT_NE(std::string(e.what()).find("need 8 MiB"), std::string::npos) << e.what();
    }
}

} // namespace
