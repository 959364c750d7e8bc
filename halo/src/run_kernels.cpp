// SPDX-License-Identifier: Apache-2.0
// Copies and sums along lists of sites where neither storage has lanes, for every SIMD target.
#include <halocline/base/simd_targets.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "run_kernels.cpp"
#include <hwy/foreach_target.h> // IWYU pragma: keep

#include "copy_kernels.hpp"
#include "long_runs.hpp"

#include <halocline/comm/detail/copy_bytes.hpp>
#include <halocline/comm/detail/stream_bytes.hpp>

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace halocline::halo::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T, std::size_t Vector, class Operation>
HWY_INLINE void by_vectors(T*& to, const T*& from, std::size_t& left, Operation operation) {
    const hn::CappedTag<T, Vector / sizeof(T)> tag;
    const std::size_t n = hn::Lanes(tag);
    for (; left >= n; left -= n, to += n, from += n) hn::StoreU(operation(tag, from, to), tag, to);
}

/// A run of elements, whose length may or may not be known at compile time: whole vectors, then halves. Vectors of 64
/// bytes are not used, because on Cascade Lake they make copies into a peer's memory slower (docs/decisions/0010).
template <class T, class Operation>
HWY_INLINE void run_of(T* to, const T* from, std::size_t left, Operation operation) {
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

/// Copies `count` runs of `run_bytes`, `step` bytes apart.
struct copy_runs {
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
        for (; count > 0; --count, from += from_step, to += to_step) one(from, to, static_cast<std::size_t>(run_bytes));
    }
    static void one(const element* from, element* to, std::size_t bytes) {
        if (bytes >= long_run_bytes) {
            comm::copy_bytes(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from), bytes);
            return;
        }
        const hn::CappedTag<element, 32> tag; // with vectors of 64 bytes a message of 6 KB takes 20 ns more
        const std::size_t n = hn::Lanes(tag);
        for (; bytes >= 4 * n; bytes -= 4 * n, from += 4 * n, to += 4 * n) {
            const auto a = hn::LoadU(tag, from), b = hn::LoadU(tag, from + n), c = hn::LoadU(tag, from + 2 * n),
                       d = hn::LoadU(tag, from + 3 * n);
            hn::StoreU(a, tag, to);
            hn::StoreU(b, tag, to + n);
            hn::StoreU(c, tag, to + 2 * n);
            hn::StoreU(d, tag, to + 3 * n);
        }
        run_of(to, from, bytes, copied{});
    }
};
/// Copies runs in whole lines that bypass the cache. Runs may be short: 96 bytes are a line and a half.
struct stream_runs {
    using element = std::uint8_t;
    static void any(const element* from, element* to, std::int64_t count, std::int64_t from_step, std::int64_t to_step,
                    std::int64_t run_bytes) {
        for (; count > 0; --count, from += from_step, to += to_step) one(from, to, static_cast<std::size_t>(run_bytes));
    }
    static void one(const element* from, element* to, std::size_t bytes) {
        constexpr std::size_t line = 64;
        const std::size_t head = std::min(bytes, (line - reinterpret_cast<std::uintptr_t>(to) % line) % line);
        const std::size_t lines = (bytes - head) / line * line;
        run_of(to, from, head, copied{});
        comm::stream_lines(reinterpret_cast<std::byte*>(to + head), reinterpret_cast<const std::byte*>(from + head),
                           lines);
        run_of(to + head + lines, from + head + lines, bytes - head - lines, copied{});
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

/// Copies strip by strip.
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
        const std::int64_t end = s->first + std::int64_t{s->sites} * s->count;
        if (first == s->first && last >= end) { // complete, as most are: saves a division, which costs as much as a row
            Runs::any(x, y, s->count, x_step, y_step, s->sites * site);
            first = end;
            continue;
        }
        std::int64_t run = 0;
        if (first > s->first) { // begins inside the strip, possibly inside a run
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

/// Copies site by site.
template <class Runs>
void by_site(const site_list& list, const std::byte* from, std::byte* to, std::int64_t first, std::int64_t last) {
    using element = typename Runs::element;
    const std::int64_t site = list.site_bytes / static_cast<std::int64_t>(sizeof(element));
    for (std::int64_t i = first; i < last; ++i)
        Runs::any(reinterpret_cast<const element*>(from) + (list.from ? list.from[i] : i) * site,
                  reinterpret_cast<element*>(to) + (list.to ? list.to[i] : i) * site, 1, 0, 0, site);
}

void copy_run(const std::byte* from, std::byte* to, std::size_t bytes) {
    copy_runs::one(reinterpret_cast<const std::uint8_t*>(from), reinterpret_cast<std::uint8_t*>(to), bytes);
}

table run_table(bool strips) {
    if (strips)
        return {.copy = {by_strip<copy_runs>, by_strip<copy_runs>, by_strip<copy_runs>},
                .stream = by_strip<stream_runs>,
                .add = {by_strip<add_runs<float>>, by_strip<add_runs<double>>},
                .run = copy_run};
    return {.copy = {by_site<copy_runs>, by_site<copy_runs>, by_site<copy_runs>},
            .add = {by_site<add_runs<float>>, by_site<add_runs<double>>}};
}

} // namespace halocline::halo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halocline::halo::kernels {
HWY_EXPORT(run_table);

table table_of_runs(bool strips) { return HWY_DYNAMIC_DISPATCH(run_table)(strips); }
} // namespace halocline::halo::kernels
#endif
