// SPDX-License-Identifier: Apache-2.0
// The reference operator on public configurations, compared with numbers computed by others.
#include "dirac_fields.hpp"

#include <halocline/comm/job.hpp>
#include <halocline/dirac/plaquette.hpp>
#include <halocline/dirac/reference_operator.hpp>
#include <halocline/lattice/gauge_file.hpp>
#include <halocline_test/reference_data.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace {

using namespace halocline;
using namespace halocline_test;

struct expectation {
    const char* file;
    double plaquette, spatial_plaquette; ///< spatial: 0 if not recorded
    double tolerance;                    ///< relative, for the following
    double norm;                         ///< |D 1|
    std::complex<double> inner;          ///< <1, D 1>
};

const expectation four{"4x4x4x4b6.0000id3n1", 0.5955652897031,
                       0.5881220272,          1e-10,
                       227.892329439098,      {11020.82137185594, 59.40204700538727}};
const expectation eight{"8x8x8x8b6.0000id3n1", 0.5924316992043,
                        0.5916179309,          1e-10,
                        896.809175505568,      {171771.87615210586, -387.67967899314755}};
const expectation ildg{"milc_lat.sample.l4444.ildg",   0.5948501589472, 0, 1e-10, 130.315593412,
                       {3922.840644242, 196.178642394}};

void check(const expectation& want, const coordinate& rank_grid) {
    const std::string path = reference_file(want.file);
    if (path.empty()) GTEST_SKIP() << want.file << " is not here (HALOCLINE_TEST_CONFIGS)";
    comm::run_threads(static_cast<int>(lattice::volume(rank_grid)), [&](const job& j) {
        const lattice::gauge_file file = lattice::open_gauge_file(path);
        const auto cut = decomposition::even(file.extents, rank_grid);
        const lattice::box local = cut.local_box(j.rank());
        gauge_field read(lattice::site_order::lexicographic(local.extents), lattice::gauge_components);
        lattice::read_links(file, local, read);
        const dirac::padded_links links(j, cut, read);
        dirac::reference_operator d(j, cut, links, {});
        const spinor_field one = ones(local);
        spinor_field y = ones(local);

        const auto planes = dirac::plaquette_by_plane(links); // xy xz xt yz yt zt
        d.apply(y, one);
        const double norm = std::sqrt(inner(j, y, y).real());
        const auto overlap = inner(j, one, y);

        EXPECT_NEAR(dirac::plaquette(links), want.plaquette, 2e-13);
        if (want.spatial_plaquette != 0) {
            EXPECT_NEAR((planes[0] + planes[1] + planes[3]) / 3, want.spatial_plaquette, 1e-10);
        }
        EXPECT_NEAR(norm, want.norm, want.tolerance * want.norm);
        EXPECT_LT(std::abs(overlap - want.inner), want.tolerance * std::abs(want.inner));
    });
}

TEST(ReferenceData, FourToTheFourthOnOneRank) { check(four, {1, 1, 1, 1}); }
TEST(ReferenceData, FourToTheFourthCutInT) { check(four, {1, 1, 1, 2}); }
TEST(ReferenceData, FourToTheFourthCutInXAndZ) { check(four, {2, 1, 2, 1}); }
TEST(ReferenceData, EightToTheFourthOnOneRank) { check(eight, {1, 1, 1, 1}); }
TEST(ReferenceData, EightToTheFourthCutInYAndT) { check(eight, {1, 2, 1, 2}); }
TEST(ReferenceData, EightToTheFourthCutUnevenly) { check(eight, {3, 1, 1, 1}); }
TEST(ReferenceData, IldgSampleOnOneRank) { check(ildg, {1, 1, 1, 1}); }
TEST(ReferenceData, IldgSampleCutInXAndT) { check(ildg, {2, 1, 1, 2}); }

} // namespace
