// SPDX-License-Identifier: Apache-2.0
// The reference operator tested by its own symmetries: needs no data.
#include "dirac_fields.hpp"
#include "refusals.hpp"

#include <halocline/comm/job.hpp>
#include <halocline/dirac/clover_term.hpp>
#include <halocline/dirac/gamma.hpp>
#include <halocline/dirac/plaquette.hpp>
#include <halocline/dirac/reference_operator.hpp>
#include <halocline_test/worse.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace {

using namespace halocline;
using namespace halocline_test;
using complex = std::complex<double>;

using matrix4 = std::array<std::array<complex, 4>, 4>;

matrix4 dense_gamma(int mu) {
    matrix4 m{};
    for (int row = 0; row < 4; ++row) {
        const dirac::gamma_row& entry = dirac::gamma_matrices()[mu][row];
        m[row][entry.column] = entry.value;
    }
    return m;
}

matrix4 product(const matrix4& a, const matrix4& b) {
    matrix4 c{};
    for (int i = 0; i < 4; ++i)
        for (int k = 0; k < 4; ++k)
            for (int l = 0; l < 4; ++l) c[i][l] += a[i][k] * b[k][l];
    return c;
}

void apply_gamma5(spinor_field& psi) {
    for (std::int64_t site = 0; site < psi.volume(); ++site)
        for (int c = 12; c < 24; ++c) psi.at(site, c) = -psi.at(site, c);
}

/// psi(x) <- g(x) psi(x)
void rotate(spinor_field& psi, const lattice::box& local, const coordinate& global) {
    for_each_site(local, [&](std::int64_t site, const coordinate& x) {
        const su3 g = random_su3(9, x, global, 0);
        for (int spin = 0; spin < 4; ++spin) {
            std::array<complex, 3> in, out{};
            for (int a = 0; a < 3; ++a) in[a] = {psi.at(site, 6 * spin + 2 * a), psi.at(site, 6 * spin + 2 * a + 1)};
            for (int a = 0; a < 3; ++a)
                for (int b = 0; b < 3; ++b) out[a] += g[3 * a + b] * in[b];
            for (int a = 0; a < 3; ++a)
                psi.at(site, 6 * spin + 2 * a) = out[a].real(), psi.at(site, 6 * spin + 2 * a + 1) = out[a].imag();
        }
    });
}

/// g(x) U_mu(x) g(x + mu)^dagger on random links
gauge_field transformed_links(const lattice::box& local, const coordinate& global) {
    return make_links(local, [&](const coordinate& x, int mu) {
        coordinate next = x;
        next[mu] = (next[mu] + 1) % global[mu];
        return dirac::multiply_adjoint(dirac::multiply(random_su3(9, x, global, 0), random_su3(1, x, global, mu)),
                                       random_su3(9, next, global, 0));
    });
}

double largest_difference(const spinor_field& a, const spinor_field& b) {
    double largest = 0;
    for (std::size_t k = 0; k < a.values().size(); ++k)
        largest = worse(largest, std::abs(a.values()[k] - b.values()[k]));
    return largest;
}

struct shape {
    coordinate global, rank_grid;
};
/// Odd and uneven extents, extent 1, extent 2 with the same neighbour on both sides, 1 to 8 ranks.
const std::vector<shape> shapes{{{4, 3, 2, 5}, {1, 1, 1, 1}}, {{4, 3, 2, 5}, {1, 1, 1, 2}},
                                {{2, 3, 4, 3}, {2, 1, 2, 1}}, {{5, 1, 3, 4}, {3, 1, 1, 1}},
                                {{2, 2, 2, 2}, {2, 2, 2, 1}}, {{1, 2, 7, 3}, {1, 1, 2, 3}}};

template <class Body> // body(job, cut, local box)
void on_every_shape(Body&& body) {
    for (const shape& s : shapes) {
        SCOPED_TRACE(lattice::to_string(s.global) + " on " + lattice::to_string(s.rank_grid));
        comm::run_threads(static_cast<int>(lattice::volume(s.rank_grid)), [&](const job& j) {
            const auto cut = decomposition::even(s.global, s.rank_grid);
            body(j, cut, cut.local_box(j.rank()));
        });
    }
}

