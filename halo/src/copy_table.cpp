// SPDX-License-Identifier: Apache-2.0
#include "copy_kernels.hpp"

#include <halocline/base/error.hpp>

#include <string>

namespace halocline::halo {
namespace {

using strip = copy_pattern::strip;

std::int64_t place(const std::vector<std::int32_t>& places, std::int64_t i) {
    return places.empty() ? i : places[static_cast<std::size_t>(i)];
}

/// Contiguous sites become runs, runs of one length at constant strides become strips.
std::vector<strip> strips_of(std::int64_t sites, std::int64_t site_bytes, const std::vector<std::int32_t>& sources,
                             const std::vector<std::int32_t>& targets) {
    std::vector<strip> strips;
    for (std::int64_t i = 0; i < sites;) {
        const std::int64_t source = place(sources, i), target = place(targets, i);
        std::int64_t length = 1;
        while (i + length < sites && place(sources, i + length) == source + length && place(targets, i + length) == target + length)
            ++length;
        const strip run{source * site_bytes, target * site_bytes, 0, 0, i, static_cast<std::int32_t>(length), 1};
        i += length;
        if (!strips.empty() && strips.back().sites == run.sites) {
            strip& s = strips.back();
            if (s.runs == 1) {
                s.source_stride = run.source - s.source;
                s.target_stride = run.target - s.target;
            }
            if (run.source == s.source + s.runs * s.source_stride && run.target == s.target + s.runs * s.target_stride) {
                ++s.runs;
                continue;
            }
        }
        strips.push_back(run);
    }
    return strips;
}

} // namespace

copy_table::copy_table(std::int64_t sites, std::size_t site_bytes, site_places source, site_places target)
    : sites_(sites), sources_(source.places.begin(), source.places.end()),
      targets_(target.places.begin(), target.places.end()) {
    for (const std::span<const std::int32_t> side : {source.places, target.places})
        if (!side.empty() && static_cast<std::int64_t>(side.size()) != sites)
            throw input_error("copy of " + std::to_string(sites) + " sites: one side lists " + std::to_string(side.size()) +
                              " places");
    pattern_.site_bytes = static_cast<std::int64_t>(site_bytes);
    pattern_.source_lanes = source.lane_width;
    pattern_.target_lanes = target.lane_width;
    if (source.lane_width == 1 && target.lane_width == 1) {
        strips_ = strips_of(sites, pattern_.site_bytes, sources_, targets_);
        // A strip costs about as much as the look-up of four sites.
        constexpr std::int64_t worth_a_strip = 4;
        if (sites < worth_a_strip * static_cast<std::int64_t>(strips_.size()) && strips_.size() > 1) strips_ = {};
        else sources_ = targets_ = {};
    }
    pattern_.strips = strips_.empty() ? nullptr : strips_.data();
    pattern_.strip_count = static_cast<std::int64_t>(strips_.size());
    pattern_.sources = sources_.empty() ? nullptr : sources_.data();
    pattern_.targets = targets_.empty() ? nullptr : targets_.data();
    for (std::size_t i = 0; i < kernels_.size(); ++i) kernels_[i] = kernels::copy_for(pattern_, std::size_t{2} << i);
}

} // namespace halocline::halo
