// SPDX-License-Identifier: Apache-2.0
// Ranks that make different calls: one starts an exchange, its neighbour the reverse, or another plan's, or a sum. All
// are told, long before the deadline; and no legal program is stopped, however its calls cross.
#include "small_job.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/halo/shell_plan.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace halocline;
using namespace halocline_test;
using comm::status;
using halo::shell_plan;
using lattice::decomposition;
using lattice::field;

const std::string advice = " has not started: make the same calls on all ranks, in one order";

field<double> padded_field(const comm::job& j, const decomposition& cut) {
    return {halo::grown(cut.local_box(j.rank()), {}).extents, 2, &j.memory()};
}

/// Each text says of these two what a rank waits for and the other has not started.
void expect_both(const std::vector<std::string>& texts, const std::string& one, const std::string& other) {
    for (const std::string& text : texts) {
        EXPECT_NE(text.find(" waits for "), std::string::npos) << text;
        EXPECT_NE(text.find("'" + one + "' epoch "), std::string::npos) << text;
        EXPECT_NE(text.find("'" + other + "' epoch "), std::string::npos) << text;
        EXPECT_TRUE(text.ends_with(advice)) << text;
    }
}

struct rank_grid {
    int ranks;
    lattice::coordinate of;
};
struct shell_case {
    rank_grid grid;
    halo::shell_options options;
};

TEST(CrossedWaits, StartAgainstStartReverseIsToldToAll) {
    std::vector<shell_case> cases;
    for (const halo::path path : {halo::path::direct, halo::path::packed})
        for (const auto corners : {halo::corner_route::at_once, halo::corner_route::by_dimension})
            for (const rank_grid& g :
                 {rank_grid{2, {1, 1, 1, 2}}, rank_grid{2, {2, 1, 1, 1}}, rank_grid{4, {1, 2, 1, 2}}})
                cases.push_back(
                    {g, {.name = "psi", .shape = halo::shell::box, .corners = corners, .path = path, .reverse = true}});
    for (const shell_case& c : cases)
        for (const int odd : {0, c.grid.ranks - 1}) {
            const auto cut = decomposition::even({4, 4, 4, 8}, c.grid.of);
            std::vector<std::string> texts(static_cast<std::size_t>(c.grid.ranks));
            run(c.grid.ranks, [&](const comm::job& j) {
                auto x = padded_field(j, cut);
                shell_plan p(j, cut, c.options, {halo::bind(x)});
                p.start();
                p.finish_or_throw();
                j.barrier(); // so that no rank is still in that exchange when the job ends
                texts[j.rank()] = refusal<halocline::error>([&] {
                    j.rank() == odd ? p.start_reverse() : p.start();
                    p.finish_or_throw();
                });
            });
            expect_both(texts, "psi", "psi (reverse)");
        }
}

TEST(CrossedWaits, PlansInDifferentOrdersAndASumAreToldToAll) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 4});
    std::vector<std::string> plans(4), sums(4);
    run(4, [&](const comm::job& j) {
        const field<double> x(cut.local_box(j.rank()).extents, 2);
        halo::plan a(j, cut, {.name = "a", .bytes_per_site = 16}), b(j, cut, {.name = "b", .bytes_per_site = 16});
        plans[j.rank()] = refusal<halocline::error>([&] {
            for (halo::plan* p : {j.rank() == 2 ? &b : &a, j.rank() == 2 ? &a : &b}) {
                p->start(x);
                p->finish_or_throw();
            }
        });
    });
    run(4, [&](const comm::job& j) {
        const field<double> x(cut.local_box(j.rank()).extents, 2);
        halo::plan a(j, cut, {.name = "a", .bytes_per_site = 16});
        comm::global_sum sum(j);
        double value = 1;
        sums[j.rank()] = refusal<halocline::error>([&] {
            if (j.rank() == 1) {
                a.start(x);
                a.finish_or_throw();
            }
            sum.sum_or_throw({&value, 1});
        });
    });

    expect_both(plans, "a", "b");
    expect_both(sums, "a", "global sum");
}

/// One thread of a rank starts one of two plans, late, while the other waits; the neighbour's threads do the reverse.
void start_late_in_other_threads(const comm::job& j, bool known) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    const field<double> x(cut.local_box(j.rank()).extents, 2);
    halo::plan a(j, cut, {.name = "a", .bytes_per_site = 16}), b(j, cut, {.name = "b", .bytes_per_site = 16});
    halo::plan &here = j.rank() == 0 ? a : b, &there = j.rank() == 0 ? b : a;
    if (known) { // to each rank, that it has two
        std::thread second([&] {
            a.start(x);
            EXPECT_EQ(a.finish(), status::ok);
        });
        second.join();
    }
    here.start(x);
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        there.start(x);
    });
    EXPECT_EQ(here.finish(), status::ok);
    other.join();
    EXPECT_EQ(there.finish(), status::ok);
}

TEST(CrossedWaits, RanksOfSeveralThreadsAreLeftAlone) {
    for (const bool known : {true, false}) run(2, [&](const comm::job& j) { start_late_in_other_threads(j, known); });
}

