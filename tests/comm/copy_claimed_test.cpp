// SPDX-License-Identifier: Apache-2.0
// Copies whose lines are claimed first compared with plain ones, around the sizes of a line and of a block.
#include "node/copy_claimed.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

TEST(CopyClaimed, EqualsAPlainCopyAndTouchesNothingElse) {
    for (const std::size_t bytes : {0, 1, 63, 64, 65, 4095, 4096, 4097, 8192, 12345})
        for (const std::size_t offset : {0, 1, 32, 63}) {
            std::vector<std::byte> from(bytes), to(bytes + 256, std::byte{0xa5});
            for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i * 7 + i / 256);
            std::vector<std::byte> expected = to;
            if (bytes > 0) std::memcpy(expected.data() + offset, from.data(), bytes);

            halocline::comm::copy_claimed(to.data() + offset, from.data(), bytes);

            ASSERT_EQ(to, expected) << bytes << " bytes at " << offset;
        }
}
