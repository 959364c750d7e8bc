// SPDX-License-Identifier: Apache-2.0
// Conjugate gradients on the normal equations D^dagger D x = D^dagger b: slow and hard to break, the solver that others
// are compared with. It minimises ||b - D x|| over each Krylov space.
// Ref: [Saad2003] algorithm 8.4 (CGNR).
#pragma once

#include <halocline/solvers/concepts.hpp>
#include <halocline/solvers/solve_report.hpp>

#include <algorithm>
#include <utility>

namespace halocline::solvers {

/// The four vectors of cg_normal().
template <class V>
struct cg_normal_workspace {
    template <vector_space<V> S>
    explicit cg_normal_workspace(S& space) : r(space.make()), z(space.make()), p(space.make()), w(space.make()) {}
    V r, z, p, w;
};

/// Solves D x = b given D and its adjoint (for Wilson-clover: gamma5 D gamma5).  Collective.
/// Cost: per iteration one D, one D^dagger, three global sums.
template <class V, vector_space<V> S, class D, class Adjoint, class Callback = silent>
    requires linear_operator<D, V> && linear_operator<Adjoint, V>
[[nodiscard]] solve_report cg_normal(S& space, D&& d, Adjoint&& d_dagger, const V& b, V& x,
                                     cg_normal_workspace<V>& work, const solve_options& options = {},
                                     Callback&& on_iteration = {}) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const detail::stopwatch clock;
    auto& [r, z, p, w] = work;
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
    if (b_norm == 0) { // D 0 = 0
        report.relative_residual = report.recurrence_residual = 0;
        return ended(solve_status::converged);
    }

    bool stuck = false, closed = false;
    double last_start = std::numeric_limits<double>::infinity();
    for (;;) {
        // r = b - D x
        double rho = 0;
        if (!ok(d(r, x))) return ended(solve_status::failed_communication);
        ++report.matvecs;
        space.scale(r, -1);
        space.axpy(r, 1, b);
        if (!ok(space.norm2(r, rho))) return ended(solve_status::failed_communication);
        if (!std::isfinite(rho)) return ended(solve_status::not_finite);
        report.relative_residual = rho / b_norm;
        if (report.iterations == 0) report.recurrence_residual = report.relative_residual;
        if (report.relative_residual <= options.tolerance) return ended(solve_status::converged);
        if (stuck) return ended(solve_status::stagnated);
        if (closed && rho > 0.5 * last_start) return ended(solve_status::breakdown);
        if (report.iterations >= options.max_iterations) return ended(solve_status::max_iterations);
        if (report.iterations > 0) ++report.restarts;
        last_start = rho;

        // z = D^dagger r, p = z
        double z_norm = 0;
        if (!ok(d_dagger(z, r)) || !ok(space.norm2(z, z_norm))) return ended(solve_status::failed_communication);
        ++report.matvecs;
        if (!std::isfinite(z_norm)) return ended(solve_status::not_finite);
        if (z_norm == 0) return ended(solve_status::breakdown); // r is orthogonal to the range of D
        space.copy(p, z);

        detail::stagnation_watch watch(options.stagnation_window, rho, report.iterations);
        closed = false;
        while (report.iterations < options.max_iterations) {
            // w = D p
            double w_norm = 0;
            if (!ok(d(w, p)) || !ok(space.norm2(w, w_norm))) return ended(solve_status::failed_communication);
            ++report.matvecs;
            ++report.iterations;
            if (!std::isfinite(w_norm)) return ended(solve_status::not_finite);
            closed = w_norm == 0;
            if (closed) break;
            // alpha = <z, z> / <w, w>
            const double alpha = (z_norm / w_norm) * (z_norm / w_norm);
            space.axpy(x, alpha, p);  // x = x + alpha p
            space.axpy(r, -alpha, w); // r = r - alpha w
            // z = D^dagger r
            double z_norm_new = 0;
            if (!ok(space.norm2(r, rho)) || !ok(d_dagger(z, r)) || !ok(space.norm2(z, z_norm_new)))
                return ended(solve_status::failed_communication);
            ++report.matvecs;
            if (!std::isfinite(rho) || !std::isfinite(z_norm_new)) return ended(solve_status::not_finite);
            report.recurrence_residual = rho / b_norm;
            if (options.keep_history) report.history.push_back(report.recurrence_residual);
            on_iteration(iteration_event{report.iterations, report.restarts, report.recurrence_residual});
            if (report.recurrence_residual <= options.tolerance) {
                if (!options.verify) return ended(solve_status::unverified);
                break;
            }
            stuck = watch.stuck(rho, report.iterations);
            closed = z_norm_new == 0;
            if (stuck || closed) break;
            // beta = <z_new, z_new> / <z, z>
            const double beta = (z_norm_new / z_norm) * (z_norm_new / z_norm);
            const complex one = 1;
            space.combine(p, beta, {&one, 1}, {&z, 1}); // p = z + beta p
            z_norm = z_norm_new;
        }
    }
}

} // namespace halocline::solvers
