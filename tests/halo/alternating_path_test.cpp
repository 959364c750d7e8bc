// SPDX-License-Identifier: Apache-2.0
// Ghosts in short runs go straight into the neighbour's field while cores are near each other, and by slot while they
// are far apart. Costs are made up, and so is what a reading of a line tells. Ranks are threads.
#include "padded_oracle.hpp"
#include "row_of_ranks.hpp"
#include "small_job.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline_test/allocation_counter.hpp>

#include <array>
#include <barrier>
#include <cstdint>
#include <string>
#include <thread>

using namespace halocline_test;
using comm::status;
using halo::path;
using lattice::decomposition;
using lattice::field;

namespace {

constexpr std::uint64_t readings_in_a_row = 4;

/// Costs of near or far cores, by which short runs of 96 bytes alternate. Lines that take longer than `take` count as far.
comm::costs made_up(bool far, double take) {
    return {.copy_seconds_per_byte = 0.08e-9,
            .cached = {0, far ? 20e-9 : 10e-9},
            .streamed = {0, 12e-9},
            .scattered_line_seconds = far ? 22e-9 : 8e-9,
            .take_seconds = take,
            .keep_seconds = 20e-9};
}

constexpr double never_far = 1, always_far = 1e-12;

bool goes(const shell_plan& p, const std::string& way) {
    return p.describe().find("  " + way + " ") != std::string::npos;
}

const decomposition cut_in_x = decomposition::even({8, 4, 4, 4}, {2, 1, 1, 1});
const halo::ghost_widths one_in_x{{1, 0, 0, 0}, {1, 0, 0, 0}};

field<double> padded(const comm::job& j, int components) {
    return {site_order::lexicographic(halo::grown(cut_in_x.local_box(j.rank()), one_in_x).extents), components,
            &j.memory()};
}

} // namespace

/// Also where nothing but the way could change: lines are not claimed, and a site fills none that could be streamed.
TEST(AlternatingPath, FollowsTheCores) {
    struct point {
        bool far;
        double claimed_ratio; ///< 1.1: claiming lines does not pay
        int components;
    };
    for (const auto [far, claimed_ratio, components] :
         {point{false, 0, 12}, {true, 0, 12}, {false, 1.1, 12}, {true, 1.1, 12}, {false, 1.1, 3}, {true, 1.1, 3}}) {
        std::barrier meet(2);
        run(2, [&, far = far, claimed_ratio = claimed_ratio, components = components](const comm::job& j) {
            comm::costs costs = made_up(far, far ? never_far : always_far);
            costs.claimed_ratio = claimed_ratio;
            comm::assume_costs(j, costs);
            field<double> x = padded(j, components);
            shell_plan p(j, cut_in_x, {.widths = one_in_x}, {halo::bind(x)});
            const std::string first = far ? "packed" : "direct", then = far ? "direct" : "packed";
            for (std::uint64_t k = 1; k <= 3 * readings_in_a_row; ++k) {
                fill_padded(x, cut_in_x, j.rank(), one_in_x, k);
                status s = status::misused;
                const std::uint64_t made = allocations_in(meet, [&] {
                    p.start();
                    s = p.finish();
                });

                ASSERT_EQ(s, status::ok);
                EXPECT_EQ(made, 0U);
                EXPECT_EQ(wrong_words(x, cut_in_x, j.rank(), {.widths = one_in_x}, k), 0) << k;
                EXPECT_TRUE(goes(p, k < readings_in_a_row ? first : then)) << k << p.describe();
                EXPECT_NE(p.describe().find("; packed when a line takes more than "), std::string::npos);
            }
            EXPECT_EQ(p.statistics().path_changes, 1U);
        });
    }
}

TEST(AlternatingPath, HasSlotsOfTwiceTheGhosts) {
    run(2, [&](const comm::job& j) {
        constexpr std::size_t ghost_bytes = 2 * 4 * 4 * 4 * 96;
        comm::assume_costs(j, made_up(false, never_far));
        field<double> x = padded(j, 12);
        const shell_plan p(j, cut_in_x, {.widths = one_in_x}, {halo::bind(x)});

        EXPECT_GE(p.slab_bytes(), 2 * ghost_bytes);
        EXPECT_LE(p.slab_bytes(), 2 * ghost_bytes + 4 * sizeof(comm::line_label));
    });
}

