// SPDX-License-Identifier: Apache-2.0
// The fast operator and the plain reference on small lattices, and what must hold for every such pair.
#pragma once

#include <halocline/dirac/reference_operator.hpp>
#include <halocline/dirac/schwarz_blocks.hpp>
#include <halocline/dirac/wilson_clover.hpp>
#include <halocline_test/global_fields.hpp>
#include <halocline_test/worse.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace halocline_test {

using namespace halocline;
using dirac::block_colour;
using dirac::wilson_clover;
using lattice::coordinate;
using lattice::decomposition;
using lattice::field;
using lattice::site_order;

/// Links for which the clover term is neither zero nor dominant.
inline lattice::gauge_field warm_links(const decomposition& cut, int rank) {
    return links_near_one(cut.local_box(rank), cut.global(), 0.2);
}

template <class T>
inline constexpr double rounding = std::is_same_v<T, float> ? 1e-5 : 1e-13;

template <class A, class B>
double difference(const field<A>& a, const field<B>& b) {
    double largest = 0, scale = 0;
    for (std::int64_t site = 0; site < a.volume(); ++site)
        for (int c = 0; c < a.components(); ++c) {
            const double va = static_cast<double>(a.at(site, c)), vb = static_cast<double>(b.at(site, c));
            if (!std::isfinite(va)) return std::numeric_limits<double>::infinity();
            largest = worse(largest, std::abs(va - vb));
            scale = std::max(scale, std::abs(vb));
        }
    return largest / scale;
}

inline constexpr std::array every_colour{block_colour::all, block_colour::red, block_colour::black};

/// Norm of x on the sites of blocks of a colour.
template <class T>
double norm(const field<T>& x, block_colour colour = block_colour::all) {
    const lattice::block_layout& b = *x.order().blocks();
    double sum = 0;
    for (std::int64_t site = 0; site < x.volume(); ++site) {
        const std::int64_t group = x.order().position(site) / x.order().lane_width() / b.sites_per_group;
        const block_colour its = group < b.groups[0] ? block_colour::red : block_colour::black;
        if (colour != block_colour::all && colour != its) continue;
        for (int c = 0; c < x.components(); ++c) sum += std::pow(static_cast<double>(x.at(site, c)), 2);
    }
    return std::sqrt(sum);
}

template <class T>
void subtract(field<T>& a, const field<T>& b) {
    for (std::size_t i = 0; i < a.values().size(); ++i) a.values()[i] -= b.values()[i];
}

template <class T>
bool padding_is_zero(const field<T>& x) {
    const std::int64_t lanes = x.order().lane_width();
    for (std::int64_t p = 0; p < x.order().outer_sites() * lanes; ++p)
        if (x.order().site(p) < 0)
            for (int c = 0; c < x.components(); ++c)
                if (x.outer(p / lanes)[c * lanes + p % lanes] != 0) return false;
    return true;
}

struct lattice_case {
    coordinate global, block;
};
inline const std::vector<lattice_case> cases{{{4, 4, 4, 4}, {2, 2, 2, 2}},  {{8, 8, 8, 8}, {4, 4, 4, 4}},
                                             {{6, 6, 6, 6}, {3, 3, 3, 3}},  {{7, 5, 3, 4}, {7, 5, 3, 2}},
                                             {{8, 4, 4, 12}, {4, 2, 4, 3}}, {{8, 8, 4, 4}, {8, 8, 4, 4}},
                                             {{2, 2, 4, 1}, {1, 2, 2, 1}}};
inline const std::vector<int> lane_widths{1, 4, 8, 16};

/// On these links no site-local matrix is nearly singular, so rounding errors are not amplified.
inline const dirac::wilson_parameters well_conditioned{.m0 = 1, .csw = 1.2};

/// One rank's operator and its ingredients.
template <class T>
struct problem {
    problem(const comm::job& j, const lattice_case& c, const coordinate& rank_grid, int lane_width,
            dirac::wilson_parameters p = well_conditioned)
        : cut(decomposition::even(c.global, rank_grid, c.block)), rank(j.rank()), links(j, cut, warm_links(cut, rank)),
          reference(j, cut, links, p), plain(site_order::lexicographic(cut.local_box(rank).extents)),
          order(site_order::blocked(cut.local_box(rank), c.global, c.block, lane_width)), fast(j, cut, links, p, order),
          blocks(fast, links) {}

    [[nodiscard]] field<T> random(std::uint32_t stream) const {
        field<T> x(order, lattice::spinor_components);
        fill_random(x, cut.local_box(rank), cut.global(), stream);
        return x;
    }
    [[nodiscard]] field<T> zero() const { return field<T>(order, lattice::spinor_components); }
    /// The reference's D x.
    [[nodiscard]] field<double> expected(const field<T>& x) {
        field<double> in(plain, x.components()), out(plain, x.components());
        for (std::int64_t site = 0; site < x.volume(); ++site)
            for (int c = 0; c < x.components(); ++c) in.at(site, c) = static_cast<double>(x.at(site, c));
        reference.apply(out, in);
        return out;
    }

