// SPDX-License-Identifier: Apache-2.0
// Built-in pack functions compared with plain loops over global coordinates, in lexicographic, even/odd and blocked
// orders of 2 to 16 lanes, on every SIMD target: copies, half-spinor projections, signs and complex phases at the
// edges, half, bfloat16 and their combinations.
#include "pack_cases.hpp"

#include <halocline/halo/unpacker.hpp>
#include <halocline_test/worse.hpp>

using namespace halocline_test;

namespace {

/// Largest difference between unpacked ghosts and plain loops, relative to the magnitude that the format promises.
template <class T>
double worst_error(const halo::plan& plan, const packer<T>& pack, const decomposition& cut, int field = 0) {
    const int rank = plan.job().rank();
    const packer_options& o = pack.options();
    const auto reals = static_cast<std::size_t>(packer<T>::reals_per_site(o));
    double worst = 0;
    for (int i = 0; i < lattice::faces; ++i) {
        const face f = lattice::face_of(i);
        if (plan.message_of(f) < 0) continue;
        const std::vector<coordinate> sites = expected_ghosts(cut, rank, plan.options(), f);
        std::vector<T> ghosts(sites.size() * reals);
        const std::int64_t middle = std::ssize(sites) / 2;
        pack.unpack(plan.ghost(f, field), 0, middle, ghosts.data());
        pack.unpack(plan.ghost(f, field), middle, std::ssize(sites),
                    ghosts.data() + static_cast<std::size_t>(middle) * reals);
        for (std::size_t s = 0; s < sites.size(); ++s) {
            const std::vector<double> expected =
                reference::mapped(of_face(o.projections, f.opposite()), phase_behind(cut, rank, f, o.phases),
                                  site_at(sites[s], cut.global(), 100 * field));
            EXPECT_EQ(expected.size(), reals);
            for (std::size_t c = 0; c < reals; ++c)
                worst = worse(worst, std::abs(ghosts[s * reals + c] - expected[c]) /
                                         std::max(std::abs(expected[c]), std::ldexp(1 / o.scale, -14)));
        }
    }
    return worst;
}

/// Largest error over site orders and SIMD targets, with self-exchange in x, y and z.
template <class T>
double exchange_error(packer_options o) {
    o.components = components;
    return largest_error([&](const comm::job& j, const decomposition& cut, const auto& order) {
        halo::plan plan(j, cut, {.bytes_per_site = packer<T>::bytes_per_site(o), .self_exchange = true});
        const packer<T> pack(plan, o, order);
        const auto x = filled<T>(order, cut.local_box(j.rank()), cut.global());
        for (int k = 0; k < 2; ++k) {
            plan.start(pack.of(x));
            EXPECT_EQ(plan.finish(), status::ok);
        }
        return worst_error(plan, pack, cut);
    });
}

/// Every half, the midpoints between neighbours, and the floats right next to those; random floats.
std::vector<float> values_to_round() {
    std::vector<float> values;
    for (std::uint32_t bits = 0; bits < 0x10000; bits += 1) {
        const double v = reference::half_value(static_cast<std::uint16_t>(bits)),
                     w = reference::half_value(static_cast<std::uint16_t>(bits + 1));
        for (const double x : {v, (v + w) / 2, std::nextafter((v + w) / 2, 0.), v + (w - v) * 0.51})
            values.push_back(static_cast<float>(x));
    }
    std::mt19937 g(3);
    for (int i = 0; i < 200000; ++i) {
        const auto bits = static_cast<std::uint32_t>(g());
        float v;
        std::memcpy(&v, &bits, sizeof v);
        values.push_back(v);
    }
    return values;
}

/// A format of 16 bits in plain code.
struct plain_format {
    std::uint16_t (*bits_of)(float);
    double (*value)(std::uint16_t);
    std::uint16_t infinity;

    /// Are these the bits of v? For a NaN, those of any NaN.
    [[nodiscard]] bool holds(std::uint16_t bits, float v) const {
        return std::isnan(v) ? (bits & 0x7fff) > infinity : bits == bits_of(v);
    }
    /// Is `read` the value of these bits?
    [[nodiscard]] bool gives(std::uint16_t bits, float read) const {
        return read == value(bits) || (std::isnan(read) && std::isnan(value(bits)));
    }
};

} // namespace

