// SPDX-License-Identifier: Apache-2.0
#include "heatbath.hpp"

#include <cmath>
#include <numbers>
#include <string>

namespace halocline::gauge {

using dirac::padded_links;
using dirac::su3;
using lattice::coordinate;
using lattice::dimensions;

namespace {

constexpr std::uint32_t hot_stream = 0; ///< sweep s = 1, 2, … uses the streams 8 s … 8 s + 7
constexpr std::array<std::array<int, 2>, 3> subgroups{{{0, 1}, {0, 2}, {1, 2}}};

/// In this representation (i sigma_j)(i sigma_k) = -delta_jk - i epsilon_jkl sigma_l.
quaternion product(const quaternion& a, const quaternion& b) {
    return {a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
            a[0] * b[1] + b[0] * a[1] - (a[2] * b[3] - a[3] * b[2]),
            a[0] * b[2] + b[0] * a[2] - (a[3] * b[1] - a[1] * b[3]),
            a[0] * b[3] + b[0] * a[3] - (a[1] * b[2] - a[2] * b[1])};
}

quaternion adjoint(const quaternion& a) { return {a[0], -a[1], -a[2], -a[3]}; }

/// Quaternion part of rows and columns (p, q) of u s: the only part on which Re tr(a u s) depends, for a in SU(2).
quaternion subgroup_part(const su3& u, const su3& s, int p, int q) {
    const auto element = [&](int i, int j) {
        return dirac::times(u[3 * i], s[j]) + dirac::times(u[3 * i + 1], s[3 + j]) +
               dirac::times(u[3 * i + 2], s[6 + j]);
    };
    const auto pp = element(p, p), pq = element(p, q), qp = element(q, p), qq = element(q, q);
    return {(pp.real() + qq.real()) / 2, (pq.imag() + qp.imag()) / 2, (pq.real() - qp.real()) / 2,
            (pp.imag() - qq.imag()) / 2};
}

/// u = a u, with a in the subgroup (p, q).
void multiply_subgroup(const quaternion& a, su3& u, int p, int q) {
    const std::complex<double> pp{a[0], a[3]}, pq{a[2], a[1]}, qp{-a[2], a[1]}, qq{a[0], -a[3]};
    for (int j = 0; j < 3; ++j) {
        const auto up = u[3 * p + j], uq = u[3 * q + j];
        u[3 * p + j] = dirac::times(pp, up) + dirac::times(pq, uq);
        u[3 * q + j] = dirac::times(qp, up) + dirac::times(qq, uq);
    }
}

/// For each subgroup: the part w = k v of u s with v in SU(2); u = choose(k, v) u.
template <class Choose>
void update_link(su3& u, const su3& s, const Choose& choose) {
    for (const auto& [p, q] : subgroups) {
        quaternion v = subgroup_part(u, s, p, q);
        const double k = std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + v[3] * v[3]);
        if (k > 0)
            for (double& component : v) component /= k;
        else
            v = {1, 0, 0, 0}; // no preferred direction
        multiply_subgroup(choose(k, v), u, p, q);
    }
}

std::uint64_t global_index(const coordinate& x, const lattice::box& local, const coordinate& global) {
    coordinate g = x;
    for (int nu = 0; nu < dimensions; ++nu) g[nu] += local.origin[nu];
    return static_cast<std::uint64_t>(lattice::lexicographic_index(g, global));
}

void set_link(lattice::gauge_field& links, std::int64_t site, int mu, const su3& u) {
    for (int e = 0; e < 9; ++e) {
        links.at(site, mu * lattice::link_components + 2 * e) = u[e].real();
        links.at(site, mu * lattice::link_components + 2 * e + 1) = u[e].imag();
    }
}

} // namespace

quaternion random_su2(double alpha, lattice::site_random& random) {
    double a0 = 0;
    if (alpha > 1.5) {
        // Kennedy and Pendleton: 1 - a0 = delta with density sqrt(delta) exp(-alpha delta), corrected by a rejection.
        for (;;) {
            const double r1 = 1 - random.uniform(), r2 = 1 - random.uniform(); // in (0, 1]
            const double c = std::cos(2 * std::numbers::pi * random.uniform());
            const double delta = -(std::log(r1) * c * c + std::log(r2)) / alpha;
            const double r4 = random.uniform();
            if (r4 * r4 <= 1 - delta / 2) {
                a0 = 1 - delta;
                break;
            }
        }
    } else {
        // Creutz: a0 in [-1, 1] with density exp(alpha a0), then accepted with sqrt(1 - a0^2). Better if alpha is
        // small, because the delta above is then mostly out of range.
        for (;;) {
            const double r = random.uniform();
            a0 = alpha > 1e-8 ? 1 + std::log(r + (1 - r) * std::exp(-2 * alpha)) / alpha : 2 * r - 1;
            const double accept = random.uniform();
            if (accept * accept <= 1 - a0 * a0) break;
        }
    }
    const double length = std::sqrt(std::fmax(0, 1 - a0 * a0));
    const double cos_theta = 2 * random.uniform() - 1, sin_theta = std::sqrt(std::fmax(0, 1 - cos_theta * cos_theta));
    const double phi = 2 * std::numbers::pi * random.uniform();
    return {a0, length * sin_theta * std::cos(phi), length * sin_theta * std::sin(phi), length * cos_theta};
}

