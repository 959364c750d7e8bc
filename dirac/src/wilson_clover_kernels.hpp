// SPDX-License-Identifier: Apache-2.0
// The interface between wilson_clover.cpp (tables, exchange) and the SIMD kernels. Plain data: the kernels are compiled
// once per SIMD target, and nothing here may differ between targets.
#pragma once

#include <halocline/lattice/geometry.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace halocline::dirac::kernels {

/// Reals per site (and direction, for links) in the kernels' data.
inline constexpr int spinor_reals = 24;
inline constexpr int half_spinor_reals = 12;
inline constexpr int link_reals = 18;
inline constexpr int site_link_reals = lattice::dimensions * link_reals;
/// Two Hermitian 6x6 matrices: each 6 diagonal reals, then (re, im) of the elements below it, row by row.
inline constexpr int chirality_reals = 36;
inline constexpr int site_clover_reals = 2 * chirality_reals;

inline constexpr int max_lanes = 16;
inline constexpr unsigned all_faces = (1U << lattice::faces) - 1;

/// Dimension of a face or hop, by its index.
constexpr int direction(int face) { return face / 2; }
/// True for the hop from psi(x + mu), over the high face.
constexpr bool forward(int face) { return face % 2 == 1; }

/// The only entry of a row of gamma_mu: i^power in this column.
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

/// Where the neighbour of a site lies in its group; the same for all groups. In the kernels `site` is an outer index
/// within a group, [0, block_stencil::sites).
struct hop {
    std::int32_t site;
    bool same_lane; ///< false: the hop leaves the lane's sub-box; lane_sources say which lanes it comes from
};

template <class T>
using lane_integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

/// Lanes of one vector that come from the lanes of another one.
template <class T>
struct lane_source {
    std::int32_t group, vector;                                 ///< of the source
    alignas(64) std::array<lane_integer<T>, max_lanes> lane{};  ///< [lane]: lane of the source vector
    alignas(64) std::array<lane_integer<T>, max_lanes> taken{}; ///< [lane]: all bits set; or 0: this lane takes nothing
};

/// The sources of each vector over each face: one per different source vector, mostly none or one.
template <class T>
struct lane_sources {
    int vectors = 1;                 ///< that hold a group's lanes
    std::vector<std::int32_t> begin; ///< [(group * faces + face) * vectors + vector], and the end
    std::vector<lane_source<T>> sources;

    [[nodiscard]] std::span<const lane_source<T>> of(int group, int face, int vector) const {
        const auto at = static_cast<std::size_t>((group * lattice::faces + face) * vectors + vector);
        return {sources.data() + begin[at], sources.data() + begin[at + 1]};
    }
};

/// The blocks of one group, as the block kernels see them.
template <class T>
struct block_stencil {
    int sites = 0, even_sites = 0, splits_per_block = 1;
    std::vector<hop> hops;          ///< [site][face]: behind face f of the site
    std::vector<std::int32_t> walk; ///< all sites in lexicographic order, so that neighbours follow soon
    lane_sources<T> inside;         ///< for hops between the lanes of a split block; one group stands for all

    [[nodiscard]] const hop& hop_of(int site, int face) const {
        return hops[static_cast<std::size_t>(site) * lattice::faces + static_cast<std::size_t>(face)];
    }
};

/// Sites whose half-spinors go into one message, W lanes at a time.
struct surface_sources {
    std::vector<std::int32_t> outer; ///< outer index of the field
    std::vector<std::int32_t> entry; ///< [.][lane]: index in the message, -1: nothing
    std::vector<std::int32_t> begin; ///< [group + 1]: the first of each group
};

/// Sites that take half-spinors from the ghosts behind one face.
struct surface_targets {
    std::vector<std::int32_t> outer;
    std::vector<std::int32_t> entry; ///< [.][lane]: index among the ghosts, -1: nothing
    std::vector<std::int32_t> begin; ///< [group + 1]: the first of each group
};

/// Kernels for one lane width on the SIMD target of this machine. `links` are the links times -1/2 (the factor of the
/// hopping term) with boundary signs, [outer][mu][18][W]. A face is that of the destination: high is psi(x+mu).
template <class T>
struct table {
    int vectors; ///< number that hold the lanes of one outer index
    /// y = D x on one group, restricted to its blocks; with `between` also the hops from other blocks of this rank.
    /// Fields begin with group 0. `fetch`: they are in memory rather than in a cache, and are prefetched.
    void (*apply)(const block_stencil<T>& s, const lane_sources<T>* between, int group, const T* links, const T* clover,
                  T* y, const T* x, bool fetch);
    /// y += scale * hops over the faces in `mask` from other blocks of this rank, on one group.
    void (*add_between)(const block_stencil<T>& s, const lane_sources<T>& between, unsigned mask, int group,
                        const T* links, T* y, const T* x, T scale);
    /// schwarz_blocks::solve() on one group. `schur` holds D_ee on even sites and -1/D_oo on odd ones; `work` is one
    /// group of spinors. `fetch_next`: another group follows in memory, and is prefetched meanwhile.
    void (*solve)(const block_stencil<T>& s, const T* links, const T* schur, T* x, T* r, T* e, T* work, int steps,
                  bool fetch_next);
    /// Writes entries [first, last) of a message of half-spinors whose sources are in groups [group, end): the hop's
    /// projection; backward also times the link.
    void (*produce[lattice::faces])(const surface_sources& s, int group, int end, const T* links, const T* x,
                                    T* entries, std::int64_t first, std::int64_t last);
    /// y += scale * hops from the ghosts, for targets in groups [group, end).
    void (*consume[lattice::faces])(const surface_targets& s, int group, int end, const T* links, T* y, const T* ghosts,
                                    T scale);
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
