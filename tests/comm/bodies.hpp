// SPDX-License-Identifier: Apache-2.0
// Test bodies that run with ranks as threads and with ranks as processes.
#pragma once

#include <halocline/comm/clock.hpp>
#include <halocline/comm/global_sum.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace halocline_test {

using namespace halocline::comm;

/// Any pattern that a neighbouring epoch, sender or direction would not produce.
inline std::uint64_t pattern(int sender, std::uint32_t key, std::uint64_t epoch, std::size_t word) {
    return (epoch * 1'000'003u + word) * 64 + static_cast<std::uint64_t>(sender) * 4 + key;
}

/// Two ends per rank in a ring: on 2 ranks both neighbours are the same rank, on 1 rank the own.
inline std::vector<channel_request> ring(const job& j, std::size_t bytes) {
    const int next = (j.rank() + 1) % j.ranks(), before = (j.rank() + j.ranks() - 1) % j.ranks();
    return {{next, 1, 0, bytes, bytes, "high"}, {before, 0, 1, bytes, bytes, "low"}};
}

/// Every message of every epoch is what its sender wrote in that epoch. `late`: this rank dawdles now and then.
inline void expect_epochs_in_order(const job& j, std::size_t bytes, std::uint64_t epochs, int late = -1) {
    const auto requests = ring(j, bytes);
    channel_set set(j, requests, {"ring", "words"});
    std::uint64_t wrong = 0;
    for (std::uint64_t k = 1; k <= epochs; ++k) {
        if (late == j.rank() && k % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
        set.for_each([&](auto& c) {
            for (std::size_t w = 0; w < bytes / 8; ++w) {
                const std::uint64_t value = pattern(j.rank(), requests[c.index()].key, k, w);
                std::memcpy(c.target(k) + 8 * w, &value, 8);
            }
            c.send(k, ticks());
        });
        const status s = set.wait(k);
        if (s != status::ok) j.fail(s, set.pending(k));
        set.for_each([&](auto& c) {
            for (std::size_t w = 0; w < bytes / 8; ++w) {
                std::uint64_t value = 0;
                std::memcpy(&value, c.received(k) + 8 * w, 8);
                wrong += value != pattern(c.peer(), requests[c.index()].peer_key, k, w);
            }
        });
    }
    EXPECT_EQ(wrong, 0u) << "rank " << j.rank();
}

/// One byte of a message.
inline std::byte byte_pattern(int sender, std::uint32_t key, std::uint64_t epoch, std::size_t place) {
    return static_cast<std::byte>((static_cast<std::size_t>(sender) * 31 + key * 17 + epoch * 7 + place * 13) % 251);
}

/// Every byte of every message is what its sender wrote in that epoch; for sizes that are no multiple of 8.
inline void expect_bytes_in_order(const job& j, std::size_t bytes, std::uint64_t epochs) {
    const auto requests = ring(j, bytes);
    channel_set set(j, requests, {"ring", "bytes"});
    std::uint64_t wrong = 0;
    for (std::uint64_t k = 1; k <= epochs; ++k) {
        set.for_each([&](auto& c) {
            for (std::size_t i = 0; i < bytes; ++i) {
                c.target(k)[i] = byte_pattern(j.rank(), requests[c.index()].key, k, i);
            }
            c.send(k, ticks());
        });
        const status s = set.wait(k);
        if (s != status::ok) j.fail(s, set.pending(k));
        set.for_each([&](auto& c) {
            for (std::size_t i = 0; i < bytes; ++i) {
                wrong += c.received(k)[i] != byte_pattern(c.peer(), requests[c.index()].peer_key, k, i);
            }
        });
    }
    EXPECT_EQ(wrong, 0u) << "rank " << j.rank() << ", " << bytes << " bytes";
}

/// Sums equal the serial sum to rounding, and their bits are the same on every rank.
inline void expect_sums_equal_serial(const job& j) {
    global_sum sum(j, 40);
    for (const std::size_t n : {1, 2, 3, 40}) {
        std::vector<double> values(n);
        std::vector<long double> expected(n, 0), scale(n, 0);
        for (int r = 0; r < j.ranks(); ++r) {
            for (std::size_t i = 0; i < n; ++i) {
                const double part = (r % 2 ? -1.0 : 1.0) / (3.0 + static_cast<double>(i) + 7 * r);
                expected[i] += part;
                scale[i] += part < 0 ? -part : part;
                if (r == j.rank()) values[i] = part;
            }
        }

        ASSERT_EQ(sum(values), status::ok);

        for (std::size_t i = 0; i < n; ++i) {
            EXPECT_NEAR(values[i], static_cast<double>(expected[i]), 1e-15 * static_cast<double>(scale[i]));
        }
        j.agree("the bits of a sum", {reinterpret_cast<const char*>(values.data()), n * sizeof(double)});
    }
    double largest[] = {static_cast<double>(j.rank()), -1.0 - j.rank()};
    ASSERT_EQ(sum.maximum(largest), status::ok);
    EXPECT_EQ(largest[0], j.ranks() - 1);
    EXPECT_EQ(largest[1], -1);
}

} // namespace halocline_test