lattice::gauge_field cold_links(const lattice::box& local) {
    lattice::gauge_field links(local.extents, lattice::gauge_components);
    for (std::int64_t site = 0; site < links.volume(); ++site)
        for (int mu = 0; mu < dimensions; ++mu) set_link(links, site, mu, dirac::su3_identity);
    return links;
}

lattice::gauge_field hot_links(const lattice::box& local, const coordinate& global, std::uint64_t seed) {
    lattice::gauge_field links(local.extents, lattice::gauge_components);
    for (std::int64_t site = 0; site < links.volume(); ++site) {
        const coordinate x = lattice::lexicographic_coordinate(site, local.extents);
        lattice::site_random random(seed, hot_stream, global_index(x, local, global));
        for (int mu = 0; mu < dimensions; ++mu) {
            su3 gaussian{}; // two random rows, orthonormalised, are uniform in SU(3)
            for (int e = 0; e < 6; ++e) {
                const double re = random.normal();
                gaussian[e] = {re, random.normal()};
            }
            set_link(links, site, mu, dirac::reunitarise(gaussian));
        }
    }
    return links;
}

su3 staples(const padded_links& links, const coordinate& x, int mu) {
    su3 sum{};
    const std::ptrdiff_t to_mu = links.stride(mu);
    const su3* const u_mu = links.values().data() + links.at(x, mu);
    for (int nu = 0; nu < dimensions; ++nu) {
        if (nu == mu) continue;
        const std::ptrdiff_t to_nu = links.stride(nu);
        const su3* const u_nu = links.values().data() + links.at(x, nu);
        // U_nu(x+mu) U_mu(x+nu)^+ U_nu(x)^+  +  U_nu(x+mu-nu)^+ U_mu(x-nu)^+ U_nu(x-nu)
        const su3 above = dirac::multiply_adjoint(u_nu[to_mu], dirac::multiply(u_nu[0], u_mu[to_nu]));
        const su3 below = dirac::adjoint_multiply(dirac::multiply(u_mu[-to_nu], u_nu[to_mu - to_nu]), u_nu[-to_nu]);
        for (int e = 0; e < 9; ++e) sum[e] += above[e] + below[e];
    }
    return sum;
}

void check_extents(const coordinate& global) {
    for (int mu = 0; mu < dimensions; ++mu)
        if (global[mu] % 2 != 0)
            throw input_error("extent " + std::to_string(global[mu]) + " in " + lattice::dimension_name[mu] +
                              " of lattice " + lattice::to_string(global) +
                              " is odd: the even/odd update needs even extents in every dimension");
}

heatbath::heatbath(const heatbath_options& options, int sweeps_done)
    : options_(options), sweeps_(static_cast<std::uint32_t>(sweeps_done)) {
    if (!(options.beta >= 0) || !std::isfinite(options.beta))
        throw input_error("beta " + std::to_string(options.beta) + " is not a coupling: it must be finite and >= 0");
    if (sweeps_done < 0 || sweeps_done > most_sweeps)
        throw input_error("no chain has done " + std::to_string(sweeps_done) + " sweeps: 0 to " +
                          std::to_string(most_sweeps) + " are possible");
}

/// Calls update(U, staples, x, mu, parity) for all links, one direction and parity after the other.
template <class Update>
void heatbath::update_all(padded_links& links, const Update& update) const {
    const coordinate& n = links.extents();
    const int origin_parity = lattice::parity(links.local().origin);
    for (int parity = 0; parity < 2; ++parity)
        for (int mu = 0; mu < dimensions; ++mu) {
            coordinate x;
            for (x[3] = 0; x[3] < n[3]; ++x[3])
                for (x[2] = 0; x[2] < n[2]; ++x[2])
                    for (x[1] = 0; x[1] < n[1]; ++x[1])
                        for (x[0] = (origin_parity + x[1] + x[2] + x[3] + parity) & 1; x[0] < n[0]; x[0] += 2)
                            update(links(x, mu), staples(links, x, mu), x, mu, parity);
            links.exchange(mu, parity);
        }
}

void heatbath::sweep(padded_links& links) {
    check_extents(links.global());
    if (sweeps_ == most_sweeps)
        throw input_error("a chain has at most " + std::to_string(most_sweeps) +
                          " sweeps: there are no further random numbers; go on with its links and another seed");
    ++sweeps_;
    update_all(links, [&](su3& u, const su3& s, const coordinate& x, int mu, int parity) {
        lattice::site_random random(options_.seed, 8 * sweeps_ + 2 * static_cast<std::uint32_t>(mu) + parity,
                                    global_index(x, links.local(), links.global()));
        // a v = a' has density exp(2 beta k / 3 a'0), so a = a' v^+
        update_link(u, s, [&](double k, const quaternion& v) {
            return product(random_su2(2 * options_.beta * k / 3, random), adjoint(v));
        });
    });
    for (int n = 0; n < options_.overrelaxation; ++n)
        update_all(links, [&](su3& u, const su3& s, const coordinate&, int, int) {
            // a v = v^+ leaves Re tr(a v) unchanged
            update_link(u, s, [&](double, const quaternion& v) { return product(adjoint(v), adjoint(v)); });
        });
    // Including the shell: a ghost keeps the same bits as the link that it copies.
    for (su3& u : links.values()) u = dirac::reunitarise(u);
}

} // namespace halocline::gauge
