// SPDX-License-Identifier: Apache-2.0
// Stencils driven by teams of threads, compared with stencils driven by one: every site visited once, by one member, the
// same bits, equal shares; on 1 and 2 ranks, which are threads too.
#include <halocline/comm/exact_sum.hpp>
#include <halocline/halo/box_stencil.hpp>
#include <halocline/halo/stencil.hpp>

#include "oracle.hpp"
#include "small_job.hpp"

#include <halocline_test/allocation_counter.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <thread>

using namespace halocline_test;
using comm::status;
using lattice::boundary;
using lattice::decomposition;
using lattice::field;

namespace {

/// Calls member(team) on `size` threads, of which this is member 0.
template <class Member>
void as_team(int size, Member&& member) {
    std::vector<std::jthread> others;
    for (int i = 1; i < size; ++i) others.emplace_back([&, i] { member(halo::team{i, size}); });
    member(halo::team{0, size});
}

/// A double that depends on all of the values that are added, and on their order.
class mixture {
  public:
    void add(double value) { sum_ = 0.75 * sum_ + value; }
    [[nodiscard]] double sum() const { return sum_; }

  private:
    double sum_ = 0;
};

template <class T>
T value_at(const coordinate& x, int c) {
    std::uint64_t h = mixed(static_cast<std::uint64_t>(c));
    for (int mu = 0; mu < dimensions; ++mu) h = mixed(h + static_cast<std::uint64_t>(x[mu] + 64));
    return static_cast<T>(h % 1000) / 8;
}

/// What the kernel of any star writes to component c.
template <class T, halo::star Star>
T star_at(const halo::neighbourhood<T, Star>& site, int c) {
    mixture m;
    m.add(site.here(c));
    for (int mu = 0; mu < dimensions; ++mu)
        for (int k = 1; k <= Star.radius; ++k) {
            m.add(site.at(mu, -k, c));
            m.add(site.at(mu, +k, c));
        }
    return static_cast<T>(m.sum());
}

constexpr int steps = 4;

struct sites_of_a_member {
    std::int64_t interior = 0, boundary = 0;
};

/// Steps a star by a team and by one thread; returns the sites that each member visited in the last step.
template <class T, halo::star Star>
std::vector<sites_of_a_member> compare_stars(const comm::job& j, const decomposition& cut,
                                             const halo::stencil_options& options, int members) {
    constexpr int n = Star.components;
    halo::stencil<T, Star> alone(j, cut, options), shared(j, cut, options);
    for (auto* s : {&alone, &shared}) s->set_outside(value_at<T>);
    field<T> u = alone.make_field(), next = alone.make_field(), v = alone.make_field(), v_next = alone.make_field();
    for (std::int64_t i = 0; i < u.volume(); ++i)
        for (int c = 0; c < n; ++c) u.at(i, c) = v.at(i, c) = value_at<T>(alone.global_site(i), c);
    for (int k = 0; k < steps; ++k) {
        alone.apply(u, [&](const auto& site) {
            for (int c = 0; c < n; ++c) next.data()[site.index() * n + c] = star_at<T, Star>(site, c);
        });
        u.swap(next);
    }

    std::vector<sites_of_a_member> sites(static_cast<std::size_t>(members));
    std::vector<std::atomic<int>> visits(static_cast<std::size_t>(u.volume()));
    std::atomic<int> bad{0};
    std::barrier together(members);
    as_team(members, [&](halo::team me) {
        field<T>*from = &v, *to = &v_next;
        for (int k = 0; k < steps; ++k) {
            std::int64_t count = 0;
            const auto kernel = [&](const auto& site) {
                for (int c = 0; c < n; ++c) to->data()[site.index() * n + c] = star_at<T, Star>(site, c);
                ++visits[static_cast<std::size_t>(site.index())];
                ++count;
            };
            sites_of_a_member& mine = sites[static_cast<std::size_t>(me.index)];
            together.arrive_and_wait();
            shared.start(*from, me);
            shared.for_interior(halo::sequential(kernel), me);
            mine.interior = std::exchange(count, 0);
            bad += shared.finish(me) != status::ok;
            shared.for_boundary(halo::sequential(kernel), me);
            mine.boundary = count;
            std::swap(from, to);
        }
    });

    EXPECT_EQ(bad, 0);
    EXPECT_TRUE(std::ranges::all_of(visits, [](int count) { return count == steps; }));
    const field<T>& result = steps % 2 == 0 ? v : v_next;
    EXPECT_TRUE(std::ranges::equal(result.values(), u.values()));
    return sites;
}

class StencilsOfTeams : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Members, StencilsOfTeams, testing::Values(1, 2, 3, 5));

