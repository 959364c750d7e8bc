// SPDX-License-Identifier: Apache-2.0
// Half-spinors of hops between ranks: into messages, and from ghosts into the destination. See table::produce and
// table::consume. Included once per target (Highway's foreach_target).
#include "wilson_clover_kernels.hpp"

#include <cstring>

// Per-target include guard
#if defined(HALOCLINE_DIRAC_SURFACE_KERNELS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HALOCLINE_DIRAC_SURFACE_KERNELS_INL
#undef HALOCLINE_DIRAC_SURFACE_KERNELS_INL
#else
#define HALOCLINE_DIRAC_SURFACE_KERNELS_INL
#endif

#include "block_kernels-inl.hpp"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace halocline::dirac::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Half-spinors of N lanes between vectors and memory, where each lane's 12 reals are adjacent in groups of four.
template <class T, int N>
struct alignas(64) lane_buffer {
    T quads[3][4 * N];
};

template <class T, int W, int F>
void produce(const surface_sources& sources, int group, int end, const T* links, const T* x, T* entries,
             std::int64_t first, std::int64_t last) {
    using block = block_kernels<T, W>;
    using V = typename block::V;
    constexpr int N = block::N;
    const typename block::tag d;
    lane_buffer<T, N> buffer;
    for (std::int64_t i = sources.begin[group]; i < sources.begin[end]; ++i)
        for (int v = 0; v < block::vectors; ++v) {
            const std::int64_t outer = sources.outer[i];
            half_spinor<V> h = block::template project<F>(x + outer * spinor_reals * W + v * N);
            if constexpr (!forward(F))
                h = block::template multiply<F>(
                    links + (outer * site_link_reals + direction(F) * link_reals) * W + v * N, h);
            const auto &a = h.s[0], &b = h.s[1];
            hn::StoreInterleaved4(a.c[0].re, a.c[0].im, a.c[1].re, a.c[1].im, d, buffer.quads[0]);
            hn::StoreInterleaved4(a.c[2].re, a.c[2].im, b.c[0].re, b.c[0].im, d, buffer.quads[1]);
            hn::StoreInterleaved4(b.c[1].re, b.c[1].im, b.c[2].re, b.c[2].im, d, buffer.quads[2]);
            for (int lane = 0; lane < N; ++lane) {
                const std::int32_t entry = sources.entry[i * W + v * N + lane];
                if (entry < first || entry >= last) continue;
                T* to = entries + std::int64_t{entry} * half_spinor_reals;
                for (int q = 0; q < 3; ++q) std::memcpy(to + 4 * q, buffer.quads[q] + 4 * lane, 4 * sizeof(T));
            }
        }
}

template <class T, int W, int F>
void consume(const surface_targets& targets, int group, int end, const T* links, T* y, const T* ghosts, T scale) {
    using block = block_kernels<T, W>;
    using V = typename block::V;
    constexpr int N = block::N;
    const typename block::tag d;
    const V factor = hn::Set(d, scale);
    constexpr T nothing[half_spinor_reals] = {};
    lane_buffer<T, N> buffer;
    for (std::int64_t i = targets.begin[group]; i < targets.begin[end]; ++i)
        for (int v = 0; v < block::vectors; ++v) {
            for (int lane = 0; lane < N; ++lane) {
                const std::int32_t entry = targets.entry[i * W + v * N + lane];
                const T* from = entry < 0 ? nothing : ghosts + std::int64_t{entry} * half_spinor_reals;
                for (int q = 0; q < 3; ++q) std::memcpy(buffer.quads[q] + 4 * lane, from + 4 * q, 4 * sizeof(T));
            }
            half_spinor<V> h;
            auto &a = h.s[0], &b = h.s[1];
            hn::LoadInterleaved4(d, buffer.quads[0], a.c[0].re, a.c[0].im, a.c[1].re, a.c[1].im);
            hn::LoadInterleaved4(d, buffer.quads[1], a.c[2].re, a.c[2].im, b.c[0].re, b.c[0].im);
            hn::LoadInterleaved4(d, buffer.quads[2], b.c[1].re, b.c[1].im, b.c[2].re, b.c[2].im);
            const std::int64_t outer = targets.outer[i];
            if constexpr (forward(F))
                h = block::template multiply<F>(
                    links + (outer * site_link_reals + direction(F) * link_reals) * W + v * N, h);
            for (int s = 0; s < 2; ++s)
                for (int c = 0; c < 3; ++c) {
                    complex_vector<V>& z = h.s[s].c[c];
                    z = {hn::Mul(z.re, factor), hn::Mul(z.im, factor)};
                }
            T* out = y + outer * spinor_reals * W + v * N;
            for (int c = 0; c < 3; ++c) block::template accumulate<F, W>(out, c, {h.s[0].c[c], h.s[1].c[c]});
        }
}

} // namespace halocline::dirac::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
