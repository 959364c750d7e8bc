// SPDX-License-Identifier: Apache-2.0
// Built-in unpack functions compared with plain loops over global coordinates: expansions, phases, formats, site
// orders, several fields, teams; and the transpose of pack and exchange.
#include "pack_cases.hpp"

#include <halocline/comm/global_sum.hpp>
#include <halocline_test/worse.hpp>

#include <numeric>
#include <thread>

using namespace halocline_test;
using halo::unpacker;
using halo::unpacker_options;

namespace {

/// The owned site, lexicographic, across the face from a ghost with this global coordinate.
std::int64_t site_across(const decomposition& cut, int rank, const halo::plan_options& o, face f, coordinate ghost) {
    const lattice::box local = cut.local_box(rank);
    const int extent = cut.global()[f.mu], width = o.widths.behind(f);
    ghost[f.mu] = (ghost[f.mu] + (f.end == side::low ? width : -width) + 2 * extent) % extent;
    for (int mu = 0; mu < dimensions; ++mu) ghost[mu] -= local.origin[mu];
    return lattice::lexicographic_index(ghost, local.extents);
}

/// What becomes of a real of a message on its way.
double through(message_format format, double scale, double value) {
    const auto scaled = static_cast<float>(value * scale);
    if (format == message_format::half) return reference::half_value(reference::half_of(scaled)) / scale;
    if (format == message_format::bfloat16) return reference::bfloat16_value(reference::bfloat16_of(scaled)) / scale;
    return value;
}

/// y += all ghosts of the fields that the ranks sent with a packer with these options, from their global coordinates.
template <class T>
void add_plainly(const decomposition& cut, const halo::plan& plan, const packer_options& o, const unpacker_options& u,
                 int first_component, lattice::field<T>& y) {
    const int rank = plan.job().rank();
    for (int i = 0; i < lattice::faces; ++i) {
        const face f = lattice::face_of(i);
        for (const coordinate& ghost : expected_ghosts(cut, rank, plan.options(), f)) {
            std::vector<double> message =
                reference::mapped(of_face(o.projections, f.opposite()), phase_behind(cut, rank, f, o.phases),
                                  site_at(ghost, cut.global(), first_component));
            for (double& v : message) v = through(o.format, o.scale, static_cast<T>(v));
            const std::int64_t own = site_across(cut, rank, plan.options(), f, ghost);
            std::vector<T> sum(components);
            for (int c = 0; c < components; ++c) sum[c] = y.at(own, c);
            reference::add_expanded<T>(of_face(u.expansions, f), phase_behind(cut, rank, f, u.phases), message, sum);
            for (int c = 0; c < components; ++c) y.at(own, c) = sum[c];
        }
    }
}

template <class T>
double largest_difference(const lattice::field<T>& x, const lattice::field<T>& y) {
    double largest = 0;
    for (std::size_t i = 0; i < x.values().size(); ++i)
        largest = worse(largest, static_cast<double>(std::abs(x.values()[i] - y.values()[i])));
    return largest;
}

/// Largest difference between sums of the unpacker and of plain loops, over site orders and SIMD targets, with two
/// fields per message and self-exchange.
template <class T>
double add_error(packer_options o, unpacker_options u, halo::ghost_widths widths = {}) {
    return largest_error([&](const comm::job& j, const decomposition& cut, const auto& order) {
        const lattice::box local = cut.local_box(j.rank());
        halo::plan plan(
            j, cut,
            {.widths = widths, .bytes_per_site = packer<T>::bytes_per_site(o), .self_exchange = true, .fields = 2});
        const packer<T> pack(plan, o, order);
        const unpacker<T> unpack(plan, u, order);
        const auto x = several<T>(2, order, local, cut.global());
        auto y = several<T>(2, order, local, cut.global(), 500),
             expected = several<T>(2, order, local, cut.global(), 500);
        for (int k = 0; k < 2; ++k) {
            plan.start(pack.of(std::array{&x[0], &x[1]}));
            EXPECT_EQ(plan.finish(), status::ok);
            unpack.add(plan, std::array{&y[0], &y[1]});
            for (std::size_t f = 0; f < 2; ++f) add_plainly(cut, plan, o, u, static_cast<int>(100 * f), expected[f]);
        }
        return worse(largest_difference(y[0], expected[0]), largest_difference(y[1], expected[1]));
    });
}

} // namespace

