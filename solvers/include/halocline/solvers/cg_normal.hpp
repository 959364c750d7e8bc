// SPDX-License-Identifier: Apache-2.0
// Conjugate gradients on the normal equations D^dagger D x = D^dagger b: slow and hard to break, the solver that others
// are compared with. It minimises ||b - D x|| over each Krylov space.
// Ref: [Saad2003] algorithm 8.4 (CGNR).
#pragma once

#include <halocline/solvers/solve_run.hpp>

#include <limits>

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
    auto& [r, z, p, w] = work;
    detail::solve_run run(options);
    solve_report& report = run.report;
    if (const auto over = run.begin(space, b, x)) return run.end(*over); // D 0 = 0

    bool stuck = false, closed = false;
    double last_start = std::numeric_limits<double>::infinity();
    for (;;) {
        // r = b - D x
        double rho = 0;
        if (!run.residual(space, d, r, b, x, rho)) return run.end(solve_status::failed_communication);
        if (!std::isfinite(rho)) return run.end(solve_status::not_finite);
        if (run.verified(rho)) return run.end(solve_status::converged);
        if (stuck) return run.end(solve_status::stagnated);
        if (closed && rho > 0.5 * last_start) return run.end(solve_status::breakdown);
        if (report.iterations >= options.max_iterations) return run.end(solve_status::max_iterations);
        if (report.iterations > 0) ++report.restarts;
        last_start = rho;

        // z = D^dagger r, p = z
        double z_norm = 0;
        if (!run.ok(d_dagger(z, r)) || !run.ok(space.norm2(z, z_norm)))
            return run.end(solve_status::failed_communication);
        ++report.matvecs;
        if (!std::isfinite(z_norm)) return run.end(solve_status::not_finite);
        if (z_norm == 0) return run.end(solve_status::breakdown); // r is orthogonal to the range of D
        space.copy(p, z);

        detail::stagnation_watch watch(options.stagnation_window, rho, report.iterations);
        closed = false;
        while (report.iterations < options.max_iterations) {
            // w = D p
            double w_norm = 0;
            if (!run.ok(d(w, p)) || !run.ok(space.norm2(w, w_norm))) return run.end(solve_status::failed_communication);
            ++report.matvecs;
            ++report.iterations;
            if (!std::isfinite(w_norm)) return run.end(solve_status::not_finite);
            closed = w_norm == 0;
            if (closed) break;
            // alpha = <z, z> / <w, w>
            const double alpha = (z_norm / w_norm) * (z_norm / w_norm);
            space.axpy(x, alpha, p);  // x = x + alpha p
            space.axpy(r, -alpha, w); // r = r - alpha w
            // z = D^dagger r
            double z_norm_new = 0;
            if (!run.ok(space.norm2(r, rho)) || !run.ok(d_dagger(z, r)) || !run.ok(space.norm2(z, z_norm_new)))
                return run.end(solve_status::failed_communication);
            ++report.matvecs;
            if (!std::isfinite(rho) || !std::isfinite(z_norm_new)) return run.end(solve_status::not_finite);
            if (run.reached(rho, on_iteration)) {
                if (!options.verify) return run.end(solve_status::unverified);
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
