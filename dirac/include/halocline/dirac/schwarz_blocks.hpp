// SPDX-License-Identifier: Apache-2.0
// The Wilson-clover operator as Schwarz methods use it: solves inside blocks, and hops that leave blocks of one colour.
// Ref: [Luescher2003, Frommer2014].
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/dirac/block_colour.hpp>
#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/wilson_clover.hpp>
#include <halocline/lattice/field.hpp>

#include <memory>

namespace halocline::dirac {

/// Odd-even preconditioning needs the inverse of the site-local term, 4 + m0 + clover, on a site where there is none.
class singular_local_term : public input_error {
    using input_error::input_error;
};

/// The blocks of the site order of an operator D. Fields are those that D takes.
template <class T>
class schwarz_blocks {
    struct impl;

  public:
    /// Collective.  `d` outlives it and stays where it is; `links` are those that it was made of.
    /// Err: on every rank: input_error: links of another cut; singular_local_term: the term is singular on a site where
    /// solve() needs its inverse, as for m0 = -4 and csw = 0; out_of_memory; job_error.
    /// Memory: 72 reals per site.
    schwarz_blocks(wilson_clover<T>& d, const padded_links& links);
    ~schwarz_blocks();
    schwarz_blocks(schwarz_blocks&&) noexcept;

    [[nodiscard]] wilson_clover<T>& d() const;

    /// wilson_clover::start_surface() for sources in blocks of one colour: half the bytes.
    /// Pre: the last surface of the same colour is finished.
    [[nodiscard]] typename wilson_clover<T>::surface start_surface(const lattice::field<T>& x,
                                                                   block_colour sources) noexcept;

    /// Odd-even (Schur) minimal residual inside every block of this colour: `steps` steps on D_block e = r, started from
    /// e = 0; x += e; on return r holds the remaining block residual r - D_block e, and `update` holds e.
    /// Ref: [Frommer2014] sec. 3; relaxation 1.
    /// Blocks with a zero residual are left alone (no division by zero).
    /// Err: input_error: a field that D does not take.
    void solve(lattice::field<T>& x, lattice::field<T>& r, lattice::field<T>& update, block_colour colour, int steps);

  private:
    std::unique_ptr<impl> impl_;
};

extern template class schwarz_blocks<float>;
extern template class schwarz_blocks<double>;

} // namespace halocline::dirac