TEST(Unpacker, AddsGhostsExactly) {
    EXPECT_EQ(add_error<float>({.components = components}, {.components = components}), 0);
    EXPECT_EQ(add_error<double>({.components = components}, {.components = components}), 0);
    const halo::ghost_widths uneven{{1, 0, 2, 1}, {2, 1, 1, 3}};
    EXPECT_EQ(add_error<double>({.components = components}, {.components = components}, uneven), 0);
}

TEST(Unpacker, ExpandsHalfSpinorsByTheAdjointOfTheirProjection) {
    for (const packer_options& o :
         {packer_options{.components = components, .projections = half_spinors()},
          {.components = components, .projections = half_spinors(), .phases = {1, -1, 1, -1}}}) {
        EXPECT_EQ(add_error<float>(o, expansion_of(o)), 0);
        EXPECT_EQ(add_error<double>(o, expansion_of(o)), 0);
    }
}

TEST(Unpacker, AppliesPhasesAtTheEdges) {
    const packer_options whole{.components = components}, half{.components = components, .projections = half_spinors()};
    unpacker_options signs = expansion_of(whole), half_signs = expansion_of(half), twisted = expansion_of(half);
    signs.phases = half_signs.phases = {-1, 1, 1, -1};
    twisted.phases = {twist, 1, 1, std::conj(twist)};

    EXPECT_EQ(add_error<float>(whole, signs), 0);
    EXPECT_EQ(add_error<double>(half, half_signs), 0);
    EXPECT_LE(add_error<double>(half, twisted), 1e-13);
    EXPECT_LE(add_error<float>(half, twisted), 1e-4);
}

TEST(Unpacker, ReadsHalfAndBfloat16Exactly) {
    for (const message_format format : {message_format::half, message_format::bfloat16}) {
        packer_options o{.components = components, .format = format, .scale = 4};
        EXPECT_EQ(add_error<float>(o, expansion_of(o)), 0);
        o.projections = half_spinors();
        o.phases = {1, 1, 1, -1};
        EXPECT_EQ(add_error<float>(o, expansion_of(o)), 0);
    }
}

TEST(Unpacker, ExpansionAfterProjectionIsTwiceAProjector) {
    std::mt19937 g(5);
    for (const block_map& map : half_spinors()) {
        const block_map back = adjoint(map, 4);
        std::vector<double> site(components);
        for (double& v : site) v = drawn(g, -50, 50);
        const auto twice = [&](const std::vector<double>& x) {
            return reference::mapped(back, 1, reference::mapped(map, 1, x));
        };
        std::vector<double> once = twice(site), again = twice(once);
        for (double& v : once) v *= 2; // (1 - gamma)^2 = 2 (1 - gamma)
        EXPECT_EQ(again, once);
        EXPECT_NE(once, site);
    }
}

namespace {

/// Fields and messages of whole numbers, so that sums of products are exact.
template <class T>
void draw_whole_numbers(std::mt19937& g, std::span<T> values) {
    for (T& v : values) v = static_cast<T>(drawn(g, -8, 8));
}

/// Through each face as many sites come back as ghosts lie behind it, and they belong to the sites that had left.
template <class T>
void expect_ghosts_go_back(const halo::plan& there, const halo::plan& back, const unpacker<T>& unpack) {
    for (const halo::plan_message& m : back.messages()) {
        const int forward = there.message_of(m.where);
        ASSERT_GE(forward, 0);
        const halo::plan_message& n = there.messages()[forward];
        ASSERT_EQ(n.ghost_sites, std::ssize(m.send_sites)) << lattice::to_string(m.where);
        ASSERT_EQ(m.ghost_sites, std::ssize(n.send_sites)) << lattice::to_string(m.where);
        EXPECT_TRUE(std::ranges::equal(n.send_sites, unpack.sites(m.where)));
    }
}

/// The sum of ghosts times numbers, which are given per message of the way back, field by field.
template <class T>
double product_with_ghosts(const halo::plan& there, const halo::plan& back, const packer<T>& pack,
                           const std::vector<std::vector<T>>& numbers) {
    double sum = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const face f = back.messages()[i].where;
        const auto fields = static_cast<std::size_t>(there.options().fields);
        std::vector<T> ghosts(numbers[i].size() / fields);
        for (std::size_t n = 0; n < fields; ++n) {
            pack.unpack(there.ghost(f, static_cast<int>(n)), 0, std::ssize(back.messages()[i].send_sites),
                        ghosts.data());
            sum += std::inner_product(ghosts.begin(), ghosts.end(), numbers[i].data() + n * ghosts.size(), 0.0);
        }
    }
    return sum;
}

