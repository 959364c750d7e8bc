// SPDX-License-Identifier: Apache-2.0
// SIMD kernels of the Wilson-clover operator; included once per target (Highway's foreach_target).
// Lanes are independent: a field of W lanes is computed W / N at a time, N the lanes of a vector. The one exception is
// a hop over a split plane inside a block, which takes its neighbour from lane ^ (1 << j).
#include "wilson_clover_kernels.hpp"

#include <cstddef>
#include <cstring>
#include <limits>

// Per-target include guard
#if defined(HALOCLINE_DIRAC_WILSON_CLOVER_KERNELS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HALOCLINE_DIRAC_WILSON_CLOVER_KERNELS_INL
#undef HALOCLINE_DIRAC_WILSON_CLOVER_KERNELS_INL
#else
#define HALOCLINE_DIRAC_WILSON_CLOVER_KERNELS_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace halocline::dirac::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class V>
struct complex_vector {
    V re, im;
};
template <class V>
struct colour_vector {
    complex_vector<V> c[3];
};
template <class V>
struct half_spinor {
    colour_vector<V> s[2];
};
template <class V>
struct spinor {
    colour_vector<V> s[4];
};

/// a + i^Power b
template <int Power, class V>
HWY_INLINE complex_vector<V> add_times_i(const complex_vector<V>& a, const complex_vector<V>& b) {
    if constexpr (Power % 4 == 0)
        return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
    else if constexpr (Power % 4 == 1)
        return {hn::Sub(a.re, b.im), hn::Add(a.im, b.re)};
    else if constexpr (Power % 4 == 2)
        return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
    else
        return {hn::Add(a.re, b.im), hn::Sub(a.im, b.re)};
}
template <int Power, class V>
HWY_INLINE colour_vector<V> add_times_i(const colour_vector<V>& a, const colour_vector<V>& b) {
    return {
        {add_times_i<Power>(a.c[0], b.c[0]), add_times_i<Power>(a.c[1], b.c[1]), add_times_i<Power>(a.c[2], b.c[2])}};
}

/// The kernels for fields of W lanes.
template <class T, int W>
struct kernels_of {
    using tag = hn::CappedTag<T, W>;
    using V = hn::Vec<tag>;
    static constexpr int N = static_cast<int>(hn::MaxLanes(tag()));
    static constexpr int vectors = W / N;

    /// Power of i that hop F puts before row `row` of its gamma matrix: forward hops have 1 - gamma.
    static constexpr int power(int F, int row) { return gamma[F / 2][row].power + (F % 2 == 1 ? 2 : 0); }

    template <int Stride>
    static HWY_INLINE complex_vector<V> load(const T* p, int complex_index) {
        const tag d;
        return {hn::Load(d, p + 2 * complex_index * Stride), hn::Load(d, p + (2 * complex_index + 1) * Stride)};
    }
    template <int Stride>
    static HWY_INLINE void store(const complex_vector<V>& v, T* p, int complex_index) {
        const tag d;
        hn::Store(v.re, d, p + 2 * complex_index * Stride);
        hn::Store(v.im, d, p + (2 * complex_index + 1) * Stride);
    }
    template <int Stride>
    static HWY_INLINE colour_vector<V> load_spin(const T* p, int spin) {
        return {{load<Stride>(p, 3 * spin), load<Stride>(p, 3 * spin + 1), load<Stride>(p, 3 * spin + 2)}};
    }
    template <int Stride>
    static HWY_INLINE void store_spin(const colour_vector<V>& v, T* p, int spin) {
        store<Stride>(v.c[0], p, 3 * spin);
        store<Stride>(v.c[1], p, 3 * spin + 1);
        store<Stride>(v.c[2], p, 3 * spin + 2);
    }

    /// Upper half of (1 -+ gamma_mu) psi; the lower half follows from it.
    template <int F>
    static HWY_INLINE half_spinor<V> project(const T* psi) {
        constexpr int mu = F / 2;
        return {{add_times_i<power(F, 0)>(load_spin<W>(psi, 0), load_spin<W>(psi, gamma[mu][0].column)),
                 add_times_i<power(F, 1)>(load_spin<W>(psi, 1), load_spin<W>(psi, gamma[mu][1].column))}};
    }

    /// psi += all of (1 -+ gamma_mu) w, given its upper half.
    template <int F>
    static HWY_INLINE void accumulate(spinor<V>& psi, const half_spinor<V>& w) {
        constexpr int mu = F / 2;
        psi.s[0] = add_times_i<0>(psi.s[0], w.s[0]);
        psi.s[1] = add_times_i<0>(psi.s[1], w.s[1]);
        psi.s[2] = add_times_i<power(F, 2)>(psi.s[2], w.s[gamma[mu][2].column]);
        psi.s[3] = add_times_i<power(F, 3)>(psi.s[3], w.s[gamma[mu][3].column]);
    }

