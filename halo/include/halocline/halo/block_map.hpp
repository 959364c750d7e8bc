// SPDX-License-Identifier: Apache-2.0
// Linear maps of a site's reals, block by block: applied by packers before a site is sent (packer.hpp), and by
// unpackers after it has arrived (unpacker.hpp). In lattice QCD these are half-spinor projections and their adjoints.
#pragma once

#include <complex>
#include <string>
#include <vector>

namespace halocline::halo {

/// A linear map of the blocks of a site (a block is, for example, the colours of one spin):
/// out[r] = sum over terms t of row r of t.coefficient * in[t.block]. The reals of a block are pairs (re, im); a block
/// with an odd number of reals is allowed if all coefficients are real.
struct block_map {
    struct term {
        int block = 0;
        std::complex<double> coefficient = 1;
    };
    int block_reals = 0; ///< reals per block
    std::vector<std::vector<term>> rows{};

    [[nodiscard]] bool empty() const { return rows.empty(); }
    /// Number of reals in the result.
    [[nodiscard]] int reals() const { return block_reals * static_cast<int>(rows.size()); }
};

/// The conjugate transpose of a map of sites with `blocks` blocks: <map x, y> = <x, adjoint y>. The adjoint of a
/// half-spinor projection expands it: adjoint(map) after map is 1 -+ gamma_mu, if the first rows of map are those of
/// the unit matrix. Empty for an empty map.  Err: input_error: a term of a block that does not exist.
[[nodiscard]] block_map adjoint(const block_map& map, int blocks);

/// phase * map; if the map is empty, multiplication of sites of `reals` reals by the phase. Empty if that is the
/// identity.
[[nodiscard]] block_map with_phase(block_map map, std::complex<double> phase, int reals);

/// Checks that this is a map of sites with `reals` reals.  Err: input_error, whose text begins with `who`.
void check_map(const block_map& map, int reals, const std::string& who);

} // namespace halocline::halo