/// Sites of whole lines are no better off in a slot, and what was asked for stays.
TEST(AlternatingPath, IsOnlyForShortRunsThatAreLeftToChoose) {
    run(2, [&](const comm::job& j) {
        comm::assume_costs(j, made_up(false, always_far));
        field<double> whole_lines = padded(j, 24), x = padded(j, 12);
        shell_plan of_whole_lines(j, cut_in_x, {.widths = one_in_x}, {halo::bind(whole_lines)});
        shell_plan direct(j, cut_in_x, {.widths = one_in_x, .path = path::direct}, {halo::bind(x)});
        for (shell_plan* p : {&of_whole_lines, &direct}) {
            for (std::uint64_t k = 1; k <= 2 * readings_in_a_row; ++k) {
                p->start();
                ASSERT_EQ(p->finish(), status::ok);
            }
            EXPECT_FALSE(goes(*p, "packed")) << p->describe();
            EXPECT_LE(p->slab_bytes(), 3 * sizeof(comm::line_label));
        }
    });
}

/// Several fields in a message, one site with a phase, two bindings.
TEST(AlternatingPath, FillsEveryFieldAndPhase) {
    for (const double take : {always_far, never_far})
        run(2, [&](const comm::job& j) {
            comm::assume_costs(j, made_up(true, take));
            const auto order = site_order::lexicographic({4, 1, 1, 1});
            std::array<field<double>, 2> x{field<double>(order, 12, &j.memory()),
                                           field<double>(order, 12, &j.memory())};
            std::array<field<double>, 2> y{field<double>(order, 12, &j.memory()),
                                           field<double>(order, 12, &j.memory())};
            const auto both = [](std::array<field<double>, 2>& f) {
                halo::binding b = halo::bind(f[0]), more = halo::bind(f[1]);
                b.source.push_back(more.source[0]);
                b.destination.push_back(more.destination[0]);
                return b;
            };
            const int other = 1 - j.rank();
            halo::transfer with_phase{other, 1, {3}};
            with_phase.phase = -1;
            halo::region_plan p(j, {{other, 0, {1}}, {other, 1, {2}}}, {{other, 0, {0}}, with_phase},
                                {both(x), both(y)}, {.name = "both"});
            const auto value = [](int rank, std::uint64_t k, int f, int site, int c) {
                return static_cast<double>(1000 * k) + 500 * rank + 100 * f + 12 * site + c;
            };
            std::int64_t wrong = 0;
            for (std::uint64_t k = 1; k <= 100; ++k) {
                std::array<field<double>, 2>& f = k % 3 == 0 ? y : x;
                for (int i = 0; i < 2; ++i)
                    for (const int site : {1, 2})
                        for (int c = 0; c < 12; ++c) f[i].at(site, c) = value(j.rank(), k, i, site, c);
                p.start(k % 3 == 0 ? 1 : 0);
                ASSERT_EQ(p.finish(), status::ok);
                for (int i = 0; i < 2; ++i)
                    for (int c = 0; c < 12; ++c)
                        wrong +=
                            (f[i].at(0, c) != value(other, k, i, 1, c)) + (f[i].at(3, c) != -value(other, k, i, 2, c));
            }
            EXPECT_EQ(wrong, 0);
            EXPECT_NE(p.describe().find("; packed when a line takes more than "), std::string::npos) << p.describe();
        });
}

/// Even ranks soon send by slot, odd ones into the field; early and late ones meet, and fields take turns.
TEST(AlternatingPath, NeverReadsAStaleOrLaterGhost) {
    for (const int ranks : {2, 3}) {
        run(ranks, [&](const comm::job& j) {
            const bool by_slot = j.rank() % 2 == 0;
            comm::assume_costs(j, made_up(false, by_slot ? always_far : never_far));
            const row_of_ranks row{j};
            field<double> x(row_of(4), 12, &j.memory()), y(row_of(4), 12, &j.memory());
            halo::region_plan plan(j, row.sends, row.receives, {halo::bind(x), halo::bind(y)}, {.name = "line"});
            expect_no_stale_or_later_ghost(row, plan, x, y, 15'000);
            EXPECT_EQ(plan.statistics().path_changes, by_slot ? static_cast<std::uint64_t>(ranks - 1) : 0);
        });
    }
}
