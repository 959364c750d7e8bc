// SPDX-License-Identifier: Apache-2.0
// Writes straight into a neighbour's field: the free flag that makes them safe, the memory they take, and what happens
// when a plan ends early. Ranks are threads.
#include "padded_oracle.hpp"
#include "row_of_ranks.hpp"
#include "small_job.hpp"

#include <halocline/comm/global_sum.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

using namespace halocline_test;
using comm::status;
using halo::path;
using halo::region_plan;
using lattice::decomposition;
using lattice::field;

namespace {

/// Both ranks exchange the positions of their memory in their slabs; returns the peer's offset.
std::ptrdiff_t swap_offsets(const comm::job& j, int peer, const void* mine) {
    const std::ptrdiff_t offset = static_cast<const std::byte*>(mine) - j.memory().base();
    return std::stoll(j.exchange(std::array{peer}, std::array{std::to_string(offset)})[0]);
}

/// Two ranks write 8 words into each other's memory; rank 1 as fast as it may, while rank 0 reads late. Returns how
/// many words of a later exchange rank 0 read.
std::int64_t later_words(bool wait_for_free) {
    std::int64_t later = 0;
    run(2, [&](const comm::job& j) {
        using word = std::atomic<std::uint64_t>;
        constexpr int words = 8, epochs = 50;
        auto* mine = static_cast<word*>(j.memory().allocate(words * sizeof(word), 128));
        for (int i = 0; i < words; ++i) new (mine + i) word(0);
        const int peer = 1 - j.rank();
        const std::ptrdiff_t theirs = swap_offsets(j, peer, mine);
        const std::array request{
            comm::channel_request{peer, 0, 0, words * 8, words * 8, "words", comm::channel_kind::direct}};
        comm::channel_set set(j, request, {"words", "", {}});
        for (std::uint64_t k = 1; k <= epochs; ++k) {
            const auto send = [&](auto& c) {
                if (c.sent(k) || (wait_for_free && !c.freed(k))) return;
                auto* target = reinterpret_cast<word*>(c.memory() + theirs);
                for (int i = 0; i < words; ++i) target[i].store(k, std::memory_order_relaxed);
                c.send(k, comm::ticks());
            };
            set.for_each_direct([&](auto& c) { c.free(k, 0); });
            set.for_each_direct(send);
            if (set.wait(k, [&] { set.for_each_direct(send); }) != status::ok) return j.abort("wait");
            if (j.rank() != 0) continue;
            // Read late: wait until the fast rank's next words would have arrived, if it sent them.
            const auto patience =
                std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_for_free ? 1 : 1000);
            while (k < epochs && std::chrono::steady_clock::now() < patience &&
                   mine[0].load(std::memory_order_relaxed) == k)
                std::this_thread::yield();
            for (int i = 0; i < words; ++i) later += mine[i].load(std::memory_order_relaxed) != k;
        }
        j.barrier();
        j.memory().deallocate(mine, words * sizeof(word), 128);
    });
    return later;
}

} // namespace

TEST(FreeFlag, KeepsAFastRankFromOverwritingWhatASlowOneReads) { EXPECT_EQ(later_words(true), 0); }
TEST(FreeFlag, IsNeeded) { EXPECT_GT(later_words(false), 0); }

class DirectPathOnRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, DirectPathOnRanks, testing::Values(1, 2, 3, 4));

// 50,000 exchanges between ranks. One rank alone copies at once, so that nothing can be late.
TEST_P(DirectPathOnRanks, NeverReadsAStaleOrLaterGhost) {
    const int ranks = GetParam();
    const std::uint64_t exchanges = std::array{1'000U, 15'000U, 20'000U, 15'000U}[ranks - 1];
    run(ranks, [&](const comm::job& j) {
        const row_of_ranks row{j};
        field<double> x(row_of(4), 4, &j.memory()), y(row_of(4), 4, &j.memory());
        region_plan plan(j, row.sends, row.receives, {halo::bind(x), halo::bind(y)},
                         {.name = "line", .path = path::direct});
        expect_no_stale_or_later_ghost(row, plan, x, y, exchanges);
    });
}