template <class T>
double product(const std::vector<lattice::field<T>>& x, const std::vector<lattice::field<T>>& y) {
    double sum = 0;
    for (std::size_t f = 0; f < x.size(); ++f)
        for (std::int64_t s = 0; s < x[f].volume(); ++s)
            for (int c = 0; c < components; ++c) sum += static_cast<double>(x[f].at(s, c)) * y[f].at(s, c);
    return sum;
}

/// <Hx, y> with ghosts of x and any y is <x, adjoint y>, to the bit.
template <class T>
void expect_adjoint(const comm::job& j, const decomposition& cut, halo::plan_options options, packer_options o,
                    int lanes) {
    const auto order = order_of(cut.local_box(j.rank()), cut.global(), lanes);
    options.bytes_per_site = packer<T>::bytes_per_site(o);
    options.fields = 2;
    halo::plan there(j, cut, options), back(j, cut, reversed(options, cut));
    const packer<T> pack(there, o, order);
    const unpacker<T> unpack(back, adjoint_of(o), order);
    expect_ghosts_go_back(there, back, unpack);
    std::mt19937 g(static_cast<unsigned>(17 + j.rank()));
    std::vector<lattice::field<T>> x, adjoint_y;
    for (int f = 0; f < options.fields; ++f) {
        draw_whole_numbers(g, x.emplace_back(order, components).values());
        adjoint_y.emplace_back(order, components);
    }
    std::vector<std::vector<T>> y; // a number for each real of each ghost
    std::int64_t ghosts = 0;
    for (const halo::plan_message& m : back.messages()) {
        const auto sites = static_cast<std::int64_t>(m.send_sites.size());
        y.emplace_back(static_cast<std::size_t>(options.fields * sites * packer<T>::reals_per_site(o)));
        draw_whole_numbers<T>(g, y.back());
        ghosts += sites;
    }

    there.start(pack.of(std::array<const lattice::field<T>*, 2>{&x[0], &x[1]}));
    ASSERT_EQ(there.finish(), status::ok);
    start_with(back, pack, y);
    ASSERT_EQ(back.finish(), status::ok);
    unpack.add(back, std::array{&adjoint_y[0], &adjoint_y[1]});

    std::array<double, 3> sums{product_with_ghosts(there, back, pack, y), product(x, adjoint_y),
                               static_cast<double>(ghosts)};
    ASSERT_EQ(comm::global_sum(j)(sums), status::ok);
    EXPECT_EQ(sums[0], sums[1]) << j.ranks() << " ranks, lanes " << lanes;
    EXPECT_GT(sums[2], 0);
}

} // namespace

TEST(Unpacker, IsTheAdjointOfPackAndExchange) {
    const std::complex<double> i{0, 1};
    for (const int ranks : {1, 2, 4}) {
        const auto cut =
            decomposition::even({4, 4, 4, 8}, ranks == 4 ? coordinate{2, 1, 1, 2} : coordinate{1, 1, 1, ranks});
        run(ranks, [&](const comm::job& j) {
            halo::plan_options faces{.self_exchange = true}, odd = faces, wide = faces, open = faces;
            odd.parity = 1;
            wide.widths = {{1, 2, 0, 1}, {2, 0, 1, 3}};
            open.boundaries[3] = lattice::boundary::open;
            const packer_options whole{.components = components},
                turned{.components = components, .projections = half_spinors(), .phases = {i, 1, -1, -i}},
                halves{.components = components,
                       .format = message_format::half,
                       .scale = 2,
                       .projections = half_spinors(),
                       .phases = {1, 1, 1, -1}};
            std::size_t n = 0; // uses site orders in turn
            for (const halo::plan_options& o : {faces, odd, wide, open}) {
                const auto lanes = [&] { return std::array{0, 1, 2, 4, 8, 16}[n++ % 6]; };
                expect_adjoint<double>(j, cut, o, whole, lanes());
                expect_adjoint<double>(j, cut, o, turned, lanes());
                expect_adjoint<float>(j, cut, o, turned, lanes());
                expect_adjoint<float>(j, cut, o, halves, lanes());
            }
        });
    }
}