    /// Row c of U h (forward) or of U^dagger h (backward).
    template <int F>
    static HWY_INLINE void multiply_row(const T* link, int c, const half_spinor<V>& h, half_spinor<V>& w) {
        for (int k = 0; k < 3; ++k) {
            const complex_vector<V> u = load<W>(link, F % 2 == 1 ? 3 * c + k : 3 * k + c);
            for (int s = 0; s < 2; ++s) {
                const complex_vector<V>& in = h.s[s].c[k];
                complex_vector<V>& out = w.s[s].c[c];
                if (k == 0) {
                    out = {hn::Mul(u.re, in.re), hn::Mul(u.re, in.im)};
                } else {
                    out = {hn::MulAdd(u.re, in.re, out.re), hn::MulAdd(u.re, in.im, out.im)};
                }
                if constexpr (F % 2 == 1) {
                    out = {hn::NegMulAdd(u.im, in.im, out.re), hn::MulAdd(u.im, in.re, out.im)};
                } else {
                    out = {hn::MulAdd(u.im, in.im, out.re), hn::NegMulAdd(u.im, in.re, out.im)};
                }
            }
        }
    }
    template <int F>
    static HWY_INLINE half_spinor<V> multiply(const T* link, const half_spinor<V>& h) {
        half_spinor<V> w;
        multiply_row<F>(link, 0, h, w);
        multiply_row<F>(link, 1, h, w);
        multiply_row<F>(link, 2, h, w);
        return w;
    }

    /// Takes each lane from its partner across split plane j; zero where that is outside the block.
    template <int F>
    static HWY_INLINE half_spinor<V> across_split(const block_stencil<T>& stencil, int j, int v, half_spinor<V> h) {
        const tag d;
        const hn::RebindToSigned<tag> di;
        const V inside = hn::BitCast(d, hn::Load(di, &stencil.inside[j][F % 2][v * N]));
        const bool in_vector = (1 << j) < N;
        const auto partner = hn::IndicesFromVec(d, hn::Load(di, stencil.partner[in_vector ? j : 0].data()));
        for (int s = 0; s < 2; ++s)
            for (int c = 0; c < 3; ++c) {
                complex_vector<V>& z = h.s[s].c[c];
                if (in_vector) z = {hn::TableLookupLanes(z.re, partner), hn::TableLookupLanes(z.im, partner)};
                z = {hn::And(z.re, inside), hn::And(z.im, inside)};
            }
        return h;
    }

    template <int F>
    static HWY_INLINE void add_hop(const block_stencil<T>& stencil, const hop& step, int site, int v, const T* links,
                                   const T* psi, spinor<V>& sum) {
        if (step.site < 0) return;
        const bool split = step.split >= 0;
        const int from = split ? v ^ ((1 << step.split) / N) : v;
        half_spinor<V> h = project<F>(psi + step.site * spinor_reals * W + from * N);
        if constexpr (F % 2 == 1) {
            if (split) h = across_split<F>(stencil, step.split, v, h);
            h = multiply<F>(links + (site * site_link_reals + F / 2 * link_reals) * W + v * N, h);
        } else {
            h = multiply<F>(links + (step.site * site_link_reals + F / 2 * link_reals) * W + from * N, h);
            if (split) h = across_split<F>(stencil, step.split, v, h);
        }
        accumulate<F>(sum, h);
    }

    /// sum = hops onto one site from inside the block; its own function so that its code exists (and is cached) once.
    static HWY_NOINLINE void hops_onto(const block_stencil<T>& stencil, int site, int v, const T* links, const T* psi,
                                       T* HWY_RESTRICT sum) {
        const tag d;
        const complex_vector<V> zero{hn::Zero(d), hn::Zero(d)};
        const colour_vector<V> zeros{{zero, zero, zero}};
        spinor<V> acc{{zeros, zeros, zeros, zeros}};
        const hop* step = &stencil.hops[static_cast<std::size_t>(site) * lattice::faces];
        add_hop<0>(stencil, step[0], site, v, links, psi, acc);
        add_hop<1>(stencil, step[1], site, v, links, psi, acc);
        add_hop<2>(stencil, step[2], site, v, links, psi, acc);
        add_hop<3>(stencil, step[3], site, v, links, psi, acc);
        add_hop<4>(stencil, step[4], site, v, links, psi, acc);
        add_hop<5>(stencil, step[5], site, v, links, psi, acc);
        add_hop<6>(stencil, step[6], site, v, links, psi, acc);
        add_hop<7>(stencil, step[7], site, v, links, psi, acc);
        for (int s = 0; s < 4; ++s) store_spin<N>(acc.s[s], sum, s);
    }