    decomposition cut;
    int rank;
    dirac::padded_links links;
    dirac::reference_operator reference;
    std::shared_ptr<const site_order> plain, order;
    wilson_clover<T> fast;
    dirac::schwarz_blocks<T> blocks;
};

template <class T>
void expect_apply_equals_reference(problem<T>& p) {
    const field<T> x = p.random(1);
    field<T> y = p.zero();
    for (int repeat = 0; repeat < 3; ++repeat) { // both slots of the ghosts
        ASSERT_EQ(p.fast.apply(y, x), comm::status::ok);
        EXPECT_LT(difference(y, p.expected(x)), rounding<T>);
    }
    EXPECT_TRUE(padding_is_zero(y));
}

/// D = D_block + the eight faces one by one; and each face as a sum over the colours of the sources.
template <class T>
void expect_faces_sum_up(problem<T>& p) {
    const field<T> x = p.random(1);
    field<T> by_face = p.zero(), by_colour = p.zero(), halves = p.zero();
    p.fast.apply_block(by_face, x);
    by_colour.copy_from(by_face);
    halves.copy_from(by_face);

    auto all = p.fast.start_surface(x);
    ASSERT_EQ(all.finish(), comm::status::ok);
    for (unsigned f = 0; f < lattice::faces; ++f) all.add_to(by_face, block_colour::all, 1U << f);
    for (const block_colour target : {block_colour::red, block_colour::black}) {
        all.add_to(halves, target, 0x55, T(0.5));
        all.add_to(halves, target, 0xaa, T(2));
        all.add_to(halves, target, 0x55, T(0.5));
        all.add_to(halves, target, 0xaa, T(-1));
    }
    for (const block_colour source : {block_colour::red, block_colour::black}) {
        auto hops = p.blocks.start_surface(x, source);
        ASSERT_EQ(hops.finish(), comm::status::ok);
        hops.add_to(by_colour);
    }

    const field<double> expected = p.expected(x);
    EXPECT_LT(difference(by_face, expected), rounding<T>);
    EXPECT_LT(difference(halves, expected), rounding<T>);
    EXPECT_LT(difference(by_colour, expected), rounding<T>);
    EXPECT_TRUE(padding_is_zero(by_colour));
}

/// Adding while messages travel gives the same bits as adding afterwards, for every source and target.
template <class T>
void expect_overlap_keeps_bits(problem<T>& p) {
    const field<T> x = p.random(1);
    for (const block_colour source : every_colour)
        for (const block_colour target : every_colour) {
            field<T> after = p.random(2), during = p.random(2);

            auto first = p.blocks.start_surface(x, source);
            ASSERT_EQ(first.finish(), comm::status::ok);
            first.add_to(after, target, 0xff, T(-0.5));
            auto second = p.blocks.start_surface(x, source);
            ASSERT_EQ(second.finish_and_add_to(during, target, T(-0.5)), comm::status::ok);

            EXPECT_TRUE(std::ranges::equal(during.values(), after.values()))
                << static_cast<int>(source) << " to " << static_cast<int>(target);
        }
}

/// A block solve returns the residual of what it added to x.
template <class T>
void expect_residual_identity(problem<T>& p, block_colour colour) {
    const field<T> r_in = p.random(2), x_in = p.random(3);
    field<T> x = p.zero(), r = p.zero(), update = p.zero(), image = p.zero();
    x.copy_from(x_in);
    r.copy_from(r_in);

    p.blocks.solve(x, r, update, colour, 4);

    p.fast.apply_block(image, update);
    field<T> x_before = p.zero();
    x_before.copy_from(x);
    subtract(x_before, update);
    // r + D_block e = r_in: compared with r_in, since r itself may be small
    for (std::size_t i = 0; i < image.values().size(); ++i) image.values()[i] += r.values()[i];
    EXPECT_LT(difference(image, r_in), rounding<T>);
    EXPECT_LT(difference(x_before, x_in), rounding<T>);
    if (norm(r_in, colour) > 0) {
        EXPECT_LT(norm(r, colour), 0.5 * norm(r_in, colour));
    }
    if (colour != block_colour::all) {
        const block_colour other = colour == block_colour::red ? block_colour::black : block_colour::red;
        EXPECT_EQ(norm(update, other), 0);
        EXPECT_EQ(norm(r, other), norm(r_in, other));
    }
    EXPECT_TRUE(padding_is_zero(x) && padding_is_zero(r) && padding_is_zero(update));
}

inline comm::job_options small_job() {
    comm::job_options options;
    options.transports = {"shm"};
    options.slab_bytes = std::size_t{256} << 20;
    options.deadline = std::chrono::seconds(30);
    return options;
}

/// Runs `body(problem)` for all cases, lane widths and both precisions on one rank.
template <class Body>
void for_each_problem(Body&& body) {
    const comm::job j = comm::job::single(small_job());
    for (const lattice_case& c : cases)
        for (int w : lane_widths) {
            SCOPED_TRACE(lattice::to_string(c.global) + " in " + lattice::to_string(c.block) +
                         ", W = " + std::to_string(w));
            problem<double> p(j, c, {1, 1, 1, 1}, w);
            body(p);
            problem<float> q(j, c, {1, 1, 1, 1}, w);
            body(q);
        }
}

} // namespace halocline_test
