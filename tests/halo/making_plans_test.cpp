// SPDX-License-Identifier: Apache-2.0
// What making a plan takes: most of its time goes into touching pages.
#include "small_job.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/halo/shell_plan.hpp>
#include <halocline_test/allocation_counter.hpp>

#include <gtest/gtest.h>

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

TEST(MakingPlans, TakesFourBytesPerSiteOfPaddedFaces) {
    const auto cut = lattice::decomposition::even({extent, extent, extent, extent}, {1, 1, 1, 1});
    run(1, [&](const comm::job& j) {
        lattice::field<float> x(lattice::site_order::lexicographic(halo::grown(cut.local_box(0), {}).extents), 24,
                                &j.memory());
        comm::measured_costs(j); // once per job
        for (const halo::shell shape : {halo::shell::faces, halo::shell::box}) {
            std::uint64_t sites = 0;
            const std::uint64_t bytes = bytes_of([&] {
                const halo::shell_plan p(j, cut, {.shape = shape}, {halo::bind(x)});
                for (const halo::ghost_region& g : p.ghosts()) sites += static_cast<std::uint64_t>(g.sites.volume());
            });
            // Lists of outgoing and incoming sites, and a byte per site of the field, to find duplicates.
            EXPECT_LE(bytes, 2 * 4 * sites + static_cast<std::uint64_t>(x.order().volume()) + rows_bytes);
        }
    });
}
