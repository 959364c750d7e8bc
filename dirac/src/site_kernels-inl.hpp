// SPDX-License-Identifier: Apache-2.0
// Hops onto a site, and its clover term. Lanes are independent: a field of W lanes is computed W / N at a time, N the
// lanes of a vector. The exception is a hop out of a lane's sub-box, which takes its sources from other lanes, of the
// same block or of a neighbouring one. Included once per target (Highway's foreach_target).
#include "wilson_clover_kernels.hpp"

#include <span>
#include <type_traits>

// Per-target include guard
#if defined(HALOCLINE_DIRAC_SITE_KERNELS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HALOCLINE_DIRAC_SITE_KERNELS_INL
#undef HALOCLINE_DIRAC_SITE_KERNELS_INL
#else
#define HALOCLINE_DIRAC_SITE_KERNELS_INL
#endif

#include "spinor_vectors-inl.hpp"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace halocline::dirac::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Operations on one site, for fields of W lanes.
template <class T, int W>
struct site_kernels {
    using tag = hn::CappedTag<T, W>;
    using V = hn::Vec<tag>;
    static constexpr int N = static_cast<int>(hn::MaxLanes(tag()));
    static constexpr int vectors = W / N;

    /// Power of i by which hop F multiplies row `row` of its gamma matrix: forward hops have 1 - gamma.
    static constexpr int power(int F, int row) { return gamma[direction(F)][row].power + (forward(F) ? 2 : 0); }

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
        return {load<Stride>(p, 3 * spin), load<Stride>(p, 3 * spin + 1), load<Stride>(p, 3 * spin + 2)};
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

    /// Upper half of (1 -+ gamma_mu) psi; the lower half follows from it.
    template <int F>
    static HWY_INLINE half_spinor<V> project(const T* psi) {
        constexpr int mu = direction(F);
        return {add_times_i<power(F, 0)>(load_spin<W>(psi, 0), load_spin<W>(psi, gamma[mu][0].column)),
                add_times_i<power(F, 1)>(load_spin<W>(psi, 1), load_spin<W>(psi, gamma[mu][1].column))};
    }

    /// Colour c of psi += all of (1 -+ gamma_mu) w, given that colour of its upper half; psi has lane stride Stride.
    template <int F, int Stride>
    static HWY_INLINE void accumulate(T* psi, int c, const complex_vector<V> (&w)[2]) {
        constexpr int mu = direction(F);
        const auto add = [&](auto power, int spin, const complex_vector<V>& z) {
            store<Stride>(add_times_i<power>(load<Stride>(psi, 3 * spin + c), z), psi, 3 * spin + c);
        };
        add(std::integral_constant<int, 0>(), 0, w[0]);
        add(std::integral_constant<int, 0>(), 1, w[1]);
        add(std::integral_constant<int, power(F, 2)>(), 2, w[gamma[mu][2].column]);
        add(std::integral_constant<int, power(F, 3)>(), 3, w[gamma[mu][3].column]);
    }

