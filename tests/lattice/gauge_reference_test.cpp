// SPDX-License-Identifier: Apache-2.0
// The public configurations, if they are available.
#include <halocline/lattice/gauge_file.hpp>
#include <halocline_test/reference_data.hpp>

#include <gtest/gtest.h>

using namespace halocline::lattice;

namespace {

struct opened {
    gauge_file file;
    gauge_field links;
    gauge_totals totals;
};
opened open_and_read(const std::string& path) {
    gauge_file file = open_gauge_file(path);
    gauge_field links(site_order::lexicographic(file.extents), gauge_components);
    const gauge_totals totals = read_links(file, {{0, 0, 0, 0}, file.extents}, links);
    return {std::move(file), std::move(links), totals};
}

} // namespace

TEST(GaugeReference, DDalphaAMG) {
    const std::string path = halocline_test::reference_file("8x8x8x8b6.0000id3n1");
    if (path.empty()) GTEST_SKIP() << "8x8x8x8b6.0000id3n1 is not here; set HALOCLINE_TEST_CONFIGS to its folder";

    const opened o = open_and_read(path);

    EXPECT_EQ(o.file.format, gauge_format::ddalphaamg);
    EXPECT_EQ(o.file.extents, (coordinate{8, 8, 8, 8}));
    EXPECT_NEAR(o.file.plaquette.value(), 0.5924316992043, 1e-12);
    EXPECT_NO_THROW(check_totals(o.file, o.totals));
    const double first[] = {0.66322116, -0.01670733, 0.47636269, -0.16715277, 0.42157738, 0.35674866}; // U_T(0), row 0
    for (int i = 0; i < 6; ++i) EXPECT_NEAR(o.links.at(0, 3 * link_components + i), first[i], 1e-8);
}

TEST(GaugeReference, NerscAndIldgHoldTheSameField) {
    const std::string nersc = halocline_test::reference_file("culgt_lat.sample.l4444.nersc");
    const std::string ildg = halocline_test::reference_file("milc_lat.sample.l4444.ildg");
    if (nersc.empty() || ildg.empty()) GTEST_SKIP() << "the 4^4 samples are not here; set HALOCLINE_TEST_CONFIGS";

    const opened n = open_and_read(nersc), i = open_and_read(ildg);

    EXPECT_EQ(n.file.extents, (coordinate{4, 4, 4, 4}));
    EXPECT_EQ(n.file.rows, 2);
    EXPECT_EQ(n.file.warnings.size(), 3U); // a trailing byte, no CHECKSUM, no LINK_TRACE
    EXPECT_NO_THROW(check_totals(n.file, n.totals));
    EXPECT_EQ(i.file.format, gauge_format::ildg);
    EXPECT_EQ(i.totals.scidac_xor, (std::array<std::uint32_t, 2>{0x37affb9c, 0x2fc07bbf}));
    EXPECT_NO_THROW(check_totals(i.file, i.totals));
    for (std::size_t k = 0; k < n.links.values().size(); ++k)
        ASSERT_NEAR(n.links.values()[k], i.links.values()[k], 1e-6);
}
