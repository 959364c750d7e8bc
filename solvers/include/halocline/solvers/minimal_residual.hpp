// SPDX-License-Identifier: Apache-2.0
// The minimal residual iteration: one matvec per step, two vectors in total. A smoother rather than a solver;
// it converges if the Hermitian part of A is definite. Ref: [Saad2003] algorithm 5.3.
#pragma once

#include <halocline/solvers/concepts.hpp>
#include <halocline/solvers/solve_report.hpp>
#include <halocline/solvers/solve_run.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace halocline::solvers {

/// The two vectors of minimal_residual(), adjacent so that both products of a step share one global sum.
template <class V>
struct minimal_residual_workspace {
    template <vector_space<V> S>
    explicit minimal_residual_workspace(S& space) : rw{space.make(), space.make()} {}
    std::array<V, 2> rw;
};

namespace detail {

/// The power of two to multiply a vector of norm rho by, so that it has a norm near 1: then its products with others
/// don't underflow, and no bit of its numbers changes. A large norm is left as it is while its square can't overflow:
/// the inverse must fit the numbers of the vectors, which may be floats.
inline double scale_to_one(double rho) noexcept {
    constexpr int most = 1022, safe = 400; // most: the largest power whose inverse is a normal number
    const int power = std::ilogb(rho);
    return power > 0 && power <= safe ? 1.0 : std::ldexp(1.0, std::clamp(-power, -most, most));
}

/// Minimal residual steps from r = b - A x, rho = ||r||, until the recurrence ends.
template <class V, vector_space<V> S, linear_operator<V> A, class Callback>
cycle_end minimal_residual_cycle(S& space, A& a, double rho, V& x, minimal_residual_workspace<V>& work,
                                 const solve_options& options, solve_run& run, Callback& on_iteration) {
    auto& [r, w] = work.rw;
    solve_report& report = run.report;
    stagnation_watch watch(options.stagnation_window, rho, report.iterations);
    const double scale = scale_to_one(rho);
    space.scale(r, scale); // from here on r and w are scaled, x is not
    while (!run.used_up()) {
        // w = A r
        if (!run.ok(a(w, r))) return cycle_end::failed_communication;
        ++report.matvecs;
        ++report.iterations;
        // <r, w>, <w, w>
        std::array<complex, 2> products;
        if (!run.ok(space.multi_dot(std::span<const V>(work.rw), w, products))) return cycle_end::failed_communication;
        const double ww = products[1].real();
        if (!std::isfinite(ww) || !std::isfinite(std::abs(products[0]))) return cycle_end::not_finite;
        // A r = 0, or r is orthogonal to A r: the step is 0 forever
        if (ww == 0 || products[0] == 0.0) return cycle_end::breakdown;
        // alpha = <w, r> / <w, w>
        const complex alpha = std::conj(products[0]) / ww;
        space.axpy(x, alpha / scale, r); // x = x + alpha r
        space.axpy(r, -alpha, w);        // r = r - alpha w
        if (!run.ok(space.norm(r, rho))) return cycle_end::failed_communication;
        rho /= scale;
        if (!std::isfinite(rho)) return cycle_end::not_finite;
        if (run.record_iteration(rho, on_iteration)) return cycle_end::reached;
        if (watch.record(rho, report.iterations)) return cycle_end::stuck;
    }
    return cycle_end::length;
}

} // namespace detail

/// Solves A x = b.  Collective.  "converged" means what it means for fgmres().
/// Pre:  vectors of the workspace were made by `space`.
/// Err:  input_error: solve_options out of range; what the operations of `space` and A throw.
/// Cost: per step one A and two global sums.
template <class V, vector_space<V> S, class A, class Callback = silent>
requires linear_operator<A, V>
[[nodiscard]] solve_report minimal_residual(S& space, A&& a, const V& b, V& x, minimal_residual_workspace<V>& work,
                                            const solve_options& options = {}, Callback&& on_iteration = {}) {
    detail::solve_run run(options);
    return run.repeat(space, a, b, x, work.rw[0], [&](double rho) {
        return detail::minimal_residual_cycle(space, a, rho, x, work, options, run, on_iteration);
    });
}

} // namespace halocline::solvers
