// SPDX-License-Identifier: Apache-2.0
// FGMRES(m): flexible, right-preconditioned, restarted; and GMRES(m), which is FGMRES(m) without a preconditioner.
// One global sum per iteration (two if cancellation shows) of up to values_per_sum(m) numbers; no allocation but the
// history's once the workspace exists.
// Ref: Y. Saad, A flexible inner-outer preconditioned GMRES algorithm, SIAM J. Sci. Comput. 14 (1993) 461 [Saad1993];
//      Y. Saad, Iterative methods for sparse linear systems, 2nd ed., SIAM 2003, algorithms 6.9, 9.6 [Saad2003].
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/solvers/concepts.hpp>
#include <halocline/solvers/gram_schmidt.hpp>
#include <halocline/solvers/hessenberg.hpp>
#include <halocline/solvers/solve_report.hpp>
#include <halocline/solvers/solve_run.hpp>

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace halocline::solvers {

/// The numbers that the last iteration of a cycle sums: its products with m vectors and itself. A comm::global_sum that
/// holds fewer takes several sums for them.
constexpr int values_per_sum(int restart_length) { return 2 * (restart_length + 1); }

/// Options of fgmres() and gmres().
struct fgmres_options : solve_options {
    int restart_length = 0; ///< m, at most that of the workspace; 0: that of the workspace
    /// Gram-Schmidt is repeated when the new direction keeps no more than this part of ||A z||. 1/sqrt(2) keeps the
    /// basis orthonormal to machine precision; 0.1 saves global sums and is plenty for inner solves of low accuracy.
    double reorthogonalise_below = 0.7071;
};

/// Vectors and small matrices of FGMRES(m), reusable for any number of solves.
/// Memory: 2 m + 1 vectors; m + 1 for GMRES.
template <class V>
class fgmres_workspace {
  public:
    /// `flexible` = false: room for gmres() only.  Err: input_error: restart_length below 1.
    template <vector_space<V> S>
    fgmres_workspace(S& space, int restart_length, bool flexible = true)
        : h(checked(restart_length) + 1), scratch(restart_length + 1), least_squares(restart_length) {
        for (int i = 0; i <= restart_length; ++i) v.push_back(space.make());
        for (int i = 0; flexible && i < restart_length; ++i) z.push_back(space.make());
    }
    [[nodiscard]] int restart_length() const noexcept { return least_squares.capacity(); }

    std::vector<V> v;                       ///< orthonormal basis of the Krylov space
    std::vector<V> z;                       ///< z_j = M_j v_j; empty without a preconditioner
    std::vector<complex> h, scratch;        ///< one column of the Hessenberg matrix; Gram-Schmidt's second pass
    hessenberg_least_squares least_squares; ///< min_y || beta e_1 - H y ||
    std::size_t kept = 0;                   ///< the v that holds the x of the last cycle's start; 0: none

  private:
    static int checked(int restart_length) {
        if (restart_length < 1)
            throw input_error("fgmres_workspace: a restart length of " + std::to_string(restart_length) +
                              " leaves no room for a step; it must be at least 1");
        return restart_length;
    }
};

namespace detail {

/// Stands for M = 1: no call, no second basis.
struct no_preconditioner {};

/// The m of a solve.  Err: input_error: the workspace has no room for it.
inline int restart_length_of(const fgmres_options& options, int room) {
    if (options.restart_length < 0 || options.restart_length > room)
        throw input_error("fgmres_options::restart_length = " + std::to_string(options.restart_length) +
                          ": must be from 1 to " + std::to_string(room) +
                          ", for which the workspace was made, or 0 for as much as that");
    return options.restart_length == 0 ? room : options.restart_length;
}

/// One restart: the basis A Z_m = V_{m+1} H, column by column, from v_0 = r / beta; then the best x in x + Z_m.
template <class V, vector_space<V> S, linear_operator<V> A, class M, class Callback>
cycle_end fgmres_cycle(S& space, A& a, M& m, double beta, V& x, fgmres_workspace<V>& work, int length,
                       const fgmres_options& options, solve_run& run, Callback& on_iteration) {
    constexpr bool preconditioned = !std::is_same_v<M, no_preconditioner>;
    const std::span<V> v = work.v, z = preconditioned ? work.z : work.v;
    solve_report& report = run.report;
    cycle_end end = cycle_end::length;

    stagnation_watch watch(options.stagnation_window, beta, report.iterations);
    space.scale(v[0], 1 / beta);    // v_0 = r / beta
    work.least_squares.reset(beta); // g = beta e_1
    for (int j = 0; j < length && !run.used_up() && end == cycle_end::length; ++j) {
        if constexpr (preconditioned) {
            if (!run.ok(m(z[j], v[j]))) return cycle_end::failed_communication; // z_j = M_j v_j
            ++report.preconditioner_applications;
        }
        if (!run.ok(a(v[j + 1], z[j]))) return cycle_end::failed_communication; // w = A z_j
        ++report.matvecs;
        // w = sum_{i<=j} h_ij v_i + h_{j+1,j} v_{j+1}
        const std::span<complex> h(work.h.data(), j + 2);
        const orthonormalised step =
            orthonormalise(space, v.first(j + 2), h, work.scratch, options.reorthogonalise_below);
        if (!run.ok(step.communication)) return cycle_end::failed_communication;
        ++report.iterations;
        report.reorthogonalisations += step.repeated;
        if (!step.finite) {
            report.recurrence_residual = std::numeric_limits<double>::quiet_NaN();
            return cycle_end::not_finite;
        }
        // min_y || beta e_1 - H y ||
        const double rho = work.least_squares.append(h, step.next);
        const bool reached = run.record_iteration(rho, on_iteration), stuck = watch.record(rho, report.iterations);
        if (step.next == 0)
            end = cycle_end::closed;
        else if (reached)
            end = cycle_end::reached;
        else if (stuck)
            end = cycle_end::stuck;
    }
    // x = x + Z y, y = R^{-1} g
    const std::span<const complex> y = work.least_squares.solve(S::epsilon);
    work.kept = run.from_zero() ? 0 : y.size();
    if (work.kept > 0) space.copy(v[work.kept], x); // the next residual needs v_0 only
    space.combine(x, 1, y, z.first(y.size()));
    return end;
}

template <class V, vector_space<V> S, linear_operator<V> A, class M, class Callback>
solve_report flexible_gmres(S& space, A& a, M& m, const V& b, V& x, fgmres_workspace<V>& work,
                            const fgmres_options& options, Callback& on_iteration) {
    const int length = restart_length_of(options, work.restart_length());
    solve_run run(options);
    const auto cycle = [&](double beta) {
        return fgmres_cycle(space, a, m, beta, x, work, length, options, run, on_iteration);
    };
    const auto undo = [&] {
        if (work.kept > 0) space.copy(x, work.v[work.kept]);
        return work.kept > 0;
    };
    return run.repeat(space, a, b, x, work.v[0], cycle, undo);
}

} // namespace detail

/// Solves A x = b with the flexible preconditioner M.  Collective.
/// "converged" means that ||b - A x|| / ||b|| was computed from x and is <= tolerance; if the recurrence says so but
/// the true residual doesn't, the solve continues with a restart.
/// Pre:  vectors of the workspace were made by `space`.
/// Err:  input_error: the workspace was made for gmres() only, or for a shorter restart; solve_options out of range;
///       what the operations of `space`, A and M throw.
/// Cost: per iteration one M, one A, one global sum (two with reorthogonalisation) if it holds values_per_sum(m), j + 2
///       vectors read twice.
/// Ref:  [Saad1993] algorithm 2.2, [Saad2003] algorithm 9.6.
template <class V, vector_space<V> S, class A, class M, class Callback = silent>
requires linear_operator<A, V> && preconditioner<M, V>
[[nodiscard]] solve_report fgmres(S& space, A&& a, M&& m, const V& b, V& x, fgmres_workspace<V>& work,
                                  const fgmres_options& options = {}, Callback&& on_iteration = {}) {
    if (work.z.empty()) throw input_error("fgmres: its workspace was made with flexible = false, for gmres() only");
    return detail::flexible_gmres(space, a, m, b, x, work, options, on_iteration);
}

/// Solves A x = b without a preconditioner: for coarse grids. With options.verify = false it stops on the recurrence.
/// Pre:  vectors of the workspace were made by `space`; it need not be flexible.
/// Err:  input_error: as fgmres(), but any workspace will do; what the operations of `space` and A throw.
/// Cost: per iteration one A and one global sum (two with reorthogonalisation) if it holds values_per_sum(m); besides, a
///       sum for ||b||, and for each true residual (at a restart, and at the end if options.verify) one A and one sum.
/// Ref:  [Saad2003] algorithm 6.9 with sec. 6.5.3.
template <class V, vector_space<V> S, class A, class Callback = silent>
requires linear_operator<A, V>
[[nodiscard]] solve_report gmres(S& space, A&& a, const V& b, V& x, fgmres_workspace<V>& work,
                                 const fgmres_options& options = {}, Callback&& on_iteration = {}) {
    detail::no_preconditioner none;
    return detail::flexible_gmres(space, a, none, b, x, work, options, on_iteration);
}

} // namespace halocline::solvers