TEST(Packer, CopiesExactly) {
    EXPECT_EQ(exchange_error<float>({}), 0);
    EXPECT_EQ(exchange_error<double>({}), 0);
}

TEST(Packer, ProjectsHalfSpinorsRoundingOnce) {
    EXPECT_LE(exchange_error<float>({.projections = half_spinors()}), std::ldexp(1, -24));
    EXPECT_EQ(exchange_error<double>({.projections = half_spinors()}), 0); // sums of floats fit in a double
}

TEST(Packer, TurnsSignsAtAntiperiodicEdges) {
    EXPECT_EQ(exchange_error<float>({.phases = {1, 1, 1, -1}}), 0);
    EXPECT_EQ(exchange_error<double>({.projections = half_spinors(), .phases = {-1, 1, 1, -1}}), 0);
}

TEST(Packer, TwistsByAPhaseUpwardsAndItsConjugateDownwards) {
    // Two products per term: relative to the sum, cancellation enlarges the error.
    EXPECT_LE(exchange_error<float>({.phases = {1, twist, 1, std::conj(twist)}}), 2e-3);
    EXPECT_LE(exchange_error<double>({.projections = half_spinors(), .phases = {twist, 1, 1, twist}}), 1e-11);
}

TEST(Packer, HalvesTheBytesWithinThePromisedError) {
    const packer_options half{.components = components, .format = message_format::half, .scale = 4};

    EXPECT_EQ(packer<float>::bytes_per_site(half), packer<float>::bytes_per_site({.components = components}) / 2);
    EXPECT_LE(exchange_error<float>(half), half_error);
    EXPECT_LE(exchange_error<float>({.format = message_format::half, .scale = 3}), half_error_of_floats);
    EXPECT_LE(exchange_error<float>({.format = message_format::bfloat16}), std::ldexp(1, -8));
    const double projected =
        exchange_error<float>({.format = message_format::half, .projections = half_spinors(), .phases = {1, 1, 1, -1}});
    EXPECT_LE(projected, half_error_of_floats);
    EXPECT_GT(projected, std::ldexp(1, -13)); // it was rounded, so the message did hold halves
}

TEST(Packer, RoundsFormatsToNearestEvenOnEveryTarget) {
    const alone one;
    const std::vector<float> values = values_to_round();
    const plain_format half{reference::half_of, reference::half_value, 0x7c00},
        bfloat16{reference::bfloat16_of, reference::bfloat16_value, 0x7f80};

    on_each_simd_target([&] {
        for (const message_format format : {message_format::half, message_format::bfloat16}) {
            const plain_format& plain = format == message_format::half ? half : bfloat16;
            halo::plan plan(one.job, one.cut,
                            {.widths = {{0, 0, 0, 0}, {0, 0, 0, 1}}, .bytes_per_site = 74, .self_exchange = true});
            const packer<float> pack(plan, {.components = 37, .format = format}, one.order);
            lattice::field<float> x(one.order, 37);
            const std::size_t face_values = 37 * 64;
            std::vector<float> back(face_values);
            std::int64_t wrong = 0, wrong_back = 0;
            for (std::size_t done = 0; done < values.size(); done += face_values) {
                std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(done),
                            std::min(face_values, values.size() - done), x.data());
                plan.start(pack.of(x)); // the bottom layer in t goes to the ghosts above
                ASSERT_EQ(plan.finish(), status::ok);
                const std::byte* ghost = plan.ghost({3, side::high});
                pack.unpack(ghost, 0, 64, back.data());
                for (std::size_t i = 0; i < face_values; ++i) {
                    std::uint16_t bits;
                    std::memcpy(&bits, ghost + 2 * i, 2);
                    wrong += !plain.holds(bits, x.data()[i]);
                    wrong_back += !plain.gives(bits, back[i]);
                }
            }
            EXPECT_EQ(wrong, 0);
            EXPECT_EQ(wrong_back, 0);
        }
    });
}