dirac::wilson_parameters with_t_boundary(lattice::boundary t) {
    dirac::wilson_parameters p;
    p.boundaries[3] = t;
    return p;
}

TEST(Gamma, MatricesAnticommuteAndSquareToOne) {
    for (int mu = 0; mu < 4; ++mu)
        for (int nu = 0; nu < 4; ++nu) {
            const matrix4 ab = product(dense_gamma(mu), dense_gamma(nu)),
                          ba = product(dense_gamma(nu), dense_gamma(mu));
            for (int i = 0; i < 4; ++i)
                for (int k = 0; k < 4; ++k) EXPECT_EQ(ab[i][k] + ba[i][k], complex(mu == nu && i == k ? 2 : 0));
        }
}

TEST(Gamma, FiveIsTheProductTZYX) {
    const matrix4 five = product(product(dense_gamma(3), dense_gamma(2)), product(dense_gamma(1), dense_gamma(0)));

    for (int i = 0; i < 4; ++i)
        for (int k = 0; k < 4; ++k) EXPECT_EQ(five[i][k], complex(i != k ? 0 : i < 2 ? 1 : -1));
}

/// Calls visit(x, g) for the sites of a local box and of the one-site shell around it: x in local coordinates, g on the
/// global lattice of extents n.
template <class Visit>
void for_each_padded_site(const lattice::box& local, const coordinate& n, Visit&& visit) {
    lattice::box padded{{-1, -1, -1, -1}, local.extents};
    for (int& extent : padded.extents) extent += 2;
    for_each_site(padded, [&](std::int64_t, const coordinate& x) {
        coordinate g;
        for (int mu = 0; mu < 4; ++mu) g[mu] = (local.origin[mu] + x[mu] + n[mu]) % n[mu];
        visit(x, g);
    });
}

TEST(PaddedLinks, ShellWithCornersIsTheOwnersLinks) {
    on_every_shape([](const job& j, const decomposition& cut, const lattice::box& local) {
        const coordinate& n = cut.global();

        const dirac::padded_links links(j, cut, random_links(local, n));

        int wrong = 0;
        for_each_padded_site(local, n, [&](const coordinate& x, const coordinate& g) {
            for (int mu = 0; mu < 4; ++mu) wrong += links(x, mu) != random_su3(1, g, n, mu);
        });
        EXPECT_EQ(wrong, 0);
    });
}

TEST(PaddedLinks, ExchangeOfOneParityRefreshesThatAndNothingElse) {
    on_every_shape([](const job& j, const decomposition& cut, const lattice::box& local) {
        const coordinate& n = cut.global();
        dirac::padded_links links(j, cut, random_links(local, n));
        const int mu = 2, parity = 1;
        for_each_site({{}, local.extents}, [&](std::int64_t, const coordinate& x) { // every owned link changes
            coordinate g;
            for (int nu = 0; nu < 4; ++nu) g[nu] = local.origin[nu] + x[nu];
            for (int direction = 0; direction < 4; ++direction) links(x, direction) = random_su3(2, g, n, direction);
        });

        links.exchange(mu, parity);

        int wrong = 0;
        for_each_padded_site(local, n, [&](const coordinate& x, const coordinate& g) {
            const bool owned = lattice::box{{}, local.extents}.contains(x);
            for (int direction = 0; direction < 4; ++direction) {
                const bool fresh = owned || (direction == mu && lattice::parity(g) == parity);
                wrong += links(x, direction) != random_su3(fresh ? 2 : 1, g, n, direction);
            }
        });
        EXPECT_EQ(wrong, 0);
    });
}

TEST(PaddedLinks, StoreGivesBackTheGaugeField) {
    on_every_shape([](const job& j, const decomposition& cut, const lattice::box& local) {
        const gauge_field links = random_links(local, cut.global());
        gauge_field back = unit_links(local);
        const std::uint64_t before = back.version();

        dirac::padded_links(j, cut, links).store(back);

        EXPECT_NE(back.version(), before);
        EXPECT_TRUE(std::equal(links.values().begin(), links.values().end(), back.values().begin()));
    });
}