TEST(Unpacker, TeamsAddTheSameBitsAsOneThread) {
    const auto cut = decomposition::even({4, 4, 2, 6}, {1, 1, 1, 2});
    const packer_options o{.components = components, .format = message_format::half, .projections = half_spinors()};
    for (const int lanes : {0, 1, 8})
        for (const int members : {2, 3})
            run(2, [&](const comm::job& j) {
                const lattice::box local = cut.local_box(j.rank());
                const auto order = lanes == 8 ? lattice::site_order::blocked(local, cut.global(), {2, 2, 1, 1}, lanes)
                                              : order_of(local, cut.global(), lanes);
                halo::plan plan(
                    j, cut, {.bytes_per_site = packer<float>::bytes_per_site(o), .self_exchange = true, .fields = 2});
                const packer<float> pack(plan, o, order);
                const unpacker<float> unpack(plan, expansion_of(o), order);
                const auto x = several<float>(2, order, local, cut.global());
                auto y = several<float>(2, order, local, cut.global(), 500),
                     by_one = several<float>(2, order, local, cut.global(), 500);
                const std::array xs{&x[0], &x[1]};
                const std::array ys{&y[0], &y[1]}, ones{&by_one[0], &by_one[1]};
                const std::uint64_t version = y[1].version();
                for (int k = 0; k < 5; ++k) {
                    std::vector<std::thread> team;
                    const auto member = [&](int index) {
                        plan.start(pack.of(xs), {index, members});
                        if (plan.finish({index, members}) != status::ok) return;
                        unpack.add(plan, ys, {index, members});
                    };
                    for (int i = 1; i < members; ++i) team.emplace_back(member, i);
                    member(0);
                    for (std::thread& t : team) t.join();
                    unpack.add(plan, ones);
                }
                EXPECT_EQ(plan.epoch(), 5U);
                for (std::size_t f = 0; f < 2; ++f)
                    EXPECT_TRUE(std::equal(y[f].values().begin(), y[f].values().end(), by_one[f].values().begin()));
                EXPECT_NE(y[1].version(), version);
            });
}

TEST(Unpacker, AddsAndExpandsPartsOfAFaceAndAllocatesNothing) {
    const alone one;
    const lattice::box local = one.cut.local_box(0);
    on_each_simd_target([&] {
        for (const int lanes : {1, 4})
            for (const message_format format : {message_format::as_stored, message_format::half}) {
                const auto order = order_of(local, one.cut.global(), lanes);
                const packer_options o{.components = components, .format = format, .projections = half_spinors()};
                halo::plan plan = one.plan(packer<float>::bytes_per_site(o));
                const packer<float> pack(plan, o, order);
                const unpacker<float> unpack(plan, expansion_of(o), order);
                const auto x = filled<float>(order, local, one.cut.global());
                lattice::field<float> y(order, components), parts(order, components);
                std::vector<float> expanded(64 * components);
                const face f{2, side::low};

                const std::uint64_t made = allocations_in([&] {
                    plan.start(pack.of(x));
                    ASSERT_EQ(plan.finish(), status::ok);
                    unpack.add(plan, y);
                    for (const halo::plan_message& m : plan.messages())
                        for (const std::int64_t cut_at : {7, 64})
                            unpack.add(m.where, plan.ghost(m.where), cut_at == 7 ? 0 : 7, cut_at, parts);
                    unpack.expand(f, plan.ghost(f), 0, 11, expanded.data());
                    unpack.expand(f, plan.ghost(f), 11, 64, &expanded[11 * components]);
                });
                EXPECT_EQ(made, 0U);

                EXPECT_EQ(largest_difference(y, parts), 0);
                std::vector<float> message(64 * 12);
                pack.unpack(plan.ghost(f), 0, 64, message.data());
                for (std::size_t s = 0; s < 64; ++s) {
                    const std::vector<double> half(&message[12 * s], &message[12 * s] + 12),
                        expected = reference::mapped(of_face(unpack.options().expansions, f), 1, half);
                    for (std::size_t c = 0; c < components; ++c)
                        ASSERT_EQ(expanded[components * s + c], expected[c]) << s << " " << c;
                }
            }
    });
}

