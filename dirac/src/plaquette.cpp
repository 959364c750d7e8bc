// SPDX-License-Identifier: Apache-2.0
#include <halocline/dirac/plaquette.hpp>

#include "reduce_totals.hpp"

#include <halocline/comm/exact_sum.hpp>

namespace halocline::dirac {

using lattice::coordinate;
using lattice::dimensions;

namespace {

struct plane_sums {
    std::array<comm::exact_accumulator, 6> of{};
    friend plane_sums combine(plane_sums a, const plane_sums& b) {
        for (std::size_t plane = 0; plane < a.of.size(); ++plane) a.of[plane] += b.of[plane];
        return a;
    }
};

} // namespace

std::array<double, 6> plaquette_by_plane(const padded_links& links) {
    const comm::job& j = links.job();
    const lattice::decomposition& cut = links.cut();
    plane_sums sums; // so that the mean does not depend on the decomposition
    const coordinate& n = links.extents();
    for (int plane = 0, mu = 0; mu < dimensions; ++mu)
        for (int nu = mu + 1; nu < dimensions; ++nu, ++plane)
            for (std::int64_t site = 0; site < lattice::volume(n); ++site) {
                const coordinate x = lattice::lexicographic_coordinate(site, n);
                coordinate forward_mu = x, forward_nu = x;
                ++forward_mu[mu], ++forward_nu[nu];
                // Re tr U_mu(x) U_nu(x+mu) (U_nu(x) U_mu(x+nu))^dagger
                sums.of[plane].add(real_trace_adjoint(multiply(links(x, mu), links(forward_mu, nu)),
                                                      multiply(links(x, nu), links(forward_nu, mu))));
            }

    const plane_sums totals = reduce_totals(j, sums);
    std::array<double, 6> means;
    for (int plane = 0; plane < 6; ++plane)
        means[plane] = totals.of[plane].rounded() / (3.0 * static_cast<double>(lattice::volume(cut.global())));
    return means;
}

double plaquette(const padded_links& links) {
    double sum = 0;
    for (double mean : plaquette_by_plane(links)) sum += mean;
    return sum / 6;
}

} // namespace halocline::dirac