// Its float and its double inverse differ: 1 / 1.1F is not the float next to 1 / 1.1. Region plans use the former.
TEST(Packer, DividesByTheScaleThatItMultipliedWith) {
    const alone one;
    constexpr double scale = 1.1;
    ASSERT_NE(1 / static_cast<float>(scale), static_cast<float>(1 / scale));
    on_each_simd_target([&] {
        for (const message_format format : {message_format::half, message_format::bfloat16}) {
            const packer_options o{.components = 1, .format = format, .scale = scale};
            const halo::plan plan = one.plan(2);
            const packer<float> pack(plan, o, one.order);
            const halo::unpacker<float> unpack(plan, expansion_of(o), one.order);
            const std::uint16_t bits =
                format == message_format::half ? reference::half_of(1.F) : reference::bfloat16_of(1.F);
            std::array<float, 2> back{};

            pack.unpack(std::as_bytes(std::span(&bits, 1)).data(), 0, 1, &back[0]);
            unpack.expand({3, side::low}, std::as_bytes(std::span(&bits, 1)).data(), 0, 1, &back[1]);

            for (const float value : back) EXPECT_EQ(value, 1 / static_cast<float>(scale));
        }
    });
}

TEST(Packer, SharesTheWorkOfATeamAndAllocatesNothing) {
    const alone one;
    const packer_options o{.components = components, .format = message_format::half, .projections = half_spinors()};
    halo::plan plan = one.plan(packer<float>::bytes_per_site(o), 2);
    const packer<float> pack(plan, o, one.order);
    const auto x = several<float>(2, one.order, one.cut.local_box(0), one.cut.global());
    const std::array xs{&x[0], &x[1]};

    const std::uint64_t made = allocations_in([&] {
        for (int i = 0; i < 3; ++i) plan.start(pack.of(xs), {i, 3}); // members one after the other: the last one sends
        ASSERT_EQ(plan.finish(), status::ok);
    });
    EXPECT_EQ(made, 0U);

    for (int f = 0; f < 2; ++f) EXPECT_LE(worst_error(plan, pack, one.cut, f), half_error_of_floats) << f;
}

// Each field's part of the message is what it would be alone: on every path, by one thread and by a team.
TEST(Packer, SendsSeveralFieldsInOneMessage) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    constexpr int fields = 3;
    int lanes_in_turn = 0;
    for (const packer_options& o :
         {packer_options{.components = components},
          {.components = components, .projections = half_spinors(), .phases = {1, 1, 1, -1}},
          {.components = components, .format = message_format::half, .scale = 4, .projections = half_spinors()}})
        for (const halo::path path : {halo::path::direct, halo::path::streamed})
            for (const int members : {1, 3}) {
                const int lanes = std::array{0, 1, 2, 4, 8, 16}[lanes_in_turn++ % 6];
                run(2, [&](const comm::job& j) {
                    const lattice::box local = cut.local_box(j.rank());
                    const auto order = order_of(local, cut.global(), lanes);
                    halo::plan plan(j, cut,
                                    {.bytes_per_site = packer<float>::bytes_per_site(o),
                                     .self_exchange = true,
                                     .fields = fields,
                                     .path = path});
                    const packer<float> pack(plan, o, order);
                    const auto x = several<float>(fields, order, local, cut.global());
                    const std::array xs{&x[0], &x[1], &x[2]};
                    for (int i = 0; i < members; ++i) plan.start(pack.of(xs), {i, members});
                    ASSERT_EQ(plan.finish(), status::ok);

                    const double bound = o.format == message_format::half ? half_error_of_floats : std::ldexp(1, -24);
                    for (int f = 0; f < fields; ++f) EXPECT_LE(worst_error(plan, pack, cut, f), bound) << f;
                });
            }
}

TEST(Packer, PacksMemoryOfTheProgramsOwn) {
    const alone one;
    for (const int lanes : {0, 1, 8}) {
        const auto order = order_of(one.cut.local_box(0), one.cut.global(), lanes);
        const packer_options o{.components = components, .projections = half_spinors()};
        halo::plan plan(
            one.job, one.cut,
            {.bytes_per_site = packer<float>::bytes_per_site(o), .self_exchange = true, .checks = check_level::normal});
        const packer<float> pack(plan, o, order);
        const auto x = filled<float>(order, one.cut.local_box(0), one.cut.global());
        std::vector<float> own(x.values().begin(), x.values().end());
        const halo::field_view view = halo::view(own.data(), order, components);

        plan.start(pack.of(halo::source_of(view)));
        ASSERT_EQ(plan.finish(), status::ok);
        EXPECT_LE(worst_error(plan, pack, one.cut), std::ldexp(1, -24));
        EXPECT_EQ(refusal<error>([&] { plan.require_fresh(view); }), "accepted");
        EXPECT_FALSE(plan.is_fresh(view)) << "nothing marks it";
        own[0] += 1;
        EXPECT_NE(refusal<error>([&] { plan.require_fresh(view); }).find("was written since"), std::string::npos);
        std::vector<double> wide(own.size());
        EXPECT_EQ(refusal([&] { (void)pack.of(halo::source_of(halo::view(wide.data(), order, components))); }),
                  "packer for halo 'halo': it was given a field of 24 components of 8 bytes instead of 4, and was made "
                  "for 24");
    }
}

