// SPDX-License-Identifier: Apache-2.0
// SAP, the multiplicative Schwarz method on blocks of two colours: solve on all blocks of one colour, update the
// residual of the other, and so on. Ref: M. Luescher, Comput. Phys. Commun. 156 (2004) 209 [Luescher2003];
// [Frommer2014] sec. 2.
#pragma once

#include <halocline/comm/status.hpp>
#include <halocline/dirac/schwarz_blocks.hpp>
#include <halocline/lattice/field.hpp>

namespace halocline::amg {

/// If the blocks can't be given two colours (an odd number of blocks in some dimension), the method is additive: all
/// blocks at once.
class sap_smoother {
  public:
    /// `blocks` of D outlive the smoother.  `block_steps` minimal-residual steps per block and half sweep.
    /// Err: std::bad_alloc, on this rank.
    sap_smoother(dirac::schwarz_blocks<float>& blocks, int block_steps);

    /// `sweeps` sweeps on D x = b from x = 0.  Collective.
    /// Err: input_error: a field that D does not take; a bad status of an exchange.
    [[nodiscard]] comm::status from_zero(lattice::field<float>& x, const lattice::field<float>& b, int sweeps);
    /// `sweeps` sweeps on D x = b from the given x.  Collective; costs one more D.  Err: as from_zero().
    [[nodiscard]] comm::status improve(lattice::field<float>& x, const lattice::field<float>& b, int sweeps);
    [[nodiscard]] bool two_colours() const { return two_colours_; }

  private:
    void require(const lattice::field<float>& x, const lattice::field<float>& b) const;
    [[nodiscard]] comm::status sweep(lattice::field<float>& x, int sweeps);

    dirac::schwarz_blocks<float>* blocks_;
    int block_steps_;
    bool two_colours_;
    lattice::field<float> r_, e_; ///< residual of all blocks; last update
};

} // namespace halocline::amg
