// SPDX-License-Identifier: Apache-2.0
// Which rank takes which place of the rank grid, so that few bytes of an exchange leave a node.
// Knows no communication: nodes are given as numbers, equal for ranks that share a node.
#pragma once

#include <halocline/lattice/decomposition.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace halocline::lattice {

/// Sites that all ranks together send to other nodes in one exchange of one layer over every face.
/// Shape: nodes[rank].  Pre: one node per rank.  Err: input_error otherwise.  Cost: O(ranks).
std::int64_t off_node_sites(const decomposition& cut, std::span<const int> nodes);

/// An order of the ranks, for decomposition::with_rank_order(), that sends few sites to other nodes. Never more than
/// the lexicographic order does, which is also the answer where nothing is gained. A function of its arguments only:
/// ranks that agree on them agree on the order.
/// Starts from the lexicographic order, from every tiling of the rank grid by equal boxes of one node each (if nodes
/// have equally many ranks) and from nodes grown rank by rank from some places; in each (of more than 256 ranks: in the
/// best), ranks of different nodes change places while that gains something; the best is taken. So no equal boxes are
/// better; the least of all orders it need not be. The ranks of one node keep their order among themselves.
/// Shape: nodes[rank]; the result is by place, x fastest.  Err: input_error as above.
/// Cost: O(ranks x ranks of the largest node) per sweep of changes, a few sweeps; memory O(ranks).
/// Ref: W. D. Gropp, Using node and socket information to implement MPI Cartesian topologies, Parallel Computing 85
/// (2019); B. W. Kernighan, S. Lin, An efficient heuristic procedure for partitioning graphs, Bell Syst. Tech. J. 49
/// (1970).
std::vector<int> rank_order_by_nodes(const decomposition& cut, std::span<const int> nodes);

} // namespace halocline::lattice
