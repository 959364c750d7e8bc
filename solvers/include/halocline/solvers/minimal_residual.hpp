// SPDX-License-Identifier: Apache-2.0
// The minimal residual iteration: one matvec per step, two vectors in all. A smoother more than a solver;
// it converges where the Hermitian part of A is definite. Ref: [Saad2003] algorithm 5.3.
#pragma once

#include <halocline/solvers/concepts.hpp>
#include <halocline/solvers/solve_report.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace halocline::solvers {

struct minimal_residual_options : solve_options {
    double relaxation = 1; ///< omega in x = x + omega alpha r
};

/// The two vectors of minimal_residual(), neighbours so that both products of a step share one global sum.
template <class V>
struct minimal_residual_workspace {
    template <vector_space<V> S>
    explicit minimal_residual_workspace(S& space) : rw{space.make(), space.make()} {}
    std::array<V, 2> rw;
};

/// Solves A x = b.  Collective.
/// Cost: per step one A and two global sums.
template <class V, vector_space<V> S, class A, class Callback = silent>
    requires linear_operator<A, V>
[[nodiscard]] solve_report minimal_residual(S& space, A&& a, const V& b, V& x, minimal_residual_workspace<V>& work,
                                            const minimal_residual_options& options = {},
                                            Callback&& on_iteration = {}) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const detail::stopwatch clock;
    auto& [r, w] = work.rw;
    solve_report report;
    auto ended = [&](solve_status s) -> solve_report&& {
        report.status = s;
        if (s == solve_status::not_finite || s == solve_status::unverified) report.relative_residual = nan;
        report.seconds = clock.seconds();
        return std::move(report);
    };
    auto ok = [&](comm::status s) { return (report.communication = s) == comm::status::ok; };
    if (options.keep_history) report.history.reserve(std::clamp(options.max_iterations, 0, 10'000));

    double b_norm = 0;
    if (!ok(space.norm2(b, b_norm))) return ended(solve_status::failed_communication);
    if (!std::isfinite(b_norm)) return ended(solve_status::not_finite);
    if (!options.use_initial_guess || b_norm == 0) space.set_zero(x);
    if (b_norm == 0) { // A 0 = 0
        report.relative_residual = report.recurrence_residual = 0;
        return ended(solve_status::converged);
    }

    bool stuck = false, closed = false;
    for (;;) {
        // r = b - A x
        double rho = 0;
        if (!ok(a(r, x))) return ended(solve_status::failed_communication);
        ++report.matvecs;
        space.scale(r, -1);
        space.axpy(r, 1, b);
        if (!ok(space.norm2(r, rho))) return ended(solve_status::failed_communication);
        if (!std::isfinite(rho)) return ended(solve_status::not_finite);
        report.relative_residual = rho / b_norm;
        if (report.iterations == 0) report.recurrence_residual = report.relative_residual;
        if (report.relative_residual <= options.tolerance) return ended(solve_status::converged);
        if (closed) return ended(solve_status::breakdown);
        if (stuck) return ended(solve_status::stagnated);
        if (report.iterations >= options.max_iterations) return ended(solve_status::max_iterations);
        if (report.iterations > 0) ++report.restarts;

        detail::stagnation_watch watch(options.stagnation_window, rho, report.iterations);
        while (report.iterations < options.max_iterations) {
            // w = A r
            if (!ok(a(w, r))) return ended(solve_status::failed_communication);
            ++report.matvecs;
            ++report.iterations;
            // <r, w>, <w, w>
            std::array<complex, 2> products;
            if (!ok(space.multi_dot(std::span<const V>(work.rw), w, products)))
                return ended(solve_status::failed_communication);
            const double ww = products[1].real();
            if (!std::isfinite(ww) || !std::isfinite(std::abs(products[0]))) return ended(solve_status::not_finite);
            // A r = 0, or r is orthogonal to A r: the step is 0 for ever
            closed = ww == 0 || products[0] == 0.0;
            if (closed) break;
            // alpha = <w, r> / <w, w>
            const complex alpha = options.relaxation * std::conj(products[0]) / ww;
            space.axpy(x, alpha, r);  // x = x + alpha r
            space.axpy(r, -alpha, w); // r = r - alpha w
            if (!ok(space.norm2(r, rho))) return ended(solve_status::failed_communication);
            if (!std::isfinite(rho)) return ended(solve_status::not_finite);
            report.recurrence_residual = rho / b_norm;
            if (options.keep_history) report.history.push_back(report.recurrence_residual);
            on_iteration(iteration_event{report.iterations, report.restarts, report.recurrence_residual});
            if (report.recurrence_residual <= options.tolerance) {
                if (!options.verify) return ended(solve_status::unverified);
                break;
            }
            stuck = watch.stuck(rho, report.iterations);
            if (stuck) break;
        }
    }
}

} // namespace halocline::solvers