    /// out += C in for one chirality: six complex numbers from `in` (lane stride Stride), to `out` (stride N).
    template <int Stride>
    static HWY_INLINE void add_clover(const T* c, const T* in, T* HWY_RESTRICT out) {
        const tag d;
        complex_vector<V> x[6];
        for (int k = 0; k < 6; ++k) x[k] = load<Stride>(in, k);
        for (int i = 0; i < 6; ++i) {
            const V diagonal = hn::Load(d, c + i * W);
            complex_vector<V> y = load<N>(out, i);
            y = {hn::MulAdd(diagonal, x[i].re, y.re), hn::MulAdd(diagonal, x[i].im, y.im)};
            for (int j = 0; j < 6; ++j) {
                if (j == i) continue;
                // below the diagonal c_ij, above it conj(c_ji)
                const complex_vector<V> e = load<W>(c, 3 + (j < i ? i * (i - 1) / 2 + j : j * (j - 1) / 2 + i));
                y = {hn::MulAdd(e.re, x[j].re, y.re), hn::MulAdd(e.re, x[j].im, y.im)};
                if (j < i)
                    y = {hn::NegMulAdd(e.im, x[j].im, y.re), hn::MulAdd(e.im, x[j].re, y.im)};
                else
                    y = {hn::MulAdd(e.im, x[j].im, y.re), hn::NegMulAdd(e.im, x[j].re, y.im)};
            }
            store<N>(y, out, i);
        }
    }
    /// out += C in.
    template <int Stride>
    static HWY_NOINLINE void add_clover_site(const T* c, const T* in, T* HWY_RESTRICT out) {
        add_clover<Stride>(c, in, out);
        add_clover<Stride>(c + chirality_reals * W, in + half_spinor_reals * Stride, out + half_spinor_reals * N);
    }

    struct alignas(64) site_buffer {
        T values[spinor_reals * N];
    };

    static void apply(const block_stencil<T>& stencil, const T* links, const T* clover, T* y, const T* x) {
        const tag d;
        site_buffer sum;
        for (int site = 0; site < stencil.sites; ++site)
            for (int v = 0; v < vectors; ++v) {
                hops_onto(stencil, site, v, links, x, sum.values);
                add_clover_site<W>(clover + site * site_clover_reals * W + v * N, x + site * spinor_reals * W + v * N,
                                   sum.values);
                T* out = y + site * spinor_reals * W + v * N;
                for (int k = 0; k < spinor_reals; ++k) hn::Store(hn::Load(d, sum.values + k * N), d, out + k * W);
            }
    }

    /// alpha = <Sr, r> / <Sr, Sr> of each block, in all lanes of the block; 0 where Sr vanishes.
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

