// SPDX-License-Identifier: Apache-2.0
// Inner loops of aggregation and coarse operator, compiled once per instruction set and chosen at run time.
// Fine level: one group of lanes and one chirality at a time. A "block vector" is [12][W] reals per site: 6 complex
// components (re, im) of W lanes; site s of a view lies at data + s * stride.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace halocline::amg::kernels {

inline constexpr int most_right_hand_sides = 4; ///< of one dots()

/// Block vectors of one chirality in one group: a single one, its site s at data + s * stride, or several, vector i of
/// site s at data + s * stride + i * 12 W.
template <class T>
struct view {
    T* data;
    std::ptrdiff_t stride;
};

/// acc[(b * count + i)][2][W] += sum over the listed sites of conj(p_i) x_b, per lane (re, im).
/// Pre: 1 <= x.size() <= most_right_hand_sides.  Cost: reads p once for all x.
void dots(int w, view<const float> p, int count, std::span<const view<const float>> x,
          std::span<const std::int32_t> sites, float* acc) noexcept;

/// y_b = (keep ? y_b : 0) + sum_i c[b][i][2][W] p_i on sites [0, sites), coefficients per lane. The bits of one y don't
/// depend on the others.
/// Cost: reads p once for each two y, or one where there are only 16 SIMD registers.
void combine(int w, view<const float> p, int count, const float* c, std::span<const view<float>> y, int sites,
             bool keep) noexcept;

/// A dense complex n x n matrix for multiply(): panels of 16 rows (the last one of 8 if that is enough), each
/// [column][re, im][row]. SIMD lanes run over rows; one column of a panel is one or two cache lines.
constexpr std::size_t matrix_reals(int n) {
    return 2 * static_cast<std::size_t>(n) * ((static_cast<std::size_t>(n) + 7) / 8 * 8);
}
/// Where both parts of an element are among the reals of a matrix.
struct element_place {
    std::size_t real, imaginary;
};
constexpr element_place place_of_element(int n, int row, int column) {
    const int panel = row / 16, height = n - 16 * panel <= 8 ? 8 : 16;
    const std::size_t real =
        2 * static_cast<std::size_t>(16 * panel * n + column * height) + static_cast<std::size_t>(row % 16);
    return {real, real + static_cast<std::size_t>(height)};
}

/// One term of block-row products with one vector of each system: vector k is at vectors[k] + offset.
struct product {
    const float* matrix;         ///< matrix_reals(n)
    const float* const* vectors; ///< [n][re, im] each
    std::ptrdiff_t offset;
};
/// For each system k: y = (keep ? y : 0) + sum_t A_t v_tk, all complex, y = ys[k] + offset and v as [n][re, im]. The
/// bits of a system don't depend on the others.
/// Cost: reads every matrix once from memory; from cache once for each 4 systems, or 3 where there are only 16
/// SIMD registers.
void multiply(int n, std::span<const product> terms, std::span<float* const> ys, std::ptrdiff_t offset,
              bool keep) noexcept;

} // namespace halocline::amg::kernels
