// SPDX-License-Identifier: Apache-2.0
// Copies whose pieces are taken by two threads: each byte is copied once, by one of them.
#include <halocline/comm/detail/shared_copy.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace {

using namespace halocline::comm;

TEST(SharedCopy, EachByteIsCopiedOnce) {
    for (const std::size_t bytes : {1, 8191, 8192, 8193, 16'384, 100'000, 3'000'001}) {
        std::vector<std::byte> from(bytes), to(bytes);
        for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i * 7 + i / 256);
        std::vector<std::byte> expected = from;
        std::atomic<std::uint64_t> next{0};
        std::atomic<std::size_t> copied{0};
        std::uint64_t pieces[2]{};
        const auto part = [&](int who) {
            pieces[who] = copy_pieces(next, bytes, [&](std::uint64_t start, std::uint64_t n) {
                std::memcpy(to.data() + start, from.data() + start, n);
                copied += n;
            });
        };

        std::thread other(part, 1);
        part(0);
        other.join();

        EXPECT_EQ(to, expected) << bytes;
        EXPECT_EQ(copied, bytes);
        EXPECT_EQ(pieces[0] + pieces[1], pieces_of(bytes));
    }
}

} // namespace
