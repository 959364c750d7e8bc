// SPDX-License-Identifier: Apache-2.0
// The update of generate_gauge, ranks as threads.
#include "binning.hpp"
#include "heatbath.hpp"

#include <halocline/comm/job.hpp>
#include <halocline/dirac/plaquette.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

using namespace halocline;
using comm::job;
using lattice::coordinate;
using lattice::decomposition;

/// All links of the global lattice after `sweeps` sweeps from a hot start, lexicographic.
std::vector<dirac::su3> links_after(int sweeps, const coordinate& global, const coordinate& rank_grid) {
    std::vector<dirac::su3> all(static_cast<std::size_t>(4 * lattice::volume(global)));
    comm::run_threads(static_cast<int>(lattice::volume(rank_grid)), [&](const job& j) {
        const auto cut = decomposition::even(global, rank_grid);
        const lattice::box local = cut.local_box(j.rank());
        gauge::heatbath chain({5.7, 42, 2});
        dirac::padded_links links(j, cut, gauge::hot_links(local, global, 42));
        for (int s = 0; s < sweeps; ++s) chain.sweep(links);
        for (std::int64_t site = 0; site < local.volume(); ++site) {
            const coordinate x = lattice::lexicographic_coordinate(site, local.extents);
            coordinate g = x;
            for (int nu = 0; nu < 4; ++nu) g[nu] += local.origin[nu];
            for (int mu = 0; mu < 4; ++mu) all[4 * lattice::lexicographic_index(g, global) + mu] = links(x, mu);
        }
    });
    return all;
}

/// Plaquettes of `measured` sweeps after `thermalisation`, on 2 ranks.
std::vector<double> plaquettes(const coordinate& global, const gauge::heatbath_options& options, int thermalisation,
                               int measured) {
    std::vector<double> series;
    comm::run_threads(2, [&](const job& j) {
        const auto cut = decomposition::even(global, {1, 1, 1, 2});
        gauge::heatbath chain(options);
        dirac::padded_links links(j, cut, gauge::cold_links(cut.local_box(j.rank())));
        for (int s = 0; s < thermalisation; ++s) chain.sweep(links);
        for (int s = 0; s < measured; ++s) {
            chain.sweep(links);
            const double value = dirac::plaquette(links);
            if (j.rank() == 0) series.push_back(value);
        }
    });
    return series;
}

TEST(Heatbath, LinksHaveTheSameBitsOnEveryRankGrid) {
    const coordinate global{6, 4, 2, 4};

    const auto whole = links_after(2, global, {1, 1, 1, 1});

    EXPECT_NE(whole, links_after(1, global, {1, 1, 1, 1}));
    EXPECT_EQ(whole, links_after(2, global, {1, 1, 1, 2}));
    EXPECT_EQ(whole, links_after(2, global, {2, 1, 2, 1})); // odd local boxes, the same neighbour on both sides
    EXPECT_EQ(whole, links_after(2, global, {1, 3, 1, 1})); // uneven: 2 + 1 + 1
    EXPECT_EQ(whole, links_after(2, global, {2, 2, 1, 1}));
}

TEST(Heatbath, ShellIsCurrentAfterASweep) {
    comm::run_threads(2, [](const job& j) {
        const auto cut = decomposition::even({4, 4, 2, 4}, {2, 1, 1, 1});
        gauge::heatbath chain({6, 3, 1});
        dirac::padded_links links(j, cut, gauge::hot_links(cut.local_box(j.rank()), cut.global(), 3));

        chain.sweep(links);

        dirac::padded_links refreshed = links;
        refreshed.exchange();
        EXPECT_TRUE(std::equal(links.values().begin(), links.values().end(), refreshed.values().begin()));
    });
}

TEST(Heatbath, LinksStayInSu3) {
    const auto links = links_after(3, {4, 4, 4, 4}, {1, 1, 1, 1});

    for (const dirac::su3& u : links) {
        const dirac::su3 one = dirac::multiply_adjoint(u, u);
        for (int e = 0; e < 9; ++e) EXPECT_LT(std::abs(one[e] - dirac::su3_identity[e]), 1e-14);
        const auto determinant = u[0] * (u[4] * u[8] - u[5] * u[7]) - u[1] * (u[3] * u[8] - u[5] * u[6]) +
                                 u[2] * (u[3] * u[7] - u[4] * u[6]);
        EXPECT_LT(std::abs(determinant - 1.0), 1e-14);
    }
}

TEST(Heatbath, OverrelaxationMovesLinksAndKeepsTheAction) {
    const auto after = [](int overrelaxation) {
        const comm::job j = comm::job::single();
        const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
        gauge::heatbath chain({6, 5, overrelaxation});
        dirac::padded_links links(j, cut, gauge::hot_links(cut.local_box(0), cut.global(), 5));
        chain.sweep(links);
        return std::pair(dirac::plaquette(links), links({1, 2, 3, 0}, 1));
    };

    const auto [action, link] = after(0);
    const auto [same_action, moved_link] = after(3);

    EXPECT_NEAR(same_action, action, 1e-12);
    EXPECT_NE(moved_link, link);
}

