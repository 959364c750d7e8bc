// SPDX-License-Identifier: Apache-2.0
// Faces that sender and receiver copy together (docs/decisions/0049-joint-copies.md): exact ghosts whoever is late, in
// every layout; what is excluded; and what the model decides. Ranks are threads.
#include "padded_oracle.hpp"
#include "small_job.hpp"

#include <halocline_test/allocation_counter.hpp>

#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

using namespace halocline_test;
using comm::status;
using halo::path;
using halo::plan;
using halo::region_plan;
using lattice::decomposition;
using lattice::field;

namespace {

/// Box faces of 512 sites or more, cut in x (a run per site) or in t (one run).
decomposition cut_in(int mu, int ranks) {
    coordinate global{8, 8, 8, 8}, grid{1, 1, 1, 1};
    global[mu] = 4 * ranks;
    grid[mu] = ranks;
    return decomposition::even(global, grid);
}

/// In each exchange another rank is late, before it starts or before it finishes.
class lateness {
  public:
    explicit lateness(const comm::job& j) : rank_(j.rank()), ranks_(j.ranks()) {}
    void before_start(std::uint64_t k) const { wait_if(k % 3 == 0, k); }
    void before_finish(std::uint64_t k) const { wait_if(k % 3 == 1, k); }

  private:
    void wait_if(bool now, std::uint64_t k) const {
        if (now && k / 3 % static_cast<std::uint64_t>(ranks_) == static_cast<std::uint64_t>(rank_))
            std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    int rank_, ranks_;
};

std::string paths_of(const plan& p) {
    std::string paths;
    for (const halo::plan_message& m : p.messages())
        paths += (paths.empty() ? "" : " ") + std::string(to_string(m.path));
    return paths;
}

/// The sum over all ranks.
std::uint64_t sum(const comm::job& j, std::uint64_t mine) {
    std::uint64_t all = 0;
    for (const std::string& text : j.gather(std::to_string(mine))) all += std::stoull(text);
    return all;
}

/// Costs by which both ends copy faces of 256 KiB and more.
comm::costs costs_for_joint() {
    return {.flag_seconds = 2e-7, .copy_seconds_per_byte = 1e-10, .alone_seconds = 80e-6, .joint_seconds = 50e-6};
}

} // namespace

class JointPathOnRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, JointPathOnRanks, testing::Values(1, 2, 3, 4, 6, 8));

// The field is written right after finish(): a piece that is read later has another epoch's values.
TEST_P(JointPathOnRanks, GhostsAreExactWhoeverIsLate) {
    run(GetParam(), [](const comm::job& j) {
        const lateness late(j);
        for (const int mu : {0, 3}) {
            const decomposition cut = cut_in(mu, j.ranks());
            const auto order = site_order::lexicographic(cut.local_box(j.rank()).extents);
            plan p(j, cut, {.bytes_per_site = 40 * 8, .self_exchange = true, .order = order, .path = path::joint});
            field<double> x(order, 40, &j.memory()), y(order, 40, &j.memory());
            for (std::uint64_t k = 1; k <= 30; ++k) {
                field<double>& f = (k + static_cast<std::uint64_t>(j.rank())) % 2 == 0 ? x : y;
                fill_with_oracle(f, cut, j.rank(), k);
                late.before_start(k);
                p.start(f);
                late.before_finish(k);
                if (k % 4 == 0) (void)p.test();
                ASSERT_EQ(p.finish(), status::ok);
                ASSERT_EQ(wrong_ghosts<double>(p, cut, 40, k), 0) << "epoch " << k << ", cut in " << mu;
            }
        }
    });
}

