// SPDX-License-Identifier: Apache-2.0
// Kernels inside a group of blocks. Lanes are independent: a field of W lanes is computed W / N at a time, N the lanes of
// a vector. The one exception is a hop over a split plane inside a block, which takes its neighbour from
// lane ^ (1 << j). Included once per target (Highway's foreach_target).
#include "wilson_clover_kernels.hpp"

#include <limits>

// Per-target include guard
#if defined(HALOCLINE_DIRAC_BLOCK_KERNELS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HALOCLINE_DIRAC_BLOCK_KERNELS_INL
#undef HALOCLINE_DIRAC_BLOCK_KERNELS_INL
#else
#define HALOCLINE_DIRAC_BLOCK_KERNELS_INL
#endif

#include "spinor_vectors-inl.hpp"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace halocline::dirac::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Arithmetic on one site, and the kernels that stay inside blocks, for fields of W lanes.
template <class T, int W>
struct block_kernels {
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

    static HWY_INLINE void clear(site_buffer& b) {
        const tag d;
        for (int k = 0; k < spinor_reals; ++k) hn::Store(hn::Zero(d), d, b.values + k * N);
    }
    static HWY_INLINE void write(const site_buffer& b, T* to) {
        const tag d;
        for (int k = 0; k < spinor_reals; ++k) hn::Store(hn::Load(d, b.values + k * N), d, to + k * W);
    }

    static void apply(const block_stencil<T>& stencil, const T* links, const T* clover, T* y, const T* x) {
        site_buffer sum;
        for (int site = 0; site < stencil.sites; ++site)
            for (int v = 0; v < vectors; ++v) {
                hops_onto(stencil, site, v, links, x, sum.values);
                add_clover_site<W>(clover + site * site_clover_reals * W + v * N, x + site * spinor_reals * W + v * N,
                                   sum.values);
                write(sum, y + site * spinor_reals * W + v * N);
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

    /// What the block solve of one group works on; see table::solve. Its steps follow, in their order.
    struct block_system {
        const block_stencil<T>& stencil;
        const T *links, *schur;
        T *x, *r, *e, *work;

        static int at(int site, int v) { return site * spinor_reals * W + v * N; }
        [[nodiscard]] const T* schur_at(int site, int v) const { return schur + site * site_clover_reals * W + v * N; }
    };

    /// o = -1/D_oo r_o; r_e = r_e - D_eo 1/D_oo r_o; e_e = 0
    static HWY_INLINE void eliminate_odd(const block_system& b) {
        const tag d;
        site_buffer sum;
        for (int site = b.stencil.even_sites; site < b.stencil.sites; ++site)
            for (int v = 0; v < vectors; ++v) {
                clear(sum);
                add_clover_site<W>(b.schur_at(site, v), b.r + b.at(site, v), sum.values);
                write(sum, b.work + b.at(site, v));
            }
        for (int site = 0; site < b.stencil.even_sites; ++site)
            for (int v = 0; v < vectors; ++v) {
                hops_onto(b.stencil, site, v, b.links, b.work, sum.values);
                T *const r = b.r + b.at(site, v), *const e = b.e + b.at(site, v);
                for (int k = 0; k < spinor_reals; ++k) {
                    hn::Store(hn::Add(hn::Load(d, r + k * W), hn::Load(d, sum.values + k * N)), d, r + k * W);
                    hn::Store(hn::Zero(d), d, e + k * W);
                }
            }
    }

    /// Per lane, of r and S r.
    struct alignas(64) step_products {
        T re[W] = {}, im[W] = {}, norm[W] = {}; ///< <S r, r>, <S r, S r>
    };

    /// work_e = S r = D_ee r + D_eo o with o = -1/D_oo D_oe r, and its products with r
    static HWY_INLINE step_products apply_schur(const block_system& b) {
        const tag d;
        site_buffer sum, product;
        for (int site = b.stencil.even_sites; site < b.stencil.sites; ++site)
            for (int v = 0; v < vectors; ++v) {
                hops_onto(b.stencil, site, v, b.links, b.r, sum.values);
                clear(product);
                add_clover_site<N>(b.schur_at(site, v), sum.values, product.values);
                write(product, b.work + b.at(site, v));
            }
        step_products dot;
        for (int site = 0; site < b.stencil.even_sites; ++site)
            for (int v = 0; v < vectors; ++v) {
                hops_onto(b.stencil, site, v, b.links, b.work, sum.values);
                const T* const r_site = b.r + b.at(site, v);
                add_clover_site<W>(b.schur_at(site, v), r_site, sum.values);
                V re = hn::Load(d, dot.re + v * N), im = hn::Load(d, dot.im + v * N),
                  nn = hn::Load(d, dot.norm + v * N);
                for (int k = 0; k < spinor_reals / 2; ++k) {
                    const complex_vector<V> s = load<N>(sum.values, k), r = load<W>(r_site, k);
                    store<W>(s, b.work + b.at(site, v), k);
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
                const int at = b.at(site, v);
                for (int k = 0; k < spinor_reals / 2; ++k) {
                    const complex_vector<V> s = load<W>(b.work + at, k);
                    complex_vector<V> r = load<W>(b.r + at, k), e = load<W>(b.e + at, k);
                    e.re = hn::MulAdd(a_re, r.re, hn::NegMulAdd(a_im, r.im, e.re));
                    e.im = hn::MulAdd(a_re, r.im, hn::MulAdd(a_im, r.re, e.im));
                    r.re = hn::NegMulAdd(a_re, s.re, hn::MulAdd(a_im, s.im, r.re));
                    r.im = hn::NegMulAdd(a_re, s.im, hn::NegMulAdd(a_im, s.re, r.im));
                    store<W>(e, b.e + at, k);
                    store<W>(r, b.r + at, k);
                }
            }
    }

    /// e_o = 1/D_oo (r_o - D_oe e_e), r_o = 0; x = x + e
    static HWY_INLINE void reconstruct_odd(const block_system& b) {
        const tag d;
        site_buffer sum, product;
        for (int site = b.stencil.even_sites; site < b.stencil.sites; ++site)
            for (int v = 0; v < vectors; ++v) {
                hops_onto(b.stencil, site, v, b.links, b.e, sum.values);
                T* const r = b.r + b.at(site, v);
                for (int k = 0; k < spinor_reals; ++k) {
                    hn::Store(hn::Sub(hn::Load(d, sum.values + k * N), hn::Load(d, r + k * W)), d, sum.values + k * N);
                    hn::Store(hn::Zero(d), d, r + k * W);
                }
                clear(product);
                add_clover_site<N>(b.schur_at(site, v), sum.values, product.values);
                write(product, b.e + b.at(site, v));
            }
        for (int k = 0; k < b.stencil.sites * spinor_reals * W; k += N)
            hn::Store(hn::Add(hn::Load(d, b.x + k), hn::Load(d, b.e + k)), d, b.x + k);
    }

    static void solve(const block_stencil<T>& stencil, const T* links, const T* schur, T* x, T* r, T* e, T* work,
                      int steps) {
        const block_system b{stencil, links, schur, x, r, e, work};
        eliminate_odd(b);
        for (int n = 0; n < steps; ++n) {
            const step_products dot = apply_schur(b);
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
