// SPDX-License-Identifier: Apache-2.0
// D x = b for the Wilson-clover operator: FGMRES in fp64, preconditioned by a two-level multigrid in fp32.
// Fields of callers are lexicographic; internally both precisions share one blocked site order, so that the change of
// precision is element by element. Ref: [Frommer2014].
#pragma once

#include <halocline/amg/options.hpp>
#include <halocline/amg/two_level.hpp>
#include <halocline/base/error.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/schwarz_blocks.hpp>
#include <halocline/dirac/wilson_clover.hpp>
#include <halocline/dirac/wilson_parameters.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/solvers/fgmres_workspace.hpp>
#include <halocline/solvers/field_space.hpp>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace halocline::amg {

/// These links and parameters allow no hierarchy: test vectors vanish, overflow or depend on each other, or a diagonal
/// block of the coarse operator is singular, which shows only in the set-up, after hours perhaps; or the operator's
/// site-local term is.
class no_hierarchy : public input_error {
    using input_error::input_error;
};

/// The solver for one gauge configuration and one set of parameters: setup() once, then solve() for each right-hand
/// side, or for several at once.
class solver {
  public:
    /// Collective.
    /// Err: on every rank: no_hierarchy: the operator's site-local term is singular, as for m0 = -4 and csw = 0;
    /// input_error (an option out of range, or that differs between ranks; links and parameters that
    /// dirac::wilson_clover refuses; cuts inside blocks, with the rank grids that would do; a cut over another
    /// number of ranks; blocks that don't divide the lattice; too many vectors for a block); out_of_memory, slab_full;
    /// job_error.
    solver(const comm::job& j, const lattice::decomposition& cut, const dirac::padded_links& links,
           const dirac::wilson_parameters& p, const solver_options& options = {});

    /// Called at each step of setup() and solve(), on every rank; must not throw.
    void on_progress(progress_callback tell) { tell_ = std::move(tell); }

    /// Builds the hierarchy. Collective.
    /// Err: on every rank no_hierarchy, which names m0 and csw; out_of_memory; job_error.
    void setup();

    /// Solves D x = b, from x = 0 or from what x holds, such as the solution of a solve that ran out of iterations.
    /// Collective.  Shape: lexicographic, 24 components.  Pre: setup().
    /// Not converging is a result, not an error.
    /// Err: on every rank: input_error: no setup(), or the last one failed; a field of another shape, or another
    /// initial guess, on any rank; job_error.
    solver_report solve(lattice::field<double>& x, const lattice::field<double>& b,
                        initial_guess guess = initial_guess::zero);
    /// Solves D x_k = b_k for several right-hand sides, options.at_once of them in lockstep: each has the bits that it
    /// has alone. Returns a report for each.  Collective.
    /// Shape: as many x as b, on every rank; no x is another system's x or b.
    /// Err: as above, and input_error for another number or such an x, before the first is solved for; out_of_memory.
    /// Memory: for each that is iterated at once (2 * restart_length + 4) * 192 bytes per site, kept for later calls.
    std::vector<solver_report> solve(std::span<lattice::field<double>* const> x,
                                     std::span<const lattice::field<double>* const> b,
                                     initial_guess guess = initial_guess::zero);

    /// The most right-hand sides that are iterated together.
    [[nodiscard]] int at_once() const { return options_.at_once; }
    [[nodiscard]] const lattice::coordinate& blocks() const { return d_.order()->blocks()->block; }

  private:
    /// What each right-hand side needs that is iterated with others. Fields are blocked.
    struct system {
        solvers::fgmres_workspace<lattice::field<double>> work;
        lattice::field<double> x, b;
    };
    using fields = std::span<lattice::field<double>* const>;
    using const_fields = std::span<const lattice::field<double>* const>;

    /// Makes room for so many right-hand sides at once. On this rank.
    void make_room(std::size_t systems);
    /// Err: input_error: before setup(); fields of another shape, or shared by systems. On this rank.
    void check_call(fields x, const_fields b) const;
    [[nodiscard]] solvers::fgmres_options outer_options(initial_guess guess) const;
    /// Solves for up to options.at_once right-hand sides; they have a report each.
    void solve_together(fields x, const_fields b, std::span<solver_report> reports, initial_guess guess);
    comm::status precondition(fields z, const_fields r);
    /// Fills in what is of all right-hand sides together: seconds, costs, notes.
    void report_costs(double solve_seconds, std::span<solver_report> reports);

    comm::job job_;
    solver_options options_;
    double m0_, csw_;
    dirac::wilson_clover<double> d_;
    dirac::wilson_clover<float> d32_;
    dirac::schwarz_blocks<float> blocks_; ///< of d32_
    two_level hierarchy_;
    comm::global_sum sum_;
    solvers::field_space<double> space_;
    std::vector<system> systems_;
    std::vector<lattice::field<float>> x32_, b32_; ///< of each system
    progress_callback tell_;
    bool is_set_up_ = false;
    double setup_seconds_ = 0;
};

} // namespace halocline::amg
