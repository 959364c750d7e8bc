// SPDX-License-Identifier: Apache-2.0
#include <halocline/dirac/clover_term.hpp>

#include "clover_of_site.hpp"

#include <halocline/dirac/gamma.hpp>

#include <array>
#include <complex>

namespace halocline::dirac {

using lattice::coordinate;
using lattice::dimensions;

namespace {

coordinate step(coordinate x, int mu, int distance) {
    x[mu] += distance;
    return x;
}

/// Q_munu(x): the four leaves of the plane, each from x to x, counter-clockwise.
su3 clover_leaves(const padded_links& u, const coordinate& x, int mu, int nu) {
    const coordinate right = step(x, mu, 1), up = step(x, nu, 1), left = step(x, mu, -1), down = step(x, nu, -1);
    const coordinate left_up = step(left, nu, 1), left_down = step(left, nu, -1), right_down = step(right, nu, -1);
    const std::array<su3, 4> leaves{
        // U_mu(x) U_nu(x+mu) U_mu(x+nu)^+ U_nu(x)^+
        multiply_adjoint(multiply(u(x, mu), u(right, nu)), multiply(u(x, nu), u(up, mu))),
        // U_nu(x) U_mu(x-mu+nu)^+ U_nu(x-mu)^+ U_mu(x-mu)
        multiply(multiply_adjoint(u(x, nu), u(left_up, mu)), adjoint_multiply(u(left, nu), u(left, mu))),
        // U_mu(x-mu)^+ U_nu(x-mu-nu)^+ U_mu(x-mu-nu) U_nu(x-nu)
        adjoint_multiply(multiply(u(left_down, nu), u(left, mu)), multiply(u(left_down, mu), u(down, nu))),
        // U_nu(x-nu)^+ U_mu(x-nu) U_nu(x+mu-nu) U_mu(x)^+
        multiply(adjoint_multiply(u(down, nu), u(down, mu)), multiply_adjoint(u(right_down, nu), u(x, mu)))};
    su3 q{};
    for (const su3& leaf : leaves)
        for (int e = 0; e < 9; ++e) q[e] += leaf[e];
    return q;
}

} // namespace

std::array<std::complex<double>, clover_components / 2> clover_of_site(const padded_links& u, const coordinate& x,
                                                                       const wilson_parameters& p) {
    const auto& gamma = gamma_matrices();
    std::array<std::complex<double>, clover_components / 2> blocks{};
    for (int chirality = 0; chirality < 2; ++chirality)
        for (int row = 0; row < 6; ++row) blocks[36 * chirality + 7 * row] = 4 + p.m0;

    // each plane once, whichever way: swapping mu and nu changes the signs of gamma_mu gamma_nu and of Q - Q^+
    for (int mu = dimensions - 1; mu > 0; --mu)
        for (int nu = mu - 1; nu >= 0; --nu) {
            const su3 q = clover_leaves(u, x, mu, nu), q_adjoint = adjoint(q);
            for (int spin = 0; spin < 4; ++spin) {
                // gamma_mu gamma_nu preserves the chirality: row `spin`, its one column and value.
                const gamma_row left = gamma[mu][spin], right = gamma[nu][left.column];
                const std::complex<double> factor = -p.csw / 16 * times(left.value, right.value);
                auto* block = &blocks[36 * (spin / 2)];
                const int row = 3 * (spin % 2), column = 3 * (right.column % 2);
                for (int a = 0; a < 3; ++a)
                    for (int b = 0; b < 3; ++b)
                        block[6 * (row + a) + column + b] += times(factor, q[3 * a + b] - q_adjoint[3 * a + b]);
            }
        }
    return blocks;
}

lattice::field<double> clover_term(const padded_links& links, const wilson_parameters& p) {
    // An antiperiodic sign cancels in every leaf; an open boundary removes the leaves that cross it.
    const padded_links u = with_boundaries(links, p.boundaries);
    lattice::field<double> term(u.extents(), clover_components);
    for (std::int64_t site = 0; site < term.volume(); ++site) {
        const auto blocks = clover_of_site(u, lattice::lexicographic_coordinate(site, u.extents()), p);
        for (int c = 0; c < clover_components / 2; ++c) {
            term.at(site, 2 * c) = blocks[c].real();
            term.at(site, 2 * c + 1) = blocks[c].imag();
        }
    }
    return term;
}

} // namespace halocline::dirac
