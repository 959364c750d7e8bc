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

constexpr bool has_32_registers = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64; // older targets have 16

template <int W, int B>
HWY_INLINE void combine_of(view<const float> p, int count, const float* HWY_RESTRICT c, const view<float>* y, int sites,
                           bool keep) {
    const hn::CappedTag<float, W> d;
    constexpr int lanes = static_cast<int>(hn::MaxLanes(hn::CappedTag<float, W>()));
    for (int s = 0; s < sites; ++s) {
        const float* const p_site = p.data + s * p.stride;
        for (int l = 0; l < W; l += lanes) {
            hn::Vec<decltype(d)> sum[B][2 * complex_components];
            for (int b = 0; b < B; ++b)
                for (int k = 0; k < 2 * complex_components; ++k)
                    sum[b][k] = keep ? hn::LoadU(d, y[b].data + s * y[b].stride + k * W + l) : hn::Zero(d);
            for (int i = 0; i < count; ++i) {
                const float* const v = p_site + i * 2 * complex_components * W + l;
                hn::Vec<decltype(d)> cr[B], ci[B];
                for (int b = 0; b < B; ++b) {
                    const float* const factor = c + (b * count + i) * 2 * W + l;
                    cr[b] = hn::LoadU(d, factor);
                    ci[b] = hn::LoadU(d, factor + W);
                }
                for (int k = 0; k < complex_components; ++k) {
                    const auto vr = hn::LoadU(d, v + 2 * k * W), vi = hn::LoadU(d, v + (2 * k + 1) * W);
                    for (int b = 0; b < B; ++b) {
                        sum[b][2 * k] = hn::NegMulAdd(vi, ci[b], hn::MulAdd(vr, cr[b], sum[b][2 * k]));
                        sum[b][2 * k + 1] = hn::MulAdd(vi, cr[b], hn::MulAdd(vr, ci[b], sum[b][2 * k + 1]));
                    }
                }
            }
            for (int b = 0; b < B; ++b)
                for (int k = 0; k < 2 * complex_components; ++k)
                    hn::StoreU(sum[b][k], d, y[b].data + s * y[b].stride + k * W + l);
        }
    }
}

template <int W>
HWY_INLINE void combine_any(view<const float> p, int count, const float* c, const view<float>* y, std::size_t y_count,
                            int sites, bool keep) {
    std::size_t b = 0;
    if constexpr (has_32_registers)
        for (; b + 2 <= y_count; b += 2, c += 4 * count * W) combine_of<W, 2>(p, count, c, y + b, sites, keep);
    for (; b < y_count; ++b, c += 2 * count * W) combine_of<W, 1>(p, count, c, y + b, sites, keep);
}

void combine_target(int w, view<const float> p, int count, const float* c, const view<float>* y, std::size_t y_count,
                    int sites, bool keep) {
    switch (w) {
    case 1: return combine_any<1>(p, count, c, y, y_count, sites, keep);
    case 4: return combine_any<4>(p, count, c, y, y_count, sites, keep);
    case 8: return combine_any<8>(p, count, c, y, y_count, sites, keep);
    default: return combine_any<16>(p, count, c, y, y_count, sites, keep);
    }
}

constexpr int systems_in_registers = has_32_registers ? 4 : 3;
/// Rows of one panel, of each system.
struct panel_sums {
    float re[systems_in_registers][16], im[systems_in_registers][16];
};

