// SPDX-License-Identifier: Apache-2.0
// Copies whose lines are claimed first, and copies by pieces, compared with plain ones: around the sizes of a line, of a
// block and of a piece.
#include "node/peer_stores.hpp"

#include <halocline/comm/detail/copy_bytes.hpp>

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

/// By pieces of 512 KiB where moves skip waits.
TEST(CopyBytes, EqualsAPlainCopyWhereItIsLarge) {
    constexpr std::size_t piece = std::size_t{512} << 10;
    for (const std::size_t bytes : {piece - 1, piece, piece + 1, 2 * piece, 3 * piece + 100}) {
        std::vector<std::byte> from(bytes), to(bytes + 64, std::byte{0xa5});
        for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i * 7 + i / 256);
        std::vector<std::byte> expected = to;
        std::memcpy(expected.data(), from.data(), bytes);

        halocline::comm::copy_bytes(to.data(), from.data(), bytes);

        EXPECT_TRUE(to == expected) << bytes << " bytes";
    }
}

/// Targets that begin 0 to 64 bytes behind their source, modulo a page: by pieces from 1 to 31.
TEST(CopyBytes, EqualsAPlainCopyAtEveryDistance) {
    constexpr std::size_t page = 4096, room = 16 * page;
    std::vector<std::byte> memory(2 * room + page);
    std::byte* const from = memory.data();
    for (const std::size_t bytes : {0, 1, 2047, 2048, 2049, 4095, 4096, 4097, 12345})
        for (const std::size_t distance : {0, 1, 16, 31, 32, 33, 64}) {
            for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i * 7 + i / 256 + distance);
            std::byte* const to = from + room + distance;
            std::vector<std::byte> expected(from + room, from + room + 4 * page);
            if (bytes > 0) std::memcpy(expected.data() + distance, from, bytes);

            halocline::comm::copy_bytes(to, from, bytes);

            ASSERT_EQ(std::vector<std::byte>(from + room, from + room + 4 * page), expected)
                << bytes << " bytes at a distance of " << distance;
        }
}
