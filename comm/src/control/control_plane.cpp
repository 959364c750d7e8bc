// SPDX-License-Identifier: Apache-2.0
#include "control_plane.hpp"

#include "wire.hpp"

#include <numeric>

namespace halocline::comm {

// A star through rank 0: two message times for any number of ranks.
std::vector<std::string> pairwise_mail::gather(std::string_view mine, std::string_view operation) {
    if (ranks_ == 1) return {std::string(mine)};
    if (rank_ == 0) {
        std::vector<int> others(static_cast<std::size_t>(ranks_ - 1));
        std::iota(others.begin(), others.end(), 1);
        std::vector<std::string> all = transfer({}, {}, others, operation);
        all.insert(all.begin(), std::string(mine));
        wire_writer list;
        for (const std::string& part : all) list.text(part);
        const std::vector<std::string> copies(others.size(), list.take());
        transfer(others, copies, {}, operation);
        return all;
    }
    const int hub = 0;
    const std::string out(mine);
    const std::string list = transfer({&hub, 1}, {&out, 1}, {&hub, 1}, operation).front();
    wire_reader reader(list);
    std::vector<std::string> all(static_cast<std::size_t>(ranks_));
    for (std::string& part : all) part = reader.text();
    return all;
}

// A binomial tree: before rank r reports to r - step, it speaks for [r, r + step).
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
