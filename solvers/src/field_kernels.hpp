// SPDX-License-Identifier: Apache-2.0
// Inner loops of field_space, compiled once per instruction set. They see plain arrays of reals: the position of the
// imaginary parts is the caller's business, so one loop serves every lane width.
#pragma once

#include <cstddef>

namespace halocline::solvers::kernels {

inline constexpr int group = 8; ///< maximum number of vectors per call

/// p[i] += sum_l v_i[l] w[l], q[i] += sum_l v_i[l] u[l] for i in [0, count), l in [0, n).
/// Eight partial sums each, whatever the instruction set.
void add_products(const float* const* v, int count, const double* w, const double* u, std::size_t n, double* p,
                  double* q) noexcept;
void add_products(const double* const* v, int count, const double* w, const double* u, std::size_t n, double* p,
                  double* q) noexcept;

/// s[l] += sum_i a_i v_i[l], t[l] += sum_i b_i v_i[l].
void accumulate(const float* const* v, int count, const float* a, const float* b, std::size_t n, float* s,
                float* t) noexcept;
void accumulate(const double* const* v, int count, const double* a, const double* b, std::size_t n, double* s,
                double* t) noexcept;

} // namespace halocline::solvers::kernels
