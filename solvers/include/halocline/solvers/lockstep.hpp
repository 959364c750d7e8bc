// SPDX-License-Identifier: Apache-2.0
// Restarted GMRES on several systems, step by step in lockstep: the algorithm behind fgmres.hpp. What systems share are
// the calls of A and M and the global sums; a system that has ended takes no part in them.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/base/short_list.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/solvers/concepts.hpp>
#include <halocline/solvers/fgmres_workspace.hpp>
#include <halocline/solvers/gram_schmidt.hpp>
#include <halocline/solvers/solve_report.hpp>
#include <halocline/solvers/solve_run.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace halocline::solvers::detail {

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
    gmres_state(int number, const one_system<V>& system, const fgmres_options& options)
        : index(number), b(*system.b), x(*system.x), work(*system.work), run(options) {}

    int index; ///< among all systems
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
    /// Pre: at most most_systems, whose workspaces have one restart length.
    /// Err: input_error: options that no solve can be made with; a workspace that is too short.
    lockstep(S& space, A& a, M& m, std::span<const one_system<V>> systems, const fgmres_options& options,
             Callback& on_iteration)
        : space_(space), a_(a), m_(m), options_(options), on_iteration_(on_iteration) {
        for (const one_system<V>& system : systems) {
            length_ = restart_length_of(options, system.work->restart_length());
            systems_[count_].emplace(static_cast<int>(count_), system, options);
            ++count_;
        }
    }

    /// Once. reports[k] is of systems[k].
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
        reports_[static_cast<std::size_t>(s.index)] = s.run.end(status, residual_is_true);
        s.ended = true;
    }
    void fail() {
        for_each_left([&](state& s) {
            static_cast<void>(s.run.ok(communication_));
            end(s, solve_status::failed_communication);
        });
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
            s.arnoldi = {.vectors = std::span(basis).first(j + 2),
                         .h = std::span(s.work.h).first(j + 2),
                         .scratch = std::span(s.work.scratch).first(j + 2),
                         .loss = j == 0 ? S::epsilon : s.arnoldi.loss};
            steps.push_back(&s.arnoldi);
        });
        if (steps.values().empty()) return true;
        if constexpr (preconditioned) {
            if (!ok(m_(z.values(), v.values()))) return false; // z_j = M_j v_j
            for_each_left([](state& s) { ++s.run.report.preconditioner_applications; });
        }
        if (!ok(a_(w.values(), directions.values()))) return false; // w = A z_j
        for_each_left([](state& s) { ++s.run.report.matvecs; });
        // w = sum_{i<=j} h_ij v_i + h_{j+1,j} v_{j+1}
        const repetition when{options_.reorthogonalise_below, options_.orthogonality};
        for_each_left([&](state& s) { subtract_expected(s); });
        if (!ok(orthonormalise<V>(space_, steps.values(), when))) return false;
        for_each_left([&](state& s) {
            add_expected(s);
            judge(s);
        });
        return true;
    }
    /// Of w = A z_j what is like v_j, as far as that is known beforehand.
    void subtract_expected(state& s) {
        if (options_.expected != 0)
            space_.axpy(s.arnoldi.w(), -options_.expected, s.arnoldi.vectors[s.arnoldi.before() - 1]);
    }
    /// Makes the coefficients of w of those of w - expected v_j.
    void add_expected(state& s) {
        if (options_.expected == 0) return;
        complex& own = s.arnoldi.h[s.arnoldi.before() - 1];
        own += options_.expected;
        constexpr double noise = 10 * S::epsilon;
        if (s.arnoldi.result.next <= noise * std::abs(own)) s.arnoldi.result.next = 0; // w was in the span
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
            e.system = s.index;
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

} // namespace halocline::solvers::detail