// Lanes of other sites may belong to another thread: -0 would become 0 if 0 were added to it.
TEST(Unpacker, LeavesOtherSitesAsTheyAre) {
    const alone one;
    const packer_options o{.components = components, .projections = half_spinors()};
    const halo::plan plan = one.plan(packer<float>::bytes_per_site(o));
    on_each_simd_target([&] {
        for (const int lanes : {1, 2, 4, 8, 16}) {
            const auto order = order_of(one.cut.local_box(0), one.cut.global(), lanes);
            const unpacker<float> unpack(plan, expansion_of(o), order);
            const std::vector<float> ones(64 * 12, 1);
            for (const halo::plan_message& m : plan.messages()) {
                lattice::field<float> y(order, components);
                std::fill(y.values().begin(), y.values().end(), -0.F);

                unpack.add(m.where, std::as_bytes(std::span(ones)).data(), 0, 40, y);

                const auto added = unpack.sites(m.where).first(40);
                for (std::int64_t s = 0; s < y.volume(); ++s)
                    for (int c = 0; c < components; ++c)
                        ASSERT_EQ(y.at(s, c) == 0 && std::signbit(y.at(s, c)),
                                  !std::binary_search(added.begin(), added.end(), s))
                            << lattice::to_string(m.where) << " site " << s << " lanes " << lanes;
            }
        }
    });
}

TEST(Unpacker, SaysThatItWasMovedFrom) {
    const alone one;
    halo::plan plan = one.plan(96);
    unpacker<float> from(plan, {.components = components}, one.order);
    lattice::field<float> y(one.order, components);
    const lattice::face f = lattice::face_of(0);
    const std::string text = moved_from("halo::unpacker");
    std::vector<float> reals(components);
    plan.start(y);
    plan.finish_or_throw();

    const unpacker<float> to = std::move(from);

    EXPECT_EQ(refusal([&] { from.add(plan, y); }), text);
    EXPECT_DEATH(from.add(f, plan.ghost(f), 0, 1, y), text);
    EXPECT_DEATH(from.expand(f, plan.ghost(f), 0, 1, reals.data()), text);
    EXPECT_EQ(refusal([&] { to.add(plan, y); }), "accepted");
}

// Whatever it adds to would lie outside such a field, or elsewhere in it.
TEST(Unpacker, RefusesFieldsAndMessagesThatItWasNotMadeFor) {
    const alone one;
    const lattice::coordinate local = one.cut.local_box(0).extents;
    const auto smaller = lattice::site_order::lexicographic({local[0], local[1], local[2], local[3] - 1});
    halo::plan plan = one.plan(96), fresh = one.plan(96), narrow = one.plan(48);
    const unpacker<float> unpack(plan, {.components = components}, one.order);
    lattice::field<float> y(one.order, components), thin(one.order, 12), small(smaller, components),
        even_odd(lattice::site_order::even_odd(one.cut.local_box(0)), components), none;
    for (halo::plan* p : {&plan, &narrow}) {
        p->start(p == &plan ? y : thin);
        p->finish_or_throw();
    }
    const auto refused = [&](lattice::field<float>& f) { return refusal([&] { unpack.add(plan, f); }); };
    const std::string who = "unpacker for halo 'p': add(): ",
                      in_order = who +
                                 "it was given a field in another site order than it was made for, which is of "
                                 "a box of " +
                                 lattice::to_string(local);
    lattice::field<float>* const two[]{&y, &y};
    lattice::field<float>* const null[]{nullptr};

    EXPECT_EQ(refused(thin), who + "it was given a field of 12 components, and was made for 24");
    EXPECT_EQ(refused(none), who + "it was given a field of 0 components, and was made for 24");
    EXPECT_EQ(refused(small), in_order);
    EXPECT_EQ(refused(even_odd), in_order);
    EXPECT_EQ(refusal([&] { unpack.add(plan, null); }), who + "it was given a field that is null");
    EXPECT_EQ(refusal([&] { unpack.add(plan, two); }), who + "it was given 2 fields, the plan was made for 1");
    EXPECT_EQ(refusal([&] { unpack.add(narrow, y); }), who + "the plan sends 48 bytes per site, it reads 96");
    EXPECT_EQ(refusal([&] { unpack.add(fresh, y); }), who + "no exchange of the plan is finished");
    EXPECT_EQ(refused(y), "accepted");
}

