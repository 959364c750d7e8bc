// SPDX-License-Identifier: Apache-2.0
// What a Krylov solver needs to know about vectors and operators, and nothing more. Vectors V are opaque; a space S
// does the arithmetic. Everything that can fail in a job (global sums, operators with halos) returns comm::status,
// which solvers pass on as solve_status::failed_communication. Inner product everywhere: <a, b> = sum_i conj(a_i) b_i,
// accumulated in fp64, the same bits on every rank.
#pragma once

#include <halocline/comm/status.hpp>

#include <complex>
#include <concepts>
#include <span>

namespace halocline::solvers {

using complex = std::complex<double>;

/// The arithmetic on vectors V. Only make() allocates; the rest is noexcept in spirit and allocation-free.
/// Distinct arguments don't overlap, except that a basis may contain w (multi_dot only reads).
template <class S, class V>
concept vector_space = std::movable<V> &&
    requires(S& space, V& y, const V& x, std::span<const V> basis, complex a, double alpha, double& real,
             std::span<const complex> coefficients, std::span<complex> products) {
    { S::epsilon } -> std::convertible_to<double>;   ///< unit roundoff of what a vector stores
    { S::least } -> std::convertible_to<double>;     ///< the smallest normal number of what a vector stores
    { space.make() } -> std::same_as<V>;             ///< a new zero vector
    { space.set_zero(y) } -> std::same_as<void>;     ///< y = 0
    { space.copy(y, x) } -> std::same_as<void>;      ///< y = x
    { space.scale(y, alpha) } -> std::same_as<void>; ///< y = alpha y
    { space.axpy(y, a, x) } -> std::same_as<void>;   ///< y += a x
    /// y = alpha y + sum_i c_i v_i in one pass.
    { space.combine(y, alpha, coefficients, basis) } -> std::same_as<void>;
    /// products_i = <v_i, x>, in one global sum if it holds them all.
    { space.multi_dot(basis, x, products) } -> std::same_as<comm::status>;
    /// real = ||x||; correct (not 0 or inf) where only the squares would under- or overflow.
    { space.norm(x, real) } -> std::same_as<comm::status>;
};

/// y = A x. Collective; x and y are distinct.
template <class A, class V>
concept linear_operator = requires(A& a, V& y, const V& x) {
    { a(y, x) } -> std::same_as<comm::status>;
};

/// z = M r with M close to the inverse of A; may differ from call to call, and must not read z.
template <class M, class V>
concept preconditioner = linear_operator<M, V>;

} // namespace halocline::solvers
