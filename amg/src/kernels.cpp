// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

#include <halocline/base/simd_targets.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels.cpp"
#include <hwy/foreach_target.h> // must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace halocline::amg::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int complex_components = 6; // of one chirality: 2 spins x 3 colours

template <int W, int B>
HWY_INLINE void dots_of(view<const float> p, int count, const view<const float>* x, const std::int32_t* sites,
                        std::size_t site_count, float* HWY_RESTRICT acc) {
    const hn::CappedTag<float, W> d;
    using vec = hn::Vec<decltype(d)>;
    constexpr int lanes = static_cast<int>(hn::MaxLanes(hn::CappedTag<float, W>()));
    // a single right-hand side stays in registers while the vectors stream past; several are read again from cache
    constexpr bool hold = B == 1;
    for (std::size_t n = 0; n < site_count; ++n) {
        const float* const p_site = p.data + sites[n] * p.stride;
        const float* x_site[B];
        for (int b = 0; b < B; ++b) x_site[b] = x[b].data + sites[n] * x[b].stride;
        for (int l = 0; l < W; l += lanes) {
            vec held[2 * complex_components];
            for (int k = 0; hold && k < 2 * complex_components; ++k) held[k] = hn::LoadU(d, x_site[0] + k * W + l);
            for (int i = 0; i < count; ++i) {
                const float* const v = p_site + i * 2 * complex_components * W + l;
                vec re[B], im[B];
                for (int b = 0; b < B; ++b) {
                    float* const a = acc + (b * count + i) * 2 * W + l;
                    re[b] = hn::LoadU(d, a);
                    im[b] = hn::LoadU(d, a + W);
                }
                for (int k = 0; k < complex_components; ++k) {
                    const vec vr = hn::LoadU(d, v + 2 * k * W), vi = hn::LoadU(d, v + (2 * k + 1) * W);
                    for (int b = 0; b < B; ++b) {
                        const vec xr = hold ? held[2 * k] : hn::LoadU(d, x_site[b] + 2 * k * W + l);
                        const vec xi = hold ? held[2 * k + 1] : hn::LoadU(d, x_site[b] + (2 * k + 1) * W + l);
                        // conj(v) x
                        re[b] = hn::MulAdd(vi, xi, hn::MulAdd(vr, xr, re[b]));
                        im[b] = hn::NegMulAdd(vi, xr, hn::MulAdd(vr, xi, im[b]));
                    }
                }
                for (int b = 0; b < B; ++b) {
                    float* const a = acc + (b * count + i) * 2 * W + l;
                    hn::StoreU(re[b], d, a);
                    hn::StoreU(im[b], d, a + W);
                }
            }
        }
    }
}

template <int W>
HWY_INLINE void dots_any(view<const float> p, int count, const view<const float>* x, std::size_t x_count,
                         const std::int32_t* sites, std::size_t site_count, float* acc) {
    switch (x_count) {
    case 1: return dots_of<W, 1>(p, count, x, sites, site_count, acc);
    case 2: return dots_of<W, 2>(p, count, x, sites, site_count, acc);
    case 3: return dots_of<W, 3>(p, count, x, sites, site_count, acc);
    default: return dots_of<W, 4>(p, count, x, sites, site_count, acc);
    }
}

void dots_target(int w, view<const float> p, int count, const view<const float>* x, std::size_t x_count,
                 const std::int32_t* sites, std::size_t site_count, float* acc) {
    switch (w) {
    case 1: return dots_any<1>(p, count, x, x_count, sites, site_count, acc);
    case 4: return dots_any<4>(p, count, x, x_count, sites, site_count, acc);
    case 8: return dots_any<8>(p, count, x, x_count, sites, site_count, acc);
    default: return dots_any<16>(p, count, x, x_count, sites, site_count, acc);
    }
}

template <int W>
HWY_INLINE void combine_of(view<const float> p, int count, const float* HWY_RESTRICT c, view<float> y, int sites,
                           bool keep) {
    const hn::CappedTag<float, W> d;
    constexpr int lanes = static_cast<int>(hn::MaxLanes(hn::CappedTag<float, W>()));
    for (int s = 0; s < sites; ++s) {
        const float* const p_site = p.data + s * p.stride;
        float* const y_site = y.data + s * y.stride;
        for (int l = 0; l < W; l += lanes) {
            hn::Vec<decltype(d)> sum[2 * complex_components];
            for (int k = 0; k < 2 * complex_components; ++k)
                sum[k] = keep ? hn::LoadU(d, y_site + k * W + l) : hn::Zero(d);
            for (int i = 0; i < count; ++i) {
                const float* const v = p_site + i * 2 * complex_components * W + l;
                const auto cr = hn::LoadU(d, c + 2 * i * W + l), ci = hn::LoadU(d, c + (2 * i + 1) * W + l);
                for (int k = 0; k < complex_components; ++k) {
                    const auto vr = hn::LoadU(d, v + 2 * k * W), vi = hn::LoadU(d, v + (2 * k + 1) * W);
                    sum[2 * k] = hn::NegMulAdd(vi, ci, hn::MulAdd(vr, cr, sum[2 * k]));
                    sum[2 * k + 1] = hn::MulAdd(vi, cr, hn::MulAdd(vr, ci, sum[2 * k + 1]));
                }
            }
            for (int k = 0; k < 2 * complex_components; ++k) hn::StoreU(sum[k], d, y_site + k * W + l);
        }
    }
}