TEST(Plaquette, IsOneOnUnitLinks) {
    on_every_shape([](const job& j, const decomposition& cut, const lattice::box& local) {
        EXPECT_DOUBLE_EQ(dirac::plaquette({j, cut, unit_links(local)}), 1);
    });
}

TEST(Plaquette, IsInvariantUnderGaugeTransformations) {
    on_every_shape([](const job& j, const decomposition& cut, const lattice::box& local) {
        const auto before = dirac::plaquette_by_plane({j, cut, random_links(local, cut.global())});

        const auto after = dirac::plaquette_by_plane({j, cut, transformed_links(local, cut.global())});

        for (int plane = 0; plane < 6; ++plane) EXPECT_NEAR(after[plane], before[plane], 1e-13);
    });
}

TEST(Plaquette, DoesNotDependOnTheRankGrid) {
    const coordinate global{4, 6, 3, 4};
    const auto on = [&](const coordinate& rank_grid) {
        double result = 0;
        comm::run_threads(static_cast<int>(lattice::volume(rank_grid)), [&](const job& j) {
            const auto cut = decomposition::even(global, rank_grid);
            const double value = dirac::plaquette({j, cut, random_links(cut.local_box(j.rank()), global)});
            if (j.rank() == 0) result = value;
        });
        return result;
    };

    const double whole = on({1, 1, 1, 1});

    EXPECT_EQ(on({2, 1, 1, 1}), whole);
    EXPECT_EQ(on({1, 2, 1, 2}), whole);
    EXPECT_EQ(on({1, 1, 3, 1}), whole);
}

TEST(CloverTerm, IsHermitian) {
    on_every_shape([](const job& j, const decomposition& cut, const lattice::box& local) {
        const auto term = dirac::clover_term({j, cut, random_links(local, cut.global())}, {});

        double largest = 0, off_diagonal = 0;
        const auto entry = [&](std::int64_t site, int chirality, int row, int column) {
            const int c = 2 * (36 * chirality + 6 * row + column);
            return complex(term.at(site, c), term.at(site, c + 1));
        };
        for (std::int64_t site = 0; site < term.volume(); ++site)
            for (int chirality = 0; chirality < 2; ++chirality)
                for (int row = 0; row < 6; ++row)
                    for (int column = 0; column < 6; ++column) {
                        const complex a = entry(site, chirality, row, column), b = entry(site, chirality, column, row);
                        largest = worse(largest, std::abs(a - std::conj(b)));
                        if (row != column) off_diagonal = worse(off_diagonal, std::abs(a));
                    }
        EXPECT_LT(largest, 1e-14);
        EXPECT_GT(off_diagonal, 0.01);
    });
}

TEST(CloverTerm, IsTheMassOnUnitLinks) {
    on_every_shape([](const job& j, const decomposition& cut, const lattice::box& local) {
        const auto term = dirac::clover_term({j, cut, unit_links(local)}, with_t_boundary(lattice::boundary::periodic));

        for (std::int64_t site = 0; site < term.volume(); ++site)
            for (int c = 0; c < dirac::clover_components; ++c) EXPECT_EQ(term.at(site, c), c % 72 % 14 == 0 ? 3.5 : 0);
    });
}

