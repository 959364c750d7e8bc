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

/// What multi_dot() of several vectors computes: products_i = <v_i, x>.
template <class V>
struct dot_request {
    std::span<const V> v;
    const V* x;
    std::span<complex> products;
};
/// A space whose sums serve several vectors at once. Solvers of several systems use them; with other spaces each system
/// has global sums of its own. The bits are those of multi_dot() and norm() of each vector.
template <class S, class V>
concept sums_of_several = vector_space<S, V> &&
    requires(S& space, std::span<const dot_request<V>> requests, std::span<const V* const> x, std::span<double> reals) {
    { space.multi_dot(requests) } -> std::same_as<comm::status>;
    /// reals_k = ||x_k||
    { space.norms(x, reals) } -> std::same_as<comm::status>;
};

/// y = A x. Collective; x and y are distinct.
template <class A, class V>
concept linear_operator = requires(A& a, V& y, const V& x) {
    { a(y, x) } -> std::same_as<comm::status>;
};

/// y_k = A x_k for up to most_systems vectors. Collective; all are distinct.
template <class A, class V>
concept operator_on_several = requires(A& a, std::span<V* const> y, std::span<const V* const> x) {
    { a(y, x) } -> std::same_as<comm::status>;
};
/// The most systems that one call solves.
inline constexpr int most_systems = 16;

/// z = M r with M close to the inverse of A; may differ from call to call, and must not read z.
template <class M, class V>
concept preconditioner = linear_operator<M, V>;

} // namespace halocline::solvers
