// SPDX-License-Identifier: Apache-2.0
// Kernels on a group of blocks. Included once per target (Highway's foreach_target).
#include "wilson_clover_kernels.hpp"

#include <limits>

// Per-target include guard
#if defined(HALOCLINE_DIRAC_BLOCK_KERNELS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HALOCLINE_DIRAC_BLOCK_KERNELS_INL
#undef HALOCLINE_DIRAC_BLOCK_KERNELS_INL
#else
#define HALOCLINE_DIRAC_BLOCK_KERNELS_INL
#endif

#include "site_kernels-inl.hpp"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace halocline::dirac::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Operations on one group of blocks, for fields of W lanes.
template <class T, int W>
struct block_kernels : site_kernels<T, W> {
    using site_kernel = site_kernels<T, W>;
    using site_kernel::add_hops_between;
    using site_kernel::clear;
    using site_kernel::has_hop_between;
    using site_kernel::hops_onto;
    using site_kernel::N;
    using site_kernel::vectors;
    using site_kernel::write;
    using typename site_kernel::hop_fields;
    using typename site_kernel::look_ahead;
    using typename site_kernel::site_buffer;
    using typename site_kernel::tag;
    using typename site_kernel::V;

    static void apply(const block_stencil<T>& stencil, const lane_sources<T>* between, int group, const T* links,
                      const T* clover, T* y, const T* x, bool fetch) {
        site_buffer sum;
        const hop_fields all{links, x};
        const std::int64_t first = std::int64_t{group} * stencil.sites;
        const hop_fields own{links + first * site_link_reals * W, x + first * spinor_reals * W};
        for (int n = 0; n < stencil.sites; ++n) {
            const int site = stencil.walk[n];
            const std::int64_t at = first + site;
            const int next = stencil.walk[n + 1 < stencil.sites ? n + 1 : n];
            const look_ahead ahead{stencil, between, all, clover, y, group, next};
            for (int v = 0; v < vectors; ++v) {
                hops_onto(stencil, site, v, own, sum, fetch && v == 0 ? &ahead : nullptr);
                if (between != nullptr) add_hops_between(stencil, *between, all_faces, group, site, v, all, sum);
                site_kernel::template add_clover_site<W>(clover + at * site_clover_reals * W + v * N,
                                                         all.spinor_at(at, v), sum.values);
                write(sum, y + at * spinor_reals * W + v * N);
            }
        }
    }

    static void add_between(const block_stencil<T>& stencil, const lane_sources<T>& between, unsigned mask, int group,
                            const T* links, T* y, const T* x, T scale) {
        const tag d;
        const V factor = hn::Set(d, scale);
        site_buffer sum;
        const hop_fields all{links, x};
        for (int site = 0; site < stencil.sites; ++site) {
            if (!has_hop_between(stencil, mask, site)) continue;
            for (int v = 0; v < vectors; ++v) {
                clear(sum);
                add_hops_between(stencil, between, mask, group, site, v, all, sum);
                T* const to = y + (std::int64_t{group} * stencil.sites + site) * spinor_reals * W + v * N;
                for (int k = 0; k < spinor_reals; ++k)
                    hn::Store(hn::MulAdd(factor, hn::Load(d, sum.values + k * N), hn::Load(d, to + k * W)), d,
                              to + k * W);
            }
        }
    }

    /// alpha = <Sr, r> / <Sr, Sr> of each block, in all lanes of the block; 0 if Sr vanishes.
    static void step_lengths(int splits, const T* re, const T* im, const T* norm, T* alpha_re, T* alpha_im) {
        for (int block = 0; block < W; block += splits) {
            T sum_re = 0, sum_im = 0, sum_norm = 0;
            for (int lane = block; lane < block + splits; ++lane) {
                sum_re += re[lane];
                sum_im += im[lane];
                sum_norm += norm[lane];
            }
            const bool vanishes = !(sum_norm >= std::numeric_limits<T>::min());
            for (int lane = block; lane < block + splits; ++lane) {
                alpha_re[lane] = vanishes ? T{0} : sum_re / sum_norm;
                alpha_im[lane] = vanishes ? T{0} : sum_im / sum_norm;
            }
        }
    }

