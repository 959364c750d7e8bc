// SPDX-License-Identifier: Apache-2.0
// The two-level hierarchy: one cycle is restrict -> coarse solve -> prolong -> post-smooth, all in fp32. The set-up
// finds the aggregation by inverse iteration, bootstrapped from smoothed random vectors that are keyed by (seed,
// vector, global site), so the hierarchy never depends on ranks. Ref: [Frommer2014] algorithm 2, sec. 3.
#pragma once

#include <halocline/amg/aggregation.hpp>
#include <halocline/amg/coarse_operator.hpp>
#include <halocline/amg/options.hpp>
#include <halocline/amg/sap_smoother.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/dirac/schwarz_blocks.hpp>
#include <halocline/dirac/wilson_clover.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/solvers/fgmres_workspace.hpp>
#include <halocline/solvers/field_space.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace halocline::amg {

/// D_c x = b to low accuracy: GMRES, on the Schur complement of the even sites if the coarse lattice has parities.
class coarse_solver {
  public:
    /// `d` outlives the solver. Collective.
    /// `rank_order`: of d's decomposition, for the global sums.
    /// `systems`: the most that one call solves. `d` was made for as many, or more.
    /// Err: on every rank: out_of_memory; job_error.
    coarse_solver(const comm::job& j, coarse_operator& d, const solver_options& options,
                  std::span<const int> rank_order = {}, int systems = 1);

    /// Collective.  Pre: d is defined, and its odd sites inverted.  Reaching the iteration limit is not a failure here;
    /// NaN and infinity, in b or met on the way, make an x of NaN, which the outer solver notices.
    [[nodiscard]] comm::status operator()(lattice::field<float>& x, const lattice::field<float>& b) {
        return (*this)({&x, 1}, {&b, 1});
    }
    /// Several in lockstep: the bits of each are those that it has alone.
    /// Err: input_error: none, more than `systems`, or another number of x than of b.
    [[nodiscard]] comm::status operator()(std::span<lattice::field<float>> x, std::span<const lattice::field<float>> b);

    /// Costs since the last reset, seconds and counts of this rank.
    [[nodiscard]] coarse_costs costs() const;
    void reset_costs();

  private:
    /// GMRES on the half or full fields.
    [[nodiscard]] comm::status iterate(std::span<lattice::field<float>> x, std::span<const lattice::field<float>> b);

    coarse_operator* d_;
    comm::global_sum sum_;
    solvers::fgmres_options options_;
    solvers::field_space<float> space_;
    std::vector<solvers::fgmres_workspace<lattice::field<float>>> work_; ///< of each system
    std::vector<lattice::field<float>> b_, x_;                           ///< half fields of each system
    std::vector<solvers::solve_report> reports_;
    coarse_costs costs_;
};

/// The preconditioner: a smoother on the blocks of an operator D, and one coarse level.
class two_level {
  public:
    /// `blocks` of D outlive the hierarchy; `cut` is D's, on block boundaries. Collective.
    /// Err: on every rank: input_error (cuts inside blocks; options.coarse_level, and too many vectors for a block);
    /// out_of_memory; job_error.
    two_level(const comm::job& j, const lattice::decomposition& cut, dirac::schwarz_blocks<float>& blocks,
              const solver_options& options);
    two_level(const two_level&) = delete;

    /// Test vectors, aggregation, coarse operator. Collective.
    /// Err: on every rank: input_error (a vector of norm 0 or NaN, dependent vectors, singular diagonal block);
    /// out_of_memory; job_error.
    void setup(const progress_callback& tell = {});

    /// x = one cycle on D x = b.  Collective.  Pre: setup().
    /// Err: input_error: a field that D does not take; none, more than options.at_once, or another number of x than of
    /// b; a bad status of an exchange or a sum.
    [[nodiscard]] comm::status cycle(lattice::field<float>& x, const lattice::field<float>& b) {
        return cycle({&x, 1}, {&b, 1});
    }
    /// One cycle on each of several systems, up to options.at_once. They share the coarse level's messages and sums;
    /// the bits of each are those that it has alone.
    [[nodiscard]] comm::status cycle(std::span<lattice::field<float>> x, std::span<const lattice::field<float>> b);

    [[nodiscard]] const comm::job& job() const { return job_; }
    [[nodiscard]] aggregation& interpolation() { return p_; }
    [[nodiscard]] coarse_operator& coarse() { return dc_; }
    [[nodiscard]] coarse_solver& coarse_level() { return solve_; }
    /// Fall-backs, one line each.
    [[nodiscard]] std::vector<std::string> notes() const;

  private:
    void random_spinor(std::int64_t site, std::uint32_t number, std::span<float> spinor) const;
    void random_vector(lattice::field<float>& v, std::uint32_t number) const;
    void normalise(std::span<lattice::field<float>> vectors);
    void make_coarse_level(coarse_operator::workspace& work);
    void check(comm::status s, const char* what) const;

    comm::job job_;
    solver_options options_;
    lattice::coordinate global_{};
    lattice::box local_;
    dirac::wilson_clover<float>* d_;
    lattice::decomposition coarse_cut_;
    aggregation p_;
    coarse_operator dc_;
    coarse_solver solve_;
    sap_smoother smooth_;
    comm::global_sum sum_;
    solvers::field_space<float> space_;
    std::vector<lattice::field<float>> test_vectors_;
    std::int64_t replaced_columns_ = 0;          ///< in P; of all ranks once setup() is through
    std::vector<lattice::field<float>> xc_, bc_; ///< of each system
};

} // namespace halocline::amg