    static void solve(const block_stencil<T>& stencil, const T* links, const T* schur, T* x, T* r, T* e, T* work,
                      int steps) {
        const tag d;
        const int even = stencil.even_sites, sites = stencil.sites;
        site_buffer sum, product;
        const V zero = hn::Zero(d);
        const auto clear = [&](site_buffer& b) HWY_ATTR {
            for (int k = 0; k < spinor_reals; ++k) hn::Store(zero, d, b.values + k * N);
        };
        const auto at = [&](int site, int v) { return site * spinor_reals * W + v * N; };
        const auto clover_at = [&](int site, int v) { return schur + site * site_clover_reals * W + v * N; };

        // o = -1/D_oo r_o
        for (int site = even; site < sites; ++site)
            for (int v = 0; v < vectors; ++v) {
                clear(product);
                add_clover_site<W>(clover_at(site, v), r + at(site, v), product.values);
                for (int k = 0; k < spinor_reals; ++k)
                    hn::Store(hn::Load(d, product.values + k * N), d, work + at(site, v) + k * W);
            }
        // r_e = r_e - D_eo 1/D_oo r_o; e_e = 0
        for (int site = 0; site < even; ++site)
            for (int v = 0; v < vectors; ++v) {
                hops_onto(stencil, site, v, links, work, sum.values);
                T* r_site = r + at(site, v);
                T* e_site = e + at(site, v);
                for (int k = 0; k < spinor_reals; ++k) {
                    hn::Store(hn::Add(hn::Load(d, r_site + k * W), hn::Load(d, sum.values + k * N)), d, r_site + k * W);
                    hn::Store(zero, d, e_site + k * W);
                }
            }

        for (int step = 0; step < steps; ++step) {
            // o = -1/D_oo D_oe r
            for (int site = even; site < sites; ++site)
                for (int v = 0; v < vectors; ++v) {
                    hops_onto(stencil, site, v, links, r, sum.values);
                    clear(product);
                    add_clover_site<N>(clover_at(site, v), sum.values, product.values);
                    for (int k = 0; k < spinor_reals; ++k)
                        hn::Store(hn::Load(d, product.values + k * N), d, work + at(site, v) + k * W);
                }
            // S r = D_ee r + D_eo o, and <S r, r>, <S r, S r>
            alignas(64) T dot_re[W] = {}, dot_im[W] = {}, norm[W] = {};
            for (int site = 0; site < even; ++site)
                for (int v = 0; v < vectors; ++v) {
                    hops_onto(stencil, site, v, links, work, sum.values);
                    const T* r_site = r + at(site, v);
                    add_clover_site<W>(clover_at(site, v), r_site, sum.values);
                    V re = hn::Load(d, dot_re + v * N), im = hn::Load(d, dot_im + v * N),
                      nn = hn::Load(d, norm + v * N);
                    T* s_site = work + at(site, v);
                    for (int k = 0; k < spinor_reals / 2; ++k) {
                        const complex_vector<V> s = load<N>(sum.values, k), rr = load<W>(r_site, k);
                        store<W>(s, s_site, k);
                        re = hn::MulAdd(s.re, rr.re, hn::MulAdd(s.im, rr.im, re));
                        im = hn::MulAdd(s.re, rr.im, hn::NegMulAdd(s.im, rr.re, im));
                        nn = hn::MulAdd(s.re, s.re, hn::MulAdd(s.im, s.im, nn));
                    }
                    hn::Store(re, d, dot_re + v * N);
                    hn::Store(im, d, dot_im + v * N);
                    hn::Store(nn, d, norm + v * N);
                }
            alignas(64) T alpha_re[W], alpha_im[W];
            step_lengths(stencil.splits_per_block, dot_re, dot_im, norm, alpha_re, alpha_im);
            // e = e + alpha r; r = r - alpha S r
            for (int site = 0; site < even; ++site)
                for (int v = 0; v < vectors; ++v) {
                    const V a_re = hn::Load(d, alpha_re + v * N), a_im = hn::Load(d, alpha_im + v * N);
                    const T* s_site = work + at(site, v);
                    T* r_site = r + at(site, v);
                    T* e_site = e + at(site, v);
                    for (int k = 0; k < spinor_reals / 2; ++k) {
                        const complex_vector<V> s = load<W>(s_site, k);
                        complex_vector<V> rr = load<W>(r_site, k), ee = load<W>(e_site, k);
                        ee.re = hn::MulAdd(a_re, rr.re, hn::NegMulAdd(a_im, rr.im, ee.re));
                        ee.im = hn::MulAdd(a_re, rr.im, hn::MulAdd(a_im, rr.re, ee.im));
                        rr.re = hn::NegMulAdd(a_re, s.re, hn::MulAdd(a_im, s.im, rr.re));
                        rr.im = hn::NegMulAdd(a_re, s.im, hn::NegMulAdd(a_im, s.re, rr.im));
                        store<W>(ee, e_site, k);
                        store<W>(rr, r_site, k);
                    }
                }
        }

        // e_o = 1/D_oo (r_o - D_oe e_e), r_o = 0; x = x + e
        for (int site = even; site < sites; ++site)
            for (int v = 0; v < vectors; ++v) {
                hops_onto(stencil, site, v, links, e, sum.values);
                T* r_site = r + at(site, v);
                for (int k = 0; k < spinor_reals; ++k) {
                    hn::Store(hn::Sub(hn::Load(d, sum.values + k * N), hn::Load(d, r_site + k * W)), d,
                              sum.values + k * N);
                    hn::Store(zero, d, r_site + k * W);
                }
                clear(product);
                add_clover_site<N>(clover_at(site, v), sum.values, product.values);
                for (int k = 0; k < spinor_reals; ++k)
                    hn::Store(hn::Load(d, product.values + k * N), d, e + at(site, v) + k * W);
            }
        for (int k = 0; k < sites * spinor_reals * W; k += N)
            hn::Store(hn::Add(hn::Load(d, x + k), hn::Load(d, e + k)), d, x + k);
    }

    /// Half-spinors of N lanes between vectors and memory where each lane's 12 reals are neighbours in groups of four.
    struct alignas(64) lane_buffer {
        T quads[3][4 * N];
    };

