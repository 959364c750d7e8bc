// SPDX-License-Identifier: Apache-2.0
// What making a plan takes: most of its time goes into touching pages.
#include "small_job.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/halo/shell_plan.hpp>
#include <halocline_test/allocation_counter.hpp>

#include <gtest/gtest.h>

#include <barrier>

using namespace halocline;
using namespace halocline_test;

namespace {

constexpr int extent = 16;
constexpr std::uint64_t face_sites = 8 * extent * extent * extent, rows_bytes = 512 << 10; // runs, and everything else

template <class Make>
std::uint64_t bytes_of(Make&& make) {
    const std::uint64_t before = allocated_bytes();
    make();
    return allocated_bytes() - before;
}

} // namespace

TEST(MakingPlans, TakesFourBytesPerSiteOfAppendedFaces) {
    const auto cut = lattice::decomposition::even({extent, extent, extent, extent}, {1, 1, 1, 1});
    run(1, [&](const comm::job& j) {
        const std::uint64_t bytes =
            bytes_of([&] { const halo::plan p(j, cut, {.bytes_per_site = 96, .self_exchange = true}); });
        EXPECT_LE(bytes, 2 * 4 * face_sites + rows_bytes); // outgoing sites; incoming ones are only counted
    });
}

TEST(MakingPlans, TakesLessThanAByteForEachFurtherSiteOfARow) {
    const halo::ghost_widths widths{{0, 1, 1, 1}, {0, 1, 1, 1}};
    run(1, [&](const comm::job& j) {
        comm::measured_costs(j); // once per job
        for (const halo::shell shape : {halo::shell::faces, halo::shell::box}) {
            const auto bytes_for = [&](int length) {
                const auto cut = lattice::decomposition::even({length, extent, extent, extent}, {1, 1, 1, 1});
                lattice::field<float> x(
                    lattice::site_order::lexicographic(halo::grown(cut.local_box(0), widths).extents), 6, &j.memory());
                return bytes_of([&] {
                    const halo::shell_plan p(j, cut, {.widths = widths, .shape = shape, .checks = check_level::light},
                                             {halo::bind(x)});
                });
            };
            const std::uint64_t further_sites = 6 * (64 - 4) * extent * extent;
            EXPECT_LT(bytes_for(64), bytes_for(4) + further_sites) << to_string(shape);
        }
    });
}

TEST(MakingPlans, TakesAFewBytesPerRowOfABox) {
    const lattice::coordinate extents{64, 32, 32, 2};
    const lattice::box part{{1, 1, 1, 1}, {60, 30, 30, 1}};
    run(1, [&](const comm::job& j) {
        lattice::field<float> x(lattice::site_order::lexicographic(extents), 1), y(x.shared_order(), 1);
        comm::measured_costs(j);
        const halo::strided_box box = halo::box_in(part, extents);
        const std::uint64_t bytes = bytes_of([&] {
            const halo::region_plan p(j, {{0, 0, {}, {box}}}, {{0, 0, {}, {box}}},
                                      {{{halo::view(x)}, {halo::view(y)}}});
        });
        EXPECT_LE(bytes, 64 << 10); // of 900 rows; a list of 54000 sites would take 216 KB at each end
    });
}

// A few sites travel out of fields of 16 times the size, in storages without and with lanes.
TEST(MakingPlans, TakesTheSameWhateverTheSizeOfTheFields) {
    std::barrier meet(2);
    run(2, [&](const comm::job& j) {
        comm::measured_costs(j);
        const auto bytes_of_both = [&](auto&& make) { // by both ranks, and by nothing else
            std::uint64_t before = 0, after = 0;
            for (std::uint64_t* count : {&before, &after}) {
                if (count == &after) make();
                meet.arrive_and_wait();
                *count = allocated_bytes();
                meet.arrive_and_wait();
            }
            return after - before;
        };
        const auto bytes_for = [&](int length) {
            std::vector<std::uint64_t> bytes;
            const lattice::box local{{}, {8, 8, 8, length}};
            for (const auto& order :
                 {lattice::site_order::lexicographic(local.extents), lattice::site_order::even_odd(local),
                  lattice::site_order::blocked(local, local.extents, {4, 4, 4, 4}, 8)}) {
                lattice::field<double> x(order, 1, &j.memory()), y(order, 1, &j.memory());
                const auto last = static_cast<std::int32_t>(x.volume()) - 1;
                const halo::strided_box few{0, {4, 2, 1, 1}, {1, 8, 0, 0}};
                for (const halo::path way : {halo::path::automatic, halo::path::packed})
                    bytes.push_back(bytes_of_both([&] {
                        const halo::region_plan p(
                            j, {{1 - j.rank(), 0, {last}, {few}}}, {{1 - j.rank(), 0, {last}, {few}}},
                            {{{halo::view(x)}, {halo::view(y)}}, {{halo::view(y)}, {halo::view(x)}}}, {.path = way});
                    }));
            }
            const auto cut = lattice::decomposition::even({16, 8, 8, length}, {2, 1, 1, 1});
            const halo::ghost_widths widths{{0, 0, 0, 1}, {0, 0, 0, 1}};
            lattice::field<double> x(lattice::site_order::even_odd(halo::grown(cut.local_box(j.rank()), widths)), 1,
                                     &j.memory());
            bytes.push_back(
                bytes_of_both([&] { const halo::shell_plan p(j, cut, {.widths = widths}, {halo::bind(x)}); }));
            return bytes;
        };
        const std::vector<std::uint64_t> small = bytes_for(4), large = bytes_for(64);
        for (std::size_t i = 0; i < small.size(); ++i) EXPECT_LE(large[i], small[i] + 4096) << i;
    });
}
