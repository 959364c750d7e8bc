// SPDX-License-Identifier: Apache-2.0
// FGMRES(m): flexible, right-preconditioned, restarted; and GMRES(m), which is FGMRES(m) without a preconditioner. Of
// one system, or of several in lockstep: each takes the steps that it would take alone, and all share the calls of A and
// M and the global sums. (Not a block Krylov method: no system profits from the space of another.)
// One global sum per iteration (two if cancellation shows) of up to values_per_sum(m) numbers; no allocation but the
// history's once the workspace exists.
// Ref: Y. Saad, A flexible inner-outer preconditioned GMRES algorithm, SIAM J. Sci. Comput. 14 (1993) 461 [Saad1993];
//      Y. Saad, Iterative methods for sparse linear systems, 2nd ed., SIAM 2003, algorithms 6.9, 9.6 [Saad2003].
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/base/short_list.hpp>
#include <halocline/solvers/concepts.hpp>
#include <halocline/solvers/gram_schmidt.hpp>
#include <halocline/solvers/hessenberg.hpp>
#include <halocline/solvers/solve_report.hpp>
#include <halocline/solvers/solve_run.hpp>

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace halocline::solvers {

/// The numbers that the last iteration of a cycle sums: its products with m vectors and itself. A comm::global_sum that
/// holds fewer takes several sums for them. Of several systems that many each.
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

/// A x = b, one of several.
template <class V>
struct one_system {
    const V* b;
    V* x;
    fgmres_workspace<V>* work; ///< of its own
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

/// Something of each system, or of some of them.
template <class T>
using of_systems = short_list<T, most_systems>;

/// One of the systems that are solved in lockstep, and where its solve stands.
template <class V>
struct gmres_state {
    gmres_state(const one_system<V>& system, const fgmres_options& options)
        : b(*system.b), x(*system.x), work(*system.work), run(options) {}

    const V& b;
    V& x;
    fgmres_workspace<V>& work;
    solve_run run;
    double rho = 0;     ///< norm of the true residual; at first of b
    int step = -1;      ///< of the cycle under way: 0, 1, ...; -1: none is
    bool ended = false; ///< its report is made
    stagnation_watch watch{0, 0, 0};
    orthonormalisation<V> arnoldi;
};

/// Restarted GMRES on up to most_systems systems. A cycle of each makes the basis A Z_m = V_{m+1} H, column by column,
/// from v_0 = r / beta; then the best x in x + Z_m.
template <class V, vector_space<V> S, operator_on_several<V> A, class M, class Callback>
class lockstep {
    static constexpr bool preconditioned = !std::is_same_v<M, no_preconditioner>;
    using state = gmres_state<V>;

  public:
    /// Err: input_error: options that no solve can be made with; a workspace that is too short.
    lockstep(S& space, A& a, M& m, std::span<const one_system<V>> systems, const fgmres_options& options,
             Callback& on_iteration)
        : space_(space), a_(a), m_(m), options_(options), on_iteration_(on_iteration) {
        for (const one_system<V>& system : systems) {
            length_ = restart_length_of(options, system.work->restart_length());
            systems_[count_++].emplace(system, options);
        }
    }

    void solve(std::span<solve_report> reports) {
        reports_ = reports;
        if (!begin()) return fail();
        while (any_left())
            if (!begin_cycles() || !iterate()) return fail();
    }

  private:
    [[nodiscard]] bool ok(comm::status s) noexcept { return (communication_ = s) == comm::status::ok; }
    template <class F>
    void for_each_left(F&& f) {
        for (std::size_t k = 0; k < count_; ++k)
            if (!systems_[k]->ended) f(*systems_[k]);
    }
    [[nodiscard]] bool any_left() {
        bool any = false;
        for_each_left([&](state&) { any = true; });
        return any;
    }
    void end(state& s, solve_status status, bool residual_is_true = true) {
        reports_[index_of(s)] = s.run.end(status, residual_is_true);
        s.ended = true;
    }
    void fail() {
        for_each_left([&](state& s) {
            static_cast<void>(s.run.ok(communication_));
            end(s, solve_status::failed_communication);
        });
    }
    [[nodiscard]] std::size_t index_of(const state& s) const noexcept {
        std::size_t k = 0;
        while (&*systems_[k] != &s) ++k;
        return k;
    }
    /// rho = ||.|| for each of these systems.
    [[nodiscard]] bool take_norms(const of_systems<state*>& systems, const of_systems<const V*>& x) {
        std::array<double, most_systems> rho;
        const std::span<const V* const> all = x.values();
        if (all.empty()) return true;
        if (!ok(norms<V>(space_, all, std::span(rho).first(all.size())))) return false;
        for (std::size_t k = 0; k < all.size(); ++k) systems.values()[k]->rho = rho[k];
        return true;
    }

    [[nodiscard]] bool begin() {
        of_systems<state*> all;
        of_systems<const V*> b;
        for_each_left([&](state& s) {
            all.push_back(&s);
            b.push_back(&s.b);
        });
        if (!take_norms(all, b)) return false;
        for_each_left([&](state& s) {
            if (const auto over = s.run.begin(space_, s.rho, s.x)) end(s, *over);
        });
        return true;
    }

    /// Of the systems between two cycles: the true residuals, and new cycles if they are worth it.
    [[nodiscard]] bool begin_cycles() {
        of_systems<state*> systems;
        of_systems<V*> r;
        of_systems<const V*> x, residuals;
        for_each_left([&](state& s) {
            if (s.step >= 0) return;
            if (s.run.x_is_zero()) return space_.copy(s.work.v[0], s.b);
            systems.push_back(&s);
            r.push_back(&s.work.v[0]);
            residuals.push_back(&s.work.v[0]);
            x.push_back(&s.x);
        });
        if (!systems.values().empty()) {
            if (!ok(a_(r.values(), x.values()))) return false;
            for (state* s : systems.values()) s->run.make_residual(space_, s->work.v[0], s->b);
            if (!take_norms(systems, residuals)) return false;
        }
        for_each_left([&](state& s) {
            if (s.step < 0) begin_cycle(s);
        });
        return true;
    }
    void begin_cycle(state& s) {
        const auto undo = [&] {
            if (s.work.kept > 0) space_.copy(s.x, s.work.v[s.work.kept]);
            return s.work.kept > 0;
        };
        if (const auto over = s.run.begin_cycle(space_, s.rho, s.x, undo)) return end(s, *over);
        s.watch = stagnation_watch(options_.stagnation_window, s.rho, s.run.report.iterations);
        space_.scale(s.work.v[0], 1 / s.rho); // v_0 = r / beta
        s.work.least_squares.reset(s.rho);    // g = beta e_1
        s.step = 0;
    }

    /// One step of the cycles of all systems.
    [[nodiscard]] bool iterate() {
        of_systems<V*> z, w;
        of_systems<const V*> v, directions;
        of_systems<orthonormalisation<V>*> steps;
        for_each_left([&](state& s) {
            const auto j = static_cast<std::size_t>(s.step);
            std::vector<V>& basis = s.work.v;
            V& direction = preconditioned ? s.work.z[j] : basis[j];
            v.push_back(&basis[j]);
            z.push_back(&direction);
            directions.push_back(&direction);
            w.push_back(&basis[j + 1]);
            s.arnoldi = {std::span(basis).first(j + 2), std::span(s.work.h).first(j + 2),
                         std::span(s.work.scratch).first(j + 2)};
            steps.push_back(&s.arnoldi);
            ++s.run.report.matvecs;
            s.run.report.preconditioner_applications += preconditioned;
        });
        if (steps.values().empty()) return true;
        if constexpr (preconditioned)
            if (!ok(m_(z.values(), v.values()))) return false;      // z_j = M_j v_j
        if (!ok(a_(w.values(), directions.values()))) return false; // w = A z_j
        // w = sum_{i<=j} h_ij v_i + h_{j+1,j} v_{j+1}
        if (!ok(orthonormalise<V>(space_, steps.values(), options_.reorthogonalise_below))) return false;
        for_each_left([&](state& s) { judge(s); });
        return true;
    }
    /// Takes note of a step; ends the cycle, or the solve, if that was its last one.
    void judge(state& s) {
        solve_report& report = s.run.report;
        const orthonormalised& step = s.arnoldi.result;
        ++report.iterations;
        report.reorthogonalisations += step.repeated;
        if (!step.finite) {
            report.recurrence_residual = std::numeric_limits<double>::quiet_NaN();
            return end(s, solve_status::not_finite);
        }
        // min_y || beta e_1 - H y ||
        const double rho = s.work.least_squares.append(s.arnoldi.h, step.next);
        const auto tell = [&](iteration_event e) {
            e.system = static_cast<int>(index_of(s));
            on_iteration_(e);
        };
        const bool reached = s.run.record_iteration(rho, tell), stuck = s.watch.record(rho, report.iterations);
        cycle_end end_of_cycle = cycle_end::length;
        if (step.next == 0)
            end_of_cycle = cycle_end::closed;
        else if (reached)
            end_of_cycle = cycle_end::reached;
        else if (stuck)
            end_of_cycle = cycle_end::stuck;
        else if (++s.step < length_ && !s.run.used_up())
            return;
        end_cycle(s, end_of_cycle);
    }
    void end_cycle(state& s, cycle_end how) {
        fgmres_workspace<V>& work = s.work;
        const std::span<const V> z = preconditioned ? work.z : work.v;
        // x = x + Z y, y = R^{-1} g
        const std::span<const complex> y = work.least_squares.solve(S::epsilon);
        work.kept = s.run.from_zero() ? 0 : y.size();
        if (work.kept > 0) space_.copy(work.v[work.kept], s.x); // the next residual needs v_0 only
        space_.combine(s.x, 1, y, z.first(y.size()));
        s.step = -1;
        if (const auto over = s.run.end_cycle(how)) end(s, *over, false);
    }

    S& space_;
    A& a_;
    M& m_;
    const fgmres_options& options_;
    Callback& on_iteration_;
    std::array<std::optional<state>, most_systems> systems_;
    std::size_t count_ = 0;
    int length_ = 0; ///< m
    std::span<solve_report> reports_;
    comm::status communication_ = comm::status::ok;
};

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

/// Err: input_error: more systems than most_systems, another number of reports, different restart lengths.
template <class V>
void check_systems(const char* what, std::span<const one_system<V>> systems, std::size_t reports, bool preconditioned) {
    const std::string text = what;
    if (systems.size() > most_systems || systems.size() != reports)
        throw input_error(text + ": " + std::to_string(systems.size()) + " systems and " + std::to_string(reports) +
                          " reports; there must be one for each of at most " + std::to_string(most_systems));
    for (const one_system<V>& system : systems) {
        if (preconditioned && system.work->z.empty())
            throw input_error(text + ": a workspace was made with flexible = false, for gmres() only");
        if (system.work->restart_length() != systems.front().work->restart_length())
            throw input_error(text + ": workspaces for restart lengths of " +
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
/// Cost: per iteration one A and one global sum (two with reorthogonalisation) if it holds values_per_sum(m); besides, a
///       sum for ||b||, and for each true residual (at a restart, and at the end if options.verify) one A and one sum.
/// Ref:  [Saad2003] algorithm 6.9 with sec. 6.5.3.
template <class V, vector_space<V> S, class A, class Callback = silent>
requires linear_operator<A, V>
[[nodiscard]] solve_report gmres(S& space, A&& a, const V& b, V& x, fgmres_workspace<V>& work,
                                 const fgmres_options& options = {}, Callback&& on_iteration = {}) {
    detail::no_preconditioner none;
    return detail::gmres_of_one(space, a, none, b, x, work, options, on_iteration);
}

/// fgmres() for several systems, in lockstep: A x_k = b_k. Each takes the steps, and gives the bits, that it would alone,
/// if A, M and `space` do. A system that has ended no longer takes part in the calls.  Collective.
/// Name V: fgmres_together<V>(space, a, m, systems, reports).
/// Shape: reports[k] is of systems[k], up to most_systems of them, whose vectors and workspaces are distinct.
/// Callback: iteration_event::system is k.
/// Err:  input_error: more systems than that; workspaces for gmres() only, or for different restart lengths; as fgmres().
/// Cost: per step one call of M and one of A for all, one global sum (two if any reorthogonalises) if it holds that many
///       numbers; as fgmres() for each.
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
