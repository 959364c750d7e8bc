// SPDX-License-Identifier: Apache-2.0
// Exact sums: compared with sums by another exact algorithm, in any order, on any number of ranks.
#include <halocline/base/error.hpp>
#include <halocline/comm/exact_sum.hpp>
#include <halocline/comm/job.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace {

using namespace halocline::comm;
using limits = std::numeric_limits<double>;

/// The sum as numbers that don't overlap, each the rounding error of those above it; then rounded once.
/// [J. R. Shewchuk, Discrete Comput. Geom. 18 (1997) 305]  Pre: no partial sum overflows.
double by_expansion(const std::vector<double>& values) {
    std::vector<double> parts; // from small to large
    for (double x : values) {
        std::size_t kept = 0;
        for (double y : parts) {
            if (std::abs(x) < std::abs(y)) std::swap(x, y);
            const double high = x + y, low = y - (high - x);
            if (low != 0) parts[kept++] = low;
            x = high;
        }
        parts.resize(kept);
        parts.push_back(x);
    }
    double sum = parts.back(), low = 0;
    std::size_t n = parts.size() - 1;
    while (n > 0 && low == 0) {
        const double x = sum, y = parts[--n];
        sum = x + y;
        low = y - (sum - x);
    }
    // A tie goes to even unless something of low's sign follows.
    if (n > 0 && low != 0 && std::signbit(low) == std::signbit(parts[n - 1])) {
        const double twice = 2 * low, up = sum + twice;
        if (twice == up - sum) sum = up;
    }
    return sum;
}

double summed(const std::vector<double>& values) {
    exact_accumulator a;
    for (const double v : values) a.add(v);
    return a.rounded();
}

void expect_same_bits(double a, double b) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(a), std::bit_cast<std::uint64_t>(b)) << a << " and " << b;
}

/// Of either sign, with exponents from `lowest` to `highest`.
std::vector<double> some_values(std::mt19937_64& random, int lowest, int highest, std::size_t count) {
    std::uniform_real_distribution<double> mantissa(-1, 1);
    std::uniform_int_distribution<int> exponent(lowest, highest);
    std::vector<double> values(count);
    for (double& v : values) v = std::ldexp(mantissa(random), exponent(random));
    return values;
}

TEST(ExactAccumulator, RoundsOnceWhateverTheExponents) {
    std::mt19937_64 random(1);
    for (const auto& [lowest, highest] :
         {std::pair{0, 0}, {-30, 30}, {-60, 60}, {-1074, 1000}, {-1074, -1000}, {980, 1000}})
        for (int k = 0; k < 300; ++k) {
            std::vector<double> values = some_values(random, lowest, highest, 1 + random() % 40);
            if (k % 3 == 0) { // most of it cancels
                const std::size_t n = values.size();
                for (std::size_t i = 0; i < n; ++i) values.push_back(-values[i]);
                values.push_back(std::ldexp(1.5, lowest));
                values.push_back(std::ldexp(-1.25, lowest / 2));
            }
            std::ranges::shuffle(values, random);
            expect_same_bits(summed(values), by_expansion(values));
        }
}

TEST(ExactAccumulator, RoundsTiesToEvenAndWhatIsBeyondThemUp) {
    const double ulp = limits::epsilon(), tiny = limits::denorm_min();
    expect_same_bits(summed({1, ulp / 2}), 1);
    expect_same_bits(summed({1 + ulp, ulp / 2}), 1 + 2 * ulp);
    expect_same_bits(summed({1, ulp / 2, tiny}), 1 + ulp);
    expect_same_bits(summed({1, ulp / 2, -tiny}), 1);
    expect_same_bits(summed({-1, -ulp / 2, -tiny}), -1 - ulp);
    expect_same_bits(summed({2 - ulp, ulp / 2}), 2);
    expect_same_bits(summed({1e300, 1, -1e300}), 1);
    expect_same_bits(summed({tiny, tiny, tiny}), 3 * tiny);
    expect_same_bits(summed({limits::min(), -tiny}), limits::min() - tiny);
}

TEST(ExactAccumulator, OverflowsOnlyIfTheSumDoes) {
    const double most = limits::max();
    expect_same_bits(summed({most, most, -most}), most);
    expect_same_bits(summed({most, most}), limits::infinity());
    expect_same_bits(summed({-most, -most}), -limits::infinity());
    expect_same_bits(summed({limits::infinity(), -1}), limits::infinity());
    expect_same_bits(summed({-limits::infinity(), most}), -limits::infinity());
    EXPECT_TRUE(std::isnan(summed({limits::infinity(), -limits::infinity()})));
    EXPECT_TRUE(std::isnan(summed({1, limits::quiet_NaN()})));
    expect_same_bits(summed({}), 0);
    expect_same_bits(summed({-0.0}), 0);
}

TEST(ExactAccumulator, HoldsAsManyAsAreAdded) {
    for (const double v : {0.1, -limits::max() / 4e6, limits::denorm_min()}) {
        exact_accumulator a;
        constexpr int count = 1 << 21; // a power of two, so that the product is exact
        for (int i = 0; i < count; ++i) a.add(v);
        expect_same_bits(a.rounded(), v * count);
        exact_accumulator twice = a;
        twice += a;
        expect_same_bits(twice.rounded(), v * count * 2);
        for (int i = 0; i < count; ++i) a.add(-v);
        expect_same_bits(a.rounded(), 0);
    }
}

TEST(ExactSum, HasTheSameBitsOnAnyNumberOfRanks) {
    std::mt19937_64 random(2);
    const std::vector<double> values = some_values(random, -40, 40, 5000), others = some_values(random, -3, 3, 5000);
    const double sum = by_expansion(values), other_sum = by_expansion(others);
    for (const int ranks : {1, 2, 3, 8, 13}) {
        std::atomic<int> wrong{0};
        run_threads(ranks, [&](const job& j) {
            exact_sum total(j, 2);
            for (int step = 0; step < 3; ++step) { // each sum begins anew
                for (std::size_t i = 0; i < values.size(); ++i)
                    if ((i * 7 + static_cast<std::size_t>(step)) % static_cast<std::size_t>(ranks) ==
                        static_cast<std::size_t>(j.rank())) {
                        total.add(values[i]);
                        total.add(others[i], 1);
                    }
                const double first = total.sum_or_throw();
                wrong += first != sum || total.total() != sum || total.total(1) != other_sum ? 1 : 0;
            }
        });
        EXPECT_EQ(wrong, 0) << ranks << " ranks";
    }
}

TEST(ExactSum, BringsWhatIsNotFiniteToAllRanks) {
    run_threads(3, [](const job& j) {
        exact_sum total(j, 2);
        total.add(j.rank() == 1 ? limits::quiet_NaN() : 1);
        total.add(j.rank() == 2 ? -limits::infinity() : 1, 1);
        EXPECT_TRUE(std::isnan(total.sum_or_throw()));
        EXPECT_EQ(total.total(1), -limits::infinity());
    });
}

TEST(ExactSum, IsRefusedBeyondWhatASumHolds) {
    run_threads(2, [](const job& j) {
        EXPECT_THROW(exact_sum(j, 15), halocline::input_error);
        EXPECT_THROW(exact_sum(j, j.rank()), halocline::input_error) << "also if only one rank asks for that";
        exact_sum most(j, 14);
        most.add(j.rank(), 13);
        most.sum_or_throw();
        EXPECT_EQ(most.total(13), 1);
    });
}

} // namespace
