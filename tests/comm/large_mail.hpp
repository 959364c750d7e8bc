// SPDX-License-Identifier: Apache-2.0
// Set-up messages that are larger than any socket's buffer.
#pragma once

#include <halocline/comm/job.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace halocline_test {

/// Every rank sends 1 MiB to every rank including itself, all at once, and gets what was meant for it.
inline void expect_large_messages_cross(const halocline::comm::job& j) {
    std::vector<int> peers;
    std::vector<std::string> out;
    for (int r = 0; r < j.ranks(); ++r) {
        peers.push_back(r);
        out.emplace_back(1 << 20, static_cast<char>('a' + j.rank()));
    }

    const auto in = j.exchange(peers, out);

    for (int r = 0; r < j.ranks(); ++r) EXPECT_EQ(in[r], std::string(1 << 20, static_cast<char>('a' + r)));
}

} // namespace halocline_test
