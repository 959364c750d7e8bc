// SPDX-License-Identifier: Apache-2.0
// Conjugate gradients on the normal equations D^dagger D x = D^dagger b: slow and hard to break, the solver with which
// others are compared. It minimises ||b - D x|| over each Krylov space.
// Ref: [Saad2003] algorithm 8.4 (CGNR).
#pragma once

#include <halocline/solvers/concepts.hpp>
#include <halocline/solvers/solve_report.hpp>
#include <halocline/solvers/solve_run.hpp>

#include <cmath>

namespace halocline::solvers {

/// The four vectors of cg_normal().
template <class V>
struct cg_normal_workspace {
    template <vector_space<V> S>
    explicit cg_normal_workspace(S& space) : r(space.make()), z(space.make()), p(space.make()), w(space.make()) {}
    V r, z, p, w;
};

namespace detail {

/// Conjugate gradients from r = b - D x, rho = ||r||, until the recurrence ends.
template <class V, vector_space<V> S, linear_operator<V> D, linear_operator<V> Adjoint, class Callback>
cycle_end cg_normal_cycle(S& space, D& d, Adjoint& d_dagger, double rho, V& x, cg_normal_workspace<V>& work,
                          const solve_options& options, solve_run& run, Callback& on_iteration) {
    auto& [r, z, p, w] = work;
    solve_report& report = run.report;
    // z = D^dagger r
    const auto apply_adjoint = [&](double& norm) {
        if (!run.ok(d_dagger(work.z, work.r)) || !run.ok(space.norm(work.z, norm))) return false;
        ++report.matvecs;
        return true;
    };

    double z_norm = 0;
    if (!apply_adjoint(z_norm)) return cycle_end::failed_communication;
    if (!std::isfinite(z_norm)) return cycle_end::not_finite;
    if (z_norm == 0) return cycle_end::breakdown; // r is orthogonal to the range of D
    space.copy(p, z);

    stagnation_watch watch(options.stagnation_window, rho, report.iterations);
    while (!run.used_up()) {
        // w = D p
        double w_norm = 0;
        if (!run.ok(d(w, p)) || !run.ok(space.norm(w, w_norm))) return cycle_end::failed_communication;
        ++report.matvecs;
        ++report.iterations;
        if (!std::isfinite(w_norm)) return cycle_end::not_finite;
        if (w_norm == 0) return cycle_end::closed;
        // alpha = <z, z> / <w, w>
        const double alpha = (z_norm / w_norm) * (z_norm / w_norm);
        space.axpy(x, alpha, p);  // x = x + alpha p
        space.axpy(r, -alpha, w); // r = r - alpha w
        double z_norm_new = 0;
        if (!run.ok(space.norm(r, rho)) || !apply_adjoint(z_norm_new)) return cycle_end::failed_communication;
        if (!std::isfinite(rho) || !std::isfinite(z_norm_new)) return cycle_end::not_finite;
        if (run.record_iteration(rho, on_iteration)) return cycle_end::reached;
        if (watch.record(rho, report.iterations)) return cycle_end::stuck;
        if (z_norm_new == 0) return cycle_end::closed;
        // beta = <z_new, z_new> / <z, z>
        const double beta = (z_norm_new / z_norm) * (z_norm_new / z_norm);
        const complex one = 1;
        space.combine(p, beta, {&one, 1}, {&z, 1}); // p = z + beta p
        z_norm = z_norm_new;
    }
    return cycle_end::length;
}

} // namespace detail

/// Solves D x = b given D and its adjoint (for Wilson-clover: gamma5 D gamma5).  Collective.  "converged" means what it
/// means for fgmres().
/// Pre:  vectors of the workspace were made by `space`.
/// Err:  input_error: solve_options out of range; what the operations of `space`, D and its adjoint throw.
/// Cost: per iteration one D, one D^dagger, three global sums.
template <class V, vector_space<V> S, class D, class Adjoint, class Callback = silent>
requires linear_operator<D, V> && linear_operator<Adjoint, V>
[[nodiscard]] solve_report cg_normal(S& space, D&& d, Adjoint&& d_dagger, const V& b, V& x,
                                     cg_normal_workspace<V>& work, const solve_options& options = {},
                                     Callback&& on_iteration = {}) {
    detail::solve_run run(options);
    return run.repeat(space, d, b, x, work.r, [&](double rho) {
        return detail::cg_normal_cycle(space, d, d_dagger, rho, x, work, options, run, on_iteration);
    });
}

} // namespace halocline::solvers
