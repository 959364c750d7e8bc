// SPDX-License-Identifier: Apache-2.0
// Copies and sums along lists of sites, for every SIMD target.
#include "simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "copy_kernels.cpp"
#include <hwy/foreach_target.h> // IWYU pragma: keep

#include "copy_kernels.hpp"

#include <halocline/comm/stream_bytes.hpp>

#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace halocline::halo::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T, std::size_t Vector, class Operation>
HWY_INLINE void by_vectors(T*& to, const T*& from, std::size_t& left, Operation operation) {
    const hn::CappedTag<T, Vector / sizeof(T)> tag;
    const std::size_t n = hn::Lanes(tag);
    for (; left >= n; left -= n, to += n, from += n) hn::StoreU(operation(tag, from, to), tag, to);
}

/// A run of elements whose number the compiler knows, or not: whole vectors, then halves.
template <class T, class Operation>
HWY_INLINE void run_of(T* to, const T* from, std::size_t left, Operation operation) {
    by_vectors<T, 64>(to, from, left, operation);
    by_vectors<T, 32>(to, from, left, operation);
    by_vectors<T, 16>(to, from, left, operation);
    by_vectors<T, 8>(to, from, left, operation);
    by_vectors<T, sizeof(T)>(to, from, left, operation);
}

struct copied {
    template <class D, class T>
    HWY_INLINE hn::Vec<D> operator()(D tag, const T* from, const T*) const {
        return hn::LoadU(tag, from);
    }
};
struct added {
    template <class D, class T>
    HWY_INLINE hn::Vec<D> operator()(D tag, const T* from, const T* to) const {
        return hn::Add(hn::LoadU(tag, to), hn::LoadU(tag, from));
    }
};

/// What becomes of `count` runs of `run_bytes`, `step` bytes apart.
struct copy_runs {
    /// Longer runs are left to memcpy, whose own dispatch costs little then.
    static constexpr std::int64_t long_run_bytes = 2048;
    using element = std::uint8_t;

    template <std::size_t Bytes>
    static void of(const element* from, element* to, std::int64_t count, std::int64_t from_step, std::int64_t to_step) {
        for (; count > 0; --count, from += from_step, to += to_step) run_of(to, from, Bytes, copied{});
    }
    static void any(const element* from, element* to, std::int64_t count, std::int64_t from_step, std::int64_t to_step,
                    std::int64_t run_bytes) {
        switch (run_bytes) { // sites of half-spinors and spinors, in single and double precision
        case 48: return of<48>(from, to, count, from_step, to_step);
        case 96: return of<96>(from, to, count, from_step, to_step);
        case 192: return of<192>(from, to, count, from_step, to_step);
        case 384: return of<384>(from, to, count, from_step, to_step);
        default: break;
        }
        const auto size = static_cast<std::size_t>(run_bytes);
        for (; count > 0; --count, from += from_step, to += to_step)
            if (run_bytes >= long_run_bytes)
                std::memcpy(to, from, size);
            else
                run_of(to, from, size, copied{});
    }
};
/// The same past the cache.
struct stream_runs {
    using element = std::uint8_t;
    static void any(const element* from, element* to, std::int64_t count, std::int64_t from_step, std::int64_t to_step,
                    std::int64_t run_bytes) {
        for (; count > 0; --count, from += from_step, to += to_step)
            comm::stream_bytes(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from),
                               static_cast<std::size_t>(run_bytes));
    }
};
template <class T>
struct add_runs {
    using element = T;
    static void any(const T* from, T* to, std::int64_t count, std::int64_t from_step, std::int64_t to_step,
                    std::int64_t run) {
        for (; count > 0; --count, from += from_step, to += to_step)
            run_of(to, from, static_cast<std::size_t>(run), added{});
    }
};

