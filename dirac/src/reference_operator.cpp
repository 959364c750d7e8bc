// SPDX-License-Identifier: Apache-2.0
#include <halocline/dirac/reference_operator.hpp>

#include "operator_input.hpp"

#include <halocline/base/error.hpp>
#include <halocline/dirac/clover_term.hpp>
#include <halocline/dirac/gamma.hpp>
#include <halocline/lattice/field_shape.hpp>

#include <complex>

namespace halocline::dirac {

using lattice::coordinate;
using lattice::dimensions;
using lattice::face;
using lattice::side;

namespace {

using spinor = std::array<std::complex<double>, lattice::spinor_components / 2>;

spinor load(const double* reals) {
    spinor psi;
    for (std::size_t c = 0; c < psi.size(); ++c) psi[c] = {reals[2 * c], reals[2 * c + 1]};
    return psi;
}

/// (1 + sign gamma_mu) psi
spinor project(const spinor& psi, int mu, double sign) {
    const auto& gamma = gamma_matrices()[mu];
    spinor chi = psi;
    for (int spin = 0; spin < 4; ++spin)
        for (int colour = 0; colour < 3; ++colour)
            chi[3 * spin + colour] += sign * times(gamma[spin].value, psi[3 * gamma[spin].column + colour]);
    return chi;
}

/// U psi on every spin
spinor rotate(const su3& u, const spinor& psi) {
    spinor chi{};
    for (int spin = 0; spin < 4; ++spin)
        for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 3; ++b) chi[3 * spin + a] += times(u[3 * a + b], psi[3 * spin + b]);
    return chi;
}

/// Collective.  Err: as the operator's constructor.
halo::plan checked_plan(const comm::job& j, const lattice::decomposition& cut, const padded_links& links,
                        const wilson_parameters& p) {
    require_operator_input(j, cut, links, p);
    halo::plan_options options;
    options.name = "reference spinors";
    options.boundaries = p.boundaries;
    options.bytes_per_site = lattice::spinor_components * sizeof(double);
    return {j, cut, options};
}

} // namespace

reference_operator::reference_operator(const comm::job& j, const lattice::decomposition& cut, const padded_links& links,
                                       const wilson_parameters& p)
    : job_(j), boundaries_(p.boundaries), spinors_(checked_plan(j, cut, links, p)) {
    j.collectively([&] {
        links_ = with_boundaries(links, p.boundaries);
        diagonal_ = clover_term(links, p);
    });
}

void reference_operator::apply(lattice::field<double>& y, const lattice::field<double>& x) {
    const coordinate& n = links_->extents();
    job_.collectively([&] {
        const lattice::field_shape spinors{lattice::spinor_components, n, lattice::site_orders::one_lane};
        lattice::require_shape(x, "reference_operator: field x", spinors);
        lattice::require_shape(y, "reference_operator: field y", spinors);
        if (&x == &y) throw input_error("reference_operator: y = D x needs two fields, but y is x");
    });
    spinors_.start(x);
    spinors_.finish_or_throw();

    /// psi at the neighbour of site c behind face f: a ghost, or a site of this box.
    const auto neighbour = [&](coordinate c, face f) {
        const bool leaves = f.end == side::high ? c[f.mu] == n[f.mu] - 1 : c[f.mu] == 0;
        if (leaves && spinors_.message_of(f) >= 0) {
            coordinate in_face = c, face_extents = n;
            in_face[f.mu] = 0, face_extents[f.mu] = 1;
            return load(spinors_.ghosts<double>(f).data() +
                        lattice::lexicographic_index(in_face, face_extents) * lattice::spinor_components);
        }
        c[f.mu] = (c[f.mu] + (f.end == side::high ? 1 : n[f.mu] - 1)) % n[f.mu];
        return load(&x.at(lattice::lexicographic_index(c, n), 0));
    };
    /// True if an open boundary ends the lattice at face f of site c, so there is no hop.
    const auto at_open_edge = [&](const coordinate& c, face f) {
        if (boundaries_[f.mu] != lattice::boundary::open) return false;
        const int g = links_->local().origin[f.mu] + c[f.mu];
        return f.end == side::high ? g == links_->global()[f.mu] - 1 : g == 0;
    };

    for (std::int64_t site = 0; site < x.volume(); ++site) {
        const coordinate c = lattice::lexicographic_coordinate(site, n);
        spinor sum{};
        for (int mu = 0; mu < dimensions; ++mu) {
            // (1 - gamma_mu) U_mu(x) psi(x + mu)
            if (const face high{mu, side::high}; !at_open_edge(c, high)) {
                const spinor hop = project(rotate((*links_)(c, mu), neighbour(c, high)), mu, -1);
                for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += hop[e];
            }
            // (1 + gamma_mu) U_mu(x - mu)^dagger psi(x - mu)
            if (const face low{mu, side::low}; !at_open_edge(c, low)) {
                coordinate back = c;
                --back[mu];
                const spinor hop = project(rotate(adjoint((*links_)(back, mu)), neighbour(c, low)), mu, 1);
                for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += hop[e];
            }
        }
        // y(x) = (4 + m0 + clover) psi(x) - 1/2 sum
        const spinor psi = load(&x.at(site, 0));
        const double* diagonal = &diagonal_.at(site, 0);
        for (int row = 0; row < 12; ++row) {
            const int chirality = row / 6;
            std::complex<double> value = -0.5 * sum[row];
            for (int column = 0; column < 6; ++column) {
                const double* entry = diagonal + 2 * (36 * chirality + 6 * (row % 6) + column);
                value += times({entry[0], entry[1]}, psi[6 * chirality + column]);
            }
            y.at(site, 2 * row) = value.real();
            y.at(site, 2 * row + 1) = value.imag();
        }
    }
    y.mark_written();
}

} // namespace halocline::dirac
