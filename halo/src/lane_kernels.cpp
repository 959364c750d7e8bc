// SPDX-License-Identifier: Apache-2.0
// Copies where at least one storage has lanes.
#include <halocline/base/simd_targets.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lane_kernels.cpp"
#include <hwy/foreach_target.h> // IWYU pragma: keep

#include "copy_kernels.hpp"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace halocline::halo::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

struct assign {
    template <class T>
    HWY_INLINE void operator()(T& y, T x) const {
        y = x;
    }
};
struct accumulate {
    template <class T>
    HWY_INLINE void operator()(T& y, T x) const {
        y += x;
    }
};

/// Storages with lanes: components of a site are W words apart. 0: W is known only at run time.
template <class Word, class Operation, int FromLanes, int ToLanes>
void by_lane(const site_list& list, const std::byte* from, std::byte* to, std::int64_t first, std::int64_t last) {
    const std::int64_t components = list.components, wx = FromLanes > 0 ? FromLanes : list.from_lanes,
                       wy = ToLanes > 0 ? ToLanes : list.to_lanes;
    for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t at_x = list.from ? list.from[i] : i, at_y = list.to ? list.to[i] : i;
        const auto* HWY_RESTRICT x = reinterpret_cast<const Word*>(from) + at_x / wx * wx * components + at_x % wx;
        auto* HWY_RESTRICT y = reinterpret_cast<Word*>(to) + at_y / wy * wy * components + at_y % wy;
        std::int64_t c = 0;
        for (; c + 4 <= components; c += 4, x += 4 * wx, y += 4 * wy) {
            // All four are read first, so that those of the dense side form one vector.
            const Word a = x[0], b = x[wx], d = x[2 * wx], e = x[3 * wx];
            Operation()(y[0], a);
            Operation()(y[wy], b);
            Operation()(y[2 * wy], d);
            Operation()(y[3 * wy], e);
        }
        for (; c < components; ++c, x += wx, y += wy) Operation()(*y, *x);
    }
}

template <class Word, class Operation>
site_kernel lanes_for(int from_lanes, int to_lanes) {
    if (to_lanes == 1) switch (from_lanes) {
        case 2: return by_lane<Word, Operation, 2, 1>;
        case 4: return by_lane<Word, Operation, 4, 1>;
        case 8: return by_lane<Word, Operation, 8, 1>;
        case 16: return by_lane<Word, Operation, 16, 1>;
        default: break;
        }
    if (from_lanes == 1) switch (to_lanes) {
        case 2: return by_lane<Word, Operation, 1, 2>;
        case 4: return by_lane<Word, Operation, 1, 4>;
        case 8: return by_lane<Word, Operation, 1, 8>;
        case 16: return by_lane<Word, Operation, 1, 16>;
        default: break;
        }
    return by_lane<Word, Operation, 0, 0>;
}

#if HWY_TARGET != HWY_SCALAR
/// Transposes 4 x 4 words of 4 bytes, or 2 x 2 of 8.
HWY_INLINE void transpose(hn::Vec<hn::FixedTag<std::uint32_t, 4>> (&v)[4]) {
    const hn::FixedTag<std::uint32_t, 4> words;
    const hn::FixedTag<std::uint64_t, 2> pairs;
    const auto low = [&](auto a, auto b) { return hn::BitCast(pairs, hn::InterleaveLower(words, a, b)); };
    const auto high = [&](auto a, auto b) { return hn::BitCast(pairs, hn::InterleaveUpper(words, a, b)); };
    const auto a = low(v[0], v[1]), b = high(v[0], v[1]), c = low(v[2], v[3]), d = high(v[2], v[3]);
    v[0] = hn::BitCast(words, hn::InterleaveLower(pairs, a, c));
    v[1] = hn::BitCast(words, hn::InterleaveUpper(pairs, a, c));
    v[2] = hn::BitCast(words, hn::InterleaveLower(pairs, b, d));
    v[3] = hn::BitCast(words, hn::InterleaveUpper(pairs, b, d));
}
HWY_INLINE void transpose(hn::Vec<hn::FixedTag<std::uint64_t, 2>> (&v)[2]) {
    const hn::FixedTag<std::uint64_t, 2> words;
    const auto a = v[0];
    v[0] = hn::InterleaveLower(words, a, v[1]);
    v[1] = hn::InterleaveUpper(words, a, v[1]);
}

