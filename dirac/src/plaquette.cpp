// SPDX-License-Identifier: Apache-2.0
#include <halocline/dirac/plaquette.hpp>

#include <cstring>
#include <string>
#include <vector>

namespace halocline::dirac {

using lattice::coordinate;
using lattice::dimensions;

std::array<double, 6> plaquette_by_plane(const padded_links& links) {
    const comm::job& j = links.job();
    const lattice::decomposition& cut = links.cut();
    // long double, so that the mean depends on the decomposition by less than an ulp or two of the result.
    std::array<long double, 6> sums{};
    const coordinate& n = links.extents();
    for (int plane = 0, mu = 0; mu < dimensions; ++mu)
        for (int nu = mu + 1; nu < dimensions; ++nu, ++plane)
            for (std::int64_t site = 0; site < lattice::volume(n); ++site) {
                const coordinate x = lattice::lexicographic_coordinate(site, n);
                coordinate forward_mu = x, forward_nu = x;
                ++forward_mu[mu], ++forward_nu[nu];
                // Re tr U_mu(x) U_nu(x+mu) (U_nu(x) U_mu(x+nu))^dagger
                sums[plane] += real_trace_adjoint(multiply(links(x, mu), links(forward_mu, nu)),
                                                  multiply(links(x, nu), links(forward_nu, mu)));
            }

    std::string mine(sizeof sums, '\0');
    std::memcpy(mine.data(), sums.data(), sizeof sums);
    std::array<long double, 6> totals{};
    const std::vector<std::string> parts = j.gather(mine);
    for (int place = 0; place < j.ranks(); ++place) { // by place: the bits do not depend on which rank has it
        const int rank = cut.rank_at(lattice::lexicographic_coordinate(place, cut.rank_grid()));
        std::array<long double, 6> other;
        std::memcpy(other.data(), parts[rank].data(), sizeof other);
        for (int plane = 0; plane < 6; ++plane) totals[plane] += other[plane];
    }
    std::array<double, 6> means;
    for (int plane = 0; plane < 6; ++plane)
        means[plane] =
            static_cast<double>(totals[plane] / (3.0L * static_cast<long double>(lattice::volume(cut.global()))));
    return means;
}

double plaquette(const padded_links& links) {
    double sum = 0;
    for (double mean : plaquette_by_plane(links)) sum += mean;
    return sum / 6;
}

} // namespace halocline::dirac