TEST(Unpacker, RefusesGhostsOfOtherSites) {
    const alone one;
    const auto of_parity = [&](int parity) {
        return halo::plan(one.job, one.cut,
                          {.name = "p", .bytes_per_site = 96, .self_exchange = true, .parity = parity});
    };
    halo::plan even = of_parity(0), odd = of_parity(1);
    const unpacker<float> unpack(even, {.components = components}, one.order);
    lattice::field<float> y(one.order, components);
    for (halo::plan* p : {&even, &odd}) {
        p->start(y);
        p->finish_or_throw();
    }

    EXPECT_EQ(refusal([&] { unpack.add(even, y); }), "accepted");
    EXPECT_EQ(refusal([&] { unpack.add(odd, y); }),
              "unpacker for halo 'p': add(): the plan has ghosts of other sites behind x-low than the one that it was "
              "made for");
}

TEST(Unpacker, RefusesWhatDoesNotFit) {
    const alone one;
    const halo::plan plan = one.plan(48);
    const unpacker_options good = halo::expansion_of({.components = components, .projections = half_spinors()});
    const auto expect_refusal = [&](auto type, const unpacker_options& o, const std::string& text) {
        const std::string said = refusal([&] { unpacker<decltype(type)>(plan, o, one.order); });
        EXPECT_NE(said.find(text), std::string::npos) << said << ", not " << text;
    };
    unpacker_options narrow = good, some = good, negative = good, huge = good, twisted = good;
    narrow.components = 18;
    some.expansions[3] = {};
    twisted.phases[1] = std::nan("");
    negative.scale = -1;
    huge.scale = HUGE_VAL;
    packer_options outside{.components = components, .projections = half_spinors()};
    outside.projections[0].rows[0][1].block = 4;
    const halo::plan_options odd_and_even{.widths = {{1, 1, 1, 2}, {1, 1, 1, 1}}, .self_exchange = true, .parity = 0},
        chosen{.select = [](const coordinate&) { return true; }};

    EXPECT_NO_THROW((unpacker<float>(plan, good, one.order)));
    expect_refusal(0.F, {.components = components},
                   "it reads 96 bytes of a site in a message, the plan was made for 48");
    expect_refusal(0.0, {.components = 24, .format = message_format::half}, "this one holds double");
    expect_refusal(0.F, negative, "must be positive");
    expect_refusal(0.F, huge, "scale inf: must be positive");
    expect_refusal(0.F, twisted, "phase (nan, 0) in y: must be finite");
    const unpacker<float> unpack(plan, good);
    lattice::field<float> y(lattice::site_order::lexicographic(one.cut.local_box(0).extents), components);
    EXPECT_EQ(
        refusal([&] {
            unpack.add(plan, y, {0, 0});
        }),
        "unpacker for halo 'p': add(): it was called as member 0 of a team of 0: a team has 1 member or more, which "
        "count from 0");
    expect_refusal(0.F, narrow, "its expansion makes 24 reals, a site has 18");
    expect_refusal(0.F, some, "its expansion makes 0 reals, a site has 24");
    EXPECT_THROW((void)expansion_of(outside), input_error);
    EXPECT_THROW((void)reversed(odd_and_even, one.cut), input_error);
    EXPECT_THROW((void)reversed(chosen, one.cut), input_error);
}

