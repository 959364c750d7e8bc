// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"
#include "smooth_configuration.hpp"

#include <utility>

namespace coarse_solve_test {
namespace {

TEST(OddLattices, DefaultsNeverFail) {
    const scratch_folder scratch;
    for (const halocline::lattice::coordinate extents : {halocline::lattice::coordinate{6, 6, 6, 6},
                                                         {4, 4, 4, 8},
                                                         {7, 5, 3, 4},
                                                         {2, 2, 2, 2},
                                                         {10, 4, 4, 6},
                                                         {14, 4, 2, 22}}) {
        const std::string file = scratch / (halocline::lattice::to_string(extents) + ".ildg");
        write_smooth(file, extents);

        const json one = solve(ranks(1), "--setup 1 --vectors 8 --gauge " + file);

        EXPECT_TRUE(one["converged"]) << halocline::lattice::to_string(extents);
        if (extents == halocline::lattice::coordinate{7, 5, 3, 4}) {
            EXPECT_FALSE(one["notes"].empty());
        }
    }
}

TEST(OddLattices, AreSolvedAlikeOnSeveralRanks) {
    const scratch_folder scratch;
    const std::string file = scratch / "6543.ildg";
    write_smooth(file, {6, 5, 4, 3});
    const std::string arguments = "--setup 1 --vectors 8 --blocks 2.5.2.3 --gauge " + file; // 3.1.2.1 blocks
    const json one = solve(ranks(1), arguments);

    for (const auto& [number_of_ranks, grid] :
         {std::pair(3, "3.1.1.1"), std::pair(2, "1.1.2.1"), std::pair(6, "3.1.2.1")}) {
        const json more = solve(ranks(number_of_ranks), arguments + " --mpi " + grid);

        EXPECT_TRUE(more["converged"]) << grid;
        EXPECT_EQ(more["outer_iterations"], one["outer_iterations"]) << grid;
        EXPECT_EQ(more["notes"], one["notes"]) << grid;
        expect_same_solution(more, one, 1e-8);
    }
    EXPECT_TRUE(one["converged"]);
    EXPECT_EQ(one["notes"].size(), 2U); // additive, and without odd-even
}

TEST(OddLattices, TilingRepeatsTheSolution) {
    const scratch_folder scratch;
    const std::string file = scratch / "444.ildg";
    write_smooth(file, {4, 4, 4, 4});

    const json once = solve(ranks(1), "--vectors 8 --setup 1 --tol 1e-12 --gauge " + file);
    const json tiled = solve(ranks(2), "--vectors 8 --setup 1 --tol 1e-12 --tile 2.1.1.1 --gauge " + file);

    EXPECT_TRUE(tiled["converged"]);
    EXPECT_NEAR(tiled["plaquette"], once["plaquette"], 1e-12);
    EXPECT_LE(std::abs(number(tiled["solution_sum"]) - 2.0 * number(once["solution_sum"])),
              1e-8 * std::abs(number(tiled["solution_sum"])));
}

} // namespace
} // namespace coarse_solve_test