    /// The data of the block solve of one group; see table::solve. Its steps follow, in order.
    struct block_system {
        const block_stencil<T>& stencil;
        const T *links, *schur;
        T *x, *r, *e, *work;
        bool fetch_next;

        // 64 bits: a single block may be the whole local box.
        static std::int64_t at(std::int64_t site, int v) { return site * spinor_reals * W + v * N; }
        [[nodiscard]] const T* schur_at(std::int64_t site, int v) const {
            return schur + site * site_clover_reals * W + v * N;
        }
    };

    /// o = -1/D_oo r_o; r_e = r_e - D_eo 1/D_oo r_o; e_e = 0
    static HWY_INLINE void eliminate_odd(const block_system& b) {
        const tag d;
        site_buffer sum;
        for (int site = b.stencil.even_sites; site < b.stencil.sites; ++site)
            for (int v = 0; v < vectors; ++v) {
                clear(sum);
                site_kernel::template add_clover_site<W>(b.schur_at(site, v), b.r + b.at(site, v), sum.values);
                write(sum, b.work + b.at(site, v));
            }
        for (int site = 0; site < b.stencil.even_sites; ++site)
            for (int v = 0; v < vectors; ++v) {
                hops_onto(b.stencil, site, v, {b.links, b.work}, sum);
                T *const r = b.r + b.at(site, v), *const e = b.e + b.at(site, v);
                for (int k = 0; k < spinor_reals; ++k) {
                    hn::Store(hn::Add(hn::Load(d, r + k * W), hn::Load(d, sum.values + k * N)), d, r + k * W);
                    hn::Store(hn::Zero(d), d, e + k * W);
                }
            }
    }

    /// Prefetches, in four steps, what the solve of the next group reads.
    static HWY_INLINE void fetch_next_group(const block_system& b, int step, int site) {
        if (!b.fetch_next || step >= lattice::dimensions) return;
        const std::int64_t at = std::int64_t{b.stencil.sites} + site;
        constexpr int part = spinor_reals / lattice::dimensions;
        look_ahead::template fetch<link_reals>(b.links + (at * site_link_reals + step * link_reals) * W);
        look_ahead::template fetch<link_reals>(b.schur + (at * site_clover_reals + step * link_reals) * W);
        look_ahead::template fetch<part>(b.r + (at * spinor_reals + step * part) * W);
        look_ahead::template fetch<part>(b.x + (at * spinor_reals + step * part) * W);
    }

    /// Per-lane products of r and S r.
    struct alignas(64) step_products {
        T re[W] = {}, im[W] = {}, norm[W] = {}; ///< <S r, r>, <S r, S r>
    };

    /// work_e = S r = D_ee r + D_eo o with o = -1/D_oo D_oe r, and its products with r
    static HWY_INLINE step_products apply_schur(const block_system& b, int step) {
        const tag d;
        site_buffer sum, product;
        for (int site = b.stencil.even_sites; site < b.stencil.sites; ++site)
            for (int v = 0; v < vectors; ++v) {
                hops_onto(b.stencil, site, v, {b.links, b.r}, sum);
                if (v == 0) fetch_next_group(b, step, site);
                clear(product);
                site_kernel::template add_clover_site<N>(b.schur_at(site, v), sum.values, product.values);
                write(product, b.work + b.at(site, v));
            }
        step_products dot;
        for (int site = 0; site < b.stencil.even_sites; ++site)
            for (int v = 0; v < vectors; ++v) {
                hops_onto(b.stencil, site, v, {b.links, b.work}, sum);
                if (v == 0) fetch_next_group(b, step, site);
                const T* const r_site = b.r + b.at(site, v);
                site_kernel::template add_clover_site<W>(b.schur_at(site, v), r_site, sum.values);
                V re = hn::Load(d, dot.re + v * N), im = hn::Load(d, dot.im + v * N),
                  nn = hn::Load(d, dot.norm + v * N);
                for (int k = 0; k < spinor_reals / 2; ++k) {
                    const complex_vector<V> s = site_kernel::template load<N>(sum.values, k),
                                            r = site_kernel::template load<W>(r_site, k);
                    site_kernel::template store<W>(s, b.work + b.at(site, v), k);
                    re = hn::MulAdd(s.re, r.re, hn::MulAdd(s.im, r.im, re));
                    im = hn::MulAdd(s.re, r.im, hn::NegMulAdd(s.im, r.re, im));
                    nn = hn::MulAdd(s.re, s.re, hn::MulAdd(s.im, s.im, nn));
                }
                hn::Store(re, d, dot.re + v * N);
                hn::Store(im, d, dot.im + v * N);
                hn::Store(nn, d, dot.norm + v * N);
            }
        return dot;
    }

