// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/su3_error.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace {

using halocline::lattice::su3_error;
using link = std::array<double, 18>;

/// diag(1, i, -i)
constexpr link diagonal{1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, -1};

TEST(Su3Error, IsZeroInTheGroupAndTheSizeOfWhatIsMissing) {
    EXPECT_EQ(su3_error(diagonal.data()), 0);

    link off = diagonal;
    off[9] += 1e-6; // |U_11|^2 - 1
    EXPECT_NEAR(su3_error(off.data()), 2e-6, 1e-11);
    off[9] = std::nan("");
    EXPECT_EQ(su3_error(off.data()), std::numeric_limits<double>::infinity());
}

TEST(Su3Error, NoticesADeterminantOfMinusOne) {
    link signed_link = diagonal, swapped = diagonal;
    for (double& v : signed_link) v = -v;
    for (std::size_t k = 0; k < 6; ++k) std::swap(swapped[k], swapped[6 + k]);

    EXPECT_NEAR(su3_error(signed_link.data()), 2, 1e-15);
    EXPECT_NEAR(su3_error(swapped.data()), 2, 1e-15);
}

} // namespace