/// Signs and factors: where the plaquette is e^{i phi t_a} for colour a in one plane, and 1 in the others, all leaves
/// are equal, and Q - Q^dagger = 2 i sin(phi t_a) for each. With an open boundary in t, planes with t lose two of the
/// four leaves on slice 0, and two on the last.
void expect_field_strength_of_a_constant_field(lattice::boundary t) {
    constexpr std::array<double, 3> charge{1, -1, 0};
    dirac::wilson_parameters p = with_t_boundary(t);
    p.csw = 1.7;
    on_every_shape([&](const job& j, const decomposition& cut, const lattice::box& local) {
        const coordinate& n = cut.global();
        for (int mu = 0; mu < 4; ++mu)
            for (int nu = mu + 1; nu < 4; ++nu) {
                const double phi = 2 * std::numbers::pi / (n[mu] * n[nu]); // one quantum of flux
                const auto links = make_links(local, [&](const coordinate& x, int direction) {
                    const double phase = direction == nu                         ? phi * x[mu]
                                         : direction == mu && x[mu] + 1 == n[mu] ? -phi * n[mu] * x[nu]
                                                                                 : 0;
                    su3 u{};
                    for (int a = 0; a < 3; ++a) u[4 * a] = std::polar(1.0, phase * charge[a]);
                    return u;
                });

                const auto term = dirac::clover_term({j, cut, links}, p);

                const matrix4 gammas = product(dense_gamma(mu), dense_gamma(nu));
                double largest = 0;
                for (std::int64_t site = 0; site < term.volume(); ++site) {
                    const int slice = local.site(site)[3];
                    int leaves = 4;
                    if (t == lattice::boundary::open && nu == 3)
                        leaves -= (slice == 0 ? 2 : 0) + (slice == n[3] - 1 ? 2 : 0);
                    for (int row = 0; row < 12; ++row)
                        for (int column = row / 6 * 6; column < row / 6 * 6 + 6; ++column) {
                            complex expected = row == column ? 4 + p.m0 : 0;
                            if (row % 3 == column % 3)
                                expected -= p.csw / 16 * gammas[row / 3][column / 3] *
                                            complex(0, 2 * leaves * std::sin(phi * charge[row % 3]));
                            const int c = 2 * (36 * (row / 6) + 6 * (row % 6) + column % 6);
                            const complex found(term.at(site, c), term.at(site, c + 1));
                            largest = worse(largest, std::abs(found - expected));
                        }
                }
                EXPECT_LT(largest, 1e-13) << "plane " << mu << nu;
            }
    });
}

TEST(CloverTerm, OfAConstantFieldIsItsFieldStrength) {
    expect_field_strength_of_a_constant_field(lattice::boundary::periodic);
}

TEST(CloverTerm, LosesTheLeavesThatCrossAnOpenBoundary) {
    expect_field_strength_of_a_constant_field(lattice::boundary::open);
}

TEST(CloverTerm, DoesNotSeeAnAntiperiodicSign) {
    on_every_shape([](const job& j, const decomposition& cut, const lattice::box& local) {
        const dirac::padded_links links(j, cut, random_links(local, cut.global()));

        const auto periodic = dirac::clover_term(links, with_t_boundary(lattice::boundary::periodic));
        const auto antiperiodic = dirac::clover_term(links, with_t_boundary(lattice::boundary::antiperiodic));

        EXPECT_EQ(largest_difference(periodic, antiperiodic), 0);
    });
}

TEST(WilsonParameters, KappaStandsForTheMass) {
    const auto p = dirac::wilson_parameters::from_kappa(0.16, 1.5);

    EXPECT_DOUBLE_EQ(1 / (2 * (4 + p.m0)), 0.16);
    EXPECT_EQ(p.csw, 1.5);
    EXPECT_EQ(p.boundaries, dirac::wilson_parameters{}.boundaries);
    EXPECT_EQ(dirac::wilson_parameters::from_kappa(0.125, 0).m0, 0);
}

TEST(ReferenceOperator, OfAConstantIsTheMassOnUnitLinks) {
    on_every_shape([](const job& j, const decomposition& cut, const lattice::box& local) {
        dirac::reference_operator d(j, cut, {j, cut, unit_links(local)}, with_t_boundary(lattice::boundary::periodic));
        const spinor_field x = ones(local);
        spinor_field y = ones(local);
        const std::uint64_t before = y.version();

        d.apply(y, x);

        EXPECT_NE(y.version(), before); // or its ghosts would count as fresh
        for (std::int64_t site = 0; site < y.volume(); ++site)
            for (int c = 0; c < 24; ++c) EXPECT_NEAR(y.at(site, c), c % 2 == 0 ? -0.5 : 0, 1e-14);
    });
}