// Rows [0, H) of sum_t A_t v_t for systems [first, first + B), where A_t starts with this panel; two sets of sums hide
// the latency of the additions. With several systems the panel is taken in slices of one SIMD register.
template <int H, int B>
HWY_INLINE void panel_product(int n, const product* terms, std::size_t term_count, std::size_t first,
                              std::size_t offset, panel_sums& sums) {
    const hn::CappedTag<float, H> d;
    constexpr int lanes = static_cast<int>(hn::MaxLanes(hn::CappedTag<float, H>())), slices = H / lanes;
    constexpr int at_once = B == 1 ? slices : 1;
    for (int slice = 0; slice < slices; slice += at_once) {
        const std::size_t start = offset + static_cast<std::size_t>(slice * lanes);
        hn::Vec<decltype(d)> re[B][at_once], im[B][at_once], re2[B][at_once], im2[B][at_once];
        for (int b = 0; b < B; ++b)
            for (int k = 0; k < at_once; ++k) re[b][k] = im[b][k] = re2[b][k] = im2[b][k] = hn::Zero(d);
        for (std::size_t t = 0; t < term_count; ++t) {
            const float* a = terms[t].matrix + start;
            const float* v[B];
            for (int b = 0; b < B; ++b) v[b] = terms[t].vectors[first + b] + terms[t].offset;
            for (int c = 0; c < n; ++c, a += 2 * H) {
                for (int k = 0; k < at_once; ++k) {
                    const auto ar = hn::LoadU(d, a + k * lanes), ai = hn::LoadU(d, a + H + k * lanes);
                    for (int b = 0; b < B; ++b) {
                        const auto vr = hn::Set(d, v[b][2 * c]), vi = hn::Set(d, v[b][2 * c + 1]);
                        re[b][k] = hn::MulAdd(ar, vr, re[b][k]);
                        im[b][k] = hn::MulAdd(ar, vi, im[b][k]);
                        re2[b][k] = hn::NegMulAdd(ai, vi, re2[b][k]);
                        im2[b][k] = hn::MulAdd(ai, vr, im2[b][k]);
                    }
                }
            }
        }
        for (int b = 0; b < B; ++b) {
            for (int k = 0; k < at_once; ++k) {
                const int row = (slice + k) * lanes;
                hn::StoreU(hn::Add(re[b][k], re2[b][k]), d, sums.re[b] + row);
                hn::StoreU(hn::Add(im[b][k], im2[b][k]), d, sums.im[b] + row);
            }
        }
    }
}

template <int B>
HWY_INLINE void rows_product(int n, const product* terms, std::size_t term_count, float* const* ys, std::size_t first,
                             std::ptrdiff_t y_offset, int row, bool keep) {
    const std::size_t offset = 2 * static_cast<std::size_t>(row) * static_cast<std::size_t>(n);
    panel_sums sums;
    if (n - row <= 8)
        panel_product<8, B>(n, terms, term_count, first, offset, sums);
    else
        panel_product<16, B>(n, terms, term_count, first, offset, sums);
    const int rows = n - row < 16 ? n - row : 16;
    for (int b = 0; b < B; ++b) {
        float* const out = ys[first + b] + y_offset + 2 * row;
        const float *const re = sums.re[b], *const im = sums.im[b];
        for (int r = 0; r < rows; ++r) {
            out[2 * r] = keep ? out[2 * r] + re[r] : re[r];
            out[2 * r + 1] = keep ? out[2 * r + 1] + im[r] : im[r];
        }
    }
}

void multiply_target(int n, const product* terms, std::size_t term_count, float* const* ys, std::size_t systems,
                     std::ptrdiff_t offset, bool keep) {
    for (int row = 0; row < n; row += 16) {
        std::size_t first = 0;
        for (; systems - first >= systems_in_registers; first += systems_in_registers)
            rows_product<systems_in_registers>(n, terms, term_count, ys, first, offset, row, keep);
        switch (systems - first) {
        case 3: rows_product<3>(n, terms, term_count, ys, first, offset, row, keep); break;
        case 2: rows_product<2>(n, terms, term_count, ys, first, offset, row, keep); break;
        case 1: rows_product<1>(n, terms, term_count, ys, first, offset, row, keep); break;
        default: break;
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
void combine(int w, view<const float> p, int count, const float* c, std::span<const view<float>> y, int sites,
             bool keep) noexcept {
    HWY_DYNAMIC_DISPATCH(combine_target)(w, p, count, c, y.data(), y.size(), sites, keep);
}
void multiply(int n, std::span<const product> terms, std::span<float* const> ys, std::ptrdiff_t offset,
              bool keep) noexcept {
    HWY_DYNAMIC_DISPATCH(multiply_target)(n, terms.data(), terms.size(), ys.data(), ys.size(), offset, keep);
}

} // namespace halocline::amg::kernels
#endif
