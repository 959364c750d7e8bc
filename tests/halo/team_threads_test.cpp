// SPDX-License-Identifier: Apache-2.0
// Teams of plain threads, so that the thread sanitizer sees how a team meets (it knows nothing of OpenMP's joins, which
// team_test.cpp drives). Streamed messages among them.
#include "padded_oracle.hpp"

#include <barrier>
#include <thread>

using namespace halocline_test;
using comm::status;

namespace {

constexpr int ranks = 2, members = 3, steps = 20;

/// body(job, its member, the meeting point of its team), by each member of each rank's team.
template <class Make, class Body>
void run_teams(Make&& make, Body&& body) {
    comm::job_options options;
    options.transports = {"shm"};
    options.deadline = std::chrono::seconds(30);
    comm::run_threads(
        ranks,
        [&](const comm::job& j) {
            auto subject = make(j);
            std::barrier meet(members);
            std::vector<std::thread> team;
            for (int i = 1; i < members; ++i)
                team.emplace_back([&, i] { body(j, *subject, halo::team{i, members}, meet); });
            body(j, *subject, halo::team{0, members}, meet);
            for (std::thread& t : team) t.join();
        },
        options);
}

TEST(TeamsOfThreads, ShareThePackingOfSlots) {
    const auto cut = lattice::decomposition::even({6, 6, 6, 12}, {1, 1, 1, 2});
    struct subject {
        std::shared_ptr<const lattice::site_order> order;
        halo::plan plan;
        lattice::field<double> x{order, 24};
    };
    for (const halo::path way : {halo::path::direct, halo::path::streamed})
        run_teams(
            [&](const comm::job& j) {
                const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
                return std::make_unique<subject>(
                    subject{order, halo::plan(j, cut, {.bytes_per_site = 192, .order = order, .path = way})});
            },
            [&](const comm::job& j, subject& s, halo::team me, std::barrier<>& meet) {
                for (std::uint64_t epoch = 1; epoch <= steps; ++epoch) {
                    if (me.index == 0) fill_with_oracle(s.x, cut, j.rank(), epoch);
                    meet.arrive_and_wait();
                    s.plan.start(s.x, me);
                    EXPECT_EQ(s.plan.finish(me), status::ok);
                    EXPECT_EQ(wrong_ghosts<double>(s.plan, cut, 24, epoch), 0);
                    meet.arrive_and_wait();
                }
            });
}

TEST(TeamsOfThreads, ShareTheCopiesOfShells) {
    const auto cut = lattice::decomposition::even({8, 8, 8, 4}, {1, 1, 1, 2});
    struct subject {
        lattice::field<double> x;
        halo::shell_plan plan;
    };
    for (const halo::path way : {halo::path::direct, halo::path::streamed, halo::path::packed})
        for (const halo::corner_route route : {halo::corner_route::at_once, halo::corner_route::by_dimension}) {
            const padded_case made{.cut = cut,
                                   .options = {.layout = halo::ghost_layout::padded,
                                               .shape = halo::shell::box,
                                               .corners = route,
                                               .path = way},
                                   .components = {24},
                                   .text = {}};
            run_teams(
                [&](const comm::job& j) {
                    lattice::field<double> x(order_of(made, j.rank()), 24, &j.memory());
                    halo::shell_plan plan(j, cut, made.options, {halo::bind(x)});
                    return std::make_unique<subject>(subject{std::move(x), std::move(plan)});
                },
                [&](const comm::job& j, subject& s, halo::team me, std::barrier<>& meet) {
                    for (std::uint64_t epoch = 1; epoch <= steps; ++epoch) {
                        if (me.index == 0) fill_own(s.x, cut, j.rank(), made.options, epoch);
                        meet.arrive_and_wait();
                        s.plan.start(0, me);
                        EXPECT_EQ(s.plan.finish(me), status::ok);
                        meet.arrive_and_wait();
                        if (me.index == 0) {
                            EXPECT_EQ(wrong_words(s.x, cut, j.rank(), made.options, epoch), 0);
                        }
                        meet.arrive_and_wait();
                    }
                });
        }
}

} // namespace