/// Signs and factors: with constant links e^{i theta_mu t_a} for colour a, a plane wave of momentum p is multiplied by
/// m0 + sum_mu (1 - cos q_mu) + i sum_mu gamma_mu sin q_mu, where q = p + theta t_a.
TEST(ReferenceOperator, IsItsSymbolOnPlaneWaves) {
    constexpr std::array<double, 3> charge{1, -1, 0};
    constexpr std::array<double, 4> theta{0.3, -0.7, 1.1, 0.5};
    const dirac::wilson_parameters parameters = with_t_boundary(lattice::boundary::periodic);
    on_every_shape([&](const job& j, const decomposition& cut, const lattice::box& local) {
        const coordinate& n = cut.global();
        const auto links = make_links(local, [&](const coordinate&, int mu) {
            su3 u{};
            for (int a = 0; a < 3; ++a) u[4 * a] = std::polar(1.0, theta[mu] * charge[a]);
            return u;
        });
        dirac::reference_operator d(j, cut, {j, cut, links}, parameters);
        std::array<double, 4> p;
        for (int mu = 0; mu < 4; ++mu) p[mu] = 2 * std::numbers::pi * (mu + 1) / n[mu];
        const auto wave = [&](const coordinate& x) {
            return std::polar(1.0, p[0] * x[0] + p[1] * x[1] + p[2] * x[2] + p[3] * x[3]);
        };
        const auto amplitude = [](int spin, int colour) { return complex(1 + spin, colour - 1); };
        spinor_field psi = ones(local), y = ones(local);
        for_each_site(local, [&](std::int64_t site, const coordinate& x) {
            for (int c = 0; c < 12; ++c) {
                const complex value = wave(x) * amplitude(c / 3, c % 3);
                psi.at(site, 2 * c) = value.real(), psi.at(site, 2 * c + 1) = value.imag();
            }
        });

        d.apply(y, psi);

        double largest = 0;
        for_each_site(local, [&](std::int64_t site, const coordinate& x) {
            for (int c = 0; c < 12; ++c) {
                const int spin = c / 3, a = c % 3;
                complex expected = parameters.m0 * amplitude(spin, a);
                for (int mu = 0; mu < 4; ++mu) {
                    const double q = p[mu] + theta[mu] * charge[a];
                    const dirac::gamma_row& gamma = dirac::gamma_matrices()[mu][spin];
                    expected += (1 - std::cos(q)) * amplitude(spin, a) +
                                complex(0, std::sin(q)) * gamma.value * amplitude(gamma.column, a);
                }
                const complex found(y.at(site, 2 * c), y.at(site, 2 * c + 1));
                largest = worse(largest, std::abs(found - wave(x) * expected));
            }
        });
        EXPECT_LT(largest, 1e-12);
    });
}

TEST(ReferenceOperator, IsGamma5Hermitian) {
    for (const auto t : {lattice::boundary::periodic, lattice::boundary::antiperiodic, lattice::boundary::open})
        on_every_shape([t](const job& j, const decomposition& cut, const lattice::box& local) {
            dirac::reference_operator d(j, cut, {j, cut, random_links(local, cut.global())}, with_t_boundary(t));
            const spinor_field a = random_spinor(local, cut.global(), 1), b = random_spinor(local, cut.global(), 2);
            spinor_field da = ones(local), db = ones(local);

            d.apply(da, a);
            d.apply(db, b);
            apply_gamma5(da);
            apply_gamma5(db);

            // <a, gamma5 D b> = <gamma5 D a, b>
            const complex left = inner(j, a, db), right = inner(j, da, b);
            EXPECT_LT(std::abs(left - right), 1e-12 * std::sqrt(inner(j, da, da).real() * inner(j, b, b).real()));
        });
}

TEST(ReferenceOperator, IsGaugeCovariant) {
    on_every_shape([](const job& j, const decomposition& cut, const lattice::box& local) {
        const coordinate& n = cut.global();
        dirac::reference_operator d(j, cut, {j, cut, random_links(local, n)}, {});
        dirac::reference_operator d_transformed(j, cut, {j, cut, transformed_links(local, n)}, {});
        const spinor_field psi = random_spinor(local, n, 1);
        spinor_field g_psi = random_spinor(local, n, 1), y = ones(local), z = ones(local);
        rotate(g_psi, local, n);

        d.apply(y, psi);
        rotate(y, local, n);
        d_transformed.apply(z, g_psi);

        EXPECT_LT(largest_difference(y, z), 1e-12); // g D[U] psi = D[U^g] g psi
    });
}

