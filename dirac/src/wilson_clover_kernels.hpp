// SPDX-License-Identifier: Apache-2.0
// What wilson_clover.cpp (tables, exchange) and the SIMD kernels say to each other. Plain data: the kernels are
// compiled once per SIMD target, and nothing here may differ between targets.
#pragma once

#include <halocline/lattice/geometry.hpp>

#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace halocline::dirac::kernels {

/// Reals per site and direction of what the kernels read.
inline constexpr int spinor_reals = 24;
inline constexpr int half_spinor_reals = 12;
inline constexpr int link_reals = 18;
inline constexpr int site_link_reals = lattice::dimensions * link_reals;
/// Two Hermitian 6x6 matrices: each 6 diagonal reals, then (re, im) of the elements below it, row by row.
inline constexpr int chirality_reals = 36;
inline constexpr int site_clover_reals = 2 * chirality_reals;

inline constexpr int max_lanes = 16;
inline constexpr int max_splits = 4; ///< 2^4 lanes

/// One entry of gamma_mu, i^power in this column; there is one per row.
struct gamma_entry {
    int column;
    int power;
};
inline constexpr gamma_entry gamma[lattice::dimensions][4] = {
    {{2, 3}, {3, 1}, {0, 1}, {1, 3}},
    {{3, 2}, {2, 0}, {1, 0}, {0, 2}},
    {{3, 3}, {2, 3}, {1, 1}, {0, 1}},
    {{2, 2}, {3, 2}, {0, 2}, {1, 2}},
};

/// Where the neighbour of a site lies, seen from a group of blocks: the same for all groups.
struct hop {
    std::int32_t site;  ///< in the group; -1: outside the block in every lane
    std::int32_t split; ///< j: in lane ^ (1 << j), where that lane is of the same block; -1: in the same lane
};

template <class T>
using lane_integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

/// The blocks of one group, as the block kernels see them.
template <class T>
struct block_stencil {
    int sites = 0, even_sites = 0, splits_per_block = 1;
    std::vector<hop> hops; ///< [site][face]: behind face f of the site
    /// Partner lane of split j modulo the vector: [j][lane], for vectors of any size.
    alignas(64) std::array<std::array<lane_integer<T>, max_lanes>, max_splits> partner{};
    /// All bits set in the lanes whose neighbour across split plane j is inside the block: [j][low, high][lane].
    alignas(64) std::array<std::array<std::array<lane_integer<T>, max_lanes>, 2>, max_splits> inside{};
};

/// Sites whose half-spinors go into one table, W lanes at a time.
struct surface_sources {
    std::vector<std::int32_t> outer; ///< outer index of the field
    std::vector<std::int32_t> entry; ///< [.][lane]: place in the table, -1: nothing
    std::vector<std::int32_t> begin; ///< [group + 1]: first one of each group
};

/// Sites that take half-spinors from a local table (table 0) or from ghosts (table 1).
struct surface_targets {
    std::vector<std::int32_t> outer;
    std::vector<std::int32_t> entry; ///< [.][lane]: 2 * place + table; entry 0 of table 0 holds zeros
    std::vector<std::int32_t> begin; ///< [group + 1]: first one of each group
};

/// Kernels for one lane width on the SIMD target of this machine. `links` are the links times -1/2 (the factor of the
/// hopping term) with boundary signs, [outer][mu][18][W]. A face is that of the destination: high is psi(x+mu).
template <class T>
struct table {
    /// y = D_block x on one group.
    void (*apply)(const block_stencil<T>& s, const T* links, const T* clover, T* y, const T* x);
    /// wilson_clover::block_solve on one group. `schur` holds D_ee on even sites and -1/D_oo on odd ones; `work` is one
    /// group of spinors.
    void (*solve)(const block_stencil<T>& s, const T* links, const T* schur, T* x, T* r, T* e, T* work, int steps);
    /// Writes entries [first, last) of a table of half-spinors, as far as their sources are in groups [group, end): the
    /// hop's projection; backward also times the link.
    void (*produce[lattice::faces])(const surface_sources& s, int group, int end, const T* links, const T* x,
                                    T* entries, std::int64_t first, std::int64_t last);
    /// y += scale * hops from the tables, for targets in groups [group, end).
    void (*consume[lattice::faces])(const surface_targets& s, int group, int end, const T* links, T* y,
                                    const T* const (&tables)[2], T scale);
};

/// Pre: lane_width is 1, 4, 8 or 16.
template <class T>
table<T> for_lane_width(int lane_width);
template <>
table<float> for_lane_width<float>(int lane_width);
template <>
table<double> for_lane_width<double>(int lane_width);
/// Bytes of the vectors that the chosen target computes with.
int vector_bytes();

} // namespace halocline::dirac::kernels
