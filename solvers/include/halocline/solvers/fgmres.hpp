// SPDX-License-Identifier: Apache-2.0
// FGMRES(m): flexible, right-preconditioned, restarted; and GMRES(m), which is FGMRES(m) without a preconditioner. Of
// one system, or of several in lockstep: each takes the steps that it would take alone, and all share the calls of A
// and M and the global sums. (Not a block Krylov method: no system profits from the space of another.) One global sum
// per iteration (two if cancellation shows: with a good M, for which A z_j is nearly v_j, in most) of up to
// values_per_sum(m) numbers; no allocation but the history's once the workspace exists.
// Ref: Y. Saad, A flexible inner-outer preconditioned GMRES algorithm, SIAM J. Sci. Comput. 14 (1993) 461 [Saad1993];
//      Y. Saad, Iterative methods for sparse linear systems, 2nd ed., SIAM 2003, algorithms 6.9, 9.6 [Saad2003].
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/solvers/concepts.hpp>
#include <halocline/solvers/fgmres_workspace.hpp>
#include <halocline/solvers/lockstep.hpp>
#include <halocline/solvers/solve_report.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

namespace halocline::solvers {

namespace detail {

/// An operator on several vectors that is only ever given one.
template <class A>
struct on_one {
    A& a;
    template <class V>
    comm::status operator()(std::span<V* const> y, std::span<const V* const> x) const {
        return a(*y.front(), *x.front());
    }
};

template <class V, vector_space<V> S, linear_operator<V> A, class M, class Callback>
solve_report gmres_of_one(S& space, A& a, M& m, const V& b, V& x, fgmres_workspace<V>& work,
                          const fgmres_options& options, Callback& on_iteration) {
    on_one<A> several{a};
    const one_system<V> system{&b, &x, &work};
    solve_report report;
    lockstep<V, S, on_one<A>, M, Callback>(space, several, m, {&system, 1}, options, on_iteration).solve({&report, 1});
    return report;
}

/// Err: input_error: more systems than most_systems, another number of reports, different restart lengths; for a
/// preconditioned solve workspaces without room for one.
template <class V>
void check_systems(const char* what, std::span<const one_system<V>> systems, std::size_t reports, bool preconditioned) {
    if (systems.size() > most_systems || systems.size() != reports)
        throw input_error(std::string(what) + ": " + std::to_string(systems.size()) + " systems and " +
                          std::to_string(reports) + " reports; there must be one for each of at most " +
                          std::to_string(most_systems));
    for (const one_system<V>& system : systems) {
        if (preconditioned && system.work->z.empty())
            throw input_error(std::string(what) + ": a workspace was made with flexible = false, for gmres() only");
        if (system.work->restart_length() != systems.front().work->restart_length())
            throw input_error(std::string(what) + ": workspaces for restart lengths of " +
                              std::to_string(systems.front().work->restart_length()) + " and " +
                              std::to_string(system.work->restart_length()) + "; must be equal");
    }
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
    detail::on_one<std::remove_reference_t<M>> several{m};
    return detail::gmres_of_one(space, a, several, b, x, work, options, on_iteration);
}

/// Solves A x = b without a preconditioner: for coarse grids. With options.verify = false it stops on the recurrence.
/// Pre:  vectors of the workspace were made by `space`; it need not be flexible.
/// Err:  input_error: as fgmres(), but any workspace will do; what the operations of `space` and A throw.
/// Cost: per iteration one A and one global sum (two with reorthogonalisation) if it holds values_per_sum(m); besides,
///       a sum for ||b||, and for each true residual (at a restart, and at the end if options.verify) one A and one
///       sum.
/// Ref:  [Saad2003] algorithm 6.9 with sec. 6.5.3.
template <class V, vector_space<V> S, class A, class Callback = silent>
requires linear_operator<A, V>
[[nodiscard]] solve_report gmres(S& space, A&& a, const V& b, V& x, fgmres_workspace<V>& work,
                                 const fgmres_options& options = {}, Callback&& on_iteration = {}) {
    detail::no_preconditioner none;
    return detail::gmres_of_one(space, a, none, b, x, work, options, on_iteration);
}

/// fgmres() for several systems, in lockstep: A x_k = b_k. Each takes the steps, and gives the bits, that it would
/// alone, if A, M and `space` do. A system that has ended no longer takes part in the calls.  Collective.
/// Name V, fgmres_together<V>(space, a, m, systems, reports), unless `systems` is a span of const systems.
/// Shape: reports[k] is of systems[k], up to most_systems of them, whose vectors and workspaces are distinct.
/// Callback: iteration_event::system is k.
/// Err:  input_error: more systems than that; workspaces for gmres() only, or for different restart lengths; as
/// fgmres().
/// Cost: per step one call of M and one of A for all, one global sum (two if any reorthogonalises) if it holds that
///       many numbers; as fgmres() for each.
template <class V, vector_space<V> S, class A, class M, class Callback = silent>
requires operator_on_several<A, V> && operator_on_several<M, V>
void fgmres_together(S& space, A&& a, M&& m, std::span<const one_system<V>> systems, std::span<solve_report> reports,
                     const fgmres_options& options = {}, Callback&& on_iteration = {}) {
    detail::check_systems("fgmres_together", systems, reports.size(), true);
    detail::lockstep(space, a, m, systems, options, on_iteration).solve(reports);
}

/// gmres() for several systems: as fgmres_together(), without M.
template <class V, vector_space<V> S, class A, class Callback = silent>
requires operator_on_several<A, V>
void gmres_together(S& space, A&& a, std::span<const one_system<V>> systems, std::span<solve_report> reports,
                    const fgmres_options& options = {}, Callback&& on_iteration = {}) {
    detail::check_systems("gmres_together", systems, reports.size(), false);
    detail::no_preconditioner none;
    detail::lockstep(space, a, none, systems, options, on_iteration).solve(reports);
}

} // namespace halocline::solvers