    template <int F>
    static void produce(const surface_sources& sources, int group, int end, const T* links, const T* x, T* entries,
                        std::int64_t first, std::int64_t last) {
        const tag d;
        lane_buffer buffer;
        for (std::int64_t i = sources.begin[group]; i < sources.begin[end]; ++i)
            for (int v = 0; v < vectors; ++v) {
                const std::int64_t outer = sources.outer[static_cast<std::size_t>(i)];
                half_spinor<V> h = project<F>(x + outer * spinor_reals * W + v * N);
                if constexpr (F % 2 == 0)
                    h = multiply<F>(links + (outer * site_link_reals + F / 2 * link_reals) * W + v * N, h);
                const auto &a = h.s[0], &b = h.s[1];
                hn::StoreInterleaved4(a.c[0].re, a.c[0].im, a.c[1].re, a.c[1].im, d, buffer.quads[0]);
                hn::StoreInterleaved4(a.c[2].re, a.c[2].im, b.c[0].re, b.c[0].im, d, buffer.quads[1]);
                hn::StoreInterleaved4(b.c[1].re, b.c[1].im, b.c[2].re, b.c[2].im, d, buffer.quads[2]);
                for (int lane = 0; lane < N; ++lane) {
                    const std::int32_t entry = sources.entry[static_cast<std::size_t>(i * W + v * N + lane)];
                    if (entry < first || entry >= last) continue;
                    T* to = entries + std::int64_t{entry} * half_spinor_reals;
                    for (int q = 0; q < 3; ++q) std::memcpy(to + 4 * q, buffer.quads[q] + 4 * lane, 4 * sizeof(T));
                }
            }
    }

    template <int F>
    static void consume(const surface_targets& targets, int group, int end, const T* links, T* y,
                        const T* const (&tables)[2], T scale) {
        const tag d;
        const V factor = hn::Set(d, scale);
        lane_buffer buffer;
        for (std::int64_t i = targets.begin[group]; i < targets.begin[end]; ++i)
            for (int v = 0; v < vectors; ++v) {
                for (int lane = 0; lane < N; ++lane) {
                    const std::int32_t entry = targets.entry[static_cast<std::size_t>(i * W + v * N + lane)];
                    const T* from = tables[entry & 1] + std::int64_t{entry >> 1} * half_spinor_reals;
                    for (int q = 0; q < 3; ++q) std::memcpy(buffer.quads[q] + 4 * lane, from + 4 * q, 4 * sizeof(T));
                }
                half_spinor<V> h;
                auto &a = h.s[0], &b = h.s[1];
                hn::LoadInterleaved4(d, buffer.quads[0], a.c[0].re, a.c[0].im, a.c[1].re, a.c[1].im);
                hn::LoadInterleaved4(d, buffer.quads[1], a.c[2].re, a.c[2].im, b.c[0].re, b.c[0].im);
                hn::LoadInterleaved4(d, buffer.quads[2], b.c[1].re, b.c[1].im, b.c[2].re, b.c[2].im);
                const std::int64_t outer = targets.outer[static_cast<std::size_t>(i)];
                if constexpr (F % 2 == 1)
                    h = multiply<F>(links + (outer * site_link_reals + F / 2 * link_reals) * W + v * N, h);
                for (int s = 0; s < 2; ++s)
                    for (int c = 0; c < 3; ++c) {
                        complex_vector<V>& z = h.s[s].c[c];
                        z = {hn::Mul(z.re, factor), hn::Mul(z.im, factor)};
                    }
                T* out = y + outer * spinor_reals * W + v * N;
                spinor<V> sum{{load_spin<W>(out, 0), load_spin<W>(out, 1), load_spin<W>(out, 2), load_spin<W>(out, 3)}};
                accumulate<F>(sum, h);
                for (int s = 0; s < 4; ++s) store_spin<W>(sum.s[s], out, s);
            }
    }

    static table<T> all() {
        return {apply,
                solve,
                {produce<0>, produce<1>, produce<2>, produce<3>, produce<4>, produce<5>, produce<6>, produce<7>},
                {consume<0>, consume<1>, consume<2>, consume<3>, consume<4>, consume<5>, consume<6>, consume<7>}};
    }
};

template <class T>
table<T> table_for(int lane_width) {
    switch (lane_width) {
    case 16: return kernels_of<T, 16>::all();
    case 8: return kernels_of<T, 8>::all();
    case 4: return kernels_of<T, 4>::all();
    default: return kernels_of<T, 1>::all();
    }
}

} // namespace halocline::dirac::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
