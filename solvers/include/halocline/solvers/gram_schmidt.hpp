// SPDX-License-Identifier: Apache-2.0
// One step of Arnoldi's orthonormalisation: classical Gram-Schmidt, all products and the norm in one global sum,
// repeated once if cancellation shows ("twice is enough", Kahan; [Parlett1998] sec. 6.9, [Giraud2005]).
#pragma once

#include <halocline/comm/status.hpp>
#include <halocline/solvers/concepts.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace halocline::solvers {

/// The result of orthonormalise().
struct orthonormalised {
    comm::status communication = comm::status::ok;
    bool finite = true;    ///< false: NaN or infinity among the products
    double next = 0;       ///< h_{j+1,j}; exactly 0 if w lies in the span of the basis to working precision
    bool repeated = false; ///< a second pass (and a second global sum) was needed
};

namespace detail {

/// w = factor w - factor sum_i c_i v_i.  Overwrites c.
template <class V, vector_space<V> S>
void subtract(S& space, V& w, double factor, std::span<complex> c, std::span<const V> basis) {
    for (complex& ci : c) ci *= -factor;
    space.combine(w, factor, c, basis);
}

/// The second pass, on what the first one left of w: c_i = <v_i, w>, h_i = h_i + c_i, w = (w - sum_i c_i v_i) / next.
/// `omega2`: ||w||^2 before the first pass, by which rounding noise is recognised.
template <class V, vector_space<V> S>
[[nodiscard]] orthonormalised second_pass(S& space, std::span<V> vectors, std::span<complex> h,
                                          std::span<complex> scratch, double omega2) {
    const std::size_t j = vectors.size() - 1; // vectors before w
    V& w = vectors[j];
    const std::span<const V> all = vectors;
    const std::span<complex> c = scratch.first(j + 1);
    orthonormalised step{.repeated = true};
    step.communication = space.multi_dot(all, w, c);
    if (step.communication != comm::status::ok) return step;
    double next2 = c[j].real(); // <w, w> - sum_i |c_i|^2
    for (std::size_t i = 0; i < j; ++i) {
        h[i] += c[i];
        next2 -= std::norm(c[i]);
    }
    step.finite = std::isfinite(next2);
    // what is left is rounding noise: w was in the span
    const double noise = 10 * S::epsilon;
    if (!(next2 > noise * noise * omega2)) return step;
    step.next = std::sqrt(next2);
    subtract(space, w, 1 / step.next, c.first(j), all.first(j)); // v_{j+1} = (w - sum_i c_i v_i) / h_{j+1,j}
    return step;
}

} // namespace detail

/// Makes the last vector w of `vectors` orthogonal to the others, which are orthonormal, and of norm 1.
/// On return w_in = sum_i h_i v_i + next v_last. Repeats if || w - sum h_i v_i || <= eta || w ||.
/// Shape: h holds vectors.size() products (the last one is scratch).  Cost: one global sum, or two.
template <class V, vector_space<V> S>
[[nodiscard]] orthonormalised orthonormalise(S& space, std::span<V> vectors, std::span<complex> h,
                                             std::span<complex> scratch, double eta) {
    const std::size_t j = vectors.size() - 1; // vectors before w
    V& w = vectors[j];
    const std::span<const V> all = vectors;
    orthonormalised step;

    // h_i = <v_i, w>, omega^2 = <w, w>
    step.communication = space.multi_dot(all, w, h);
    if (step.communication != comm::status::ok) return step;
    const double omega2 = h[j].real();
    double projected2 = 0;
    for (std::size_t i = 0; i < j; ++i) projected2 += std::norm(h[i]);
    // || w - sum h_i v_i ||^2 = omega^2 - sum |h_i|^2 (Pythagoras); no extra sum while nothing cancels
    const double next2 = omega2 - projected2;
    step.finite = std::isfinite(omega2) && std::isfinite(projected2);
    if (!step.finite || omega2 == 0) return step;

    const std::span<complex> c = scratch.first(j);
    std::copy_n(h.data(), j, c.data());
    if (next2 > eta * eta * omega2) {
        step.next = std::sqrt(next2);
        detail::subtract(space, w, 1 / step.next, c, all.first(j)); // v_{j+1} = (w - sum_i h_i v_i) / h_{j+1,j}
        return step;
    }
    detail::subtract(space, w, 1, c, all.first(j)); // w = w - sum_i h_i v_i
    return detail::second_pass(space, vectors, h, scratch, omega2);
}

} // namespace halocline::solvers