TEST(DirectPath, TakesOnlyControlLinesBeyondTheFields) {
    const auto cut = decomposition::even({8, 8, 8, 16}, {1, 1, 1, 2});
    const halo::ghost_widths widths{{0, 0, 0, 1}, {0, 0, 0, 1}};

    run(2, [&](const comm::job& j) {
        const auto order = site_order::lexicographic(halo::grown(cut.local_box(j.rank()), widths).extents);
        field<double> in_slab(order, 12, &j.memory()), elsewhere(order, 12);
        const std::size_t ghost_bytes = 2 * 8 * 8 * 8 * 96;
        const std::size_t before = j.memory().used();
        shell_plan direct(j, cut, {.widths = widths, .path = path::direct}, {halo::bind(in_slab)});
        const std::size_t between = j.memory().used();
        shell_plan packed(j, cut, {.widths = widths}, {halo::bind(elsewhere)});

        EXPECT_EQ(between - before, direct.slab_bytes());
        EXPECT_EQ(j.memory().used() - between, packed.slab_bytes());
        EXPECT_LE(direct.slab_bytes(), 3 * sizeof(comm::line_label));
        EXPECT_LE(packed.slab_bytes(), 4 * ghost_bytes);
        EXPECT_NE(direct.describe().find("direct"), std::string::npos) << direct.describe();
        EXPECT_NE(packed.describe().find("packed"), std::string::npos) << packed.describe();
        EXPECT_NE(packed.describe().find("is not in its slab"), std::string::npos) << packed.describe();
    });
}

TEST(DirectPath, IsNotTakenWhereTheJobAsksForPacked) {
    const auto cut = decomposition::even({8, 8, 8, 16}, {1, 1, 1, 2});
    const halo::ghost_widths widths{{0, 0, 0, 1}, {0, 0, 0, 1}};
    comm::job_options options = small_job();
    options.path = path::packed;

    comm::run_threads(
        2,
        [&](const comm::job& j) {
            const auto order = site_order::lexicographic(halo::grown(cut.local_box(j.rank()), widths).extents);
            field<double> x(order, 12, &j.memory());
            shell_plan packed(j, cut, {.widths = widths}, {halo::bind(x)});
            shell_plan direct(j, cut, {.widths = widths, .path = path::direct}, {halo::bind(x)});
            for (shell_plan* p : {&packed, &direct}) {
                fill_own(x, cut, j.rank(), p->options(), 1);
                p->start();
                ASSERT_EQ(p->finish(), status::ok);
                EXPECT_EQ(wrong_words(x, cut, j.rank(), p->options(), 1), 0);
            }

            EXPECT_GT(packed.slab_bytes(), 2 * 8 * 8 * 8 * 96U) << "slots";
            EXPECT_NE(packed.describe().find("the job asks for it"), std::string::npos) << packed.describe();
            EXPECT_LE(direct.slab_bytes(), 3 * sizeof(comm::line_label)) << "what a plan asks for counts more";
        },
        options);
}

TEST(DirectPath, IsRefusedByNameWhereItCantBe) {
    std::vector<std::string> texts(2);
    run(2, [&](const comm::job& j) {
        field<double> x(row_of(4), 1,
                        j.rank() == 0 ? static_cast<std::pmr::memory_resource*>(&j.memory())
                                      : std::pmr::get_default_resource());
        const int other = 1 - j.rank();
        try {
            region_plan plan(j, {{other, 0, {0}}}, {{other, 0, {1}}}, {halo::bind(x)},
                             {.name = "no", .path = path::direct});
        } catch (const input_error& e) {
            texts[j.rank()] = e.what();
        }
    });
    for (const std::string& text : texts)
        EXPECT_EQ(text, "'no': rank 0 can't have path direct with rank 1: a field of rank 1 is not in its slab");
}

TEST(DirectPath, RefusesPeersThatDontNameEachOther) {
    std::atomic<int> refused{0};
    run(3, [&](const comm::job& j) {
        field<double> x(row_of(4), 1, &j.memory());
        std::vector<halo::transfer> sends;
        if (j.rank() == 0) sends.push_back({2, 0, {0}});
        try {
            region_plan plan(j, sends, {}, {halo::bind(x)}, {.name = "one-sided"});
        } catch (const input_error& e) {
            refused += std::string(e.what()).find("rank 0 names rank 2 in 1 request, which names it in 0") !=
                       std::string::npos;
        }
    });
    EXPECT_EQ(refused, 3);
}