TEST_P(StencilsOfTeams, StarsGiveTheBitsOfOneThread) {
    const int members = GetParam();
    using enum boundary;
    struct star_case {
        coordinate extents, grid;
        halo::stencil_options options;
    };
    for (const star_case& c : std::vector<star_case>{
             {{6, 5, 4, 6}, {1, 1, 1, 2}, {}},
             {{8, 3, 3, 5}, {2, 1, 1, 1}, {}},                                               // ends of rows only
             {{5, 8, 6, 4}, {1, 2, 1, 1}, {.boundaries = {open, periodic, open, periodic}}}, // rows with ghosts in y
             {{3, 4, 5, 6}, {1, 1, 1, 1}, {.self_exchange = true}},
             {{3, 3, 3, 4}, {1, 1, 1, 2}, {.boundaries = {antiperiodic, periodic, periodic, antiperiodic}}},
             {{64, 1, 1, 1}, {2, 1, 1, 1}, {}},
             {{16, 24, 1, 1}, {1, 1, 1, 1}, {.boundaries = {open, open}}}})
        run(static_cast<int>(lattice::volume(c.grid)), [&](const comm::job& j) {
            const auto cut = decomposition::even(c.extents, c.grid);
            SCOPED_TRACE(lattice::to_string(c.extents));
            compare_stars<double, halo::star{}>(j, cut, c.options, members);
            compare_stars<double, halo::star{.radius = 2, .components = 2}>(j, cut, c.options, members);
            halo::stencil_options rounded = c.options;
            rounded.format = halo::message_format::bfloat16;
            compare_stars<float, halo::star{}>(j, cut, rounded, members);
        });
}

TEST_P(StencilsOfTeams, MembersOfStarsHaveEqualShares) {
    const int members = GetParam();
    const auto cut = decomposition::even({6, 8, 7, 9}, {1, 1, 1, 1});
    // All in the interior; all dimensions with ghosts; only x, so that a block has a few sites of each row.
    for (const halo::stencil_options& options :
         std::vector<halo::stencil_options>{{}, {.self_exchange = true}, {.boundaries = {boundary::open}}}) {
        const auto sites = compare_stars<double, halo::star{}>(comm::job::single(), cut, options, members);
        const auto [least, most] = std::ranges::minmax(sites, {}, &sites_of_a_member::interior);
        EXPECT_LE(most.interior - least.interior, 6); // a row
        const auto [fewest, many] = std::ranges::minmax(sites, {}, &sites_of_a_member::boundary);
        EXPECT_LE(many.boundary - fewest.boundary, 2 * 6);
    }
}

/// Steps a box stencil by a team and by one thread.
void compare_boxes(const comm::job& j, const decomposition& cut, const halo::box_stencil_options& options,
                   int members) {
    halo::box_stencil<double> alone(j, cut, options), shared(j, cut, options);
    const lattice::box local = alone.local_box();
    for (auto* s : {&alone, &shared}) {
        s->set_outside(value_at<double>);
        for (std::int64_t i = 0; i < local.volume(); ++i)
            s->field(0).at(s->index(local.site(i)), 0) = value_at<double>(local.site(i), 0);
    }
    const halo::ghost_widths& w = options.widths;
    const auto kernel_to = [&w](double* next, auto&& visited) {
        return [next, &w, visited](const auto& site) {
            mixture m;
            for (int t = -w.low[3]; t <= w.high[3]; ++t)
                for (int y = -w.low[1]; y <= w.high[1]; ++y)
                    for (int x = -w.low[0]; x <= w.high[0]; ++x) m.add(site.at({x, y, 0, t}));
            next[site.index()] = m.sum();
            visited(site.index());
        };
    };
    for (int k = 0; k < steps; ++k) alone.apply(k % 2, kernel_to(alone.field((k + 1) % 2).data(), [](std::int64_t) {}));

    std::vector<std::atomic<int>> visits(static_cast<std::size_t>(shared.field(0).volume()));
    std::atomic<int> bad{0};
    std::barrier together(members);
    as_team(members, [&](halo::team me) {
        for (int k = 0; k < steps; ++k) {
            const auto kernel = kernel_to(shared.field((k + 1) % 2).data(),
                                          [&](std::int64_t i) { ++visits[static_cast<std::size_t>(i)]; });
            together.arrive_and_wait();
            shared.start(k % 2, me);
            shared.for_interior(kernel, me);
            bad += shared.finish(me) != status::ok;
            shared.for_boundary(kernel, me);
        }
    });

    EXPECT_EQ(bad, 0);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < local.volume(); ++i) {
        const std::int64_t at = shared.index(local.site(i));
        wrong += visits[static_cast<std::size_t>(at)] != steps;
        wrong += shared.field(0).at(at, 0) != alone.field(0).at(at, 0);
    }
    EXPECT_EQ(wrong, 0);
}