/// From lanes to sites, or back: as many lanes at once as there are words in 16 bytes.
template <class Word, int Lanes, bool Packs>
void by_group(const site_list& list, const std::byte* from, std::byte* to, std::int64_t first, std::int64_t last) {
    constexpr std::int64_t words = 16 / sizeof(Word);
    using tag = hn::FixedTag<Word, words>;
    const std::int64_t components = list.components;
    const std::int32_t* const place = Packs ? list.to : list.from;
    // One of these storages has the lanes, the other holds one site after the other; only `to` is written.
    const auto* const x = reinterpret_cast<const Word*>(from);
    auto* const y = reinterpret_cast<Word*>(to);
    for (std::int64_t g = 0; g < list.group_count; ++g) {
        const std::int32_t* const group = list.groups + g * (Lanes + 1);
        for (int lane = 0; lane < Lanes; lane += words) {
            std::int64_t sites[words]; // first word of each lane's site; -1: not wanted
            int wanted = 0;
            for (int l = 0; l < words; ++l) {
                const std::int64_t i = group[1 + lane + l];
                const bool within = first <= i && i < last;
                sites[l] = within ? (place != nullptr ? place[i] : i) * components : -1;
                wanted += within;
            }
            if (wanted == 0) continue;
            const std::int64_t rows = group[0] * Lanes * components + lane; // component c follows c * Lanes later
            std::int64_t c = 0;
            if (wanted == words) // idle lanes are not touched, because a peer may be writing there
                for (; c + words <= components; c += words) {
                    hn::Vec<tag> v[words];
                    for (int l = 0; l < words; ++l)
                        v[l] = hn::LoadU(tag(), Packs ? x + rows + (c + l) * Lanes : x + sites[l] + c);
                    transpose(v);
                    for (int l = 0; l < words; ++l)
                        hn::StoreU(v[l], tag(), Packs ? y + sites[l] + c : y + rows + (c + l) * Lanes);
                }
            for (int l = 0; l < words; ++l)
                for (std::int64_t rest = c; sites[l] >= 0 && rest < components; ++rest) {
                    const std::int64_t row = rows + l + rest * Lanes, site = sites[l] + rest;
                    y[Packs ? site : row] = x[Packs ? row : site];
                }
        }
    }
}

template <class Word>
site_kernel groups_for(int from_lanes, int to_lanes) {
    switch (from_lanes) {
    case 4: return by_group<Word, 4, true>;
    case 8: return by_group<Word, 8, true>;
    case 16: return by_group<Word, 16, true>;
    default: break;
    }
    return to_lanes == 4   ? by_group<Word, 4, false>
           : to_lanes == 8 ? by_group<Word, 8, false>
                           : by_group<Word, 16, false>;
}
#else // without vectors there is nothing to transpose
template <class Word>
site_kernel groups_for(int from_lanes, int to_lanes) {
    return lanes_for<Word, assign>(from_lanes, to_lanes);
}
#endif

table lane_table(int from_lanes, int to_lanes) {
    const site_kernel of_halves = lanes_for<std::uint16_t, assign>(from_lanes, to_lanes);
    return {.copy = {of_halves, lanes_for<std::uint32_t, assign>(from_lanes, to_lanes),
                     lanes_for<std::uint64_t, assign>(from_lanes, to_lanes)},
            .groups = {of_halves, groups_for<std::uint32_t>(from_lanes, to_lanes),
                       groups_for<std::uint64_t>(from_lanes, to_lanes)},
            .add = {lanes_for<float, accumulate>(from_lanes, to_lanes),
                    lanes_for<double, accumulate>(from_lanes, to_lanes)}};
}

} // namespace halocline::halo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halocline::halo::kernels {
HWY_EXPORT(lane_table);

table table_of_lanes(int from_lanes, int to_lanes) { return HWY_DYNAMIC_DISPATCH(lane_table)(from_lanes, to_lanes); }
} // namespace halocline::halo::kernels
#endif