TEST_P(JointPathOnRanks, PaddedGhostsAreExactWhoeverIsLate) {
    run(GetParam(), [](const comm::job& j) {
        const lateness late(j);
        for (const int mu : {0, 3})
            for (const halo::corner_route route : {halo::corner_route::at_once, halo::corner_route::by_dimension}) {
                const padded_case made{.cut = cut_in(mu, j.ranks()),
                                       .options = {.shape = halo::shell::box, .corners = route, .path = path::joint},
                                       .components = {16},
                                       .text = {}};
                const auto order = order_of(made, j.rank());
                field<double> x(order, 16, &j.memory()), y(order, 16, &j.memory());
                shell_plan p(j, made.cut, made.options, {halo::bind(x), halo::bind(y)});
                for (std::uint64_t k = 1; k <= 15; ++k) {
                    const int which = static_cast<int>((k + static_cast<std::uint64_t>(j.rank())) % 2);
                    field<double>& f = which == 0 ? x : y;
                    fill_own(f, made.cut, j.rank(), made.options, k);
                    late.before_start(k);
                    p.start(which);
                    late.before_finish(k);
                    if (k % 4 == 0) (void)p.test();
                    ASSERT_EQ(p.finish(), status::ok);
                    ASSERT_EQ(wrong_words(f, made.cut, j.rank(), made.options, k), 0) << "epoch " << k;
                }
            }
    });
}

namespace {

/// Two ranks exchange until rank 1 has copied a piece of rank 0's message, which is always late. Returns whether it
/// has, and checks all ghosts.
template <class Start>
void expect_help(const comm::job& j, plan& p, const decomposition& cut, field<double>& x, Start&& start) {
    std::uint64_t helped = 0;
    for (std::uint64_t k = 1; helped == 0; ++k) {
        ASSERT_LT(k, 3000U) << "no piece was copied by its receiver: " << p.describe();
        fill_with_oracle(x, cut, j.rank(), k);
        if (j.rank() == 0) std::this_thread::sleep_for(std::chrono::microseconds(500));
        start(x);
        ASSERT_EQ(p.finish(), status::ok);
        ASSERT_EQ(wrong_ghosts<double>(p, cut, x.components(), k), 0);
        if (k % 20 == 0) helped = sum(j, p.statistics().pieces_helped);
    }
}

} // namespace

TEST(JointPath, AReceiverThatWaitsCopiesPiecesOfEveryOrder) {
    const decomposition cut = decomposition::even({16, 8, 8, 8}, {2, 1, 1, 1});
    run(2, [&](const comm::job& j) {
        const lattice::box local = cut.local_box(j.rank());
        for (const auto& order : {site_order::lexicographic(local.extents), site_order::even_odd(local),
                                  site_order::blocked(local, cut.global(), {2, 2, 2, 2}, 8)}) {
            plan p(j, cut, {.bytes_per_site = 96 * 8, .order = order, .path = path::joint});
            field<double> x(order, 96, &j.memory());
            EXPECT_EQ(paths_of(p), "joint joint");
            EXPECT_NE(p.describe().find(" joint "), std::string::npos) << p.describe();
            expect_help(j, p, cut, x, [&](const field<double>& f) { p.start(f); });
        }
    });
}

TEST(JointPath, ReceiversHelpWithBytesToo) {
    const decomposition cut = decomposition::even({16, 8, 8, 8}, {2, 1, 1, 1});
    run(2, [&](const comm::job& j) {
        plan p(j, cut, {.bytes_per_site = 96 * 8, .path = path::joint});
        field<double> x(site_order::lexicographic(cut.local_box(j.rank()).extents), 96, &j.memory());
        expect_help(j, p, cut, x,
                    [&](const field<double>& f) { p.start_bytes(reinterpret_cast<const std::byte*>(f.data())); });
    });
}

