// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <halocline_test/reference_data.hpp>

namespace coarse_solve_test {
namespace {

struct reference_case {
    const char *file, *arguments;
    double plaquette, ones_norm;
    complex ones_inner;
    double x_norm;
    complex x_sum, x_first;
    int iterations; ///< in the reference code
    double solution_tolerance;
};

void check_reference(const reference_case& c) {
    const std::string path = halocline_test::reference_file(c.file);
    if (path.empty()) GTEST_SKIP() << c.file << " is not there (set HALOCLINE_TEST_CONFIGS)";
    json one;
    for (const int n : {1, 2, 4}) {
        const json r = solve(ranks(n), "--gauge " + path + " " + c.arguments);

        EXPECT_TRUE(r["converged"]);
        EXPECT_NEAR(r["plaquette"], c.plaquette, 1e-10 * c.plaquette);
        EXPECT_NEAR(r["operator_ones_norm"], c.ones_norm, 1e-10 * c.ones_norm);
        EXPECT_LE(std::abs(number(r["operator_ones_inner"]) - c.ones_inner), 1e-10 * std::abs(c.ones_inner));
        EXPECT_NEAR(r["solution_norm"], c.x_norm, c.solution_tolerance * c.x_norm);
        EXPECT_LE(std::abs(number(r["solution_sum"]) - c.x_sum), c.solution_tolerance * std::abs(c.x_sum));
        EXPECT_LE(std::abs(number(r["first_component"]) - c.x_first), c.solution_tolerance * std::abs(c.x_first));
        EXPECT_NEAR(int(r["outer_iterations"]), c.iterations, 2);
        if (n == 1) {
            one = r;
        } else {
            EXPECT_EQ(r["outer_iterations"], one["outer_iterations"]) << n << " ranks";
        }
    }
}

TEST(Reference, FourToTheFourth) {
    check_reference({"4x4x4x4b6.0000id3n1",
                     "--blocks 2.2.2.2",
                     0.5955652897031,
                     227.892329439098,
                     {11020.82137185594, 59.40204700538727},
                     20.4300218875926,
                     {811.284253434671, -8.8540000262752},
                     {-0.00882730052787024, -0.178325483886883},
                     10,
                     1e-8});
}
TEST(Reference, EightToTheFourth) {
    check_reference({"8x8x8x8b6.0000id3n1",
                     "",
                     0.5924316992043,
                     896.809175505568,
                     {171771.87615210586, -387.67967899314755},
                     86.2588818345744,
                     {13363.8316685821, 51.6090649820916},
                     {0.622956347039537, -0.0663170620211734},
                     14,
                     1e-8});
}
TEST(Reference, IldgSampleIsReadInTheRightDirections) {
    const std::string path = halocline_test::reference_file("milc_lat.sample.l4444.ildg");
    if (path.empty()) GTEST_SKIP() << "milc_lat.sample.l4444.ildg is not there (set HALOCLINE_TEST_CONFIGS)";

    const json r = solve(ranks(2), "--gauge " + path);

    EXPECT_NEAR(r["operator_ones_norm"], 130.315593412, 1e-9 * 130);
    EXPECT_NEAR(r["solution_norm"], 78.269434763, 1e-8 * 78.3);
    EXPECT_LE(std::abs(number(r["solution_sum"]) - complex(1596.616298375, -365.386643453)), 1e-8 * 1638);
}

} // namespace
} // namespace coarse_solve_test
