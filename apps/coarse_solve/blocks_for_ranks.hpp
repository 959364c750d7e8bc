// SPDX-License-Identifier: Apache-2.0
// Advice for a refusal: Schwarz blocks that a number of ranks could share.
#pragma once

#include <halocline/lattice/geometry.hpp>

#include <optional>

namespace halocline::app {

/// Blocks of which `ranks` ranks can own whole ones and which have room for `vectors` test vectors: first with room for
/// twice as many, then the least elongated, then with an even number of blocks in the most dimensions (SAP colours them
/// alternately), then the largest. Extents are 1 to 5, or the lattice's. None if there are no such blocks.
std::optional<lattice::coordinate> blocks_for_ranks(const lattice::coordinate& global, int ranks, int vectors);

} // namespace halocline::app