void combine_target(int w, view<const float> p, int count, const float* c, view<float> y, int sites, bool keep) {
    switch (w) {
    case 1: return combine_of<1>(p, count, c, y, sites, keep);
    case 4: return combine_of<4>(p, count, c, y, sites, keep);
    case 8: return combine_of<8>(p, count, c, y, sites, keep);
    default: return combine_of<16>(p, count, c, y, sites, keep);
    }
}

// Rows [0, H) of sum_k A_k v_k, where A_k starts with this panel; two sets of sums hide the latency of the additions.
template <int H>
HWY_INLINE void panel_product(int n, const product* terms, std::size_t term_count, std::size_t offset,
                              float* HWY_RESTRICT y_re, float* HWY_RESTRICT y_im) {
    const hn::CappedTag<float, H> d;
    constexpr int lanes = static_cast<int>(hn::MaxLanes(hn::CappedTag<float, H>())), parts = H / lanes;
    hn::Vec<decltype(d)> re[parts], im[parts], re2[parts], im2[parts];
    for (int k = 0; k < parts; ++k) re[k] = im[k] = re2[k] = im2[k] = hn::Zero(d);
    for (std::size_t t = 0; t < term_count; ++t) {
        const float* a = terms[t].matrix + offset;
        const float* const v = terms[t].vector;
        for (int c = 0; c < n; ++c, a += 2 * H) {
            const auto vr = hn::Set(d, v[2 * c]), vi = hn::Set(d, v[2 * c + 1]);
            for (int k = 0; k < parts; ++k) {
                const auto ar = hn::LoadU(d, a + k * lanes), ai = hn::LoadU(d, a + H + k * lanes);
                re[k] = hn::MulAdd(ar, vr, re[k]);
                im[k] = hn::MulAdd(ar, vi, im[k]);
                re2[k] = hn::NegMulAdd(ai, vi, re2[k]);
                im2[k] = hn::MulAdd(ai, vr, im2[k]);
            }
        }
    }
    for (int k = 0; k < parts; ++k) {
        hn::StoreU(hn::Add(re[k], re2[k]), d, y_re + k * lanes);
        hn::StoreU(hn::Add(im[k], im2[k]), d, y_im + k * lanes);
    }
}

void multiply_target(int n, const product* terms, std::size_t term_count, float* HWY_RESTRICT y, bool keep) {
    float re[16], im[16];
    for (int row = 0; row < n; row += 16) {
        const std::size_t offset = 2 * static_cast<std::size_t>(row) * static_cast<std::size_t>(n);
        if (n - row <= 8)
            panel_product<8>(n, terms, term_count, offset, re, im);
        else
            panel_product<16>(n, terms, term_count, offset, re, im);
        const int rows = n - row < 16 ? n - row : 16;
        float* const out = y + 2 * row;
        for (int r = 0; r < rows; ++r) {
            out[2 * r] = keep ? out[2 * r] + re[r] : re[r];
            out[2 * r + 1] = keep ? out[2 * r + 1] + im[r] : im[r];
        }
    }
}

} // namespace halocline::amg::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halocline::amg::kernels {

HWY_EXPORT(dots_target);
HWY_EXPORT(combine_target);
HWY_EXPORT(multiply_target);

void dots(int w, view<const float> p, int count, std::span<const view<const float>> x,
          std::span<const std::int32_t> sites, float* acc) noexcept {
    HWY_DYNAMIC_DISPATCH(dots_target)(w, p, count, x.data(), x.size(), sites.data(), sites.size(), acc);
}
void combine(int w, view<const float> p, int count, const float* c, view<float> y, int sites, bool keep) noexcept {
    HWY_DYNAMIC_DISPATCH(combine_target)(w, p, count, c, y, sites, keep);
}
void multiply(int n, std::span<const product> terms, float* y, bool keep) noexcept {
    HWY_DYNAMIC_DISPATCH(multiply_target)(n, terms.data(), terms.size(), y, keep);
}

} // namespace halocline::amg::kernels
#endif
