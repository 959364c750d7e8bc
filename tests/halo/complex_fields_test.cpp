// SPDX-License-Identifier: Apache-2.0
// Fields of complex components, beside fields of two reals for each: plans, packers, unpackers and stencils make the
// same bits of both, also with twisted boundaries and rounded messages.
#include <halocline/halo/box_stencil.hpp>
#include <halocline/halo/packer.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/halo/stencil.hpp>
#include <halocline/halo/unpacker.hpp>

#include "oracle.hpp"
#include "small_job.hpp"

#include <complex>

using namespace halocline_test;
using lattice::decomposition;
using lattice::field;

namespace {

template <class R>
class ComplexFields : public testing::Test {};
using reals = testing::Types<float, double>;
TYPED_TEST_SUITE(ComplexFields, reals);

const coordinate global{4, 3, 4, 6};
const halo::boundary_phases twists{1.0, std::polar(1.0, 0.7), -1.0, std::complex<double>(0, 1)};

/// Real r of a site, a small number that float holds.
template <class R>
R value(const coordinate& x, int r) {
    return static_cast<R>(mixed(static_cast<std::uint64_t>(lattice::lexicographic_index(x, global) * 64 + r)) % 4096);
}
template <class C>
lattice::real_of<C>* reals_in(C* values) {
    return reinterpret_cast<lattice::real_of<C>*>(values);
}
template <class C>
void fill(field<C>& x, const lattice::box& box, int seed = 0) {
    const int n = x.components() * lattice::reals_of<C>;
    for (std::int64_t i = 0; i < x.volume(); ++i)
        for (int r = 0; r < n; ++r) reals_in(x.data())[i * n + r] = value<lattice::real_of<C>>(box.site(i), r + seed);
}
/// Reals that differ.
template <class A, class B>
std::int64_t differences(const field<A>& a, const field<B>& b) {
    const auto* const x = reals_in(const_cast<A*>(a.data()));
    const auto* const y = reals_in(const_cast<B*>(b.data()));
    const std::int64_t n = a.volume() * a.components() * lattice::reals_of<A>;
    EXPECT_EQ(n, b.volume() * b.components() * lattice::reals_of<B>);
    std::int64_t differ = 0;
    for (std::int64_t i = 0; i < n; ++i) differ += x[i] != y[i];
    return differ;
}

} // namespace

TYPED_TEST(ComplexFields, TravelAsTwoRealsPerComponent) {
    using R = TypeParam;
    using C = std::complex<R>;
    run(2, [](const comm::job& j) {
        const auto cut = decomposition::even(global, {1, 1, 1, 2});
        const lattice::box local = cut.local_box(j.rank());
        field<C> a(local.extents, 3), b(local.extents, 3);
        field<R> as_reals(local.extents, 6);
        fill(a, local);
        fill(b, local, 10);
        fill(as_reals, local, 10);
        halo::plan plan(j, cut, halo::options_for(a, {.self_exchange = true, .fields = 2}));
        plan.start(std::array{&a, &b});
        plan.finish_or_throw();
        for (int k = 0; k < 2; ++k) {
            std::int64_t wrong = 0;
            for (const halo::plan_message& m : plan.messages()) {
                const std::vector<coordinate> sites = plan.ghost_sites(m.where);
                const std::span<const C> ghosts = plan.ghosts<C>(m.where, k);
                ASSERT_EQ(ghosts.size(), 3 * sites.size());
                for (std::size_t i = 0; i < ghosts.size(); ++i) {
                    const int r = 10 * k + 2 * static_cast<int>(i % 3);
                    wrong += ghosts[i] != C(value<R>(sites[i / 3], r), value<R>(sites[i / 3], r + 1));
                }
            }
            EXPECT_EQ(wrong, 0) << "field " << k;
        }
        // One plan takes both, here as one field; both are tracked.
        halo::plan one(j, cut, halo::options_for(as_reals, {.checks = check_level::normal}));
        ASSERT_EQ(one.ensure_halo(a), comm::status::ok);
        EXPECT_TRUE(one.is_fresh(a));
        ASSERT_EQ(one.ensure_halo(as_reals), comm::status::ok);
        EXPECT_FALSE(one.is_fresh(a));
        one.require_fresh(as_reals);
        one.start(halo::view(b));
        one.finish_or_throw();
        b.data()[b.volume() * 3 - 1] += C(0, 1); // of the last site, which was sent; not marked
        EXPECT_THROW(one.require_fresh(b), error);
    });
}

