// SPDX-License-Identifier: Apache-2.0
// What every solver does around its recurrence: the start from b and x, the true residual after each cycle, the record
// of an iteration, and the end. A solver's own file is left with the formulas of its paper.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/base/stopwatch.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/solvers/concepts.hpp>
#include <halocline/solvers/solve_report.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace halocline::solvers::detail {

/// How a recurrence ended between two computations of the true residual.
enum class cycle_end : std::uint8_t {
    length,               ///< it ran its length, or the iterations ran out
    reached,              ///< the recurrence is at the tolerance
    closed,               ///< A times the space adds nothing new: happy breakdown, or a singular system
    stuck,                ///< no progress within the stagnation window
    breakdown,            ///< no further step would change x
    not_finite,           ///< NaN or infinity
    failed_communication, ///< solve_report::communication says how
};

/// Stands for a solver that does not keep the x with which a cycle began.
struct keeps_no_start {
    bool operator()() const noexcept { return false; }
};

class solve_run {
  public:
    /// Err: input_error: a tolerance that no residual can be compared with.
    explicit solve_run(const solve_options& options)
        : options_(options), x_is_zero_(!options.use_initial_guess),
          cycles_(options.stagnation_window, std::numeric_limits<double>::infinity(), 0) {
        if (!(options.tolerance >= 0))
            throw input_error("solve_options::tolerance = " + std::to_string(options.tolerance) +
                              ": must be 0 or more");
        if (options.keep_history) report.history.reserve(std::clamp(options.max_iterations, 0, 10'000));
    }

    solve_report report;

    /// Records the status of a step; false: communication failed, so cycle_end::failed_communication is due.
    [[nodiscard]] bool ok(comm::status s) noexcept { return (report.communication = s) == comm::status::ok; }

    /// Solves A x = b: computes the true residual r = b - A x, lets cycle(||r||) improve x from it, and starts again,
    /// until the residual meets the tolerance or there is no point in going on.
    /// `cycle` returns a cycle_end, and may overwrite r. `undo` makes x what it was when the last cycle began, if that
    /// was not at x = 0; false: it can't. A last cycle that made the residual grow is undone when the solve is given
    /// up; an x that is worse than 0 becomes 0, if the solve began there.
    template <class V, vector_space<V> S, class A, class Cycle, class Undo = keeps_no_start>
    [[nodiscard]] solve_report repeat(S& space, A& a, const V& b, V& x, V& r, Cycle&& cycle, Undo&& undo = {}) {
        double rho = 0;
        if (!ok(space.norm(b, rho))) return end(solve_status::failed_communication);
        if (const auto over = begin(space, rho, x)) return end(*over);
        for (;;) {
            if (x_is_zero()) {
                space.copy(r, b);
            } else {
                if (!ok(a(r, x))) return end(solve_status::failed_communication);
                make_residual(space, r, b);
                if (!ok(space.norm(r, rho))) return end(solve_status::failed_communication);
            }
            if (const auto over = begin_cycle(space, rho, x, undo)) return end(*over);
            if (const auto over = end_cycle(cycle(rho))) return end(*over, false);
        }
    }

    // The steps of repeat(), for solvers of several systems. A value of type solve_status: the solve ends with it.

    /// Takes note of ||b||, and sets x = 0 unless it is the initial guess.
    template <class V, vector_space<V> S>
    [[nodiscard]] std::optional<solve_status> begin(S& space, double b_norm, V& x) {
        b_norm_ = b_norm;
        if (!options_.use_initial_guess || b_norm_ == 0)
            space.set_zero(x); // also if b has no norm: x may be an old one
        if (!std::isfinite(b_norm_)) return solve_status::not_finite;
        // The smallest residual that will be divided by and compared.
        const double least = b_norm_ * std::max<double>(S::epsilon, options_.tolerance);
        if (least >= S::least) return std::nullopt;
        if (b_norm_ > 0) return solve_status::source_too_small;
        report.relative_residual = report.recurrence_residual = 0; // A 0 = 0
        return solve_status::converged;
    }
    /// Is x = 0, so that the residual is b? Until the first cycle begins.
    [[nodiscard]] bool x_is_zero() const noexcept { return x_is_zero_; }
    /// r = b - r, where r holds A x.
    template <class V, vector_space<V> S>
    void make_residual(S& space, V& r, const V& b) {
        ++report.matvecs;
        space.scale(r, -1);
        space.axpy(r, 1, b);
    }
    /// Judges the true residual ||b - A x|| = rho. Without a value a cycle begins.
    template <class V, vector_space<V> S, class Undo>
    [[nodiscard]] std::optional<solve_status> begin_cycle(S& space, double rho, V& x, Undo&& undo) {
        if (!std::isfinite(rho)) return solve_status::not_finite;
        if (record_true_residual(rho)) return solve_status::converged;
        if (const auto over = take_note_of(rho)) {
            if (rho > last_start_) {
                if (from_zero_) space.set_zero(x);
                if (from_zero_ || undo()) report.relative_residual = last_start_ / b_norm_;
            }
            if (report.relative_residual > 1 && !options_.use_initial_guess) { // worse than nothing
                space.set_zero(x);
                report.relative_residual = 1;
            }
            return over;
        }
        if (report.iterations > 0) ++report.restarts;
        last_start_ = rho;
        if (first_ == std::numeric_limits<double>::infinity()) first_ = rho;
        from_zero_ = std::exchange(x_is_zero_, false);
        return std::nullopt;
    }
    /// Takes note of how a cycle ended. With a value the solve ends without another true residual.
    [[nodiscard]] std::optional<solve_status> end_cycle(cycle_end last) noexcept {
        last_ = last;
        return without_residual(last);
    }
    /// The report of a solve with this status. The residual is kept only if it belongs to the returned x.
    [[nodiscard]] solve_report end(solve_status s, bool residual_is_true = true) {
        report.status = s;
        const bool worthless = s == solve_status::not_finite || s == solve_status::source_too_small ||
                               s == solve_status::unverified || s == solve_status::failed_communication;
        if (worthless || !residual_is_true) report.relative_residual = std::numeric_limits<double>::quiet_NaN();
        report.seconds = watch_.seconds();
        return std::move(report);
    }

    /// Did the cycle under way, or the last one, begin at x = 0?
    [[nodiscard]] bool from_zero() const noexcept { return from_zero_; }
    /// True if no iteration is left.
    [[nodiscard]] bool used_up() const noexcept { return report.iterations >= options_.max_iterations; }
    /// Records the recurrence's residual after an iteration; true if it reaches the tolerance.
    template <class Callback>
    [[nodiscard]] bool record_iteration(double rho, Callback& on_iteration) {
        report.recurrence_residual = rho / b_norm_;
        if (options_.keep_history) report.history.push_back(report.recurrence_residual);
        on_iteration(iteration_event{report.iterations, report.restarts, report.recurrence_residual});
        return report.recurrence_residual <= options_.tolerance;
    }

  private:
    static constexpr double most_growth = 10; ///< of ||r|| in a cycle, or in all; near the last digit it may double

    /// Records ||b - A x||, just computed; true if the solve has converged.
    [[nodiscard]] bool record_true_residual(double rho) noexcept {
        report.relative_residual = rho / b_norm_;
        if (report.iterations == 0) report.recurrence_residual = report.relative_residual;
        return report.relative_residual <= options_.tolerance;
    }

    /// Takes note of a true residual of rho. A value: no cycle should begin there.
    [[nodiscard]] std::optional<solve_status> take_note_of(double rho) noexcept {
        if (last_ == cycle_end::stuck) return solve_status::stagnated;
        // a closed space that didn't contain the solution won't contain it next time
        if (last_ == cycle_end::breakdown || (last_ == cycle_end::closed && rho > 0.5 * last_start_))
            return solve_status::breakdown;
        // These methods never make a residual grow but by rounding. If A is singular, it may grow in each cycle.
        if (rho > most_growth * last_start_ || rho > most_growth * first_) return solve_status::breakdown;
        if (used_up()) return solve_status::max_iterations;
        if (cycles_.record(rho, report.iterations)) return solve_status::stagnated;
        return std::nullopt;
    }
    /// How the solve ends after this cycle without another true residual; empty: it doesn't.
    [[nodiscard]] std::optional<solve_status> without_residual(cycle_end last) const noexcept {
        const auto unless_verified = [&](solve_status s) { return options_.verify ? std::nullopt : std::optional(s); };
        switch (last) {
        case cycle_end::length: return used_up() ? unless_verified(solve_status::max_iterations) : std::nullopt;
        case cycle_end::reached: return unless_verified(solve_status::unverified);
        case cycle_end::closed:
        case cycle_end::breakdown: return std::nullopt;
        case cycle_end::stuck: return unless_verified(solve_status::stagnated);
        case cycle_end::not_finite: return solve_status::not_finite;
        case cycle_end::failed_communication: break;
        }
        return solve_status::failed_communication;
    }

    const solve_options& options_;
    double b_norm_ = 0; ///< ||b||
    cycle_end last_ = cycle_end::length;
    double last_start_ = std::numeric_limits<double>::infinity(); ///< ||r|| where the last cycle began
    double first_ = std::numeric_limits<double>::infinity();      ///< and where the first one did
    bool x_is_zero_, from_zero_ = false;
    stagnation_watch cycles_; ///< over true residuals
    stopwatch watch_;
};

} // namespace halocline::solvers::detail