/// Such a thread might still end the wait; so ranks are told when they would have given up.
TEST(CrossedWaits, ThreadsThatMightStartAnythingDelayTheReport) {
    using namespace std::chrono;
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    auto options = small_job();
    options.deadline = seconds(6);
    std::atomic<bool> over{false};
    std::vector<std::string> texts(2);
    steady_clock::duration waited{};
    comm::run_threads(
        2,
        [&](const comm::job& j) {
            const field<double> x(cut.local_box(j.rank()).extents, 2);
            halo::plan a(j, cut, {.name = "a", .bytes_per_site = 16}), b(j, cut, {.name = "b", .bytes_per_site = 16});
            std::thread idle([&] { over.wait(false); });
            const auto began = steady_clock::now();
            texts[j.rank()] = refusal<halocline::error>([&] {
                halo::plan& first = j.rank() == 0 ? a : b;
                first.start(x);
                first.finish_or_throw();
            });
            if (j.rank() == 0) waited = steady_clock::now() - began;
            over = true;
            over.notify_all();
            idle.join();
        },
        options);
    expect_both(texts, "a", "b");
    EXPECT_GT(waited, seconds(5));
}

/// An exchange or a sum, to be started and finished.
struct work {
    std::function<void()> start;
    std::function<status()> finish;
};

/// Each round is one of some exchanges and sums. Ranks with an odd draw start all of them in an order of their own, then
/// finish them in another; the rest make one after the other, in the order of all. So a rank may be in a wait for one
/// thing while a peer waits for another that this rank has not begun, for longer than it takes to be looked at.
void run_legal_program(const comm::job& j, const decomposition& cut, unsigned seed, int rounds) {
    std::mt19937 all(seed), own(seed + 1000U * static_cast<unsigned>(j.rank() + 1));
    const auto below = [](std::mt19937& draw, unsigned n) { return static_cast<int>(draw() % n); };
    auto x = padded_field(j, cut), y = padded_field(j, cut), z = padded_field(j, cut);
    const field<double> owned(cut.local_box(j.rank()).extents, 2);
    const auto options = [](std::string name, halo::corner_route route, halo::path path) {
        return halo::shell_options{
            .name = std::move(name), .shape = halo::shell::box, .corners = route, .path = path, .reverse = true};
    };
    shell_plan one(j, cut, options("one", halo::corner_route::at_once, halo::path::direct), {halo::bind(x)});
    shell_plan two(j, cut, options("two", halo::corner_route::by_dimension, halo::path::direct), {halo::bind(y)});
    shell_plan three(j, cut, options("three", halo::corner_route::by_dimension, halo::path::packed), {halo::bind(z)});
    halo::plan four(j, cut, {.name = "four", .bytes_per_site = 16});
    comm::global_sum five(j, 8), six(j, 8, {}, 2);
    double small = 1;
    std::vector<double> large(8, 1.0);
    const auto of_shell = [](shell_plan& p, bool reverse) {
        return work{[&p, reverse] { reverse ? p.start_reverse() : p.start(); }, [&p] { return p.finish(); }};
    };
    const auto pause = [&] {
        if (below(own, 3) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(below(own, 60)));
    };
    for (int k = 0; k < rounds; ++k) {
        std::vector<work> round;
        for (shell_plan* p : {&one, &two, &three}) round.push_back(of_shell(*p, below(all, 2) == 0));
        round.push_back({[&] { four.start(owned); }, [&] { return four.finish(); }});
        const std::span<double> summed = below(all, 2) == 0 ? std::span(&small, 1) : std::span(large);
        round.push_back({[&, summed] { five.start(summed); }, [&, summed] { return five.finish(summed); }});
        round.push_back({[&, summed] { six.start(summed); }, [&, summed] { return six.finish(summed); }});
        std::ranges::shuffle(round, all);
        round.resize(static_cast<std::size_t>(2 + below(all, 5)));
        const auto finish = [&](const work& w) {
            ASSERT_EQ(w.finish(), status::ok) << "seed " << seed << ", rank " << j.rank() << ", round " << k;
        };
        if (below(own, 2) == 0) {
            for (const work& w : round) {
                pause();
                w.start();
                pause();
                finish(w);
            }
            continue;
        }
        std::ranges::shuffle(round, own);
        for (const work& w : round) {
            pause();
            w.start();
        }
        std::ranges::shuffle(round, own);
        for (const work& w : round) {
            pause();
            finish(w);
        }
    }
}

TEST(CrossedWaits, NoLegalProgramIsStopped) {
    const char* const given = std::getenv("HALOCLINE_TEST_SEED");
    const unsigned seed =
        given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device()();
    std::printf("HALOCLINE_TEST_SEED=%u\n", seed);
    for (const rank_grid& g : {rank_grid{2, {1, 1, 1, 2}}, rank_grid{4, {1, 1, 2, 2}}, rank_grid{6, {1, 1, 2, 3}}}) {
        const auto cut = decomposition::even({4, 4, 4, 6}, g.of);
        run(g.ranks, [&](const comm::job& j) { run_legal_program(j, cut, seed + static_cast<unsigned>(g.ranks), 25); });
    }
}

} // namespace
