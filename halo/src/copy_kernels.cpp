// SPDX-License-Identifier: Apache-2.0
// Copies along a list of sites, for every SIMD target.
#include "simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "copy_kernels.cpp"
#include <hwy/foreach_target.h> // IWYU pragma: keep

#include "copy_kernels.hpp"

#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace halocline::halo::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using bytes = std::uint8_t;

/// Runs from here on are left to memcpy, whose own dispatch costs little then.
constexpr std::int64_t long_run_bytes = 2048;

template <std::size_t Vector>
HWY_INLINE void copy_vectors(bytes*& to, const bytes*& from, std::size_t& left) {
    const hn::CappedTag<bytes, Vector> tag;
    const std::size_t n = hn::Lanes(tag);
    for (; left >= n; left -= n, to += n, from += n) hn::StoreU(hn::LoadU(tag, from), tag, to);
}

/// A run whose size the compiler knows, or not: whole vectors, then halves.
HWY_INLINE void copy_run(bytes* to, const bytes* from, std::size_t left) {
    copy_vectors<64>(to, from, left);
    copy_vectors<32>(to, from, left);
    copy_vectors<16>(to, from, left);
    copy_vectors<8>(to, from, left);
    for (; left > 0; --left) *to++ = *from++;
}

HWY_INLINE bytes* raw(std::byte* p) { return reinterpret_cast<bytes*>(p); }
HWY_INLINE const bytes* raw(const std::byte* p) { return reinterpret_cast<const bytes*>(p); }

template <std::size_t RunBytes>
void copy_runs(bytes* to, const bytes* from, const copy_pattern::strip& s, std::int64_t runs) {
    for (std::int64_t i = 0; i < runs; ++i, to += s.target_stride, from += s.source_stride) copy_run(to, from, RunBytes);
}

void copy_any_runs(bytes* to, const bytes* from, const copy_pattern::strip& s, std::int64_t runs, std::int64_t run_bytes) {
    switch (run_bytes) { // sites of half-spinors and spinors, in single and double precision
    case 48: return copy_runs<48>(to, from, s, runs);
    case 96: return copy_runs<96>(to, from, s, runs);
    case 192: return copy_runs<192>(to, from, s, runs);
    case 384: return copy_runs<384>(to, from, s, runs);
    default: break;
    }
    const auto size = static_cast<std::size_t>(run_bytes);
    for (; runs > 0; --runs, to += s.target_stride, from += s.source_stride)
        if (run_bytes >= long_run_bytes) std::memcpy(to, from, size);
        else copy_run(to, from, size);
}

void copy_strips(const copy_pattern& p, const std::byte* source, std::byte* target, std::int64_t first, std::int64_t last) {
    std::int64_t low = 0; // the last strip that starts at or before `first`
    for (std::int64_t high = p.strip_count; high - low > 1;) {
        const std::int64_t middle = (low + high) / 2;
        (p.strips[middle].first <= first ? low : high) = middle;
    }
    for (const copy_pattern::strip* s = p.strips + low; first < last; ++s) {
        const bytes* from = raw(source) + s->source;
        bytes* to = raw(target) + s->target;
        const std::int64_t run_bytes = s->sites * p.site_bytes;
        std::int64_t run = 0;
        if (first > s->first) { // begins inside the strip, perhaps inside a run
            run = (first - s->first) / s->sites;
            const std::int64_t skipped = (first - s->first) % s->sites;
            if (skipped > 0) {
                const std::int64_t rest = s->sites - skipped, sites = rest < last - first ? rest : last - first;
                copy_run(to + run * s->target_stride + skipped * p.site_bytes,
                         from + run * s->source_stride + skipped * p.site_bytes, static_cast<std::size_t>(sites * p.site_bytes));
                first += sites;
                ++run;
            }
        }
        const std::int64_t wanted = (last - first) / s->sites, there = s->runs - run, whole = wanted < there ? wanted : there;
        copy_any_runs(to + run * s->target_stride, from + run * s->source_stride, *s, whole, run_bytes);
        first += whole * s->sites;
        run += whole;
        if (run < s->runs && first < last) { // ends inside a run
            copy_run(to + run * s->target_stride, from + run * s->source_stride,
                     static_cast<std::size_t>((last - first) * p.site_bytes));
            return;
        }
    }
}

/// Site by site; SiteBytes = 0: known at run time only.
template <std::size_t SiteBytes>
void copy_sites(const copy_pattern& p, const std::byte* source, std::byte* target, std::int64_t first, std::int64_t last) {
    const std::int64_t size = SiteBytes > 0 ? static_cast<std::int64_t>(SiteBytes) : p.site_bytes;
    for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t from = p.sources ? p.sources[i] : i, to = p.targets ? p.targets[i] : i;
        copy_run(raw(target) + to * size, raw(source) + from * size, static_cast<std::size_t>(size));
    }
}

/// Between storages with lanes: components of a site are W words apart.
template <class Word, int SourceLanes, int TargetLanes>
void copy_lanes(const copy_pattern& p, const std::byte* source, std::byte* target, std::int64_t first, std::int64_t last) {
    const std::int64_t components = p.site_bytes / static_cast<std::int64_t>(sizeof(Word));
    const std::int64_t ws = SourceLanes > 0 ? SourceLanes : p.source_lanes, wt = TargetLanes > 0 ? TargetLanes : p.target_lanes;
    for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t from = p.sources ? p.sources[i] : i, to = p.targets ? p.targets[i] : i;
        const auto* HWY_RESTRICT x = reinterpret_cast<const Word*>(source) + from / ws * ws * components + from % ws;
        auto* HWY_RESTRICT y = reinterpret_cast<Word*>(target) + to / wt * wt * components + to % wt;
        for (std::int64_t c = 0; c < components; ++c) y[c * wt] = x[c * ws];
    }
}

template <class Word>
copy_function lanes_for(const copy_pattern& p) {
    if (p.target_lanes == 1) switch (p.source_lanes) {
        case 4: return copy_lanes<Word, 4, 1>;
        case 8: return copy_lanes<Word, 8, 1>;
        case 16: return copy_lanes<Word, 16, 1>;
        default: break;
        }
    if (p.source_lanes == 1) switch (p.target_lanes) {
        case 4: return copy_lanes<Word, 1, 4>;
        case 8: return copy_lanes<Word, 1, 8>;
        case 16: return copy_lanes<Word, 1, 16>;
        default: break;
        }
    return copy_lanes<Word, 0, 0>;
}

copy_function function_for(const copy_pattern& p, std::size_t component_bytes) {
    if (p.source_lanes > 1 || p.target_lanes > 1) switch (component_bytes) {
        case 2: return lanes_for<std::uint16_t>(p);
        case 4: return lanes_for<std::uint32_t>(p);
        default: return lanes_for<std::uint64_t>(p);
        }
    if (p.strips) return copy_strips;
    switch (p.site_bytes) {
    case 48: return copy_sites<48>;
    case 96: return copy_sites<96>;
    case 192: return copy_sites<192>;
    default: return copy_sites<0>;
    }
}

} // namespace halocline::halo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halocline::halo::kernels {
HWY_EXPORT(function_for);

copy_function copy_for(const copy_pattern& p, std::size_t component_bytes) {
    return HWY_DYNAMIC_DISPATCH(function_for)(p, component_bytes);
}
} // namespace halocline::halo::kernels
#endif
