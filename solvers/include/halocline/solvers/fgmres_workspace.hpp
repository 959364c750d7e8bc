// SPDX-License-Identifier: Apache-2.0
// What FGMRES(m) and GMRES(m) are given besides b and x: options, and the vectors and small matrices of a solve.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/solvers/concepts.hpp>
#include <halocline/solvers/hessenberg.hpp>
#include <halocline/solvers/solve_report.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace halocline::solvers {

/// The numbers that the last iteration of a cycle sums: its products with m vectors and itself. A comm::global_sum that
/// holds fewer takes several sums for them. Of several systems that many each.
constexpr int values_per_sum(int restart_length) { return 2 * (restart_length + 1); }

/// Options of fgmres() and gmres().
struct fgmres_options : solve_options {
    int restart_length = 0; ///< m, at most that of the workspace; 0: that of the workspace
    /// Gram-Schmidt is repeated when the new direction keeps no more than this part of ||A z||. 1/sqrt(2) keeps the
    /// basis orthonormal to machine precision. Less saves global sums, but the basis loses its orthogonality, each time
    /// by a factor of up to 1 / this^2: see `orthogonality`.
    double reorthogonalise_below = 0.7071;
    /// Gram-Schmidt is also repeated before an estimate of what V^H V differs from 1, some ten times too high, exceeds
    /// this: the tolerance costs no iteration. 0: there is no estimate.
    double orthogonality = 0;
    /// c: A z_j is nearly c v_j, because M is close to the inverse of A / c. Then Gram-Schmidt, which would leave little of
    /// A z_j, need not be repeated: it begins with A z_j - c v_j. Where A z_j is much smaller than c that loses digits.
    double expected = 0;
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

} // namespace halocline::solvers
