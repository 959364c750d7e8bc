// SPDX-License-Identifier: Apache-2.0
// Gauge files read by all ranks: corruption and formats with the same header that only the plaquette reveals.
#include "../lattice/openqcd_format.hpp"
#include "refusals.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/dirac/gauge_configuration.hpp>
#include <halocline/dirac/plaquette.hpp>
#include <halocline/dirac/su3.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

namespace {

using namespace halocline;
using namespace halocline_test;
using link_function = std::function<matrix(std::int64_t site, int mu)>;

const coordinate lattice_extents{4, 2, 6, 4};

/// Links, those in t of the last time slice being zero.
matrix open_link(std::int64_t site, int mu) {
    const bool last = lexicographic_coordinate(site, lattice_extents)[3] == lattice_extents[3] - 1;
    return mu == 3 && last ? matrix{} : random_link(site, mu);
}

double plaquette_of(const link_function& link) {
    double value = 0;
    comm::run_threads(1, [&](const comm::job& j) {
        const auto cut = decomposition::even(lattice_extents, {1, 1, 1, 1});
        gauge_field links(site_order::lexicographic(lattice_extents), gauge_components);
        for (std::int64_t s = 0; s < links.volume(); ++s)
            for (int mu = 0; mu < 4; ++mu) {
                const matrix u = link(s, mu);
                for (int k = 0; k < 9; ++k) {
                    links.at(s, 18 * mu + 2 * k) = u[k].real();
                    links.at(s, 18 * mu + 2 * k + 1) = u[k].imag();
                }
            }
        value = dirac::plaquette(dirac::padded_links(j, cut, links));
    });
    return value;
}

std::string ddalphaamg_file(double plaquette) {
    std::string out;
    for (int mu = 3; mu >= 0; --mu) out += bytes_of(static_cast<std::uint64_t>(lattice_extents[mu]), 4, false);
    out += real(3 * plaquette, 8, false);
    for (std::int64_t site = 0; site < volume(lattice_extents); ++site)
        for (int mu = 3; mu >= 0; --mu)
            for (const std::complex<double>& z : random_link(site, mu))
                out += real(z.real(), 8, false) + real(z.imag(), 8, false);
    return out;
}

const coordinate rank_grids[] = {{1, 1, 1, 1}, {2, 1, 1, 2}};

/// Reads on 1 and 4 ranks; check(what was read, its rank's box).
template <class Check>
void read(const std::string& content, Check&& check) {
    const temporary_file t(content);
    for (const coordinate& grid : rank_grids)
        comm::run_threads(static_cast<int>(volume(grid)), [&](const comm::job& j) {
            const auto cut = decomposition::even(lattice_extents, grid);
            check(dirac::read_configuration(j, cut, open_gauge_file(t.path())), cut.local_box(j.rank()));
        });
}

/// The file_error of reading, without the file's name: the same on every rank, of 1 or of 4.
std::string what_is_wrong_with(const std::string& content) {
    const temporary_file t(content);
    std::set<std::string> texts;
    for (const coordinate& grid : rank_grids)
        texts.insert(refusal_of_all(static_cast<int>(volume(grid)), [&](const comm::job& j) {
            const auto cut = decomposition::even(lattice_extents, grid);
            const auto file = open_gauge_file(t.path());
            EXPECT_THROW(dirac::read_configuration(j, cut, file), file_error);
            static_cast<void>(dirac::read_configuration(j, cut, file));
        }));
    EXPECT_EQ(texts.size(), 1U) << *texts.rbegin();
    const std::string name = "'" + t.path() + "'";
    EXPECT_EQ(texts.begin()->find(name), 0U) << *texts.begin();
    return texts.begin()->substr(std::min(name.size(), texts.begin()->size()));
}

void expect_links_of(const link_function& link, const gauge_field& links, const box& local) {
    for (std::int64_t s = 0; s < local.volume(); ++s) {
        const coordinate x = local.site(s);
        for (int mu = 0; mu < 4; ++mu)
            ASSERT_EQ(links.at(s, 18 * mu), link(lexicographic_index(x, lattice_extents), mu)[0].real());
    }
}

TEST(GaugeConfiguration, ThePlaquetteTellsOpenQcdFromDDalphaAMG) {
    const double p = plaquette_of(random_link);

    read(ddalphaamg_file(p), [](const dirac::verified_links& v, const box& local) {
        EXPECT_EQ(v.format, gauge_format::ddalphaamg);
        expect_links_of(random_link, v.links, local);
    });
    read(openqcd(lattice_extents, random_link, p), [&](const dirac::verified_links& v, const box& local) {
        EXPECT_EQ(v.format, gauge_format::openqcd);
        EXPECT_FALSE(v.open_in_t);
        EXPECT_NEAR(v.plaquette, p, 1e-14);
        expect_links_of(random_link, v.links, local);
    });
}

TEST(GaugeConfiguration, TellsAnOpenBoundary) {
    read(openqcd(lattice_extents, open_link, plaquette_of(open_link)),
         [](const dirac::verified_links& v, const box& local) {
             EXPECT_EQ(v.format, gauge_format::openqcd);
             EXPECT_TRUE(v.open_in_t);
             expect_links_of(open_link, v.links, local);
         });
}

TEST(GaugeConfiguration, AFileIsRepeatedWholeOrRefused) {
    const temporary_file t(ildg(8)); // 2.3.4.5; this format records no plaquette that would differ
    const auto read_on = [&](const coordinate& global, const coordinate& grid) {
        comm::run_threads(static_cast<int>(volume(grid)), [&](const comm::job& j) {
            const auto cut = decomposition::even(global, grid);
            const dirac::verified_links v = dirac::read_configuration(j, cut, open_gauge_file(t.path()));
            expect_links(v.links, cut.local_box(j.rank()), 0);
        });
    };

    EXPECT_EQ(refusal([&] { read_on({4, 3, 4, 10}, {1, 1, 1, 2}); }), "accepted");
    EXPECT_EQ(refusal([&] {
                  read_on({2, 3, 4, 8}, {1, 1, 1, 2});
              }),
              "'" + t.path() +
                  "' holds links on 2.3.4.5 sites, but the lattice is 2.3.4.8: each extent must be that of "
                  "the file or a multiple of it");
    for (const coordinate& other : {coordinate{3, 3, 4, 5}, coordinate{2, 3, 4, 4}, coordinate{1, 3, 4, 5}})
        EXPECT_NE(refusal([&] { read_on(other, {1, 1, 2, 1}); }).find("2.3.4.5 sites, but"), std::string::npos);
}

TEST(GaugeConfiguration, ACutForAnotherNumberOfRanksIsRefusedOnEveryRank) {
    const temporary_file t(ildg(8)); // 2.3.4.5
    const auto refused = [&](const coordinate& grid) {
        return refusal_of_all(2, [&](const comm::job& j) {
            const auto cut = decomposition::even({2, 3, 4, 5}, grid);
            static_cast<void>(dirac::read_configuration(j, cut, open_gauge_file(t.path())));
        });
    };

    EXPECT_EQ(refused({1, 1, 1, 1}), "read_configuration(): the lattice is cut over 1 rank, the job has 2");
    EXPECT_EQ(refused({2, 1, 2, 1}), "read_configuration(): the lattice is cut over 4 ranks, the job has 2");
}

TEST(GaugeConfiguration, IsNotWrittenByRanksWithDifferentCutsOrFormats) {
    const scratch_folder scratch;
    const auto refused = [&](const coordinate& grid_of_1, gauge_format format_of_1) {
        return refusal_of_all(2, [&](const comm::job& j) {
            const auto cut = decomposition::even({4, 2, 2, 4}, j.rank() == 0 ? coordinate{1, 1, 1, 2} : grid_of_1);
            gauge_field links(cut.local_box(j.rank()).extents, gauge_components);
            for (std::int64_t s = 0; s < links.volume(); ++s)
                for (int mu = 0; mu < 4; ++mu)
                    for (int k = 0; k < 3; ++k) links.at(s, 18 * mu + 8 * k) = 1;
            dirac::write_configuration(j, cut, links, 1, j.rank() == 0 ? gauge_format::nersc : format_of_1,
                                       scratch / "links");
        });
    };
    const std::string differ = "ranks disagree on the cut of a gauge field and the format of its file: rank 0 has ";

    EXPECT_EQ(refused({2, 1, 1, 1}, gauge_format::nersc).find(differ), 0U);
    EXPECT_EQ(refused({1, 1, 1, 2}, gauge_format::ildg).find(differ), 0U);
    EXPECT_EQ(refused({1, 1, 1, 2}, gauge_format::milc).find(differ), 0U);
    EXPECT_TRUE(std::filesystem::is_empty(scratch / ""));
    EXPECT_EQ(refused({1, 1, 1, 2}, gauge_format::nersc), "accepted");
}

TEST(GaugeConfiguration, WhatIsWrongInBothFormatsIsRefused) {
    std::string flipped = openqcd(lattice_extents, random_link, plaquette_of(random_link));
    flipped[24 + 8 * 500 + 6] ^= 0x10;

    EXPECT_EQ(what_is_wrong_with(flipped).find(": a link misses SU(3) by "), 0U);
    EXPECT_NE(what_is_wrong_with(ddalphaamg_file(0.1)).find("; read as openQCD: "), std::string::npos);
}

TEST(GaugeConfiguration, APlaquetteThatIldgRecordsIsComparedWithTheLinks) {
    const double p = [] {
        double value = 0;
        const temporary_file t(ildg(8));
        comm::run_threads(1, [&](const comm::job& j) {
            const auto cut = decomposition::even({2, 3, 4, 5}, {1, 1, 1, 1});
            value = dirac::read_configuration(j, cut, open_gauge_file(t.path())).plaquette;
        });
        return value;
    }();
    const auto refused = [](double recorded) {
        char xml[80];
        std::snprintf(xml, sizeof xml, "<usqcdInfo><plaq>%e</plaq></usqcdInfo>", recorded);
        const temporary_file t(lime_record("scidac-record-xml", xml, 0x8000) + ildg(8));
        return refusal_of_all(2, [&](const comm::job& j) {
            const auto cut = decomposition::even({2, 3, 4, 5}, {1, 1, 2, 1});
            static_cast<void>(dirac::read_configuration(j, cut, open_gauge_file(t.path())));
        });
    };

    EXPECT_EQ(refused(p), "accepted");
    EXPECT_NE(refused(p + 1e-5).find("': plaquette "), std::string::npos) << refused(p + 1e-5);
    EXPECT_NE(refused(p + 1e-5).find(", but the file says "), std::string::npos) << refused(p + 1e-5);
}

/// Its owner knows which of the two it is.
TEST(GaugeConfiguration, WhatIsWrongIsToldForBothFormats) {
    const std::string wrong_head = openqcd(lattice_extents, random_link, 0.1);

    const std::string told = what_is_wrong_with(wrong_head);

    const auto first = told.find(": read as DDalphaAMG: plaquette "), second = told.find("; read as openQCD: ");
    EXPECT_NE(first, std::string::npos) << told;
    ASSERT_NE(second, std::string::npos) << told;
    char figure[40];
    std::snprintf(figure, sizeof figure, "plaquette %.12f, but", plaquette_of(random_link));
    EXPECT_NE(told.find(figure, second), std::string::npos) << told;
    EXPECT_GT(told.find("unless its boundaries in t are SF or open-SF"), second) << told;
}

TEST(GaugeConfiguration, AnOpenBoundaryIsNotRepeatedInT) {
    const temporary_file t(openqcd(lattice_extents, open_link, plaquette_of(open_link))); // 4.2.6.4
    const auto read_on = [&](const coordinate& global) {
        return refusal_of_all(2, [&](const comm::job& j) {
            const auto cut = decomposition::even(global, {1, 1, 1, 2});
            static_cast<void>(dirac::read_configuration(j, cut, open_gauge_file(t.path())));
        });
    };

    EXPECT_EQ(read_on({8, 2, 6, 4}), "accepted");
    EXPECT_EQ(read_on({4, 2, 6, 8}), "'" + t.path() +
                                         "' has an open boundary in t, which nothing crosses, so it is not repeated in "
                                         "t: the extent there is 8, and must be the file's, 4");
}

TEST(GaugeConfiguration, LinksThatWereRoundedTo32BitsAreMadeUnitaryAgainIfAskedFor) {
    const link_function rounded = [](std::int64_t site, int mu) {
        matrix u = random_link(site, mu);
        for (auto& z : u) z = {static_cast<float>(z.real()), static_cast<float>(z.imag())};
        return u;
    };
    const temporary_file t(openqcd(lattice_extents, rounded, plaquette_of(rounded)));
    comm::run_threads(1, [&](const comm::job& j) {
        const auto cut = decomposition::even(lattice_extents, {1, 1, 1, 1});
        gauge_file file = dirac::open_configuration(j, t.path());

        const std::string refused = refusal([&] { (void)dirac::read_configuration(j, cut, file); });
        EXPECT_THROW((void)dirac::read_configuration(j, cut, file), lattice::rounded_links_error);
        file.rounded_to_32_bits = true;
        dirac::verified_links v = dirac::read_configuration(j, cut, file);
        dirac::reunitarise(v.links);

        EXPECT_NE(refused.find("its links were rounded to 32 bits before, or it is corrupted"), std::string::npos)
            << refused;
        EXPECT_GT(v.su3_error, 1e-9);
        EXPECT_LT(v.su3_error, 1e-6);
        for (std::int64_t s = 0; s < v.links.volume(); ++s)
            for (int mu = 0; mu < 4; ++mu) {
                dirac::su3 u;
                for (int k = 0; k < 9; ++k) u[k] = {v.links.at(s, 18 * mu + 2 * k), v.links.at(s, 18 * mu + 2 * k + 1)};
                const dirac::su3 product = dirac::multiply_adjoint(u, u);
                for (int k = 0; k < 9; ++k) {
                    EXPECT_NEAR(std::abs(product[k] - dirac::su3_identity[k]), 0, 1e-14);
                    EXPECT_NEAR(std::abs(u[k] - random_link(s, mu)[k]), 0, 1e-6);
                }
            }
    });
}

TEST(GaugeConfiguration, LinksOfAnotherShapeAreNeitherMadeUnitaryNorStored) {
    const coordinate sites{4, 4, 4, 4};
    const auto blocked = site_order::blocked({{}, sites}, sites, {2, 2, 2, 2}, 4);
    const auto half = site_order::half({{}, sites}, 0);
    gauge_field none, narrow(sites, 24), in_lanes(blocked, gauge_components), small({2, 4, 4, 4}, gauge_components);
    gauge_field of_one_parity(half, gauge_components);
    for (gauge_field* links : {&none, &narrow, &in_lanes, &of_one_parity})
        EXPECT_EQ(refusal([&] { dirac::reunitarise(*links); }).find("reunitarise(): its field has "), 0U);
    comm::run_threads(1, [&](const comm::job& j) {
        const gauge_field zero(sites, gauge_components);
        const dirac::padded_links padded(j, decomposition::even(sites, {1, 1, 1, 1}), zero);

        for (gauge_field* links : {&none, &narrow, &small, &of_one_parity})
            EXPECT_EQ(refusal([&] { padded.store(*links); }).find("padded_links::store(): its field has "), 0U);
        EXPECT_EQ(refusal([&] { padded.store(in_lanes); }), "accepted");
    });
}

TEST(GaugeConfiguration, LinksThatAreZeroStayZero) {
    read(openqcd(lattice_extents, open_link, plaquette_of(open_link)), [](dirac::verified_links v, const box& local) {
        dirac::reunitarise(v.links);
        for (std::int64_t s = 0; s < local.volume(); ++s) {
            const matrix u = open_link(lexicographic_index(local.site(s), lattice_extents), 3);
            EXPECT_NEAR(v.links.at(s, 18 * 3), u[0].real(), 1e-14);
        }
    });
}

TEST(GaugeConfiguration, RanksThatReadDifferentFilesOrVerifyThemDifferentlyAreToldSo) {
    const temporary_file t(ildg(8)), other(ildg(4)); // 2.3.4.5
    const auto refused = [&](const std::string& path_of_1, bool rounded_of_1) {
        return refusal_of_all(2, [&](const comm::job& j) {
            const auto cut = decomposition::even({2, 3, 4, 5}, {1, 1, 2, 1});
            gauge_file file = open_gauge_file(j.rank() == 0 ? t.path() : path_of_1);
            file.rounded_to_32_bits = j.rank() == 1 && rounded_of_1;
            (void)dirac::read_configuration(j, cut, file);
        });
    };
    const std::string differ = "ranks disagree on what the gauge file says of itself: rank 0 has ";

    EXPECT_EQ(refused(other.path(), false).find(differ), 0U);
    EXPECT_EQ(refused(t.path(), true).find(differ), 0U);
    EXPECT_EQ(refused(t.path(), false), "accepted");
}

TEST(GaugeConfiguration, AFileThatOnlyOneRankCannotOpenIsToldWithThatRank) {
    const temporary_file t(ildg(8));
    const std::string text = refusal_of_all(2, [&](const comm::job& j) {
        (void)dirac::open_configuration(j, j.rank() == 1 ? "/nowhere/links" : t.path());
    });

    EXPECT_EQ(text.find("'/nowhere/links': can't be opened: No such file or directory (rank 1 on "), 0U) << text;
}

} // namespace