    /// Row c of U h (forward) or of U^dagger h (backward), of both spins.
    template <int F>
    static HWY_INLINE void multiply_row(const T* link, int c, const half_spinor<V>& h, complex_vector<V> (&w)[2]) {
        for (int k = 0; k < 3; ++k) {
            const complex_vector<V> u = load<W>(link, forward(F) ? 3 * c + k : 3 * k + c);
            for (int s = 0; s < 2; ++s) {
                const complex_vector<V>& in = h.s[s].c[k];
                complex_vector<V>& out = w[s];
                if (k == 0) {
                    out = {hn::Mul(u.re, in.re), hn::Mul(u.re, in.im)};
                } else {
                    out = {hn::MulAdd(u.re, in.re, out.re), hn::MulAdd(u.re, in.im, out.im)};
                }
                if constexpr (forward(F)) {
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
        for (int c = 0; c < 3; ++c) {
            complex_vector<V> row[2];
            multiply_row<F>(link, c, h, row);
            w.s[0].c[c] = row[0];
            w.s[1].c[c] = row[1];
        }
        return w;
    }

    /// Lanes of z in the destination's order, zero if it takes none from this source.
    static HWY_INLINE complex_vector<V> take(const lane_source<T>& source, const complex_vector<V>& z) {
        const tag d;
        const hn::RebindToSigned<tag> di;
        const V taken = hn::BitCast(d, hn::Load(di, source.taken.data()));
        if constexpr (N > 1) {
            const auto lane = hn::IndicesFromVec(d, hn::Load(di, source.lane.data()));
            return {hn::And(hn::TableLookupLanes(z.re, lane), taken), hn::And(hn::TableLookupLanes(z.im, lane), taken)};
        } else {
            return {hn::And(z.re, taken), hn::And(z.im, taken)};
        }
    }

    /// sum += the hop from psi over this link. One colour at a time, and each hop in its own function: the registers
    /// can't hold a spinor and a half-spinor, and a compiler that sees several hops at once tries to.
    template <int F>
    static HWY_NOINLINE void add_hop(const T* psi, const T* link, T* HWY_RESTRICT sum) {
        const half_spinor<V> h = project<F>(psi);
        for (int c = 0; c < 3; ++c) {
            complex_vector<V> w[2];
            multiply_row<F>(link, c, h, w);
            accumulate<F, N>(sum, c, w);
        }
    }

    /// Two fields as the hops read them; the sources' groups count from these pointers.
    struct hop_fields {
        const T *links, *psi;

        [[nodiscard]] const T* spinor_at(std::int64_t outer, int v) const {
            return psi + outer * spinor_reals * W + v * N;
        }
        [[nodiscard]] const T* link_at(std::int64_t outer, int mu, int v) const {
            return links + (outer * site_link_reals + mu * link_reals) * W + v * N;
        }
    };

    /// add_hop() from the lanes of other vectors, which lie at `site` of their groups; `own` is the destination's link.
    template <int F>
    static HWY_NOINLINE void add_hop_from_lanes(std::span<const lane_source<T>> sources, int sites, int site,
                                                const hop_fields& f, const T* own, T* HWY_RESTRICT sum) {
        for (const lane_source<T>& source : sources) {
            const std::int64_t outer = std::int64_t{source.group} * sites + site;
            half_spinor<V> h = project<F>(f.spinor_at(outer, source.vector));
            if constexpr (forward(F)) {
                for (auto& spin : h.s)
                    for (auto& z : spin.c) z = take(source, z);
            }
            const T* const link = forward(F) ? own : f.link_at(outer, direction(F), source.vector);
            for (int c = 0; c < 3; ++c) {
                complex_vector<V> w[2];
                multiply_row<F>(link, c, h, w);
                if constexpr (!forward(F)) {
                    for (auto& z : w) z = take(source, z);
                }
                accumulate<F, N>(sum, c, w);
            }
        }
    }

    /// The next site. Those of its data that only memory may hold are prefetched into L2, an eighth in each hop:
    /// hardware does not prefetch beyond a page, which is less than a site's links.
    struct look_ahead {
        const block_stencil<T>& stencil;
        const lane_sources<T>* between;
        hop_fields fields; ///< from the first group on, like these
        const T* clover;
        T* y;
        int group, site;

        template <int Reals>
        static HWY_INLINE void fetch(const T* p) {
            constexpr int line = 64 / static_cast<int>(sizeof(T));
            for (int k = 0; k < Reals * W; k += line) __builtin_prefetch(p + k, 0, 2);
        }
        template <int F>
        HWY_INLINE void fetch_part() const {
            static_assert(site_clover_reals == lattice::dimensions * link_reals);
            constexpr int mu = direction(F);
            const std::int64_t at = std::int64_t{group} * stencil.sites + site;
            if constexpr (forward(F))
                fetch<link_reals>(fields.link_at(at, mu, 0));
            else
                fetch<link_reals>(clover + (at * site_clover_reals + mu * link_reals) * W);
            fetch<spinor_reals / lattice::faces>(y + (at * spinor_reals + F * (spinor_reals / lattice::faces)) * W);
            const hop step = stencil.hop_of(site, F);
            if (step.same_lane) { // the walk has met all neighbours except the one in its slowest direction
                if constexpr (F == lattice::faces - 1) fetch<spinor_reals>(fields.spinor_at(at - site + step.site, 0));
            } else if (between != nullptr) {
                for (const lane_source<T>& source : between->of(group, F, 0)) {
                    const std::int64_t outer = std::int64_t{source.group} * stencil.sites + step.site;
                    fetch<spinor_reals>(fields.spinor_at(outer, 0));
                    if constexpr (!forward(F)) fetch<link_reals>(fields.link_at(outer, mu, 0));
                }
            }
        }
    };

    /// sum += the hop over face F onto one site of a group, to the extent that it stays inside the block.
    template <int F>
    static HWY_INLINE void add_hop_inside(const block_stencil<T>& stencil, int site, int v, const hop_fields& f,
                                          const look_ahead* ahead, T* sum) {
        if (ahead != nullptr) ahead->template fetch_part<F>();
        const hop step = stencil.hop_of(site, F);
        const T* const own = f.link_at(site, direction(F), v);
        if (step.same_lane) {
            add_hop<F>(f.spinor_at(step.site, v), forward(F) ? own : f.link_at(step.site, direction(F), v), sum);
        } else if (const auto sources = stencil.inside.of(0, F, v); !sources.empty()) {
            add_hop_from_lanes<F>(sources, stencil.sites, step.site, f, own, sum);
        }
    }
    /// sum = hops onto one site from inside the block; f points to its group.
    static HWY_INLINE void hops_onto(const block_stencil<T>& stencil, int site, int v, const hop_fields& f,
                                     site_buffer& sum, const look_ahead* ahead = nullptr) {
        clear(sum);
        add_hop_inside<0>(stencil, site, v, f, ahead, sum.values);
        add_hop_inside<1>(stencil, site, v, f, ahead, sum.values);
        add_hop_inside<2>(stencil, site, v, f, ahead, sum.values);
        add_hop_inside<3>(stencil, site, v, f, ahead, sum.values);
        add_hop_inside<4>(stencil, site, v, f, ahead, sum.values);
        add_hop_inside<5>(stencil, site, v, f, ahead, sum.values);
        add_hop_inside<6>(stencil, site, v, f, ahead, sum.values);
        add_hop_inside<7>(stencil, site, v, f, ahead, sum.values);
    }

    /// sum += the hop over face F onto one site of `group`, to the extent that it comes from other blocks of this rank.
    template <int F>
    static HWY_INLINE void add_hop_between(const block_stencil<T>& stencil, const lane_sources<T>& between, int group,
                                           int site, int v, const hop_fields& f, T* sum) {
        const hop step = stencil.hop_of(site, F);
        if (step.same_lane) return;
        if (const auto sources = between.of(group, F, v); !sources.empty())
            add_hop_from_lanes<F>(sources, stencil.sites, step.site, f,
                                  f.link_at(std::int64_t{group} * stencil.sites + site, direction(F), v), sum);
    }
    /// Does a hop over a face in `mask` come from another lane, or leave the blocks, at this site of every group?
    static HWY_INLINE bool has_hop_between(const block_stencil<T>& stencil, unsigned mask, int site) {
        for (int face = 0; face < lattice::faces; ++face)
            if ((mask >> face & 1) != 0 && !stencil.hop_of(site, face).same_lane) return true;
        return false;
    }
    /// sum += add_hop_between() over the faces in `mask`; f points to the first group.
    static HWY_INLINE void add_hops_between(const block_stencil<T>& stencil, const lane_sources<T>& between,
                                            unsigned mask, int group, int site, int v, const hop_fields& f,
                                            site_buffer& sum) {
        if (mask & 1U << 0) add_hop_between<0>(stencil, between, group, site, v, f, sum.values);
        if (mask & 1U << 1) add_hop_between<1>(stencil, between, group, site, v, f, sum.values);
        if (mask & 1U << 2) add_hop_between<2>(stencil, between, group, site, v, f, sum.values);
        if (mask & 1U << 3) add_hop_between<3>(stencil, between, group, site, v, f, sum.values);
        if (mask & 1U << 4) add_hop_between<4>(stencil, between, group, site, v, f, sum.values);
        if (mask & 1U << 5) add_hop_between<5>(stencil, between, group, site, v, f, sum.values);
        if (mask & 1U << 6) add_hop_between<6>(stencil, between, group, site, v, f, sum.values);
        if (mask & 1U << 7) add_hop_between<7>(stencil, between, group, site, v, f, sum.values);
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
};

} // namespace halocline::dirac::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
