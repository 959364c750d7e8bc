// SPDX-License-Identifier: Apache-2.0
// The solves of the reference code on its public configurations: iteration counts and solutions.
#include <halocline/amg/solver.hpp>
#include <halocline/lattice/gauge_file.hpp>
#include <halocline_test/reference_data.hpp>

#include <gtest/gtest.h>

namespace {

using namespace halocline;
using lattice::coordinate;
using complex = std::complex<double>;

struct expected {
    const char* file;
    coordinate blocks;
    int outer_iterations;
    double coarse_average;
    double norm;
    complex sum, first;
};

class ReferenceSolve : public testing::TestWithParam<expected> {};

TEST_P(ReferenceSolve, GivesTheReferenceSolution) {
    const expected& e = GetParam();
    const std::string path = halocline_test::reference_file(e.file);
    if (path.empty()) GTEST_SKIP() << "no " << e.file << ": set HALOCLINE_TEST_CONFIGS";
    const lattice::gauge_file file = lattice::open_gauge_file(path);
    int iterations_on_one_rank = 0;
    std::uint64_t coarse_iterations_on_one_rank = 0;

    for (const coordinate& grid : {coordinate{1, 1, 1, 1}, coordinate{1, 1, 1, 2}, coordinate{1, 1, 2, 2}}) {
        comm::run_threads(static_cast<int>(lattice::volume(grid)), [&](const comm::job& j) {
            const auto cut = lattice::decomposition::even(file.extents, grid, e.blocks);
            const lattice::box local = cut.local_box(j.rank());
            const auto order = lattice::site_order::lexicographic(local.extents);
            lattice::gauge_field u(order, lattice::gauge_components);
            static_cast<void>(lattice::read_links(file, local, u));
            const dirac::padded_links links(j, cut, u);
            lattice::field<double> x(order, lattice::spinor_components), b(order, lattice::spinor_components);
            for (std::int64_t s = 0; s < b.volume(); ++s)
                for (int c = 0; c < lattice::spinor_components; c += 2) b.at(s, c) = 1;
            amg::solver_options options;
            options.blocks = e.blocks;
            amg::solver solver(j, cut, links, {}, options);

            solver.setup();
            const amg::solver_report report = solver.solve(x, b);

            std::array<double, 5> sums{};
            for (std::int64_t s = 0; s < x.volume(); ++s)
                for (int c = 0; c < lattice::spinor_components; ++c) {
                    sums[0] += x.at(s, c) * x.at(s, c);
                    sums[1 + c % 2] += x.at(s, c);
                }
            if (j.rank() == 0) {
                sums[3] = x.at(0, 0);
                sums[4] = x.at(0, 1);
            }
            comm::global_sum total(j);
            ASSERT_EQ(total(sums), comm::status::ok);
            if (j.rank() != 0) return;
            EXPECT_TRUE(report.converged());
            EXPECT_NEAR(std::sqrt(sums[0]), e.norm, 1e-8 * e.norm);
            EXPECT_LT(std::abs(complex(sums[1], sums[2]) - e.sum), 1e-8 * std::abs(e.sum));
            EXPECT_LT(std::abs(complex(sums[3], sums[4]) - e.first), 1e-8 * std::abs(e.first));
            EXPECT_LE(std::abs(report.outer.iterations - e.outer_iterations), 2);
            EXPECT_NEAR(report.coarse_iterations_average(), e.coarse_average, 1.5);
            if (j.ranks() == 1) {
                iterations_on_one_rank = report.outer.iterations;
                coarse_iterations_on_one_rank = report.coarse.iterations;
            } else {
                EXPECT_EQ(report.outer.iterations, iterations_on_one_rank) << j.ranks() << " ranks";
                EXPECT_EQ(report.coarse.iterations, coarse_iterations_on_one_rank) << j.ranks() << " ranks";
            }
            RecordProperty("seconds_on_" + std::to_string(j.ranks()), std::to_string(report.solve_seconds));
        });
    }
}

INSTANTIATE_TEST_SUITE_P(Files, ReferenceSolve,
                         testing::Values(expected{"4x4x4x4b6.0000id3n1",
                                                  {2, 2, 2, 2},
                                                  10,
                                                  7.0,
                                                  20.4300218875926,
                                                  {811.284253434671, -8.8540000262752},
                                                  {-0.00882730052787024, -0.178325483886883}},
                                         expected{"8x8x8x8b6.0000id3n1",
                                                  {4, 4, 4, 4},
                                                  14,
                                                  8.6,
                                                  86.2588818345744,
                                                  {13363.8316685821, 51.6090649820916},
                                                  {0.622956347039537, -0.0663170620211734}}));

} // namespace