TYPED_TEST(ComplexFields, ArePackedAndAddedAsReals) {
    using R = TypeParam;
    using C = std::complex<R>;
    run(2, [](const comm::job& j) {
        const auto cut = decomposition::even(global, {1, 1, 1, 2});
        const lattice::box local = cut.local_box(j.rank());
        const auto order = lattice::site_order::lexicographic(local.extents);
        const halo::packer_options options{.components = 4,
                                           .format = sizeof(R) == 4 ? halo::message_format::bfloat16
                                                                    : halo::message_format::as_stored,
                                           .projections = {},
                                           .phases = twists};
        const auto bytes = halo::packer<R>::bytes_per_site(options);
        halo::plan plan(j, cut, {.bytes_per_site = bytes, .self_exchange = true, .fields = 2, .order = order});
        const halo::packer<R> pack(plan, options);
        const halo::unpacker<R> unpack(plan, halo::expansion_of(options));
        field<C> x[2]{{order, 2}, {order, 2}}, y[2]{{order, 2}, {order, 2}};
        field<R> u[2]{{order, 4}, {order, 4}}, v[2]{{order, 4}, {order, 4}};
        for (int k = 0; k < 2; ++k) {
            fill(x[k], local, k);
            fill(u[k], local, k);
        }
        plan.start(pack.of(std::array<const field<R>*, 2>{&u[0], &u[1]}));
        plan.finish_or_throw();
        unpack.add(plan, std::array{&v[0], &v[1]});
        plan.start(pack.of(std::array<const field<C>*, 2>{&x[0], &x[1]}));
        plan.finish_or_throw();
        unpack.add(plan, std::array{&y[0], &y[1]});
        for (int k = 0; k < 2; ++k) EXPECT_EQ(differences(y[k], v[k]), 0);

        halo::plan single(j, cut, {.bytes_per_site = bytes, .self_exchange = true, .order = order});
        const halo::packer<R> pack_one(single, options);
        const halo::unpacker<R> unpack_one(single, halo::expansion_of(options));
        ASSERT_EQ(single.ensure_halo(pack_one.of(x[0])), comm::status::ok);
        EXPECT_TRUE(single.is_fresh(pack_one.of(x[0])));
        unpack_one.add(single, y[1]);
        unpack_one.add(single, v[1]);
        EXPECT_EQ(differences(y[1], v[1]), 0);
        field<C> three(order, 3);
        EXPECT_EQ(refusal([&] { (void)pack_one.of(three); }),
                  "packer for halo 'halo': it was given a field of 6 components, and was made for 4");
        EXPECT_EQ(refusal([&] { unpack_one.add(single, three); }),
                  "unpacker for halo 'halo': add(): it was given a field of 3 complex components, and was made for "
                  "reals: 4");
    });
}

/// One step of a star, of complex components or of their reals: the weights are real, so both do the same operations.
template <class S, class C, int components>
void step_star(S& s, const field<C>& u, field<C>& next) {
    s.apply(u, [&](const auto& n) {
        for (int c = 0; c < components; ++c) {
            C sum = n.here(c);
            for (int mu = 0; mu < dimensions; ++mu)
                for (const int k : {-2, -1, 1, 2}) sum += n.at(mu, k, c) * static_cast<lattice::real_of<C>>(mu + k + 3);
            next.data()[n.index() * components + c] = sum;
        }
    });
}

