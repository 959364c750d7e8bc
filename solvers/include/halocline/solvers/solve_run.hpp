// SPDX-License-Identifier: Apache-2.0
// What every solver does around its recurrence: the start from b and x, the true residual, the record of an iteration,
// and the end. A solver's own file is left with the formulas of its paper.
#pragma once

#include <halocline/comm/status.hpp>
#include <halocline/solvers/concepts.hpp>
#include <halocline/solvers/solve_report.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace halocline::solvers::detail {

/// How the recurrence ended between two computations of the true residual, unless by its length.
struct cycle_end {
    bool reached = false; ///< the recurrence is at the tolerance
    bool closed = false;  ///< A times the space adds nothing new: happy breakdown, or a singular system
    bool stuck = false;   ///< no progress within the stagnation window
    std::optional<solve_status> failed;
};

class solve_run {
  public:
    explicit solve_run(const solve_options& options) : options_(options) {
        if (options.keep_history) report.history.reserve(std::clamp(options.max_iterations, 0, 10'000));
    }

    solve_report report;
    double b_norm = 0; ///< ||b||

    /// Records the status of a step; false: communication failed, so end(failed_communication) is due.
    [[nodiscard]] bool ok(comm::status s) noexcept { return (report.communication = s) == comm::status::ok; }

    /// Computes ||b||, and sets x = 0 unless it is the initial guess. A value ends the solve before its first
    /// iteration.
    template <class V, vector_space<V> S>
    [[nodiscard]] std::optional<solve_status> begin(S& space, const V& b, V& x) {
        if (!ok(space.norm2(b, b_norm))) return solve_status::failed_communication;
        if (!std::isfinite(b_norm)) return solve_status::not_finite;
        if (!options_.use_initial_guess || b_norm == 0) space.set_zero(x);
        // The smallest residual that will be divided by and compared.
        const double least = b_norm * std::max<double>(S::epsilon, options_.tolerance);
        if (least >= std::numeric_limits<double>::min()) return std::nullopt;
        if (b_norm > 0) return solve_status::source_too_small;
        report.relative_residual = report.recurrence_residual = 0; // A 0 = 0
        return solve_status::converged;
    }

    /// r = b - A x, rho = ||r||
    template <class V, vector_space<V> S, class A>
    [[nodiscard]] bool residual(S& space, A& a, V& r, const V& b, const V& x, double& rho) {
        if (!ok(a(r, x))) return false;
        ++report.matvecs;
        space.scale(r, -1);
        space.axpy(r, 1, b);
        return ok(space.norm2(r, rho));
    }
    /// Records ||b - A x||, just computed; true if the solve has converged.
    [[nodiscard]] bool verified(double rho) noexcept {
        report.relative_residual = rho / b_norm;
        if (report.iterations == 0) report.recurrence_residual = report.relative_residual;
        return report.relative_residual <= options_.tolerance;
    }
    /// Records the recurrence's residual after an iteration; true if it reaches the tolerance.
    template <class Callback>
    [[nodiscard]] bool reached(double rho, Callback& on_iteration) {
        report.recurrence_residual = rho / b_norm;
        if (options_.keep_history) report.history.push_back(report.recurrence_residual);
        on_iteration(iteration_event{report.iterations, report.restarts, report.recurrence_residual});
        return report.recurrence_residual <= options_.tolerance;
    }

    /// The report of a solve with this status. The residual is kept only if it belongs to the returned x.
    [[nodiscard]] solve_report end(solve_status s, bool residual_is_true = true) {
        report.status = s;
        const bool worthless = s == solve_status::not_finite || s == solve_status::source_too_small ||
                               s == solve_status::unverified || s == solve_status::failed_communication;
        if (worthless || !residual_is_true) report.relative_residual = std::numeric_limits<double>::quiet_NaN();
        report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
        return std::move(report);
    }

  private:
    const solve_options& options_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

} // namespace halocline::solvers::detail