/// Both storages have one lane, and the list has strips.
template <class Runs>
void by_strip(const site_list& list, const std::byte* from, std::byte* to, std::int64_t first, std::int64_t last) {
    using element = typename Runs::element;
    const std::int64_t site = list.site_bytes / static_cast<std::int64_t>(sizeof(element));
    std::int64_t low = 0; // the last strip that starts at or before `first`
    for (std::int64_t high = list.strip_count; high - low > 1;) {
        const std::int64_t middle = (low + high) / 2;
        (list.strips[middle].first <= first ? low : high) = middle;
    }
    for (const site_strip* s = list.strips + low; first < last; ++s) {
        const auto* x = reinterpret_cast<const element*>(from) + s->from * site;
        auto* y = reinterpret_cast<element*>(to) + s->to * site;
        const std::int64_t x_step = s->from_stride * site, y_step = s->to_stride * site;
        std::int64_t run = 0;
        if (first > s->first) { // begins inside the strip, perhaps inside a run
            run = (first - s->first) / s->sites;
            const std::int64_t skipped = (first - s->first) % s->sites, rest = s->sites - skipped;
            if (skipped > 0) {
                const std::int64_t sites = rest < last - first ? rest : last - first;
                Runs::any(x + run * x_step + skipped * site, y + run * y_step + skipped * site, 1, 0, 0, sites * site);
                first += sites;
                ++run;
            }
        }
        const std::int64_t wanted = (last - first) / s->sites, there = s->count - run,
                           whole = wanted < there ? wanted : there;
        Runs::any(x + run * x_step, y + run * y_step, whole, x_step, y_step, s->sites * site);
        first += whole * s->sites;
        run += whole;
        if (run < s->count && first < last) { // ends inside a run
            Runs::any(x + run * x_step, y + run * y_step, 1, 0, 0, (last - first) * site);
            return;
        }
    }
}

/// Both storages have one lane; site by site.
template <class Runs>
void by_site(const site_list& list, const std::byte* from, std::byte* to, std::int64_t first, std::int64_t last) {
    using element = typename Runs::element;
    const std::int64_t site = list.site_bytes / static_cast<std::int64_t>(sizeof(element));
    for (std::int64_t i = first; i < last; ++i)
        Runs::any(reinterpret_cast<const element*>(from) + (list.from ? list.from[i] : i) * site,
                  reinterpret_cast<element*>(to) + (list.to ? list.to[i] : i) * site, 1, 0, 0, site);
}

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

/// Storages with lanes: components of a site are W words apart. 0: known at run time only.
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
            // All four are read first, so that those of the dense side are one vector.
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
        case 4: return by_lane<Word, Operation, 4, 1>;
        case 8: return by_lane<Word, Operation, 8, 1>;
        case 16: return by_lane<Word, Operation, 16, 1>;
        default: break;
        }
    if (from_lanes == 1) switch (to_lanes) {
        case 4: return by_lane<Word, Operation, 1, 4>;
        case 8: return by_lane<Word, Operation, 1, 8>;
        case 16: return by_lane<Word, Operation, 1, 16>;
        default: break;
        }
    return by_lane<Word, Operation, 0, 0>;
}

#if HWY_TARGET != HWY_SCALAR
/// 4 x 4 words of 4 bytes, or 2 x 2 of 8.
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
    // One of these storages has the lanes, the other one site after site; only `to` is written.
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
            const std::int64_t rows = group[0] * Lanes * components + lane; // component c lies c * Lanes further on
            std::int64_t c = 0;
            if (wanted == words) // idle lanes are not touched: a peer may be writing there
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
#else // no vectors to transpose
template <class Word>
site_kernel groups_for(int from_lanes, int to_lanes) {
    return lanes_for<Word, assign>(from_lanes, to_lanes);
}
#endif

table make_table(bool strips, bool groups, int from_lanes, int to_lanes) {
    if (from_lanes > 1 || to_lanes > 1)
        return {
            {lanes_for<std::uint16_t, assign>(from_lanes, to_lanes),
             groups ? groups_for<std::uint32_t>(from_lanes, to_lanes)
                    : lanes_for<std::uint32_t, assign>(from_lanes, to_lanes),
             groups ? groups_for<std::uint64_t>(from_lanes, to_lanes)
                    : lanes_for<std::uint64_t, assign>(from_lanes, to_lanes)},
            nullptr,
            {lanes_for<float, accumulate>(from_lanes, to_lanes), lanes_for<double, accumulate>(from_lanes, to_lanes)}};
    if (strips)
        return {{by_strip<copy_runs>, by_strip<copy_runs>, by_strip<copy_runs>},
                by_strip<stream_runs>,
                {by_strip<add_runs<float>>, by_strip<add_runs<double>>}};
    return {{by_site<copy_runs>, by_site<copy_runs>, by_site<copy_runs>},
            nullptr,
            {by_site<add_runs<float>>, by_site<add_runs<double>>}};
}

} // namespace halocline::halo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halocline::halo::kernels {
HWY_EXPORT(make_table);

table table_for(bool strips, bool groups, int from_lanes, int to_lanes) {
    return HWY_DYNAMIC_DISPATCH(make_table)(strips, groups, from_lanes, to_lanes);
}
} // namespace halocline::halo::kernels
#endif