// An exception between start() and finish() destroys plan and field while the peer may be writing that field: it must
// not hit what the memory is used for next.
TEST(DirectPath, KeepsAFieldsMemoryUntilThePeerIsDoneWithIt) {
    constexpr std::size_t bytes = 1 << 12;
    std::barrier meet(2);
    run(2, [&](const comm::job& j) {
        const int other = 1 - j.rank();
        const std::array request{comm::channel_request{other, 0, 0, bytes, bytes, "bytes", comm::channel_kind::direct}};
        const std::size_t used = j.memory().used();
        std::optional<field<double>> x;
        x.emplace(row_of(bytes / 8), 1, &j.memory());
        const std::ptrdiff_t theirs = swap_offsets(j, other, x->data());
        std::optional<comm::channel_set> set;
        set.emplace(j, request, comm::channel_set_options{"cut short", "", {x->data()}});
        const void* const place = x->data();
        if (j.rank() == 0) {
            set->for_each_direct([](auto& c) { c.free(1, 0); });
            meet.arrive_and_wait(); // rank 1 has seen it
            set.reset();
            x.reset();
            auto* reused = static_cast<std::byte*>(j.memory().allocate(bytes, 128)); // first fit
            std::fill_n(reused, bytes, std::byte{0x5A});
            meet.arrive_and_wait(); // now rank 1 copies
            meet.arrive_and_wait(); // and is done
            EXPECT_NE(static_cast<void*>(reused), place);
            EXPECT_EQ(std::count(reused, reused + bytes, std::byte{0x5A}), static_cast<std::ptrdiff_t>(bytes));
            j.memory().deallocate(reused, bytes, 128);
            comm::channel_set(j, {}, {"gives back what is due", "", {}});
            EXPECT_EQ(j.memory().used(), used);
        } else {
            set->for_each_direct([&](auto& c) {
                while (!c.freed(1)) std::this_thread::yield();
                meet.arrive_and_wait();
                meet.arrive_and_wait(); // rank 0 has continued
                std::memset(c.memory() + theirs, 0, bytes);
                c.send(1, 0);
            });
            EXPECT_EQ(set->wait(1), status::aborted);
            set.reset();
            meet.arrive_and_wait();
            comm::channel_set(j, {}, {"gives back what is due", "", {}});
        }
    });
}

TEST(DirectPath, EndsThePeersWaitWhenAnExceptionLeavesAnExchange) {
    run(2, [&](const comm::job& j) {
        const int other = 1 - j.rank();
        field<double> x(row_of(4), 1, &j.memory());
        std::optional<region_plan> plan;
        plan.emplace(j, std::vector<halo::transfer>{{other, 0, {0}}}, std::vector<halo::transfer>{{other, 0, {1}}},
                     std::vector{halo::bind(x)}, halo::region_plan_options{.name = "cut short", .path = path::direct});
        if (j.rank() == 0) {
            plan->start(); // and nothing else
            plan.reset();
        } else {
            plan->start();
            (void)plan->finish(); // whether its copy came before the farewell is random
            plan->start();
            EXPECT_EQ(plan->finish(), status::aborted);
            EXPECT_THROW(plan->finish_or_throw(), job_error);
        }
        j.barrier(); // the job itself continues
    });
}

namespace {

/// Ranks 0 and 1 exchange a site, 0 and 2 as well.
region_plan plan_of_three(const comm::job& j, field<double>& x, path p) {
    std::vector<halo::transfer> sends{{0, 0, {0}}}, receives{{0, 0, {1}}};
    if (j.rank() == 0) sends = {{1, 0, {0}}, {2, 0, {0}}}, receives = {{1, 0, {1}}, {2, 0, {2}}};
    return {j, sends, receives, {halo::bind(x)}, {.name = "left", .path = p}};
}

/// Of such a plan. Once rank 2 has done `end` instead, finish() fails on rank 0,
/// which writes its field again; then rank 1, which was late, starts, and both wait.
template <class End>
void fail_before_a_late_peer_starts(path p, End&& end) {
    std::barrier meet(3);
    run(3, [&](const comm::job& j) {
        field<double> x(row_of(4), 1, &j.memory());
        std::optional<region_plan> plan(plan_of_three(j, x, p));
        for (int i = 0; i < 4; ++i) x.at(i, 0) = -1 - j.rank();
        if (j.rank() == 2) end(j, plan);
        meet.arrive_and_wait();
        if (j.rank() == 0) {
            plan->start();
            EXPECT_EQ(plan->finish(), status::aborted);
            for (int i = 0; i < 4; ++i) x.at(i, 0) = 7;
        }
        meet.arrive_and_wait();
        if (j.rank() == 1) plan->start(); // copies to rank 0 what it may
        meet.arrive_and_wait();
        for (int i = 0; i < 1000; ++i) j.progress(); // the work of every wait
        meet.arrive_and_wait();
        for (int i = 0; i < 4 && j.rank() == 0; ++i) EXPECT_EQ(x.at(i, 0), 7) << "site " << i << ", written by rank 1";
        if (j.rank() == 1) {
            EXPECT_EQ(x.at(1, 0), -2) << "what rank 0 wrote after its finish()";
            EXPECT_EQ(plan->finish(), status::aborted);
        }
        meet.arrive_and_wait();
        plan.reset();
    });
}

} // namespace

class FailedFinish : public testing::TestWithParam<path> {};
INSTANTIATE_TEST_SUITE_P(Paths, FailedFinish, testing::Values(path::direct, path::streamed, path::joint));

