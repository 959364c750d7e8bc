// SPDX-License-Identifier: Apache-2.0
// The two colours of blocks, as on a chess board; no colour in the sense of SU(3).
#pragma once

#include <cstdint>

namespace halocline::dirac {

/// Blocks of a blocked site order (lattice::block_layout): all of them, those of its colour 0, those of its colour 1.
/// If there are no two colours, all blocks are red.
enum class block_colour : std::uint8_t { all, red, black };

} // namespace halocline::dirac
