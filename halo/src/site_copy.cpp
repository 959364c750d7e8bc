// SPDX-License-Identifier: Apache-2.0
#include "copy_kernels.hpp"
#include "run_walk.hpp"

#include <halocline/comm/detail/claim_lines.hpp>

#include <algorithm>
#include <unordered_map>

namespace halocline::halo {
namespace {

/// As append_run() of run_collector.hpp, with two strides.
void append_to_strips(std::vector<site_strip>& strips, const site_strip& run) {
    if (!strips.empty() && strips.back().sites == run.sites) {
        site_strip& s = strips.back();
        if (s.count == 1) {
            s.from_stride = run.from - s.from;
            s.to_stride = run.to - s.to;
        }
        if (run.from == s.from + s.count * s.from_stride && run.to == s.to + s.count * s.to_stride) {
            ++s.count;
            return;
        }
    }
    strips.push_back(run);
}

/// Greedy: the longest run common to both sides, followed by as many equal runs at the same distances as possible.
std::vector<site_strip> strips_of(const position_list& from, const position_list& to) {
    std::vector<site_strip> strips;
    run_walk out(from), in(to);
    for (std::int64_t first = 0; first < from.size();) {
        const std::int32_t sites = std::min(out.left(), in.left());
        append_to_strips(strips, {out.position(), in.position(), 0, 0, first, sites, 1});
        site_strip& s = strips.back();
        const run_walk::parts left = out.parts_of(sites), right = in.parts_of(sites);
        const bool goes_on = s.count > 1 && s.from_stride == left.stride && s.to_stride == right.stride;
        const std::int32_t runs = goes_on ? std::min(left.count, right.count) : 1;
        s.count += runs - 1;
        first += std::int64_t{sites} * runs;
        out.advance(sites, runs);
        in.advance(sites, runs);
    }
    return strips;
}

/// Positions for the kernels; empty if they are 0, 1, 2, …
std::vector<std::int32_t> listed(const position_list& positions) {
    if (positions.is_counted()) return {};
    const std::vector<std::int64_t> all = positions.expanded();
    return {all.begin(), all.end()};
}

/// Sites of a storage with lanes, by outer index; a lane that is wanted twice is in two groups. Empty unless most sites
/// come in fours of neighbouring lanes: others are copied faster one by one, in the order of the message.
std::vector<std::int32_t> groups_of(const std::vector<std::int64_t>& positions, int lanes) {
    std::vector<std::int32_t> groups;
    std::unordered_map<std::int64_t, std::int32_t> group_of; // by outer index, its latest group
    const std::size_t length = static_cast<std::size_t>(lanes) + 1;
    for (std::size_t i = 0; i < positions.size(); ++i) {
        const std::int64_t outer = positions[i] / lanes;
        const auto lane = static_cast<std::size_t>(positions[i] % lanes);
        std::int32_t& group = group_of.try_emplace(outer, -1).first->second;
        if (group < 0 || groups[static_cast<std::size_t>(group) * length + 1 + lane] >= 0) {
            group = static_cast<std::int32_t>(groups.size() / length);
            groups.resize(groups.size() + length, -1);
            groups[groups.size() - length] = static_cast<std::int32_t>(outer);
        }
        groups[static_cast<std::size_t>(group) * length + 1 + lane] = static_cast<std::int32_t>(i);
    }
    std::size_t in_fours = 0;
    for (std::size_t g = 0; g < groups.size(); g += length)
        for (std::size_t lane = 1; lane < length; lane += 4)
            if (std::all_of(&groups[g + lane], &groups[g + lane] + 4, [](std::int32_t i) { return i >= 0; }))
                in_fours += 4;
    if (4 * in_fours < 3 * positions.size()) groups = {};
    groups.shrink_to_fit();
    return groups;
}

} // namespace

site_copy::site_copy(const position_list& from, int from_lanes, const position_list& to, int to_lanes, bool in_parts)
    : sites_(from.size()), runs_(sites_), from_lanes_(from_lanes), to_lanes_(to_lanes) {
    if (from_lanes == 1 && to_lanes == 1) {
        strips_ = strips_of(from, to);
        runs_ = 0;
        for (const site_strip& s : strips_) runs_ += s.count;
        // A strip costs about as much as the look-up of four sites.
        if (strips_.size() > 1 && sites_ < 4 * std::ssize(strips_)) strips_ = {};
        strips_.shrink_to_fit();
    }
    if (strips_.empty()) {
        from_ = listed(from);
        to_ = listed(to);
    }
    if (from_lanes >= 4 && to_lanes == 1 && !in_parts) groups_ = groups_of(from.expanded(), from_lanes);
    if (to_lanes >= 4 && from_lanes == 1 && !in_parts) groups_ = groups_of(to.expanded(), to_lanes);
    group_count_ = std::ssize(groups_) / (1 + from_lanes * to_lanes);
    kernels_ = from_lanes > 1 || to_lanes > 1 ? kernels::table_of_lanes(from_lanes, to_lanes)
                                              : kernels::table_of_runs(!strips_.empty());
    if (runs_ == 1 && !strips_.empty()) {
        run_from_ = strips_[0].from;
        run_to_ = strips_[0].to;
    } else {
        kernels_.run = nullptr;
    }
}

comm::written_lines site_copy::lines(std::size_t offset, const site_shape& shape) const {
    constexpr std::int64_t line = 64;
    const auto bytes = static_cast<std::int64_t>(shape.bytes()), start = static_cast<std::int64_t>(offset);
    comm::written_lines counts;
    std::int64_t next = 0; // the line after the last one touched
    for (const site_strip& s : strips_)
        for (std::int64_t run = 0; run < s.count; ++run) {
            const std::int64_t begin = start + (s.to + run * s.to_stride) * bytes, end = begin + s.sites * bytes;
            add_lines(counts, begin, end);
            if (begin % line != 0 && begin / line + 1 == next) --counts.part; // counted with the run before
            next = (end + line - 1) / line;
        }
    return counts;
}

void site_copy::claim(std::byte* to, const site_shape& shape, std::int64_t first, std::int64_t last) const noexcept {
    const auto bytes = static_cast<std::int64_t>(shape.bytes());
    const auto claim_sites = [&](std::int64_t begin, std::int64_t end) {
        std::byte* const at = to + begin * bytes;
        comm::claim_line(at); // the one in which the run starts
        comm::claim_lines(at, to + end * bytes);
    };
    if (first >= last) return;
    if (strips_.empty()) {
        if (to_.empty() && to_lanes_ == 1) claim_sites(first, last); // 0, 1, 2, …: a message
        return;
    }
    for (const site_strip& s : strips_) {
        const std::int64_t begin = std::max(first - s.first, std::int64_t{0}),
                           end = std::min(last - s.first, std::int64_t{s.sites} * s.count);
        for (std::int64_t run = begin / s.sites; run * s.sites < end; ++run) {
            const std::int64_t start =
                s.to + run * (s.to_stride - s.sites); // where the strip's site 0 of this run would be
            claim_sites(start + std::max(begin, run * s.sites), start + std::min(end, (run + 1) * s.sites));
        }
    }
}

} // namespace halocline::halo
