// SPDX-License-Identifier: Apache-2.0
// Choices and results of the multigrid solver of [Frommer2014]. Default numbers are those of DDalphaAMG's sample input.
// On a lattice so small that default_blocks() have fewer than 5 sites they are refused: take at most most_vectors().
#pragma once

#include <halocline/comm/transport_counts.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/solvers/concepts.hpp>
#include <halocline/solvers/fgmres_workspace.hpp>
#include <halocline/solvers/solve_report.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace halocline::amg {

/// Block extents: per dimension the first of 4, 3, 5, 2, 7, 11, 13 and so on (primes) that divides the extent into an
/// even number of blocks, or an odd extent into an odd number; 2 if the extent is 2.
lattice::coordinate default_blocks(const lattice::coordinate& global);

/// The largest number of test vectors that a block has room for: complex components of one chirality on its sites.
std::int64_t most_vectors(const lattice::coordinate& block);

/// GMRES sums all products with its basis in one global_sum, two numbers per vector.
inline constexpr int longest_restart = 510;

/// The numbers that a global_sum for a solve should hold: those of the last iteration of all systems, but never more
/// than a sum can hold.
constexpr int values_per_sum(int restart_length, int systems) {
    return std::min(systems * solvers::values_per_sum(restart_length), solvers::values_per_sum(longest_restart));
}

/// The values that solver accepts of an option: in [least, most].
template <class T>
struct option_range {
    T least, most;
};
/// Those of solver_options.
struct option_ranges {
    option_range<int> vectors{1, 5460}; ///< more, and the matrices of a coarse site have more than 2^31 numbers
    option_range<int> setup_iterations{0, 1'000'000};
    option_range<int> sweeps{1, 1'000'000};
    option_range<int> block_steps{1, 1'000'000};
    option_range<int> restart_length{1, longest_restart}; ///< also of coarse_restart_length
    option_range<int> max_restarts{1, 1'000'000};         ///< also of coarse_max_restarts
    option_range<int> max_iterations{0, std::numeric_limits<int>::max()};
    option_range<int> at_once{1, solvers::most_systems};
    option_range<double> tolerance{1e-300, 1}; ///< also of coarse_tolerance
};
inline constexpr option_ranges ranges{};

/// The sizes of the fewest groups of at most `most`, as equal as can be, the largest first: 6 are 3 and 3 of at most 4.
/// None for a count of 0.  Pre: count >= 0, most >= 1.
std::vector<int> even_groups(int count, int most);

/// Each in its range (ranges). Equal on every rank, except for lane_width.
struct solver_options {
    std::optional<lattice::coordinate> blocks{}; ///< extents of Schwarz blocks and aggregates; none: default_blocks()
    int vectors = 28;         ///< test vectors, at most most_vectors() if coarse_level; N_c = 2 * vectors
    int setup_iterations = 4; ///< inverse iterations, each with the multigrid of the previous step
    int sweeps = 2;           ///< SAP sweeps, after the coarse-grid correction
    int block_steps = 4;      ///< minimal residual steps per block solve
    double coarse_tolerance = 5e-2;
    int coarse_restart_length = 100;
    int coarse_max_restarts = 5; ///< at most coarse_max_restarts * coarse_restart_length iterations
    bool coarse_level = true;    ///< false: only the smoother
    std::uint64_t seed = 1;      ///< for the random test vectors
    /// Right-hand sides that solve() iterates together, and test vectors in the set-up. They share global sums, the
    /// coarse level's messages, and the reading of D_c and P. Each right-hand side needs a basis of its own for the
    /// outer solver, made when it is first needed. Changes no bits.
    int at_once = 8;
    int lane_width = 0; ///< sites per SIMD group, 1, 4, 8 or 16; 0: dirac::preferred_lane_width()

    double tolerance = 1e-10; ///< for the true relative residual
    int restart_length = 50;  ///< for the outer FGMRES
    int max_restarts = 20;
    int max_iterations = 0;       ///< 0: max_restarts * restart_length
    bool stagnation_stop = false; ///< give up after restart_length iterations without a gain of 10 %
};

/// What a solve starts from: 0, or the values of x.
enum class initial_guess : std::uint8_t { zero, x };
constexpr std::string_view to_string(initial_guess guess) { return guess == initial_guess::zero ? "zero" : "x"; }

/// The argument of progress callbacks: for each test vector and iteration of the set-up, each outer iteration of a
/// solve.
struct progress {
    enum class phase : std::uint8_t { initial_vectors, setup_iteration, solve };
    phase where{};
    int step = 0;           ///< 1, 2, ...
    int steps = 0;          ///< in the set-up; 0 while solving
    double residual = 0;    ///< relative, of the solve; of several the largest
    int systems = 1;        ///< right-hand sides that took this step together: those that were not yet solved for
    bool milestone = false; ///< worth a line in a log: the end of a set-up step, every outer iteration
};
/// One line, without a line feed: "set-up: iteration 2 of 4", "iteration 7: residual 1.200e-05", or, of several
/// right-hand sides, "iteration 7: residuals of 4 solves up to 1.200e-05".
std::string to_string(const progress& p);
using progress_callback = std::function<void(const progress&)>;

/// Where the time below the finest level went, during one solve, or one of several right-hand sides at once.
struct coarse_costs {
    std::uint64_t solves = 0;     ///< of coarse systems: one in each outer iteration of each system
    std::uint64_t iterations = 0; ///< in all of them
    std::uint64_t unsolved =
        0;              ///< of the solves: ended above the coarse tolerance, by the limit of iterations or a breakdown
    double seconds = 0; ///< everything below the finest level
    double halo_seconds = 0; ///< inside start, test and finish of the coarse plans: pack + wait + unpack
    double pack_seconds = 0;
    double wait_seconds = 0;
    double unpack_seconds = 0;
    double imbalance_seconds = 0; ///< part of the wait before the peer had started
    double global_sum_seconds = 0;
    double on_chip_seconds = 0; ///< the rest: arithmetic and memory traffic
    std::uint64_t exchanges = 0;
    std::uint64_t global_sums = 0;
    std::uint64_t global_sum_bytes = 0;
    std::vector<comm::transport_counts> by_transport; ///< this rank's messages and bytes, per transport
};

/// Each of the seconds is the maximum over ranks, so parts may add up to more than the whole: the rank that computes
/// longest waits least. Counts and bytes are this rank's.
struct solver_report {
    solvers::solve_report outer; ///< of the FGMRES in fp64; `relative_residual` is the true one
    double setup_seconds = 0;
    int at_once = 1; ///< right-hand sides that were iterated together: the following is of all of them
    double solve_seconds = 0;
    coarse_costs coarse;
    std::vector<std::string> notes; ///< fall-backs, one line each

    /// True only if the true residual was computed and meets the tolerance.
    [[nodiscard]] bool converged() const { return outer.converged(); }
    /// Coarse iterations per outer iteration, of all right-hand sides that were iterated together.
    [[nodiscard]] double coarse_iterations_average() const {
        return coarse.solves > 0 ? static_cast<double>(coarse.iterations) / static_cast<double>(coarse.solves) : 0;
    }
};

} // namespace halocline::amg