TEST(ReferenceOperator, RefusesFieldsOfAnotherShapeOnEveryRank) {
    const coordinate global{4, 4, 4, 8};
    const auto refused = [&](auto&& call) {
        return refusal_of_all(2, [&](const job& j) {
            const auto cut = decomposition::even(global, {1, 1, 1, 2});
            const lattice::box local = cut.local_box(j.rank());
            dirac::reference_operator d(j, cut, {j, cut, unit_links(local)}, {});
            spinor_field x = ones(local), y = ones(local);
            if (j.rank() == 1) call(d, x, y); // one rank's mistake
            if (j.rank() == 0) d.apply(y, x);
        });
    };
    const std::string right = "; must have 24 components on a box of 4.4.4.4 in one lane";

    EXPECT_EQ(refused([](auto& d, auto& x, auto&) {
                  spinor_field small({4, 4, 4, 2}, 24);
                  d.apply(small, x);
              }),
              "reference_operator: field y has 24 components on a box of 4.4.4.2" + right);
    EXPECT_EQ(refused([](auto& d, auto&, auto& y) {
                  spinor_field narrow({4, 4, 4, 4}, 12);
                  d.apply(y, narrow);
              }),
              "reference_operator: field x has 12 components on a box of 4.4.4.4" + right);
    EXPECT_EQ(refused([](auto& d, auto& x, auto&) {
                  spinor_field none;
                  d.apply(none, x);
              }),
              "reference_operator: field y has no storage" + right);
    EXPECT_EQ(
        refused([&](auto& d, auto& x, auto&) {
            spinor_field blocked(lattice::site_order::blocked({{}, {4, 4, 4, 4}}, {4, 4, 4, 4}, {2, 2, 2, 2}, 4), 24);
            d.apply(blocked, x);
        }),
        "reference_operator: field y has 24 components on a box of 4.4.4.4 in 4 lanes" + right);
    EXPECT_EQ(refused([](auto& d, auto& x, auto&) { d.apply(x, x); }),
              "reference_operator: y = D x needs two fields, but y is x");
    EXPECT_EQ(refused([](auto& d, auto& x, auto& y) { d.apply(y, x); }), "accepted");
}

TEST(PaddedLinks, RefuseACutForAnotherNumberOfRanksAndLinksOfAnotherShape) {
    const auto refused = [](const coordinate& rank_grid, auto&& links_of) {
        return refusal_of_all(2, [&](const job& j) {
            const auto cut = decomposition::even({4, 4, 4, 4}, rank_grid);
            const dirac::padded_links links(j, cut, links_of(j.rank()));
        });
    };
    const auto of_half = [](int) { return gauge_field({4, 4, 4, 2}, lattice::gauge_components); };

    EXPECT_EQ(refused({1, 1, 1, 1}, of_half), "padded_links: the lattice is cut over 1 rank, the job has 2");
    EXPECT_EQ(refused({1, 1, 2, 2}, of_half), "padded_links: the lattice is cut over 4 ranks, the job has 2");
    EXPECT_EQ(
        refused({1, 1, 1, 2},
                [](int rank) {
                    return gauge_field({4, 4, 4, rank == 1 ? 1 : 2}, lattice::gauge_components);
                }),
        "padded_links: the gauge field has 72 components on a box of 4.4.4.1; must have 72 components on a box of "
        "4.4.4.2");
    EXPECT_EQ(refused({1, 1, 1, 2}, of_half), "accepted");
}

TEST(ReferenceOperator, OpenBoundaryCutsTheHopsAcrossIt) {
    on_every_shape([](const job& j, const decomposition& cut, const lattice::box& local) {
        const int last = cut.global()[3] - 1;
        dirac::reference_operator d(j, cut, {j, cut, random_links(local, cut.global())},
                                    with_t_boundary(lattice::boundary::open));
        spinor_field x = random_spinor(local, cut.global(), 1), y = ones(local);
        for_each_site(local, [&](std::int64_t site, const coordinate& g) {
            if (g[3] == 0 || last < 2) return;
            for (int c = 0; c < 24; ++c) x.at(site, c) = 0; // only slice 0 is a source
        });

        d.apply(y, x);

        if (last < 2) return;
        for_each_site(local, [&](std::int64_t site, const coordinate& g) {
            if (g[3] != last) return;
            for (int c = 0; c < 24; ++c) EXPECT_EQ(y.at(site, c), 0);
        });
    });
}

} // namespace