TEST(Packer, RefusesMemoryOfAnotherTypeOfTheSameSize) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const halo::plan p(comm::job::single(), cut, {.bytes_per_site = 8, .self_exchange = true});
    const halo::packer<float> pack(p, {.components = 2});
    const auto order = lattice::site_order::lexicographic(cut.local_box(0).extents);
    std::vector<std::int32_t> values(4 * 4 * 4 * 4 * 2);
    const lattice::field<std::int32_t> x(order, 2);

    EXPECT_EQ(refusal([&] { (void)pack.of(halo::source_of(x)); }),
              "packer for halo 'halo': it was given a field of int32, and was made for fields of float32");
    EXPECT_EQ(refusal([&] { (void)pack.of(halo::source_of(halo::view(values.data(), order, 2))); }), "accepted")
        << "its type is not known";
}

TEST(Packer, WritesRealsThatAreProjectedAlready) {
    const alone one;
    const auto x = filled<float>(one.order, one.cut.local_box(0), one.cut.global());
    on_each_simd_target([&] {
        for (const message_format format :
             {message_format::as_stored, message_format::half, message_format::bfloat16}) {
            const packer_options o{.components = components, .format = format, .projections = half_spinors()};
            halo::plan plan = one.plan(packer<float>::bytes_per_site(o));
            const packer<float> pack(plan, o, one.order);
            plan.start(pack.of(x));
            ASSERT_EQ(plan.finish(), status::ok);
            const std::byte* ghost = plan.ghost({3, side::low});
            std::vector<float> reals(64 * 12);
            pack.unpack(ghost, 0, 64, reals.data());
            std::vector<std::byte> message(64 * packer<float>::bytes_per_site(o));

            pack.write(reals.data(), 0, 20, message.data());
            pack.write(&reals[20 * 12], 20, 64, message.data());

            EXPECT_EQ(std::memcmp(message.data(), ghost, message.size()), 0);
        }
    });
}

TEST(Packer, RefusesFieldsThatItWasNotMadeFor) {
    const alone one;
    const halo::plan plan = one.plan(96, 2);
    const packer<float> pack(plan, {.components = components}, one.order);
    const lattice::field<float> x(one.order, components), narrow(one.order, 23);
    const auto refused = [&](std::vector<const lattice::field<float>*> xs) {
        return refusal([&] { (void)pack.of(xs); });
    };
    const std::string who = "packer for halo 'p': it was given ";

    EXPECT_EQ(refusal([&] { (void)pack.of(x); }), who + "1 field, the plan was made for 2");
    EXPECT_EQ(refused({&x, &x, &x}), who + "3 fields, the plan was made for 2");
    EXPECT_EQ(refused({}), who + "0 fields, the plan was made for 2");
    EXPECT_EQ(refused({&x, nullptr}), who + "a field of 0 components, and was made for 24");
    EXPECT_EQ(refused({&x, &narrow}), who + "a field of 23 components, and was made for 24");
    const lattice::coordinate local = one.cut.local_box(0).extents;
    const auto larger = lattice::site_order::lexicographic({local[0] + 1, local[1], local[2], local[3]});
    const lattice::field<float> other(larger, components),
        even_odd(lattice::site_order::even_odd(one.cut.local_box(0)), components);
    const std::string in_order =
        "a field in another site order than it was made for, which is of a box of " + lattice::to_string(local);
    EXPECT_EQ(refused({&x, &other}), who + in_order);
    EXPECT_EQ(refused({&even_odd, &x}), who + in_order);
    EXPECT_EQ(refused({&x, &x}), "accepted");
}

