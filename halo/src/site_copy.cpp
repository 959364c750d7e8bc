// SPDX-License-Identifier: Apache-2.0
#include "site_copy.hpp"

#include <algorithm>
#include <cstring>

namespace halocline::halo {
namespace {

/// Greedy: as long a run as there is, then as many equal runs at the same distance as follow.
/// next(i) says whether item i continues the run that ends with i - 1.
template <class Next, class Begin, class Follows, class Repeat>
void compress(std::size_t items, Next&& next, Begin&& begin, Follows&& follows, Repeat&& repeat) {
    for (std::size_t first = 0; first < items;) {
        std::size_t last = first + 1;
        while (last < items && next(last)) ++last;
        const auto sites = static_cast<std::int32_t>(last - first);
        if (follows(first, sites))
            repeat(first);
        else
            begin(first, sites);
        first = last;
    }
}

/// `count` blocks of a size that the compiler knows.
template <std::size_t Bytes>
void copy_blocks(const std::byte* from, std::byte* to, std::int32_t count, std::ptrdiff_t from_step, std::ptrdiff_t to_step) {
    for (; count > 0; --count, from += from_step, to += to_step) std::memcpy(to, from, Bytes);
}

void copy_blocks(std::size_t bytes, const std::byte* from, std::byte* to, std::int32_t count, std::ptrdiff_t from_step,
                 std::ptrdiff_t to_step) {
    switch (bytes) { // one site of the usual fields
    case 4: return copy_blocks<4>(from, to, count, from_step, to_step);
    case 8: return copy_blocks<8>(from, to, count, from_step, to_step);
    case 16: return copy_blocks<16>(from, to, count, from_step, to_step);
    case 24: return copy_blocks<24>(from, to, count, from_step, to_step);
    case 48: return copy_blocks<48>(from, to, count, from_step, to_step);
    case 96: return copy_blocks<96>(from, to, count, from_step, to_step);
    case 192: return copy_blocks<192>(from, to, count, from_step, to_step);
    default: break;
    }
    for (; count > 0; --count, from += from_step, to += to_step) std::memcpy(to, from, bytes);
}

struct copy_component {
    template <class T>
    void operator()(const std::byte* from, std::byte* to) const {
        std::memcpy(to, from, sizeof(T));
    }
};
struct add_component {
    template <class T>
    void operator()(const std::byte* from, std::byte* to) const {
        T a, b;
        std::memcpy(&a, to, sizeof(T));
        std::memcpy(&b, from, sizeof(T));
        a += b;
        std::memcpy(to, &a, sizeof(T));
    }
};

} // namespace

std::vector<position_run> runs_of(std::span<const std::int64_t> positions) {
    std::vector<position_run> runs;
    compress(
        positions.size(), [&](std::size_t i) { return positions[i] == positions[i - 1] + 1; },
        [&](std::size_t i, std::int32_t sites) { runs.push_back({positions[i], 0, sites, 1}); },
        [&](std::size_t i, std::int32_t sites) {
            if (runs.empty() || runs.back().sites != sites) return false;
            position_run& r = runs.back();
            if (r.count == 1) r.stride = positions[i] - r.first;
            return positions[i] == r.first + r.count * r.stride;
        },
        [&](std::size_t) { ++runs.back().count; });
    return runs;
}

std::vector<std::int64_t> positions_of(std::span<const position_run> runs) {
    std::vector<std::int64_t> positions;
    for (const position_run& r : runs)
        for (std::int32_t k = 0; k < r.count; ++k)
            for (std::int32_t s = 0; s < r.sites; ++s) positions.push_back(r.first + k * r.stride + s);
    return positions;
}

site_copy::site_copy(std::span<const std::int64_t> from, int from_lanes, std::span<const std::int64_t> to, int to_lanes)
    : sites_(static_cast<std::int64_t>(from.size())), from_lanes_(from_lanes), to_lanes_(to_lanes) {
    compress(
        from.size(), [&](std::size_t i) { return from[i] == from[i - 1] + 1 && to[i] == to[i - 1] + 1; },
        [&](std::size_t i, std::int32_t sites) { runs_.push_back({from[i], to[i], 0, 0, sites, 1}); },
        [&](std::size_t i, std::int32_t sites) {
            if (runs_.empty() || runs_.back().sites != sites) return false;
            run& r = runs_.back();
            if (r.count == 1) {
                r.from_stride = from[i] - r.from;
                r.to_stride = to[i] - r.to;
            }
            return from[i] == r.from + r.count * r.from_stride && to[i] == r.to + r.count * r.to_stride;
        },
        [&](std::size_t) { ++runs_.back().count; });
    runs_.shrink_to_fit();
}

std::int64_t site_copy::runs() const {
    std::int64_t n = 0;
    for (const run& r : runs_) n += r.count;
    return n;
}

void site_copy::copy(const std::byte* from, std::byte* to, const site_shape& shape) const noexcept {
    if (from_lanes_ == 1 && to_lanes_ == 1) {
        const auto bytes = static_cast<std::ptrdiff_t>(shape.bytes());
        for (const run& r : runs_)
            copy_blocks(static_cast<std::size_t>(r.sites * bytes), from + r.from * bytes, to + r.to * bytes, r.count,
                        r.from_stride * bytes, r.to_stride * bytes);
    } else if (shape.component_bytes == 4) {
        by_component(from, to, shape, [](const std::byte* a, std::byte* b) { copy_component{}.operator()<std::uint32_t>(a, b); });
    } else {
        by_component(from, to, shape, [](const std::byte* a, std::byte* b) { copy_component{}.operator()<std::uint64_t>(a, b); });
    }
}

void site_copy::add(const std::byte* from, std::byte* to, const site_shape& shape) const noexcept {
    if (shape.kind == scalar::float32)
        by_component(from, to, shape, [](const std::byte* a, std::byte* b) { add_component{}.operator()<float>(a, b); });
    else
        by_component(from, to, shape, [](const std::byte* a, std::byte* b) { add_component{}.operator()<double>(a, b); });
}

template <class Operation>
void site_copy::by_component(const std::byte* from, std::byte* to, const site_shape& shape, Operation operation) const noexcept {
    const auto bytes = static_cast<std::ptrdiff_t>(shape.bytes());
    const auto component = static_cast<std::ptrdiff_t>(shape.component_bytes);
    // Offset of the first component of a site; the others follow at lanes * component.
    const auto offset = [&](std::int64_t position, int lanes) {
        return position / lanes * lanes * bytes + position % lanes * component;
    };
    const std::ptrdiff_t from_step = from_lanes_ * component, to_step = to_lanes_ * component;
    for (const run& r : runs_)
        for (std::int32_t k = 0; k < r.count; ++k)
            for (std::int32_t s = 0; s < r.sites; ++s) {
                const std::byte* a = from + offset(r.from + k * r.from_stride + s, from_lanes_);
                std::byte* b = to + offset(r.to + k * r.to_stride + s, to_lanes_);
                for (int c = 0; c < shape.components; ++c, a += from_step, b += to_step) operation(a, b);
            }
}

} // namespace halocline::halo