TEST(Heatbath, RefusesAnOddExtentAndSaysWhich) {
    const comm::job j = comm::job::single();
    const auto cut = decomposition::even({4, 3, 4, 4}, {1, 1, 1, 1});
    dirac::padded_links links(j, cut, gauge::cold_links(cut.local_box(0)));
    gauge::heatbath chain({});

    const std::string refused = halocline_test::refusal([&] { chain.sweep(links); });

    EXPECT_NE(refused.find("extent 3 in y"), std::string::npos) << refused;
}

// The stream of random numbers has 32 bits: a later sweep would get the numbers of an earlier one.
TEST(Heatbath, RefusesASweepForWhichThereAreNoRandomNumbers) {
    const comm::job j = comm::job::single();
    const auto cut = decomposition::even({2, 2, 2, 2}, {1, 1, 1, 1});
    dirac::padded_links links(j, cut, gauge::cold_links(cut.local_box(0)));
    gauge::heatbath last({}, gauge::most_sweeps - 1);

    EXPECT_NO_THROW(last.sweep(links));

    EXPECT_EQ(halocline_test::refusal([&] { last.sweep(links); }),
              "a chain has at most 536870911 sweeps: there are no further random numbers; go on with its links and "
              "another seed");
    EXPECT_EQ(halocline_test::refusal([] { gauge::heatbath({}, gauge::most_sweeps + 1); }),
              "no chain has done 536870912 sweeps: 0 to 536870911 are possible");
}

TEST(Heatbath, RefusesABetaThatIsNotANumber) {
    const auto refused = [](double beta) { return halocline_test::refusal([&] { gauge::heatbath({beta, 1, 1}); }); };
    EXPECT_EQ(refused(std::nan("")), "beta nan is not a coupling: it must be finite and >= 0");
    EXPECT_EQ(refused(-1), "beta -1.000000 is not a coupling: it must be finite and >= 0");
}

// <a0> with density sqrt(1 - a0^2) exp(alpha a0) is I_2(alpha) / I_1(alpha): both algorithms, and where they meet.
TEST(RandomSu2, MeanIsTheRatioOfBesselFunctions) {
    for (const double alpha : {0.0, 0.3, 1.4, 1.6, 4.0, 20.0}) {
        lattice::site_random random(1, 2, 3);
        const int n = 40000;
        double sum = 0, squares = 0;
        for (int k = 0; k < n; ++k) {
            const auto a = gauge::random_su2(alpha, random);
            EXPECT_NEAR(a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + a[3] * a[3], 1, 1e-14);
            sum += a[0], squares += a[0] * a[0];
        }
        const double mean = sum / n, error = std::sqrt((squares / n - mean * mean) / n);
        const double want = alpha == 0 ? 0 : std::cyl_bessel_i(2, alpha) / std::cyl_bessel_i(1, alpha);
        EXPECT_NEAR(mean, want, 4 * error) << "alpha " << alpha;
    }
}

// <P> = beta / 18 + beta^2 / 216 + O(beta^4)
TEST(Ensemble, AgreesWithTheStrongCouplingExpansion) {
    for (const double beta : {1.0, 1.5}) {
        const auto mean = gauge::mean_with_binning(plaquettes({4, 4, 4, 4}, {beta, 11, 0}, 10, 400));

        EXPECT_LT(mean.error, 1e-3);
        EXPECT_NEAR(mean.mean, beta / 18 + beta * beta / 216, 3 * mean.error) << "beta " << beta;
    }
}

TEST(Ensemble, PlaquetteAtBetaSixOnEightToTheFourth) {
    const auto mean = gauge::mean_with_binning(plaquettes({8, 8, 8, 8}, {6, 7, 4}, 30, 64));

    EXPECT_LT(mean.error, 1.5e-3);
    EXPECT_NEAR(mean.mean, 0.5942, 3 * mean.error);
}

TEST(Binning, IndependentValuesKeepTheNaiveError) {
    lattice::site_random random(1, 1, 1);
    std::vector<double> values(4096);
    for (double& v : values) v = random.normal();

    const auto result = gauge::mean_with_binning(values);

    EXPECT_NEAR(result.error, 1.0 / 64, 0.45 / 64); // the largest of several estimates
    EXPECT_NEAR(result.mean, 0, 4.0 / 64);
}

TEST(Binning, SeesThatRepeatedValuesAreNotIndependent) {
    lattice::site_random random(1, 1, 1);
    std::vector<double> values;
    for (int k = 0; k < 1024; ++k) values.insert(values.end(), 8, random.normal());

    const auto result = gauge::mean_with_binning(values);

    EXPECT_GE(result.bin, 8);
    EXPECT_GT(result.error, 0.9 / 32); // 1024 independent values, not 8192
}

TEST(Binning, FewValuesHaveNoError) {
    std::vector<double> values{0.5};
    EXPECT_TRUE(std::isnan(gauge::mean_with_binning(values).error));
    EXPECT_EQ(gauge::mean_with_binning(values).mean, 0.5);

    for (int k = 1; k < 31; ++k) values.push_back(k % 2 == 0 ? 0.5 : 0.6);
    EXPECT_TRUE(std::isnan(gauge::mean_with_binning(values).error));
    values.push_back(0.6);
    EXPECT_GT(gauge::mean_with_binning(values).error, 0);
}

} // namespace
