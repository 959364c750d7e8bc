// SPDX-License-Identifier: Apache-2.0
#include "control_plane.hpp"

namespace halocline::comm {

// A binomial tree: when rank r reports to r - step, it speaks for [r, r + step).
std::string pairwise_mail::combine(std::string mine, const joiner& join, std::string_view operation) {
    std::vector<int> below;
    int step = 1;
    for (; step < ranks_ && rank_ % (2 * step) == 0; step *= 2)
        if (rank_ + step < ranks_) below.push_back(rank_ + step);
    for (const int r : below) mine = join(mine, transfer({}, {}, {&r, 1}, operation).front(), r);
    const int above = rank_ - step;
    if (rank_ != 0) mine = transfer({&above, 1}, {&mine, 1}, {&above, 1}, operation).front();
    if (!below.empty()) transfer(below, std::vector<std::string>(below.size(), mine), {}, operation);
    return mine;
}

std::vector<std::string> pairwise_mail::exchange(std::span<const int> peers, std::span<const std::string> out,
                                                 std::string_view operation) {
    return transfer(peers, out, peers, operation);
}

} // namespace halocline::comm