/// It would read sites of which it has no places.
TEST(Packer, IsRefusedByAPlanWithOtherMessages) {
    const alone one;
    const halo::plan plan = one.plan(96);
    const packer<float> pack(plan, {.components = components}, one.order);
    const lattice::field<float> x(one.order, components);
    halo::plan like = one.plan(96), other(one.job, one.cut,
                                          {.name = "wide",
                                           .widths = {{0, 0, 0, 2}, {0, 0, 0, 0}},
                                           .bytes_per_site = 96,
                                           .self_exchange = true});

    like.start(pack.of(x));
    like.finish_or_throw();
    other.start(pack.of(x));

    EXPECT_EQ(other.finish(), comm::status::misused);
    const std::string text = refusal([&] { other.finish_or_throw(); });
    EXPECT_NE(text.find("a packer that was made for a plan with other messages"), std::string::npos) << text;
}

/// Of the same sites: it would write past the end.
TEST(Packer, IsRefusedByAPlanWithSmallerMessages) {
    const alone one;
    const halo::plan two = one.plan(96, 2);
    halo::plan narrow = one.plan(48), single = one.plan(96);
    const packer<float> pack(one.plan(96), {.components = components}, one.order),
        pack_two(two, {.components = components}, one.order);
    const lattice::field<float> x(one.order, components);
    const std::array xs{&x, &x};

    narrow.start(pack.of(x));
    single.start(pack_two.of(xs));

    EXPECT_EQ(narrow.finish(), comm::status::misused);
    EXPECT_EQ(single.finish(), comm::status::misused);
}

/// As many as it packs, but others.
TEST(Packer, IsRefusedByAPlanWithOtherSites) {
    const alone one;
    const auto of_parity = [&](int parity) {
        return halo::plan(one.job, one.cut, {.bytes_per_site = 96, .self_exchange = true, .parity = parity});
    };
    halo::plan even = of_parity(0), odd = of_parity(1);
    const packer<float> pack(even, {.components = components}, one.order);
    const lattice::field<float> x(one.order, components);

    even.start(pack.of(x));
    odd.start(pack.of(x));

    EXPECT_EQ(even.finish(), comm::status::ok);
    EXPECT_EQ(odd.finish(), comm::status::misused);
}

/// Not every rank has a message through the face, and only the ranks at the edge multiply.
TEST(Packer, WhatDoesNotFitOneRankIsRefusedOnAll) {
    const auto expect_refusal = expect_the_same_on_all_ranks<packer<float>, packer_options>;
    packer_options some{.components = components, .projections = half_spinors()};
    some.projections[6] = {};
    const packer_options odd{.components = 1, .phases = {1, 1, 1, {0, 1}}};

    expect_refusal(some, lattice::boundary::open,
                   "packer for halo 'p': t-low: its projection has 0 reals, another face's 12");
    expect_refusal(odd, lattice::boundary::periodic,
                   "packer for halo 'p': t-low: a complex coefficient needs blocks of pairs (re, im), not of 1 reals");
    expect_refusal(odd, lattice::boundary::open, "");
}

TEST(Packer, SaysThatItWasMovedFrom) {
    const alone one;
    halo::plan plan = one.plan(96);
    packer<float> from(plan, {.components = components}, one.order);
    const lattice::field<float> x(one.order, components);
    const lattice::field<float>* const xs[]{&x};
    const std::string text = moved_from("halo::packer");
    std::vector<float> reals(components);

    packer<float> to = std::move(from);

    EXPECT_EQ(refusal([&] { (void)from.of(x); }), text);
    EXPECT_EQ(refusal([&] { (void)from.of(xs); }), text);
    EXPECT_DEATH(from.unpack(plan.ghost(lattice::face_of(0)), 0, 1, reals.data()), text);
    EXPECT_DEATH(from.write(reals.data(), 0, 1, nullptr), text);
    plan.start(to.of(x));
    EXPECT_EQ(plan.finish(), status::ok);
    from = std::move(to);
    plan.start(from.of(x));
    EXPECT_EQ(plan.finish(), status::ok);
}