TEST_P(StencilsOfTeams, BoxesGiveTheBitsOfOneThread) {
    const int members = GetParam();
    using enum boundary;
    run(2, [&](const comm::job& j) {
        compare_boxes(j, decomposition::even({6, 5, 3, 8}, {1, 1, 1, 2}), {.widths = {{1, 1, 0, 1}, {1, 2, 0, 1}}},
                      members);
        compare_boxes(j, decomposition::even({9, 6, 1, 2}, {1, 2, 1, 1}),
                      {.widths = {{1, 1, 0, 0}, {1, 1, 0, 0}}, .boundaries = {open, antiperiodic}}, members);
    });
}

TEST_P(StencilsOfTeams, HaveExactSumsOfOneThread) {
    const int members = GetParam();
    const auto cut = decomposition::even({6, 5, 4, 7}, {1, 1, 1, 1});
    const comm::job j = comm::job::single();
    halo::stencil<double> s(j, cut, {.self_exchange = true});
    field<double> u = s.make_field();
    for (std::int64_t i = 0; i < u.volume(); ++i) u.at(i, 0) = value_at<double>(s.global_site(i), 0) / 3;
    const auto add_to = [](auto& sum) {
        return halo::sequential([&sum](const auto& site) { sum.add(site.here() * site.at(3, 1)); });
    };
    comm::exact_sum of_one(j), of_all(j);
    s.apply(u, add_to(of_one));

    std::vector<comm::exact_accumulator> parts(static_cast<std::size_t>(members));
    as_team(members, [&](halo::team me) {
        const auto add = add_to(parts[static_cast<std::size_t>(me.index)]);
        s.start(u, me);
        s.for_interior(add, me);
        EXPECT_EQ(s.finish(me), status::ok);
        s.for_boundary(add, me);
    });
    for (const comm::exact_accumulator& part : parts) of_all.add(part);
    EXPECT_EQ(of_all.sum_or_throw(), of_one.sum_or_throw());
}

TEST_P(StencilsOfTeams, AllocateNothing) {
    const int members = GetParam();
    const auto cut = decomposition::even({6, 6, 6, 6}, {1, 1, 1, 1});
    const comm::job j = comm::job::single();
    halo::stencil<double> s(j, cut, {.boundaries = {boundary::antiperiodic}, .self_exchange = true});
    halo::box_stencil<double> b(j, cut, {.widths = {{1, 1, 0, 0}, {1, 1, 0, 0}}});
    const field<double> u = s.make_field();
    std::uint64_t before = 0, after = 0;
    std::atomic<int> bad{0};
    std::barrier together(members);
    as_team(members, [&](halo::team me) {
        const auto nothing = [](const auto&) {};
        together.arrive_and_wait();
        if (me.index == 0) before = allocations();
        for (int k = 0; k < 10; ++k) {
            together.arrive_and_wait();
            s.start(u, me);
            b.start(0, me);
            s.for_interior(nothing, me);
            b.for_interior(nothing, me);
            bad += s.finish(me) != status::ok;
            bad += b.finish(me) != status::ok;
            s.for_boundary(nothing, me);
            b.for_boundary(nothing, me);
        }
        together.arrive_and_wait();
        if (me.index == 0) after = allocations();
    });
    EXPECT_EQ(bad, 0);
    EXPECT_EQ(after, before);
}

// Not a member: no site is visited, and the stencil says what is wrong.
TEST(StencilTeam, AThreadThatIsNoMemberVisitsNothing) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    halo::stencil<double> s(comm::job::single(), cut, {.self_exchange = true});
    const field<double> u = s.make_field();
    int visits = 0;
    const auto count = halo::sequential([&](const auto&) { ++visits; });
    s.start(u, {2, 2});
    s.for_interior(count, {2, 2});
    EXPECT_EQ(s.finish({2, 2}), status::misused);
    EXPECT_EQ(visits, 0);
    EXPECT_THROW(s.finish_or_throw(), input_error);
}

} // namespace