TEST(JointPath, ReceiversHelpWithPaddedFaces) {
    const decomposition cut = decomposition::even({16, 8, 8, 8}, {2, 1, 1, 1});
    const halo::ghost_widths widths{{1, 0, 0, 0}, {1, 0, 0, 0}};
    run(2, [&](const comm::job& j) {
        const shell_options options{.widths = widths, .path = path::joint};
        field<double> x(site_order::lexicographic(halo::grown(cut.local_box(j.rank()), widths).extents), 96,
                        &j.memory());
        shell_plan p(j, cut, options, {halo::bind(x)});
        EXPECT_NE(p.describe().find(" joint "), std::string::npos) << p.describe();
        std::uint64_t helped = 0;
        for (std::uint64_t k = 1; helped == 0; ++k) {
            ASSERT_LT(k, 3000U) << "no piece was copied by its receiver";
            fill_own(x, cut, j.rank(), options, k);
            if (j.rank() == 0) std::this_thread::sleep_for(std::chrono::microseconds(500));
            p.start();
            ASSERT_EQ(p.finish(), status::ok);
            ASSERT_EQ(wrong_words(x, cut, j.rank(), options, k), 0);
            if (k % 20 == 0) helped = sum(j, p.statistics().pieces_helped);
        }
    });
}

