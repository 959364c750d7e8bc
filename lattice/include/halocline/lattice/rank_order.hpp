// SPDX-License-Identifier: Apache-2.0
// Which rank takes which place of the rank grid: so that few bytes of an exchange leave a node, or as MPI numbers the
// ranks of a Cartesian communicator.
// Involves no communication: nodes are given as numbers, equal for ranks that share a node.
#pragma once

#include <halocline/lattice/decomposition.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace halocline::lattice {

/// Sites that all ranks together send to other nodes when they exchange one layer over every face.
/// Shape: nodes[rank], one entry per rank.  Err: input_error otherwise.  Cost: O(ranks).
std::int64_t off_node_sites(const decomposition& cut, std::span<const int> nodes);

/// An order of the ranks, for decomposition::with_rank_order(), that sends few sites to other nodes: never more than
/// the lexicographic order, which is returned if nothing is gained. It depends only on the arguments, so ranks that
/// agree on them agree on the order. The ranks of one node keep their order among themselves.
/// Method: start from the lexicographic order, from every tiling of the rank grid by equal boxes of one node each (if
/// all nodes have the same number of ranks), and from nodes grown rank by rank from several places. In each of these
/// (with more than 256 ranks: only in the best) let ranks of different nodes swap places as long as that gains
/// something. Take the best. So the result is at least as good as any tiling by equal boxes, but not necessarily the
/// optimum.
/// Shape: nodes[rank]; the result is by place, x fastest.  Err: input_error as above.
/// Cost: O(ranks x ranks of the largest node) per sweep of changes, a few sweeps; memory O(ranks).
/// Ref: [Gropp2019], [KernighanLin1970].
std::vector<int> rank_order_by_nodes(const decomposition& cut, std::span<const int> nodes);

/// The order of the ranks, for decomposition::with_rank_order(), in which they count with the last dimension fastest, as
/// MPI numbers a Cartesian communicator of these dimensions, x, y, z, t. Then grid_position(rank) is what
/// MPI_Cart_coords says of rank. Where the communicator's dimensions are t, z, y, x, no order is needed: its last
/// dimension is x, and runs fastest here too; only its coordinates have to be reversed.
/// Shape: the result is by place, x fastest.  Err: input_error: an extent below 1; more ranks than an int can count.
/// Cost: O(ranks).
std::vector<int> row_major_rank_order(const coordinate& rank_grid);

} // namespace halocline::lattice
