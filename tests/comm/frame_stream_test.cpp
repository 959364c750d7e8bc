// SPDX-License-Identifier: Apache-2.0
// How far a frame that arrived over a network is trusted.
#include "network/frame_stream.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace {

using halocline::comm::frame_stream;

TEST(FrameStream, HoldsNoMoreThanItsBytes) {
    EXPECT_TRUE(frame_stream::holds(0, 0));
    EXPECT_TRUE(frame_stream::holds(16, 9));
    EXPECT_TRUE(frame_stream::holds(16, 16));
    EXPECT_FALSE(frame_stream::holds(16, 17));
    EXPECT_FALSE(frame_stream::holds(12, 9)) << "payloads are padded to 8 bytes";
    for (std::uint64_t below = 0; below < 16; ++below) {
        const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max() - below;
        EXPECT_FALSE(frame_stream::holds(8192, huge)) << huge;
    }
}

} // namespace