    /// e_e = e_e + alpha r; r_e = r_e - alpha S r
    static HWY_INLINE void step(const block_system& b, const T* alpha_re, const T* alpha_im) {
        const tag d;
        for (int site = 0; site < b.stencil.even_sites; ++site)
            for (int v = 0; v < vectors; ++v) {
                const V a_re = hn::Load(d, alpha_re + v * N), a_im = hn::Load(d, alpha_im + v * N);
                const std::int64_t at = b.at(site, v);
                for (int k = 0; k < spinor_reals / 2; ++k) {
                    const complex_vector<V> s = site_kernel::template load<W>(b.work + at, k);
                    complex_vector<V> r = site_kernel::template load<W>(b.r + at, k),
                                      e = site_kernel::template load<W>(b.e + at, k);
                    e.re = hn::MulAdd(a_re, r.re, hn::NegMulAdd(a_im, r.im, e.re));
                    e.im = hn::MulAdd(a_re, r.im, hn::MulAdd(a_im, r.re, e.im));
                    r.re = hn::NegMulAdd(a_re, s.re, hn::MulAdd(a_im, s.im, r.re));
                    r.im = hn::NegMulAdd(a_re, s.im, hn::NegMulAdd(a_im, s.re, r.im));
                    site_kernel::template store<W>(e, b.e + at, k);
                    site_kernel::template store<W>(r, b.r + at, k);
                }
            }
    }

    /// e_o = 1/D_oo (r_o - D_oe e_e), r_o = 0; x = x + e
    static HWY_INLINE void reconstruct_odd(const block_system& b) {
        const tag d;
        site_buffer sum, product;
        for (int site = b.stencil.even_sites; site < b.stencil.sites; ++site)
            for (int v = 0; v < vectors; ++v) {
                hops_onto(b.stencil, site, v, {b.links, b.e}, sum);
                T* const r = b.r + b.at(site, v);
                for (int k = 0; k < spinor_reals; ++k) {
                    hn::Store(hn::Sub(hn::Load(d, sum.values + k * N), hn::Load(d, r + k * W)), d, sum.values + k * N);
                    hn::Store(hn::Zero(d), d, r + k * W);
                }
                clear(product);
                site_kernel::template add_clover_site<N>(b.schur_at(site, v), sum.values, product.values);
                write(product, b.e + b.at(site, v));
            }
        for (std::int64_t k = 0, end = b.at(b.stencil.sites, 0); k < end; k += N)
            hn::Store(hn::Add(hn::Load(d, b.x + k), hn::Load(d, b.e + k)), d, b.x + k);
    }

    static void solve(const block_stencil<T>& stencil, const T* links, const T* schur, T* x, T* r, T* e, T* work,
                      int steps, bool fetch_next) {
        const block_system b{stencil, links, schur, x, r, e, work, fetch_next};
        eliminate_odd(b);
        for (int n = 0; n < steps; ++n) {
            const step_products dot = apply_schur(b, n);
            alignas(64) T alpha_re[W], alpha_im[W];
            step_lengths(stencil.splits_per_block, dot.re, dot.im, dot.norm, alpha_re, alpha_im);
            step(b, alpha_re, alpha_im);
        }
        reconstruct_odd(b);
    }
};

} // namespace halocline::dirac::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
