// SPDX-License-Identifier: Apache-2.0
// openQCD's files, which begin like DDalphaAMG's and store the links by odd sites.
#include "openqcd_format.hpp"

#include <halocline/base/error.hpp>
#include <halocline/lattice/decomposition.hpp>

#include <gtest/gtest.h>

using namespace halocline_test;
using halocline::file_error;

namespace {

const coordinate even_extents{4, 2, 6, 8};

/// The links that random_link() gives each site.
void expect_random_links(const gauge_field& links, const box& local, bool open_in_t = false) {
    for (std::int64_t s = 0; s < local.volume(); ++s) {
        coordinate x = lexicographic_coordinate(s, local.extents);
        for (int mu = 0; mu < 4; ++mu) x[mu] = (x[mu] + local.origin[mu]) % even_extents[mu];
        for (int mu = 0; mu < 4; ++mu) {
            const bool zero = open_in_t && mu == 3 && x[3] == even_extents[3] - 1;
            const matrix u = zero ? matrix{} : random_link(lexicographic_index(x, even_extents), mu);
            for (int k = 0; k < 9; ++k) {
                ASSERT_EQ(links.at(s, mu * 18 + 2 * k), u[k].real()) << to_string(x) << " mu " << mu;
                ASSERT_EQ(links.at(s, mu * 18 + 2 * k + 1), u[k].imag()) << to_string(x) << " mu " << mu;
            }
        }
    }
}

gauge_file open_as_openqcd(const std::string& path) { return as_openqcd(open_gauge_file(path)).value(); }

TEST(OpenQcdFile, PartsAddUpToTheWholeForEveryCut) {
    const temporary_file t(openqcd(even_extents, random_link, 0.125));
    const gauge_file file = open_as_openqcd(t.path());
    EXPECT_EQ(file.format, gauge_format::openqcd);
    EXPECT_EQ(file.extents, even_extents);
    EXPECT_DOUBLE_EQ(file.plaquette.value(), 0.125);
    const coordinate twice{8, 2, 12, 8};

    for (const auto& [global, grid] : {std::pair{even_extents, coordinate{1, 1, 1, 1}},
                                       {even_extents, {4, 1, 2, 1}},
                                       {even_extents, {1, 2, 6, 8}},
                                       {twice, {1, 1, 3, 4}}}) {
        const auto cut = decomposition::even(global, grid);
        gauge_totals sum;
        for (int rank = 0; rank < cut.ranks(); ++rank) {
            const box local = cut.local_box(rank);
            gauge_field part(site_order::lexicographic(local.extents), gauge_components);
            sum = combine(sum, read_links(file, local, part));
            expect_random_links(part, local);
        }
        EXPECT_EQ(sum.links, 4 * volume(even_extents));
        EXPECT_EQ(sum.open_links, 0);
        EXPECT_NO_THROW(check_totals(file, sum));
    }
}

TEST(OpenQcdFile, MayHaveAnOpenBoundaryInT) {
    const auto open_link = [](std::int64_t site, int mu) {
        const bool last = lexicographic_coordinate(site, even_extents)[3] == even_extents[3] - 1;
        return mu == 3 && last ? matrix{} : random_link(site, mu);
    };
    const temporary_file t(openqcd(even_extents, open_link, 0.125));
    const gauge_file file = open_as_openqcd(t.path());
    const box all{{0, 0, 0, 0}, even_extents};
    gauge_field links(site_order::lexicographic(even_extents), gauge_components);

    const gauge_totals totals = read_links(file, all, links);

    expect_random_links(links, all, true);
    EXPECT_EQ(totals.open_links, 4 * 2 * 6);
    EXPECT_NO_THROW(check_totals(file, totals));
    const gauge_file other = open_gauge_file(t.path());
    EXPECT_THROW(check_totals(other, read_links(other, all, links)), file_error) << "not in a file of another format";
}

TEST(OpenQcdFile, ZeroLinksElsewhereAreRefused) {
    const auto refused = [](std::int64_t zero_site, int zero_mu) {
        const temporary_file t(openqcd(
            even_extents,
            [&](std::int64_t site, int mu) {
                return site == zero_site && mu == zero_mu ? matrix{} : random_link(site, mu);
            },
            0.125));
        const gauge_file file = open_as_openqcd(t.path());
        gauge_field links(site_order::lexicographic(even_extents), gauge_components);
        const gauge_totals totals = read_links(file, {{0, 0, 0, 0}, even_extents}, links);
        EXPECT_THROW(check_totals(file, totals), file_error);
    };
    refused(0, 3);                        // not in the last slice
    refused(volume(even_extents) - 1, 2); // not in t
    refused(volume(even_extents) - 1, 3); // one of its slice
}

TEST(OpenQcdFile, IsLittleEndianAndHasAPlaquette) {
    std::string big;
    for (int mu = 3; mu >= 0; --mu) big += bytes_of(static_cast<std::uint64_t>(even_extents[mu]), 4, true);
    big += real(0.375, 8, true) + std::string(static_cast<std::size_t>(volume(even_extents)) * 576, '\0');
    const temporary_file none(openqcd(even_extents, random_link, 0)), other(big);

    EXPECT_FALSE(as_openqcd(open_gauge_file(none.path())));
    EXPECT_FALSE(as_openqcd(open_gauge_file(other.path())));
    EXPECT_EQ(open_gauge_file(other.path()).extents, even_extents);
}

TEST(OpenQcdFile, HasEvenExtents) {
    const temporary_file odd(ddalphaamg()), ildg_file(ildg(8));

    EXPECT_FALSE(as_openqcd(open_gauge_file(odd.path())));
    EXPECT_FALSE(as_openqcd(open_gauge_file(ildg_file.path())));
}

} // namespace
