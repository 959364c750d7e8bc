// SPDX-License-Identifier: Apache-2.0
// One step of Arnoldi's orthonormalisation, of one basis or of several at once: classical Gram-Schmidt, all products
// and norms in one global sum, repeated once if cancellation shows ("twice is enough", Kahan; [Parlett1998] sec. 6.9,
// [Giraud2005]).
#pragma once

#include <halocline/base/short_list.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/solvers/concepts.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace halocline::solvers {

/// The result of orthonormalise().
struct orthonormalised {
    bool finite = true;    ///< false: NaN or infinity among the products
    double next = 0;       ///< h_{j+1,j}; exactly 0 if w lies in the span of the basis to working precision
    bool repeated = false; ///< a second pass (and a second global sum) was needed
};

/// When Gram-Schmidt is repeated.
struct repetition {
    double below = 0.7071; ///< if || w - sum h_i v_i || <= below || w ||
    double loss = 0;       ///< if orthonormalisation::loss would be greater; 0: never for that
};

/// A basis and a vector that is to join it: see orthonormalise().
template <class V>
struct orthonormalisation {
    std::span<V> vectors;
    std::span<complex> h, scratch; ///< room for vectors.size() products each
    orthonormalised result{};
    double loss =
        0; ///< a high estimate of the greatest |<v_i, v_k> - delta_ik|; grows by each pass that is not repeated
    double norm2 = 0; ///< ||w||^2 before the first pass, by which rounding noise is recognised

    [[nodiscard]] std::size_t before() const { return vectors.size() - 1; } ///< the number of vectors before w
    [[nodiscard]] V& w() const { return vectors.back(); }
};

namespace detail {

/// All products of all requests, in one global sum if the space can do that.
template <class V, vector_space<V> S>
[[nodiscard]] comm::status multi_dot(S& space, std::span<const dot_request<V>> requests) {
    if constexpr (sums_of_several<S, V>) {
        return space.multi_dot(requests);
    } else {
        for (const dot_request<V>& r : requests)
            if (const comm::status s = space.multi_dot(r.v, *r.x, r.products); s != comm::status::ok) return s;
        return comm::status::ok;
    }
}
/// All norms, in one global sum if the space can do that.
template <class V, vector_space<V> S>
[[nodiscard]] comm::status norms(S& space, std::span<const V* const> x, std::span<double> results) {
    if constexpr (sums_of_several<S, V>) {
        return space.norms(x, results);
    } else {
        for (std::size_t k = 0; k < x.size(); ++k)
            if (const comm::status s = space.norm(*x[k], results[k]); s != comm::status::ok) return s;
        return comm::status::ok;
    }
}

/// w = factor w - factor sum_i c_i v_i.  Overwrites c.
template <class V, vector_space<V> S>
void subtract(S& space, const orthonormalisation<V>& step, double factor, std::span<complex> c) {
    for (complex& ci : c) ci *= -factor;
    space.combine(step.w(), factor, c, std::span<const V>(step.vectors).first(step.before()));
}

/// The first pass, from h_i = <v_i, w>. True if a second one is needed, on w = w - sum_i h_i v_i; else w is done.
template <class V, vector_space<V> S>
[[nodiscard]] bool first_pass(S& space, orthonormalisation<V>& step, const repetition& when) {
    const std::size_t j = step.before();
    step.norm2 = step.h[j].real(); // omega^2 = <w, w>
    double projected2 = 0;
    for (std::size_t i = 0; i < j; ++i) projected2 += std::norm(step.h[i]);
    // || w - sum h_i v_i ||^2 = omega^2 - sum |h_i|^2 (Pythagoras); no extra sum while nothing cancels
    const double next2 = step.norm2 - projected2;
    step.result.finite = std::isfinite(step.norm2) && std::isfinite(projected2);
    if (!step.result.finite || step.norm2 == 0) return false;

    const std::span<complex> c = step.scratch.first(j);
    std::copy_n(step.h.data(), j, c.data());
    // One pass loses as the square of what it takes away: the norm of w, by Pythagoras, too [Giraud2005].
    const double grown = step.loss * step.norm2 / next2;
    step.result.repeated = !(next2 > when.below * when.below * step.norm2 && (when.loss == 0 || grown <= when.loss));
    if (!step.result.repeated) {
        step.result.next = std::sqrt(next2);
        step.loss = grown;
    }
    // v_{j+1} = (w - sum_i h_i v_i) / h_{j+1,j}
    subtract(space, step, step.result.repeated ? 1 : 1 / step.result.next, c);
    return step.result.repeated;
}

/// The second pass, from scratch_i = c_i = <v_i, w>: h_i = h_i + c_i, w = (w - sum_i c_i v_i) / next.
template <class V, vector_space<V> S>
void second_pass(S& space, orthonormalisation<V>& step) {
    const std::size_t j = step.before();
    const std::span<complex> c = step.scratch.first(j);
    double next2 = step.scratch[j].real(); // <w, w> - sum_i |c_i|^2
    for (std::size_t i = 0; i < j; ++i) {
        step.h[i] += c[i];
        next2 -= std::norm(c[i]);
    }
    step.result.finite = std::isfinite(next2);
    // what is left is rounding noise: w was in the span
    const double noise = 10 * S::epsilon;
    if (!(next2 > noise * noise * step.norm2)) return;
    step.result.next = std::sqrt(next2);
    subtract(space, step, 1 / step.result.next, c); // v_{j+1} = (w - sum_i c_i v_i) / h_{j+1,j}
}

} // namespace detail

/// Of each step, makes the last vector w of `vectors` orthogonal to the others, which are orthonormal, and of norm 1.
/// On return w_in = sum_i h_i v_i + next v_last.
/// Shape: of h the last product is scratch; up to most_systems steps.
/// Returns a bad status of a sum, and then the steps are meaningless.  Cost: one global sum for all, or two.
template <class V, vector_space<V> S>
[[nodiscard]] comm::status orthonormalise(S& space, std::span<orthonormalisation<V>* const> steps,
                                          const repetition& when) {
    short_list<dot_request<V>, most_systems> first, second;
    short_list<orthonormalisation<V>*, most_systems> repeated;
    for (const orthonormalisation<V>* step : steps) first.push_back({step->vectors, &step->w(), step->h});
    comm::status s = detail::multi_dot<V>(space, first.values());
    if (s != comm::status::ok) return s;
    for (orthonormalisation<V>* step : steps) {
        if (!detail::first_pass(space, *step, when)) continue;
        repeated.push_back(step);
        second.push_back({step->vectors, &step->w(), step->scratch});
    }
    if (repeated.values().empty()) return s;
    s = detail::multi_dot<V>(space, second.values());
    if (s != comm::status::ok) return s;
    for (orthonormalisation<V>* step : repeated.values()) detail::second_pass(space, *step);
    return s;
}

} // namespace halocline::solvers
