// SPDX-License-Identifier: Apache-2.0
// The options of a solve and its result. Not converging is a result, not an error; only options that no solve can be
// made with are refused.
#pragma once

#include <halocline/comm/status.hpp>

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace halocline::solvers {

/// How a solve ended; the same on every rank, because every decision is made from global sums.
enum class solve_status : std::uint8_t {
    converged,        ///< the true residual was computed and is <= tolerance; nothing else counts as converged
    unverified,       ///< the recurrence reached the tolerance; options.verify = false skipped the true residual
    max_iterations,   ///< the iterations ran out
    stagnated,        ///< no progress within options.stagnation_window iterations
    breakdown,        ///< the Krylov space closed without the solution, or rounding took over: A (or A M) is singular;
                      ///< of GMRES x is that before the last cycle, if the cycle made the residual grow
    not_finite,       ///< NaN or infinity in the data or the arithmetic; x is worthless
    source_too_small, ///< not 0, but residuals at the tolerance would lose digits to underflow; scale b
    failed_communication, ///< a peer died or a wait timed out: see solve_report::communication
};
std::string_view to_string(solve_status s); ///< the enumerator's name

/// Options that all solvers share.
struct solve_options {
    double tolerance = 1e-10;       ///< on ||b - A x|| / ||b||; 0 or more, or solvers throw input_error
    int max_iterations = 1000;      ///< over all restarts
    bool use_initial_guess = false; ///< start from the given x; false: from x = 0, which saves one matvec
    /// false (inner solves): stop on the recurrence, as solve_status::unverified. True residuals are then computed only
    /// where a cycle begins; the solve is called converged only if one of those meets the tolerance.
    bool verify = true;
    bool keep_history = true;  ///< false (inner solves): the solve allocates nothing at all
    int stagnation_window = 0; ///< stop after this many iterations without a gain of 10 %; 0: never
};

/// The result of a solve. Status, residuals and counts are the same on every rank; seconds are this rank's.
struct solve_report {
    solve_status status = solve_status::max_iterations;
    comm::status communication = comm::status::ok;
    int iterations = 0;
    int restarts = 0; ///< cycles begun after the first
    /// True ||b - A x|| / ||b|| of the returned x; NaN if it was not computed (unverified, failures).
    double relative_residual = std::numeric_limits<double>::quiet_NaN();
    double recurrence_residual = std::numeric_limits<double>::quiet_NaN(); ///< the last value from the recurrence
    int matvecs = 0;
    int preconditioner_applications = 0;
    int reorthogonalisations = 0;
    double seconds = 0; ///< from begin to end of this system; of several, with the steps of the others meanwhile
    std::vector<double> history; ///< relative recurrence residual after each iteration

    [[nodiscard]] bool converged() const { return status == solve_status::converged; }
};

/// The argument of callbacks, called after each iteration.
struct iteration_event {
    int iteration = 0; ///< 1, 2, ...
    int restart = 0;
    double residual = 0; ///< relative, by the recurrence
    int system = 0;      ///< which of several systems
};

/// The callback that does nothing.
struct silent {
    void operator()(const iteration_event&) const noexcept {}
};

namespace detail {

/// Detects that a residual has not fallen by 10 % for `window` iterations (0: never).
class stagnation_watch {
  public:
    explicit stagnation_watch(int window, double start, int iteration) noexcept
        : window_(window), best_(start), since_(iteration) {}
    /// Takes note of a residual; true if the last gain is `window` iterations old.
    [[nodiscard]] bool record(double residual, int iteration) noexcept {
        if (residual < 0.9 * best_) {
            best_ = residual;
            since_ = iteration;
        }
        return window_ > 0 && iteration - since_ >= window_;
    }

  private:
    int window_;
    double best_;
    int since_;
};

} // namespace detail
} // namespace halocline::solvers
