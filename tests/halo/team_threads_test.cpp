// SPDX-License-Identifier: Apache-2.0
// Teams of plain threads, so that the thread sanitizer sees how a team meets (it knows nothing of OpenMP's joins, which
// team_test.cpp uses). Includes streamed messages.
#include "padded_oracle.hpp"
#include "small_job.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <string>
#include <thread>

using namespace halocline_test;
using comm::status;

namespace {

constexpr int ranks = 2, members = 3, steps = 20;

/// Runs body(job, its member, the meeting point of its team) on each member of each rank's team.
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

TEST(TeamsOfThreads, ShareWhatChangesItsFormat) {
    const auto cut = lattice::decomposition::even({8, 8, 8, 4}, {1, 1, 1, 2});
    const halo::shell_options options{.phases = {1, {0, 1}, 1, -1}, .format = halo::message_format::half};
    struct subject {
        lattice::field<float> x;
        halo::shell_plan plan;
    };
    run_teams(
        [&](const comm::job& j) {
            const lattice::box outer = halo::grown(cut.local_box(j.rank()), options.widths);
            lattice::field<float> x(lattice::site_order::lexicographic(outer.extents), 128, &j.memory());
            halo::shell_plan plan(j, cut, options, {halo::bind(x)});
            return std::make_unique<subject>(subject{std::move(x), std::move(plan)});
        },
        [&](const comm::job& j, subject& s, halo::team me, std::barrier<>& meet) {
            for (std::uint64_t epoch = 1; epoch <= steps; ++epoch) {
                if (me.index == 0) fill_own(s.x, cut, j.rank(), options, epoch);
                meet.arrive_and_wait();
                s.plan.start(0, me);
                EXPECT_EQ(s.plan.finish(me), status::ok);
                meet.arrive_and_wait();
                if (me.index == 0) {
                    EXPECT_EQ(wrong_words(s.x, cut, j.rank(), options, epoch), 0);
                }
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
                                   .options = {.phases = {1, {0, 1}, 1, -1},
                                               .layout = halo::ghost_layout::padded,
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

/// What finish() returns to threads that start and finish together as these members of a team of `members`.
template <class Plan, class Start>
std::vector<status> finished_by(Plan& p, std::initializer_list<int> indices, Start&& start) {
    std::vector<status> finished(indices.size());
    std::vector<std::thread> team;
    for (const int index : indices)
        team.emplace_back([&, index, &result = finished[team.size()]] {
            const halo::team me{index, members};
            start(me);
            result = p.finish(me);
        });
    for (std::thread& t : team) t.join();
    return finished;
}

/// The text of finish_or_throw() for a plan that was misused.
template <class Plan>
std::string text_of(Plan& p) {
    return refusal([&] { p.finish_or_throw(); });
}

TEST(TeamsOfThreads, DoNotWaitForTheMemberWhoseIndexIsWrong) {
    const lattice::coordinate extents{4, 4, 4, 4};
    const auto cut = lattice::decomposition::even(extents, {1, 1, 1, 1});
    const std::vector<status> all_misused(members, status::misused);

    for (const std::initializer_list<int> indices : {std::initializer_list<int>{2, 1, 3}, {0, 1, 7}, {0, 2, -1}}) {
        const auto j = comm::job::single(small_job());
        const std::string text = "it was called as member " + std::to_string(*(indices.end() - 1)) +
                                 " of a team of 3: a team has 1 member or more, which count from 0";
        lattice::field<double> x(lattice::site_order::lexicographic(extents), 1);
        halo::plan faces(j, cut, {.bytes_per_site = 8, .self_exchange = true});
        const padded_case made{.cut = cut, .options = {.reverse = true}, .components = {1}, .text = {}};
        lattice::field<double> padded(order_of(made, 0), 1, &j.memory());
        halo::shell_plan shell(j, cut, made.options, {halo::bind(padded)}),
            back(j, cut, made.options, {halo::bind(padded)});
        halo::region_plan region(j, {{0, 0, {1}}}, {{0, 0, {4}}}, {halo::bind(x)});

        EXPECT_EQ(finished_by(faces, indices, [&](halo::team me) { faces.start(x, me); }), all_misused);
        EXPECT_EQ(finished_by(shell, indices, [&](halo::team me) { shell.start(0, me); }), all_misused);
        EXPECT_EQ(finished_by(back, indices, [&](halo::team me) { back.start_reverse(0, me); }), all_misused);
        EXPECT_EQ(finished_by(region, indices, [&](halo::team me) { region.start(0, me); }), all_misused);

        EXPECT_EQ(text_of(faces), "halo 'halo': " + text);
        EXPECT_EQ(text_of(shell), "halo 'halo': " + text);
        EXPECT_EQ(text_of(back), "halo 'halo': " + text);
        EXPECT_EQ(text_of(region), "'regions': " + text);
    }
}

// Also if the plan was misused before, so that start() refuses nobody.
TEST(TeamsOfThreads, DoNotWaitInFinishForTheMemberWhoseIndexIsWrong) {
    const lattice::coordinate extents{4, 4, 4, 4};
    const auto cut = lattice::decomposition::even(extents, {1, 1, 1, 1});
    const auto j = comm::job::single(small_job());
    const lattice::field<double> x(lattice::site_order::lexicographic(extents), 1);
    const std::vector<status> all_misused(members, status::misused);
    halo::plan unfit(j, cut, {.bytes_per_site = 16, .self_exchange = true});

    unfit.start(x);
    EXPECT_EQ(finished_by(unfit, {1, 2, 3}, [](halo::team) {}), all_misused);
    EXPECT_EQ(finished_by(unfit, {0, 1, 3}, [](halo::team) {}), all_misused);
}

// A member that never calls, and two with one index, so that another is missing.
TEST(TeamsOfThreads, TellWhoIsMissing) {
    const lattice::coordinate extents{4, 4, 4, 4};
    const auto cut = lattice::decomposition::even(extents, {1, 1, 1, 1});
    comm::job_options options = small_job();
    options.deadline = std::chrono::milliseconds(300);
    const std::string twice = "called start() twice: two threads have its index, or it did not call finish()",
                      unstarted = "did not call start() before the job's deadline",
                      unfinished = "did not call finish() before the job's deadline";
    struct missing_member {
        std::initializer_list<int> indices;
        std::string packing, copying; // the texts for plans with slots, and for plans over fields
    };
    const std::string of_3 = " of a team of 3 ";
    for (const missing_member& c : {missing_member{{0, 1}, "2" + of_3 + unstarted, "2" + of_3 + unstarted},
                                    {{0, 2}, "1" + of_3 + unstarted, "1" + of_3 + unstarted},
                                    {{1, 2}, "0" + of_3 + unfinished, "0" + of_3 + "did not call "},
                                    {{0, 1, 1}, "1" + of_3 + twice, "1" + of_3 + twice},
                                    {{0, 0, 1}, "0" + of_3 + twice, "0" + of_3 + twice}}) {
        const auto j = comm::job::single(options);
        lattice::field<double> x(lattice::site_order::lexicographic(extents), 1);
        halo::plan faces(j, cut, {.bytes_per_site = 8, .self_exchange = true});
        const padded_case made{.cut = cut, .options = {.reverse = true}, .components = {1}, .text = {}};
        lattice::field<double> padded(order_of(made, 0), 1, &j.memory());
        halo::shell_plan shell(j, cut, made.options, {halo::bind(padded)});
        halo::region_plan region(j, {{0, 0, {1}}}, {{0, 0, {4}}}, {halo::bind(x)});
        const std::vector<status> all_misused(c.indices.size(), status::misused);

        EXPECT_EQ(finished_by(faces, c.indices, [&](halo::team me) { faces.start(x, me); }), all_misused);
        EXPECT_EQ(finished_by(shell, c.indices, [&](halo::team me) { shell.start(0, me); }), all_misused);
        EXPECT_EQ(finished_by(region, c.indices, [&](halo::team me) { region.start(0, me); }), all_misused);

        EXPECT_EQ(text_of(faces), "halo 'halo': member " + c.packing);
        EXPECT_NE(text_of(shell).find("halo 'halo': member " + c.copying), std::string::npos) << text_of(shell);
        EXPECT_NE(text_of(region).find("'regions': member " + c.copying), std::string::npos) << text_of(region);
    }
}

// As where one calls with omp_get_max_threads() and another with omp_get_num_threads().
TEST(TeamsOfThreads, TellWhoGivesAnotherSize) {
    const lattice::coordinate extents{4, 4, 4, 4};
    const auto cut = lattice::decomposition::even(extents, {1, 1, 1, 1});
    comm::job_options options = small_job();
    options.deadline = std::chrono::milliseconds(300);
    const std::string other = " gave another size of its team than another member";
    for (const std::array<int, members> sizes : {std::array{3, 3, 4}, std::array{3, 4, 3}, std::array{5, 3, 3}}) {
        const auto j = comm::job::single(options);
        lattice::field<double> x(lattice::site_order::lexicographic(extents), 1);
        halo::plan faces(j, cut, {.bytes_per_site = 8, .self_exchange = true});
        halo::region_plan region(j, {{0, 0, {1}}}, {{0, 0, {4}}}, {halo::bind(x)});
        const auto finished = [&](auto& plan, auto&& start) {
            std::array<status, members> results{};
            std::vector<std::thread> team;
            for (int i = 0; i < members; ++i)
                team.emplace_back([&, i] {
                    const halo::team me{i, sizes[static_cast<std::size_t>(i)]};
                    start(me);
                    results[static_cast<std::size_t>(i)] = plan.finish(me);
                });
            for (std::thread& t : team) t.join();
            return results;
        };
        std::array<status, members> all_misused;
        all_misused.fill(status::misused);

        EXPECT_EQ(finished(faces, [&](halo::team me) { faces.start(x, me); }), all_misused);
        EXPECT_EQ(finished(region, [&](halo::team me) { region.start(0, me); }), all_misused);

        EXPECT_NE(text_of(faces).find(other), std::string::npos) << text_of(faces);
        EXPECT_NE(text_of(region).find(other), std::string::npos) << text_of(region);
    }
}

// All call start(), one does not call finish().
TEST(TeamsOfThreads, TellWhoDoesNotFinish) {
    const lattice::coordinate extents{4, 4, 4, 4};
    const auto cut = lattice::decomposition::even(extents, {1, 1, 1, 1});
    comm::job_options options = small_job();
    options.deadline = std::chrono::milliseconds(300);
    for (const int absent : {0, 1, 2}) {
        const lattice::field<double> x(lattice::site_order::lexicographic(extents), 1);
        halo::plan p(comm::job::single(options), cut, {.bytes_per_site = 8, .self_exchange = true});
        std::vector<std::thread> team;
        for (int i = 0; i < members; ++i)
            team.emplace_back([&, i] {
                p.start(x, {i, members});
                if (i == absent) return;
                EXPECT_EQ(p.finish({i, members}), status::misused);
            });
        for (std::thread& t : team) t.join();

        EXPECT_EQ(text_of(p), "halo 'halo': member " + std::to_string(absent) +
                                  " of a team of 3 did not call finish() before the job's deadline");
    }
}

// Whichever member has the field that can't be sent: nobody waits for its share.
TEST(TeamsOfThreads, RefuseAFieldOfAnyMember) {
    const lattice::coordinate extents{4, 4, 4, 4};
    const auto cut = lattice::decomposition::even(extents, {1, 1, 1, 1});
    const lattice::field<double> right(lattice::site_order::lexicographic(extents), 1),
        wrong(lattice::site_order::lexicographic(extents), 2);
    const std::vector<status> all_misused(members, status::misused);
    for (const int wrong_one : {0, 1, 2}) {
        halo::plan p(comm::job::single(small_job()), cut, {.bytes_per_site = 8, .self_exchange = true}),
            bytes(comm::job::single(small_job()), cut, {.bytes_per_site = 8, .self_exchange = true});
        const auto* const values = reinterpret_cast<const std::byte*>(right.data());

        EXPECT_EQ(finished_by(p, {0, 1, 2}, [&](halo::team me) { p.start(me.index == wrong_one ? wrong : right, me); }),
                  all_misused);
        EXPECT_EQ(finished_by(bytes, {0, 1, 2},
                              [&](halo::team me) { bytes.start_bytes(me.index == wrong_one ? nullptr : values, me); }),
                  all_misused);

        EXPECT_NE(text_of(p).find("start() was given 1 field, one of 16 bytes per site"), std::string::npos);
        EXPECT_NE(text_of(bytes).find("start_bytes() was given no address"), std::string::npos);
    }
}

// Member 0 leaves start() when its own share is packed: the others may still be elsewhere.
TEST(TeamsOfThreads, HaveNoGhostsBeforeALateMemberHasPacked) {
    const lattice::coordinate extents{4, 4, 4, 4};
    const auto cut = lattice::decomposition::even(extents, {1, 1, 1, 1});
    lattice::field<double> x(lattice::site_order::lexicographic(extents), 1);
    halo::plan p(comm::job::single(small_job()), cut, {.bytes_per_site = 8, .self_exchange = true});
    fill_with_oracle(x, cut, 0, 1);
    p.start(x);
    ASSERT_EQ(p.finish(), status::ok);
    fill_with_oracle(x, cut, 0, 2);

    p.start(x, {0, 2});
    EXPECT_FALSE(p.test()) << "finish() would wait for member 1";
    EXPECT_TRUE(p.completed().empty()) << "the ghosts are still those of exchange 1";
    std::thread late([&] {
        p.start(x, {1, 2});
        EXPECT_EQ(p.finish({1, 2}), status::ok);
    });
    std::size_t faces = 0;
    while (!p.test()) faces += p.completed().size();
    EXPECT_EQ(p.finish({0, 2}), status::ok);
    faces += p.completed().size();
    late.join();

    EXPECT_EQ(faces, p.messages().size());
    EXPECT_EQ(wrong_ghosts<double>(p, cut, 1, 2), 0);
}

TEST(TeamsOfThreads, TellWhoIsMissingToAMemberThatPolls) {
    const auto cut = lattice::decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    comm::job_options options = small_job();
    options.deadline = std::chrono::milliseconds(300);
    const lattice::field<double> x(lattice::site_order::lexicographic({4, 4, 4, 4}), 1);
    halo::plan p(comm::job::single(options), cut, {.bytes_per_site = 8, .self_exchange = true});

    p.start(x, {0, 2});
    while (!p.test()) std::this_thread::yield();

    EXPECT_EQ(p.finish({0, 2}), status::misused);
    EXPECT_EQ(text_of(p), "halo 'halo': member 1 of a team of 2 did not call start() before the job's deadline");
}

/// Runs an exchange of two ranks, with a team of 2 on rank 0. While its member 0 waits for rank 1, its member 1 makes a
/// call with a wrong index. Expects that both notice.  make(job): a plan; start(plan, member).
template <class Make, class Start>
void expect_noted_misuse(Make&& make, Start&& start) {
    std::atomic<bool> noted{false};
    comm::run_threads(
        2,
        [&](const comm::job& j) {
            auto subject = make(j);
            if (j.rank() == 1) {
                while (!noted) std::this_thread::yield();
                start(*subject, halo::team{});
                EXPECT_EQ(subject->plan.finish(), status::ok);
                return;
            }
            std::atomic<bool> started{false};
            std::thread other([&] {
                start(*subject, {1, 2});
                while (!started) std::this_thread::yield();
                std::this_thread::sleep_for(std::chrono::milliseconds(50)); // member 0 waits by now
                start(*subject, {7, 2});
                noted = true;
                EXPECT_EQ(subject->plan.finish({1, 2}), status::misused);
            });
            start(*subject, {0, 2});
            started = true;
            EXPECT_EQ(subject->plan.finish({0, 2}), status::misused) << "arrived, but a call was refused";
            other.join();
            EXPECT_NE(text_of(subject->plan).find("it was called as member 7 of a team of 2"), std::string::npos);
        },
        small_job());
}

TEST(TeamsOfThreads, KeepAMisuseThatIsNotedWhileMember0Waits) {
    const auto cut = lattice::decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    const halo::shell_options options{};
    struct shell {
        lattice::field<double> x;
        halo::shell_plan plan;
    };
    struct regions {
        lattice::field<double> x;
        halo::region_plan plan;
    };
    expect_noted_misuse(
        [&](const comm::job& j) {
            const lattice::box outer = halo::grown(cut.local_box(j.rank()), options.widths);
            lattice::field<double> x(lattice::site_order::lexicographic(outer.extents), 1, &j.memory());
            halo::shell_plan plan(j, cut, options, {halo::bind(x)});
            return std::make_unique<shell>(shell{std::move(x), std::move(plan)});
        },
        [](shell& s, halo::team me) { s.plan.start(0, me); });
    expect_noted_misuse(
        [&](const comm::job& j) {
            lattice::field<double> x(lattice::site_order::lexicographic({4, 4, 4, 4}), 1, &j.memory());
            const int peer = 1 - j.rank();
            halo::region_plan plan(j, {{peer, 0, {1}}}, {{peer, 0, {4}}}, {halo::bind(x)});
            return std::make_unique<regions>(regions{std::move(x), std::move(plan)});
        },
        [](regions& s, halo::team me) { s.plan.start(0, me); });
}

// So the peer's computation with this face can begin while the other faces are packed.
TEST(TeamsOfThreads, SendAFaceBeforeTheNextIsPacked) {
    const auto cut = lattice::decomposition::even({8, 8, 8, 4}, {1, 1, 1, 2});
    std::atomic<int> seen{0}; // faces that rank 1 has received
    struct subject {
        halo::plan plan;
        std::atomic<int> late{0};
        explicit subject(halo::plan p) : plan(std::move(p)) {}
    };
    run_teams([&](const comm::job& j) { return std::make_unique<subject>(halo::plan(j, cut, {.bytes_per_site = 64})); },
              [&](const comm::job& j, subject& s, halo::team me, std::barrier<>& meet) {
                  for (int epoch = 1; epoch <= steps; ++epoch) {
                      meet.arrive_and_wait();
                      s.plan.start(
                          [&](int message, std::int64_t first, std::int64_t last, std::byte* to) {
                              const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
                              // Rank 0 packs each face when the one before has arrived.
                              while (j.rank() == 0 && seen < 2 * (epoch - 1) + message) {
                                  if (std::chrono::steady_clock::now() > limit) {
                                      ++s.late;
                                      break;
                                  }
                                  std::this_thread::yield();
                              }
                              std::fill(to + 64 * first, to + 64 * last, std::byte{1});
                          },
                          me);
                      if (j.rank() == 1 && me.index == 0)
                          while (!s.plan.test()) seen += static_cast<int>(s.plan.completed().size());
                      EXPECT_EQ(s.plan.finish(me), status::ok);
                      if (j.rank() == 1 && me.index == 0) seen += static_cast<int>(s.plan.completed().size());
                      meet.arrive_and_wait();
                  }
                  EXPECT_EQ(s.late, 0);
              });
}

} // namespace