// What leaves through t-high arrives behind t-low: maps of other faces are not asked for.
TEST(Unpacker, OfAPlanInOneDirectionNeedsOneMap) {
    const alone one;
    packer_options o{.components = components, .projections = {}};
    o.projections[7] = half_spinors()[7];
    halo::plan plan(one.job, one.cut,
                    {.widths = {{0, 0, 0, 1}, {0, 0, 0, 0}},
                     .bytes_per_site = packer<float>::bytes_per_site(o),
                     .self_exchange = true});
    const packer<float> pack(plan, o, one.order);
    const unpacker<float> unpack(plan, halo::expansion_of(o), one.order);
    const auto x = several<float>(1, one.order, one.cut.local_box(0), one.cut.global());
    lattice::field<float> y(one.order, components);

    plan.start(pack.of(x[0]));
    ASSERT_EQ(plan.finish(), status::ok);
    unpack.add(plan, y);

    EXPECT_EQ(unpack.sites({3, side::low}).size(), 64U);
    EXPECT_TRUE(unpack.sites({3, side::high}).empty());
    EXPECT_TRUE(std::ranges::any_of(y.values(), [](float v) { return v != 0; }));
}

// On all ranks, though only one has too thin a box: the others would wait for it in their next exchange.
TEST(Unpacker, RefusesMoreLayersThanAnyRankHasSites) {
    const decomposition cut({4, 4, 4, 4}, {{{0, 4}, {0, 4}, {0, 4}, {0, 1, 4}}});
    const auto texts = refusals(2, [&](const comm::job& j) {
        halo::plan_options options{.name = "thick", .widths = {{0, 0, 0, 0}, {0, 0, 0, 2}}, .bytes_per_site = 8};
        options.boundaries[3] = lattice::boundary::open;
        const halo::plan plan(j, cut, options);
        unpacker<double>(plan, {.components = 1});
    });

    for (const std::string& text : texts)
        EXPECT_EQ(text,
                  "unpacker for halo 'thick': t-high: 2 ghost layers can't be added to the box of rank 0, 4.4.4.1");
}

/// Not every rank has ghosts behind the face, and only the ranks at the edge multiply.
TEST(Unpacker, WhatDoesNotFitOneRankIsRefusedOnAll) {
    const auto expect_refusal = expect_the_same_on_all_ranks<unpacker<float>, unpacker_options>;
    unpacker_options some = halo::expansion_of({.components = components, .projections = half_spinors()});
    some.expansions[6] = {};
    const unpacker_options odd{.components = 1, .phases = {1, 1, 1, {0, 1}}};

    expect_refusal(some, lattice::boundary::open,
                   "unpacker for halo 'p': t-low: its expansion makes 0 reals, a site has 24");
    expect_refusal(
        odd, lattice::boundary::periodic,
        "unpacker for halo 'p': t-low: a complex coefficient needs blocks of pairs (re, im), not of 1 reals");
    expect_refusal(odd, lattice::boundary::open, "");
}

TEST(Unpacker, TheWayBackIgnoresWidthsWithoutMessages) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    const halo::plan_options twice{.name = "p", .widths = {{1, 1, 1, 2}, {1, 1, 1, 2}}, .parity = 0};
    halo::plan_options around = twice;
    around.self_exchange = true;

    EXPECT_EQ(reversed(twice, cut).parity, 0);
    EXPECT_NE(refusal([&] { (void)reversed(around, cut); }).find("must be all even or all odd"), std::string::npos);
}

TEST(Unpacker, OfOneParityTheWayBackNeedsAlternatingParities) {
    const auto cut = decomposition::even({4, 4, 4, 6}, {1, 1, 1, 2}),
               odd = decomposition::even({4, 4, 3, 5}, {1, 1, 1, 2});
    const halo::plan_options half{.name = "p", .parity = 0};
    halo::plan_options open = half, around = half, whole;
    open.boundaries[3] = lattice::boundary::open;
    around.boundaries[3] = lattice::boundary::open;
    around.self_exchange = true;

    EXPECT_EQ(reversed(half, cut).parity, 1);
    EXPECT_EQ(refusal([&] { (void)reversed(half, odd); }),
              "reverse of halo 'p': of one parity around t of the lattice 4.4.3.5: parities don't alternate across the "
              "edge of an odd extent; must be even, open or without exchange");
    EXPECT_EQ(reversed(open, odd).parity, 1);
    EXPECT_NE(refusal([&] { (void)reversed(around, odd); }).find("of one parity around z"), std::string::npos);
    EXPECT_EQ(reversed(whole, odd).parity, std::nullopt);
}