// Fields that peers can't read, orders that they don't know, and what callers pack, are copied by the sender alone.
TEST(JointPath, WhatReceiversCantReadTheSenderCopies) {
    const decomposition cut = decomposition::even({16, 8, 8, 8}, {2, 1, 1, 1});
    run(2, [&](const comm::job& j) {
        const lattice::box local = cut.local_box(j.rank());
        const auto order = site_order::lexicographic(local.extents);
        plan p(j, cut, {.bytes_per_site = 96 * 8, .order = order, .path = path::joint});
        field<double> elsewhere(order, 96), other(site_order::even_odd(local), 96, &j.memory());
        std::uint64_t k = 0;
        const auto expect_exact = [&] {
            ASSERT_EQ(p.finish(), status::ok);
            ASSERT_EQ(wrong_ghosts<double>(p, cut, 96, k), 0);
        };
        for (int round = 0; round < 20; ++round) {
            for (field<double>* x : {&elsewhere, &other}) {
                fill_with_oracle(*x, cut, j.rank(), ++k);
                if (j.rank() == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
                p.start(*x);
                expect_exact();
            }
            fill_with_oracle(elsewhere, cut, j.rank(), ++k);
            if (j.rank() == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
            p.start([&](int message, std::int64_t first, std::int64_t last, std::byte* target) {
                const auto& sites = p.messages()[message].send_sites;
                for (std::int64_t i = first; i < last; ++i)
                    std::memcpy(target + i * 96 * 8, &elsewhere.at(sites[i], 0), 96 * 8);
            });
            expect_exact();
        }
        EXPECT_EQ(p.statistics().pieces_helped, 0U);
    });
}

TEST(JointPath, SeveralFieldsTravelTogether) {
    const decomposition cut = decomposition::even({16, 4, 4, 8}, {2, 1, 1, 1});
    run(2, [&](const comm::job& j) {
        const lateness late(j);
        const auto order = site_order::lexicographic(cut.local_box(j.rank()).extents);
        for (const int fields : {3, 13, 14}) {
            plan p(j, cut, {.bytes_per_site = 96, .fields = fields, .order = order, .path = path::joint});
            EXPECT_EQ(paths_of(p), fields < 14 ? "joint joint" : "direct direct");
            EXPECT_EQ(p.describe().find("both ends copy messages of at most 13 fields") != std::string::npos,
                      fields == 14)
                << p.describe();
            std::vector<field<double>> xs;
            std::vector<const field<double>*> sent;
            for (int f = 0; f < fields; ++f) xs.emplace_back(order, 12, &j.memory());
            for (const auto& x : xs) sent.push_back(&x);
            for (std::uint64_t k = 1; k <= 12; ++k) {
                for (int f = 0; f < fields; ++f)
                    fill_with_oracle(xs[f], cut, j.rank(), 100 * k + static_cast<std::uint64_t>(f));
                late.before_start(k);
                p.start(std::span<const field<double>* const>(sent));
                ASSERT_EQ(p.finish(), status::ok);
                for (int f = 0; f < fields; ++f)
                    ASSERT_EQ(wrong_ghosts<double>(p, cut, 12, 100 * k + static_cast<std::uint64_t>(f), f), 0);
            }
        }
    });
}

TEST(JointPath, SeveralPlansAreInFlight) {
    const decomposition cut = cut_in(0, 4);
    run(4, [&](const comm::job& j) {
        const lateness late(j);
        const auto order = site_order::lexicographic(cut.local_box(j.rank()).extents);
        plan p(j, cut, {.name = "p", .bytes_per_site = 320, .order = order, .path = path::joint});
        plan q(j, cut, {.name = "q", .bytes_per_site = 320, .order = order, .path = path::joint});
        field<double> x(order, 40, &j.memory()), y(order, 40, &j.memory());
        for (std::uint64_t k = 1; k <= 40; ++k) {
            fill_with_oracle(x, cut, j.rank(), k);
            fill_with_oracle(y, cut, j.rank(), 1000 + k);
            late.before_start(k);
            const bool odd = (k + static_cast<std::uint64_t>(j.rank())) % 2 == 1;
            (odd ? p : q).start(odd ? x : y);
            (odd ? q : p).start(odd ? y : x);
            ASSERT_EQ((k % 3 == 0 ? p : q).finish(), status::ok);
            ASSERT_EQ((k % 3 == 0 ? q : p).finish(), status::ok);
            ASSERT_EQ(wrong_ghosts<double>(p, cut, 40, k), 0);
            ASSERT_EQ(wrong_ghosts<double>(q, cut, 40, 1000 + k), 0);
        }
    });
}

TEST(JointPath, FacesAreCompletedOnceTheyAreWhole) {
    const decomposition cut = cut_in(0, 2);
    run(2, [&](const comm::job& j) {
        const lateness late(j);
        const auto order = site_order::lexicographic(cut.local_box(j.rank()).extents);
        plan p(j, cut, {.bytes_per_site = 320, .order = order, .path = path::joint});
        field<double> x(order, 40, &j.memory());
        for (std::uint64_t k = 1; k <= 60; ++k) {
            fill_with_oracle(x, cut, j.rank(), k);
            late.before_start(k);
            p.start(x);
            std::size_t seen = 0;
            const auto check = [&] {
                for (const lattice::face f : p.completed()) {
                    const std::vector<coordinate> sites = expected_ghosts(cut, j.rank(), p.options(), f);
                    const auto ghosts = p.ghosts<double>(f);
                    ASSERT_EQ(ghosts.size(), sites.size() * 40);
                    for (std::size_t i = 0; i < ghosts.size(); ++i)
                        ASSERT_EQ(
                            std::memcmp(
                                &ghosts[i],
                                oracle_value<double>(sites[i / 40], cut.global(), static_cast<int>(i % 40), k).data(),
                                8),
                            0);
                    ++seen;
                }
            };
            while (!p.test()) check();
            check();
            EXPECT_EQ(seen, p.messages().size());
            ASSERT_EQ(p.finish(), status::ok);
        }
    });
}

// A team's members copy together already: it offers nothing, but its member 0 helps others.
TEST(JointPath, TeamsAndSingleThreadsExchange) {
    const decomposition cut = decomposition::even({16, 8, 8, 8}, {2, 1, 1, 1});
    run(2, [&](const comm::job& j) {
        const auto order = site_order::lexicographic(cut.local_box(j.rank()).extents);
        plan p(j, cut, {.bytes_per_site = 96 * 8, .order = order, .path = path::joint});
        field<double> x(order, 96, &j.memory());
        const int members = j.rank() + 1;
        std::barrier meet(members);
        std::atomic<std::uint64_t> wrong{0};
        const auto be_member = [&](int index) {
            for (std::uint64_t k = 1; k <= 40; ++k) {
                if (index == 0) fill_with_oracle(x, cut, j.rank(), k);
                meet.arrive_and_wait();
                if (static_cast<int>(k % 2) == j.rank()) std::this_thread::sleep_for(std::chrono::microseconds(200));
                p.start(x, {index, members});
                if (p.finish({index, members}) != status::ok) ++wrong;
                meet.arrive_and_wait();
                if (index == 0) wrong += static_cast<std::uint64_t>(wrong_ghosts<double>(p, cut, 96, k));
                meet.arrive_and_wait();
            }
        };
        std::optional<std::thread> other;
        if (members > 1) other.emplace(be_member, 1);
        be_member(0);
        if (other) other->join();
        EXPECT_EQ(wrong, 0U);
        if (j.rank() == 0) {
            EXPECT_EQ(p.statistics().pieces_helped, 0U) << "a team of two offered pieces";
        }
    });
}

TEST(JointPath, MessagesWithChecksumsAreCopiedByTheirSender) {
    const decomposition cut = cut_in(0, 2);
    run(2, [&](const comm::job& j) {
        const auto order = site_order::lexicographic(cut.local_box(j.rank()).extents);
        plan p(j, cut, {.bytes_per_site = 320, .order = order, .path = path::joint, .checksums = true});
        EXPECT_EQ(paths_of(p), "direct direct");
        EXPECT_NE(p.describe().find("; one with a checksum is copied by its sender alone"), std::string::npos)
            << p.describe();
        field<double> x(order, 40, &j.memory());
        for (std::uint64_t k = 1; k <= 5; ++k) {
            fill_with_oracle(x, cut, j.rank(), k);
            p.start(x);
            ASSERT_EQ(p.finish(), status::ok);
            ASSERT_EQ(wrong_ghosts<double>(p, cut, 40, k), 0);
        }
    });
}

TEST(JointPath, IsChosenForLargeFacesWhereItWasMeasuredToBeFaster) {
    const decomposition cut = decomposition::even({8, 8, 8, 16}, {1, 1, 1, 2});
    const halo::ghost_widths widths{{0, 0, 0, 1}, {0, 0, 0, 1}};
    constexpr int large = 64, small = 63; // 8 B each: 256 KiB in a face, or less
    for (const bool faster : {true, false})
        run(2, [&](const comm::job& j) {
            comm::costs costs = costs_for_joint();
            if (!faster) costs.joint_seconds = costs.alone_seconds;
            comm::assume_costs(j, costs);
            const auto order = site_order::lexicographic(halo::grown(cut.local_box(j.rank()), widths).extents);
            field<double> x(order, large, &j.memory());

            const plan p(j, cut, {.bytes_per_site = large * 8}), q(j, cut, {.bytes_per_site = small * 8});
            const plan direct(j, cut, {.bytes_per_site = large * 8, .path = path::direct});
            const shell_plan shell(j, cut, {.widths = widths}, {halo::bind(x)});

            const std::string why = "with both ends copying, 256 KiB take 50.00 us instead of 80.00 us";
            EXPECT_EQ(paths_of(p), faster ? "joint joint" : "direct direct");
            EXPECT_EQ(p.describe().find(why) != std::string::npos, faster) << p.describe();
            EXPECT_EQ(paths_of(q), "direct direct");
            EXPECT_EQ(paths_of(direct), "direct direct");
            EXPECT_EQ(shell.describe().find(" joint ") != std::string::npos, faster) << shell.describe();
            EXPECT_EQ(shell.describe().find(why) != std::string::npos, faster) << shell.describe();
        });
}

TEST(JointPath, TheJobMayAskForIt) {
    const decomposition cut = cut_in(0, 2);
    comm::job_options options = small_job();
    options.path = path::joint;
    comm::run_threads(
        2,
        [&](const comm::job& j) {
            const auto order = site_order::lexicographic(cut.local_box(j.rank()).extents);
            plan p(j, cut, {.bytes_per_site = 320, .order = order});
            EXPECT_EQ(paths_of(p), "joint joint");
            EXPECT_NE(p.describe().find("the job asks for it"), std::string::npos) << p.describe();
            EXPECT_EQ(paths_of(plan(j, cut, {.bytes_per_site = 320, .path = path::direct})), "direct direct");
        },
        options);
}

TEST(JointPath, WhatIsStreamedIsNotOffered) {
    const decomposition cut = cut_in(3, 2);
    run(2, [&](const comm::job& j) {
        comm::costs far = costs_for_joint(); // lines that are cheaper past the cache
        far.cached = {1e-6, 60e-9};
        far.streamed = {1e-6, 12e-9};
        comm::assume_costs(j, far);
        plan p(j, cut, {.bytes_per_site = 512 * 8});
        EXPECT_EQ(paths_of(p), "streamed streamed");
        EXPECT_NE(p.describe().find("with both ends copying"), std::string::npos) << p.describe();
        field<double> x(site_order::lexicographic(cut.local_box(j.rank()).extents), 512, &j.memory());
        for (std::uint64_t k = 1; k <= 3; ++k) {
            fill_with_oracle(x, cut, j.rank(), k);
            p.start(x);
            ASSERT_EQ(p.finish(), status::ok);
            ASSERT_EQ(wrong_ghosts<double>(p, cut, 512, k), 0);
        }
    });
}

TEST(JointPath, TakesOneMoreLineSetPerFace) {
    const decomposition cut = cut_in(0, 2);
    run(2, [&](const comm::job& j) {
        const std::size_t alone = plan(j, cut, {.bytes_per_site = 320, .path = path::direct}).slab_bytes(),
                          joint = plan(j, cut, {.bytes_per_site = 320, .path = path::joint}).slab_bytes();
        EXPECT_EQ(joint - alone, 2 * sizeof(comm::joint_copy));
    });
}

// An exception between start() and finish(): the peer learns of it in that exchange or the next, and nothing hangs.
TEST(JointPath, EndsThePeersWaitWhenAnExceptionLeavesAnExchange) {
    const decomposition cut = cut_in(0, 2);
    run(2, [&](const comm::job& j) {
        const auto order = site_order::lexicographic(cut.local_box(j.rank()).extents);
        for (int round = 0; round < 20; ++round) {
            auto x = std::make_unique<field<double>>(order, 40, &j.memory());
            std::optional<plan> p;
            p.emplace(j, cut, halo::plan_options{.bytes_per_site = 320, .order = order, .path = path::joint});
            fill_with_oracle(*x, cut, j.rank(), 1);
            p->start(*x);
            if (j.rank() == 0) {
                p.reset();
#ifndef __SANITIZE_THREAD__ // the peer may be reading: it finds out, and discards what it read
                fill_with_oracle(*x, cut, j.rank(), 2);
#endif
                x.reset();
            } else {
                const status s = p->finish();
                if (s == status::ok) {
                    EXPECT_EQ(wrong_ghosts<double>(*p, cut, 40, 1), 0);
                    p->start(*x);
                    EXPECT_EQ(p->finish(), status::aborted);
                } else {
                    EXPECT_EQ(s, status::aborted);
                }
            }
            j.barrier();
        }
    });
}

TEST(JointPath, MakesNoAllocationBetweenStartAndFinish) {
    const decomposition cut = decomposition::even({16, 8, 8, 8}, {2, 1, 1, 1});
    const halo::ghost_widths widths{{1, 0, 0, 0}, {1, 0, 0, 0}};
    std::barrier meet(2);
    run(2, [&](const comm::job& j) {
        const auto order = site_order::lexicographic(cut.local_box(j.rank()).extents);
        plan p(j, cut, {.bytes_per_site = 96 * 8, .order = order, .path = path::joint});
        field<double> x(order, 96, &j.memory());
        field<double> y(site_order::lexicographic(halo::grown(cut.local_box(j.rank()), widths).extents), 96,
                        &j.memory());
        shell_plan q(j, cut, {.widths = widths, .path = path::joint}, {halo::bind(y)});
        bool ok = true;
        const std::uint64_t made = allocations_in(meet, [&] {
            for (int k = 0; k < 100; ++k) {
                if (j.rank() == k % 2) std::this_thread::sleep_for(std::chrono::microseconds(200));
                p.start(x);
                q.start();
                (void)p.test();
                ok = p.finish() == status::ok && q.finish() == status::ok && ok;
            }
        });
        EXPECT_TRUE(ok);
        EXPECT_EQ(made, 0U);
    });
}
