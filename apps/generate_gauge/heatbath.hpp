// SPDX-License-Identifier: Apache-2.0
// Quenched SU(3) with the Wilson action, S = -(beta / 3) sum over plaquettes of Re tr P: heatbath and overrelaxation by
// SU(2) subgroups. Links of one direction and parity are updated together, because no plaquette contains two of them;
// random numbers belong to global sites. So the links have the same bits for every rank grid.
// Ref: [CabibboMarinari1982, Creutz1980, KennedyPendleton1985].
#pragma once

#include <halocline/dirac/padded_links.hpp>
#include <halocline/lattice/random.hpp>

#include <array>
#include <cstdint>

namespace halocline::gauge {

/// A quaternion a0 + i a.sigma, the 2x2 matrix [[a0 + i a3, a2 + i a1], [-a2 + i a1, a0 - i a3]].
using quaternion = std::array<double, 4>;

/// An element of SU(2) with density proportional to exp(alpha a0).  Pre: alpha >= 0 and finite.
quaternion random_su2(double alpha, lattice::site_random& random);

/// Links for one local box: all 1, or independent and uniform in SU(3).
lattice::gauge_field cold_links(const lattice::box& local);
lattice::gauge_field hot_links(const lattice::box& local, const lattice::coordinate& global, std::uint64_t seed);

/// Sum of the six staples of U_mu(x): the action depends on it as -(beta / 3) Re tr(U_mu(x) staples).
dirac::su3 staples(const dirac::padded_links& links, const lattice::coordinate& x, int mu);

struct heatbath_options {
    double beta = 6;
    std::uint64_t seed = 1;
    int overrelaxation = 4; ///< sweeps after each heatbath sweep
};

/// Err: input_error for an odd extent: two even or two odd sites would be neighbours across the edge.
void check_extents(const lattice::coordinate& global);

/// Sweeps of a chain, at most: each takes 8 of the 2^32 streams of random numbers, and the first 8 are for hot_links().
/// One sweep more would use their numbers again.
inline constexpr int most_sweeps = (1 << 29) - 1;

/// The Markov chain; owns its position in the random stream, not the links.
class heatbath {
  public:
    /// The sweeps of a chain that goes on after `sweeps_done` of them, 0 to most_sweeps.
    /// Err: input_error: a beta that is negative or not finite; a number of sweeps that no chain has.
    explicit heatbath(const heatbath_options& options, int sweeps_done = 0);

    /// One heatbath sweep over all links, then the overrelaxation sweeps; the shell of `links` is current afterwards.
    /// Collective.  Pre: the shell is current.
    /// Err:  input_error, the same on every rank: as check_extents(); most_sweeps were done; job_error.
    /// Cost: about 3.5 kflop per link and sweep, and 8 shell exchanges of one direction and parity per sweep.
    void sweep(dirac::padded_links& links);

  private:
    template <class Update>
    void update_all(dirac::padded_links& links, const Update& update) const;

    heatbath_options options_;
    std::uint32_t sweeps_ = 0;
};

} // namespace halocline::gauge