TEST(Packer, RefusesWhatDoesNotFit) {
    const alone one;
    const halo::plan plan = one.plan(96);
    const auto expect_refusal = [&](auto type, const packer_options& o, const std::string& text) {
        const std::string said = refusal([&] { packer<decltype(type)>(plan, o, one.order); });
        EXPECT_NE(said.find(text), std::string::npos) << said << ", not " << text;
    };
    std::array<block_map, lattice::faces> some = half_spinors(), outside = half_spinors();
    some[3] = {};
    outside[0].rows[0][1].block = 4;

    expect_refusal(0.F, {.components = 23}, "a site of the message has 92 bytes, the plan was made for 96");
    expect_refusal(0.0, {.components = 48, .format = message_format::half}, "this one holds double");
    expect_refusal(0.F, {.components = 24, .scale = 0}, "scale 0: must be positive, from 1.2e-38 to 8.5e+37");
    for (const double scale : {1e300, 1e-300, HUGE_VAL, std::nan("")})
        expect_refusal(0.F, {.components = 24, .scale = scale}, ": must be positive, from 1.2e-38 to 8.5e+37");
    expect_refusal(0.F, {.components = 24, .format = static_cast<message_format>(3)},
                   "format 3: must be one of as_stored, half, bfloat16");
    expect_refusal(0.0, {.components = 24, .projections = some}, "its projection has 0 reals, another face's 12");
    expect_refusal(0.0, {.components = 24, .projections = outside}, "block 4 is not one of the 4 of a site");
    expect_refusal(0.0, {.components = 25, .projections = half_spinors()},
                   "blocks of 6 reals do not divide a site of 25");
    expect_refusal(0.F, {.components = 24, .format = message_format::half}, "the plan was made for 96");
    expect_refusal(0.F, {.components = 24, .phases = {1, 1, {0, HUGE_VAL}, 1}}, "phase (0, inf) in z: must be finite");
    expect_refusal(0.F, {.components = 24, .phases = {std::nan(""), 1, 1, 1}}, "phase (nan, 0) in x: must be finite");
}

/// Sites of more reals than are converted at a time: copied as they are, and otherwise refused, also if the messages
/// have as many.
TEST(Packer, OfHugeSitesConvertsNone) {
    constexpr int huge = 4096;
    const alone one;
    const halo::plan plan = one.plan(huge * sizeof(float));
    packer_options swapped{.components = huge}, twisted{.components = huge, .phases = {1, 1, 1, -1}};
    for (block_map& m : swapped.projections) m = {.block_reals = huge / 2, .rows = {{{1, 1}}, {{0, 1}}}};
    const std::string text = "4096 reals per site: a projection, a phase or a change of format takes up to 2048";

    EXPECT_NO_THROW((packer<float>(plan, {.components = huge})));
    EXPECT_NO_THROW((halo::unpacker<float>(plan, {.components = huge})));
    for (const packer_options& o : {swapped, twisted}) {
        EXPECT_EQ(refusal([&] { packer<float>(plan, o); }), "packer for halo 'p': " + text);
        EXPECT_EQ(refusal([&] {
                      halo::unpacker<float>(plan,
                                            {.components = huge, .expansions = o.projections, .phases = o.phases});
                  }),
                  "unpacker for halo 'p': " + text);
    }
}

TEST(Packer, TakesFieldsInTheOrderOfThePlanByDefault) {
    const alone one;
    const auto order = lattice::site_order::even_odd(one.cut.local_box(0));
    const halo::plan plan(one.job, one.cut, {.bytes_per_site = 96, .self_exchange = true, .order = order});
    const packer<float> pack(plan, {.components = components});
    const lattice::field<float> x(order, components);

    EXPECT_NO_THROW((void)pack.of(x));
    EXPECT_THROW((void)pack.of(lattice::field<float>(one.order, components)), input_error);
}

TEST(Packer, TakesFieldsForLexicographicWithoutAnOrder) {
    const alone one;
    const halo::plan plan = one.plan(96);
    const packer<float> pack(plan, {.components = components});
    const packer<float> pack_same(plan, {.components = components},
                                  lattice::site_order::lexicographic(one.cut.local_box(0).extents));
    lattice::field<float> x(lattice::site_order::lexicographic(one.cut.local_box(0).extents), components);
    for (std::size_t i = 0; i < x.values().size(); ++i) x.values()[i] = static_cast<float>(i);
    const auto sites = static_cast<std::int64_t>(plan.messages()[0].send_sites.size());
    std::vector<std::byte> message(static_cast<std::size_t>(sites) * 96), same(message.size(), std::byte{1});

    pack.of(x)(0, 0, sites, message.data());
    pack_same.of(x)(0, 0, sites, same.data());

    EXPECT_EQ(message, same);
}
