// SPDX-License-Identifier: Apache-2.0
// Bodies used by other tests besides the contract: rings of messages, sums.
#pragma once

#include "messages.hpp"

#include <halocline/comm/global_sum.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace halocline_test {

/// `count` epochs around a ring; `before_send` and `before_wait` may delay.
template <class Before, class Between>
void expect_ring_delivers(const job& j, std::size_t bytes, std::uint64_t count, Before before_send,
                          Between before_wait) {
    const tape t(bytes);
    channel_set set(j, ring(j, bytes), {"ring", ""});
    std::uint64_t wrong = 0;
    for (std::uint64_t k = 1; k <= count; ++k) {
        before_send(k);
        fill_and_send(set, t, j.rank(), k);
        before_wait(k);
        wait_for(j, set, k);
        wrong += static_cast<std::uint64_t>(wrong_messages(set, t, k));
    }
    EXPECT_EQ(wrong, 0u) << "rank " << j.rank() << ", " << bytes << " bytes, of " << 2 * count << " messages";
}
inline void expect_ring_delivers(const job& j, std::size_t bytes, std::uint64_t count) {
    const auto nothing = [](std::uint64_t) {};
    expect_ring_delivers(j, bytes, count, nothing, nothing);
}

/// Sums equal the serial sum up to rounding, and their bits are the same on every rank.
inline void expect_sums_equal_serial(const job& j) {
    global_sum sum(j, 40);
    for (const std::size_t n : {1, 2, 3, 40}) {
        std::vector<double> values(n);
        std::vector<long double> expected(n, 0), scale(n, 0);
        for (int r = 0; r < j.ranks(); ++r) {
            for (std::size_t i = 0; i < n; ++i) {
                const double part = (r % 2 ? -1.0 : 1.0) / (3.0 + static_cast<double>(i) + 7 * r);
                expected[i] += part;
                scale[i] += std::abs(part);
                if (r == j.rank()) values[i] = part;
            }
        }

        std::vector<double> asked = values;
        ASSERT_EQ(sum(values), status::ok);
        sum.start(asked);
        while (!sum.test()) {
        }
        ASSERT_EQ(sum.finish(asked), status::ok);

        EXPECT_EQ(asked, values);
        for (std::size_t i = 0; i < n; ++i) {
            EXPECT_NEAR(values[i], static_cast<double>(expected[i]), 1e-15 * static_cast<double>(scale[i]));
        }
        j.agree("the bits of a sum", {reinterpret_cast<const char*>(values.data()), n * sizeof(double)});
    }
    double extremes[] = {static_cast<double>(j.rank()), j.rank() == 0 ? std::numeric_limits<double>::quiet_NaN() : 1.0};
    ASSERT_EQ(sum.maximum(extremes), status::ok);
    EXPECT_EQ(extremes[0], j.ranks() - 1);
    EXPECT_TRUE(std::isnan(extremes[1]));
}

} // namespace halocline_test