TEST_P(FailedFinish, EndsAllCopiesFromAndToTheField) {
    fail_before_a_late_peer_starts(GetParam(), [](const comm::job&, auto& plan) { plan.reset(); });
}

TEST_P(FailedFinish, EndsThemWhenTheJobHasEnded) {
    fail_before_a_late_peer_starts(GetParam(), [](const comm::job& j, auto&) { j.abort("enough"); });
}

// Rank 0 has sent what rank 1 waits for, so that exchange is whole there; the next one never comes.
TEST_P(FailedFinish, LeavesAPeerTheExchangeThatWasSent) {
    std::barrier meet(3);
    run(3, [&](const comm::job& j) {
        field<double> x(row_of(4), 1, &j.memory());
        std::optional<region_plan> plan(plan_of_three(j, x, GetParam()));
        x.at(0, 0) = j.rank();
        x.at(1, 0) = -1;
        if (j.rank() == 1) plan->start();
        if (j.rank() == 2) plan.reset();
        meet.arrive_and_wait();
        if (j.rank() == 0) {
            plan->start(); // rank 1's field is free
            EXPECT_EQ(plan->finish(), status::aborted);
            x.at(0, 0) = 7;
        }
        meet.arrive_and_wait();
        if (j.rank() == 1) {
            EXPECT_EQ(plan->finish(), status::ok);
            EXPECT_EQ(x.at(1, 0), 0);
            plan->start();
            EXPECT_EQ(plan->finish(), status::aborted);
        }
        j.barrier();
    });
}

TEST(FailedShell, TakesBackItsFieldsAfterAWrongCall) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    const halo::ghost_widths widths{{0, 0, 0, 1}, {0, 0, 0, 1}};
    for (const halo::corner_route corners : {halo::corner_route::at_once, halo::corner_route::by_dimension}) {
        std::barrier meet(2);
        run(2, [&](const comm::job& j) {
            const auto order = site_order::lexicographic(halo::grown(cut.local_box(j.rank()), widths).extents);
            field<double> x(order, 1, &j.memory());
            shell_plan plan(j, cut,
                            {.widths = widths, .shape = halo::shell::box, .corners = corners, .path = path::direct},
                            {halo::bind(x)});
            const auto fill = [&](double value) {
                for (std::int64_t i = 0; i < order->volume(); ++i) x.at(i, 0) = value;
            };
            fill(j.rank());
            if (j.rank() == 0) {
                plan.start();
                plan.start();
                EXPECT_EQ(plan.finish(), status::misused);
                fill(7);
            }
            meet.arrive_and_wait();
            if (j.rank() == 1) plan.start();
            meet.arrive_and_wait();
            for (int i = 0; i < 1000; ++i) j.progress();
            (void)plan.test();
            (void)plan.completed();
            meet.arrive_and_wait();
            std::int64_t others = 0;
            for (std::int64_t i = 0; i < order->volume(); ++i) others += x.at(i, 0) != (j.rank() == 0 ? 7 : 1);
            EXPECT_EQ(others, 0);
            if (j.rank() == 1) {
                EXPECT_EQ(plan.finish(), status::aborted);
            } else {
                EXPECT_THROW(plan.finish_or_throw(), input_error);
            }
            meet.arrive_and_wait();
        });
    }
}

// A peer that waits for a late copy must get it whatever this rank waits for: otherwise two ranks that finish two
// exchanges in different orders, or sum in between, would wait for each other.
TEST(DirectPath, CopiesInEveryWaitOfTheRank) {
    run(2, [&](const comm::job& j) {
        const int other = 1 - j.rank();
        const std::vector<halo::transfer> sends{{other, 0, {0}}}, receives{{other, 0, {1}}};
        field<double> x(row_of(2), 1, &j.memory()), y(row_of(2), 1, &j.memory());
        region_plan p(j, sends, receives, {halo::bind(x)}, {.name = "p", .path = path::direct});
        region_plan q(j, sends, receives, {halo::bind(y)}, {.name = "q", .path = path::direct});
        comm::global_sum sum(j, 1);
        region_plan& first = j.rank() == 0 ? p : q;
        region_plan& second = j.rank() == 0 ? q : p;
        for (int k = 1; k <= 300; ++k) {
            x.at(0, 0) = 10 * k + j.rank();
            y.at(0, 0) = -x.at(0, 0);
            p.start();
            q.start();
            if (j.rank() == k % 2) std::this_thread::yield();
            double one = 1;
            ASSERT_EQ(sum({&one, 1}), status::ok);
            ASSERT_EQ(first.finish(), status::ok);
            ASSERT_EQ(second.finish(), status::ok);
            ASSERT_EQ(x.at(1, 0), 10 * k + other);
            ASSERT_EQ(y.at(1, 0), -(10 * k + other));
        }
    });
}