TYPED_TEST(ComplexFields, OfAStarAreBitsOfItsReals) {
    using R = TypeParam;
    using C = std::complex<R>;
    for (const auto format : {halo::message_format::as_stored, halo::message_format::bfloat16}) {
        if (sizeof(R) == 8 && format != halo::message_format::as_stored) continue;
        run(2, [&](const comm::job& j) {
            const auto cut = decomposition::even(global, {1, 1, 1, 2});
            halo::stencil_options options{.phases = twists, .format = format, .checks = check_level::normal};
            options.boundaries[0] = lattice::boundary::open;
            halo::stencil<C, halo::star{2, 2}> complex_star(j, cut, options);
            halo::stencil<R, halo::star{2, 4}> real_star(j, cut, options);
            const auto beyond = [](const coordinate& x, int r) { return static_cast<R>(x[0] + 10 * x[3] + r); };
            complex_star.set_outside(
                [&](const coordinate& x, int c) { return C(beyond(x, 2 * c), beyond(x, 2 * c + 1)); });
            real_star.set_outside(beyond);
            auto u = complex_star.make_field(), u_next = complex_star.make_field();
            auto v = real_star.make_field(), v_next = real_star.make_field();
            fill(u, complex_star.local_box());
            fill(v, real_star.local_box());
            for (int step = 0; step < 2; ++step) {
                step_star<decltype(complex_star), C, 2>(complex_star, u, u_next);
                step_star<decltype(real_star), R, 4>(real_star, v, v_next);
                EXPECT_EQ(differences(u_next, v_next), 0) << "step " << step;
                u.swap(u_next);
                v.swap(v_next);
            }
        });
    }
}

TYPED_TEST(ComplexFields, OfABoxAreBitsOfItsReals) {
    using R = TypeParam;
    using C = std::complex<R>;
    run(2, [](const comm::job& j) {
        const auto cut = decomposition::even(global, {1, 1, 1, 2});
        halo::box_stencil_options options{.phases = twists, .checks = check_level::normal};
        options.boundaries[0] = lattice::boundary::open;
        if (sizeof(R) == 4) options.format = halo::message_format::half;
        halo::box_stencil<C, 2> s(j, cut, options);
        halo::box_stencil<R, 4> t(j, cut, options);
        const auto beyond = [](const coordinate& x, int r) { return static_cast<R>(x[0] + 10 * x[3] + r); };
        s.set_outside([&](const coordinate& x, int c) { return C(beyond(x, 2 * c), beyond(x, 2 * c + 1)); });
        t.set_outside(beyond);
        const lattice::box local = s.local_box();
        for (std::int64_t i = 0; i < local.volume(); ++i) {
            const coordinate x = local.site(i);
            for (int r = 0; r < 4; ++r) {
                reals_in(s.field(0).data())[s.index(x) * 4 + r] = value<R>(x, r);
                t.field(0).data()[t.index(x) * 4 + r] = value<R>(x, r);
            }
        }
        const auto diagonals = [](auto& stencil, auto components) {
            auto* const next = stencil.field(1).data();
            stencil.apply(0, [next, components](const auto& n) {
                for (int c = 0; c < components(); ++c) {
                    auto sum = n.here(c);
                    for (const int k : {-1, 1}) sum += n.at({k, 0, 0, k}, c) - n.at({0, k, k, -k}, c);
                    next[n.index() * components() + c] = sum;
                }
            });
        };
        diagonals(s, std::integral_constant<int, 2>());
        diagonals(t, std::integral_constant<int, 4>());
        EXPECT_EQ(differences(s.field(0), t.field(0)), 0) << "ghosts";
        EXPECT_EQ(differences(s.field(1), t.field(1)), 0) << "results";
    });
}

TYPED_TEST(ComplexFields, ThatAKernelWritesAreNoticed) {
    using C = std::complex<TypeParam>;
    run(1, [](const comm::job& j) {
        halo::stencil<C> s(j, decomposition::even(global, {1, 1, 1, 1}), {.checks = check_level::normal});
        auto u = s.make_field();
        EXPECT_THROW(s.apply(u, [&](const auto& n) { u.data()[n.index()] += C(0, 1); }), error);
    });
}

TYPED_TEST(ComplexFields, HaveNoLanes) {
    using C = std::complex<TypeParam>;
    const auto order = lattice::site_order::blocked({{}, {4, 4, 4, 4}}, {4, 4, 4, 4}, {2, 2, 2, 2}, 4);
    EXPECT_EQ(
        refusal([&] { field<C>(order, 1); }),
        "a field of complex components in a site order of 4 lanes; there it has two real ones for each, re and im");
    C* const nowhere = nullptr;
    EXPECT_EQ(refusal([&] { (void)halo::view(nowhere, order); }),
              "a view of complex components in a site order of 4 lanes; there they are two real ones each, re and im");
}
