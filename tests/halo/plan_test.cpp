// SPDX-License-Identifier: Apache-2.0
// Plans with ranks as threads of one process.
#include "oracle.hpp"
#include "small_job.hpp"

#include <halocline_test/allocation_counter.hpp>

#include <atomic>
#include <barrier>
#include <set>
#include <thread>

using namespace halocline_test;
using comm::status;
using halo::plan;
using halo::plan_options;
using lattice::decomposition;
using lattice::face;
using lattice::side;

namespace {

/// The error text that each rank gets from making a plan.
template <class Error>
std::vector<std::string> errors_of(int ranks, const std::function<void(const comm::job&)>& body) {
    std::vector<std::string> texts(static_cast<std::size_t>(ranks));
    run(ranks, [&](const comm::job& j) {
        try {
            body(j);
        } catch (const Error& e) {
            texts[static_cast<std::size_t>(j.rank())] = e.what();
        }
    });
    return texts;
}

constexpr unsigned seed = 20140911;

} // namespace

class PlanOnRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, PlanOnRanks, testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 12));

TEST_P(PlanOnRanks, GhostEqualsNeighbourFace) {
    const auto ranks = static_cast<unsigned>(GetParam());
    std::printf("seed %u\n", seed + ranks);
    run(GetParam(), [&](const comm::job& j) { exchange_random_cases(j, seed + ranks, 60); });
}

TEST(Plan, SendsOneMessagePerFaceOfACutDimension) {
    const auto cut = decomposition::even({4, 6, 4, 8}, {1, 2, 1, 2});

    run(4, [&](const comm::job& j) {
        plan p(j, cut, {.bytes_per_site = 96});
        lattice::field<float> x(lattice::site_order::lexicographic(cut.local_box(j.rank()).extents), 24);
        for (int k = 0; k < 5; ++k) {
            p.start(x);
            ASSERT_EQ(p.finish(), status::ok);
        }

        ASSERT_EQ(p.messages().size(), 4U); // 2 x two cut dimensions
        const auto statistics = p.statistics();
        EXPECT_EQ(statistics.exchanges, 5U);
        ASSERT_EQ(statistics.lanes.size(), 1U);
        EXPECT_EQ(statistics.lanes[0].transport, "shm");
        EXPECT_EQ(statistics.lanes[0].messages, 5U * 4U);
        EXPECT_EQ(statistics.lanes[0].bytes, 5U * 96U * 2U * (4 * 4 * 4 + 4 * 3 * 4)); // y faces, t faces
        p.reset_statistics();
        EXPECT_EQ(p.statistics().lanes[0].messages, 0U);
    });
}

TEST(Plan, KeepsTheTwoFacesApartWhereBothNeighboursAreTheSameRank) {
    const auto cut = decomposition::even({2, 2, 2, 6}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        plan p(j, cut, {.widths = {{0, 0, 0, 1}, {0, 0, 0, 2}}, .bytes_per_site = 4});
        lattice::field<float> x(lattice::site_order::lexicographic(cut.local_box(j.rank()).extents), 1);
        fill_with_oracle(x, cut, j.rank(), 1);
        p.start(x);
        ASSERT_EQ(p.finish(), status::ok);

        ASSERT_EQ(p.messages().size(), 2U);
        EXPECT_EQ(p.messages()[0].peer, p.messages()[1].peer);
        EXPECT_EQ(p.messages()[0].ghost_sites, 8);
        EXPECT_EQ(p.messages()[1].ghost_sites, 16);
        EXPECT_EQ(wrong_ghosts<float>(p, cut, 1, 1), 0);
    });
}

TEST(Plan, WithoutWidthOnOneSideStillSendsItsFlag) {
    const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});
    std::atomic<bool> started{false};

    run(2, [&](const comm::job& j) {
        plan p(j, cut, {.widths = {{0, 0, 0, 1}, {0, 0, 0, 0}}, .bytes_per_site = 8});
        ASSERT_EQ(p.messages().size(), 2U);
        const auto nothing = [](int, std::int64_t, std::int64_t, std::byte*) {};
        if (j.rank() == 1) {
            p.start(nothing);
            EXPECT_FALSE(p.test()); // rank 0 has not even started: nothing may be taken for its flag
            started = true;
        } else {
            while (!started) std::this_thread::yield();
            p.start(nothing);
        }
        EXPECT_EQ(p.finish(), status::ok);
    });
}

TEST(Plan, WrapsUndividedDimensionsWithoutMessages) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const comm::job j = comm::job::single(small_job());

    plan p(j, cut, {.bytes_per_site = 8});
    lattice::field<double> x(lattice::site_order::lexicographic({4, 4, 4, 4}), 1);
    p.start(x);

    EXPECT_TRUE(p.messages().empty());
    EXPECT_TRUE(p.test());
    EXPECT_EQ(p.finish(), status::ok);
    EXPECT_EQ(p.epoch(), 1U);
    EXPECT_EQ(p.message_of({3, side::low}), -1);
}

TEST(Plan, SelfExchangeEqualsWrap) {
    const auto cut = decomposition::even({3, 1, 2, 5}, {1, 1, 1, 1});
    const comm::job j = comm::job::single(small_job());

    plan p(j, cut, {.widths = {{3, 1, 1, 2}, {1, 1, 2, 5}}, .bytes_per_site = 8, .self_exchange = true});
    lattice::field<double> x(lattice::site_order::lexicographic({3, 1, 2, 5}), 1);
    fill_with_oracle(x, cut, 0, 7);
    p.start(x);

    ASSERT_EQ(p.finish(), status::ok);
    EXPECT_EQ(p.messages().size(), 8U);
    EXPECT_EQ(wrong_ghosts<double>(p, cut, 1, 7), 0);
}

TEST(Plan, SendsNothingAcrossAnOpenEdge) {
    const auto cut = decomposition::even({2, 2, 2, 6}, {1, 1, 1, 3});

    run(3, [&](const comm::job& j) {
        plan_options options{.bytes_per_site = 8};
        options.boundaries[3] = lattice::boundary::open;
        plan p(j, cut, options);

        EXPECT_EQ(p.message_of({3, side::low}) >= 0, j.rank() != 0);
        EXPECT_EQ(p.message_of({3, side::high}) >= 0, j.rank() != 2);
    });
}

TEST(Plan, PacksWithTheCallersFunctionIntoWholeMessages) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        plan p(j, cut, {.bytes_per_site = 8});
        p.start([&](int message, std::int64_t first, std::int64_t last, std::byte* target) {
            const auto& m = p.messages()[static_cast<std::size_t>(message)];
            EXPECT_EQ(first, 0);
            EXPECT_EQ(last, static_cast<std::int64_t>(m.send_sites.size()));
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(target) % 64, 0U);
            for (std::int64_t i = first; i < last; ++i) {
                const std::int64_t value = 1000 * j.rank() + 100 * m.where.index() + i;
                std::memcpy(target + 8 * i, &value, 8);
            }
        });
        ASSERT_EQ(p.finish(), status::ok);

        for (const auto& m : p.messages()) {
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p.ghost(m.where)) % 64, 0U);
            for (std::int64_t i = 0; i < m.ghost_sites; ++i) {
                std::int64_t value = 0;
                std::memcpy(&value, p.ghost(m.where) + 8 * i, 8);
                EXPECT_EQ(value, 1000 * m.peer + 100 * m.where.opposite().index() + i);
            }
        }
    });
}

TEST(Plan, SendsWhatTheCallerPutIntoTheTargets) {
    const auto cut = decomposition::even({3, 2, 2, 6}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        plan p(j, cut, {.bytes_per_site = 24});
        lattice::field<double> x(lattice::site_order::lexicographic(cut.local_box(j.rank()).extents), 3);
        std::array<std::byte*, 2> last{};
        for (std::uint64_t epoch = 1; epoch <= 5; ++epoch) {
            fill_with_oracle(x, cut, j.rank(), epoch);
            for (const halo::plan_message& m : p.messages()) {
                std::byte* target = p.target(m.where);
                EXPECT_NE(target, last[m.where.index() % 2]); // the neighbour still reads that one
                last[m.where.index() % 2] = target;
                for (const std::int32_t s : m.send_sites) {
                    std::memcpy(target, x.data() + 3 * s, 24);
                    target += 24;
                }
            }
            p.start_filled();
            ASSERT_EQ(p.finish(), status::ok);
            ASSERT_EQ(wrong_ghosts<double>(p, cut, 3, epoch), 0);
        }
    });
}

class PlanOfTeam : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Members, PlanOfTeam, testing::Values(1, 2, 3, 4));

TEST_P(PlanOfTeam, SharesThePackingAndSeesTheSameGhosts) {
    const int members = GetParam();
    const auto cut = decomposition::even({3, 4, 2, 6}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
        plan p(j, cut, {.bytes_per_site = 24, .order = order});
        lattice::field<double> x(order, 3);
        std::barrier meet(members);
        std::atomic<int> wrong{0}, bad{0};
        const auto member = [&](int index) {
            for (std::uint64_t epoch = 1; epoch <= 100; ++epoch) {
                if (index == 0) fill_with_oracle(x, cut, j.rank(), epoch);
                meet.arrive_and_wait(); // the source is complete
                p.start(x, {index, members});
                bad += p.finish({index, members}) != status::ok;
                wrong += wrong_ghosts<double>(p, cut, 3, epoch) != 0;
            }
        };
        std::vector<std::thread> team;
        for (int i = 1; i < members; ++i) team.emplace_back(member, i);
        member(0);
        for (std::thread& t : team) t.join();

        EXPECT_EQ(bad, 0);
        EXPECT_EQ(wrong, 0);
        EXPECT_EQ(p.epoch(), 100U);
    });
}

TEST(Plan, TeamsOfChangingSizeTakeTurns) {
    const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        plan p(j, cut, {.bytes_per_site = 8});
        lattice::field<double> x(lattice::site_order::lexicographic(cut.local_box(j.rank()).extents), 1);
        for (std::uint64_t epoch = 1; epoch <= 30; ++epoch) {
            const int members = 1 + static_cast<int>(epoch % 3);
            fill_with_oracle(x, cut, j.rank(), epoch);
            std::vector<std::thread> team;
            for (int i = 0; i < members; ++i) team.emplace_back([&, i] { p.start(x, {i, members}); });
            for (std::thread& t : team) t.join();
            ASSERT_EQ(p.finish(), status::ok); // by one thread: the whole team has started
            ASSERT_EQ(wrong_ghosts<double>(p, cut, 1, epoch), 0);
        }
    });
}

// Ghosts of exchange k are valid until start(k+1), however early or late the peers are: every word carries its epoch.
TEST(Plan, NeverReadsAStaleOrLaterGhost) {
    constexpr std::uint64_t epochs = 10'000;
    const auto cut = decomposition::even({2, 1, 2, 9}, {1, 1, 1, 3});

    run(3, [&](const comm::job& j) {
        plan p(j, cut, {.bytes_per_site = 64});
        std::mt19937 delays(static_cast<unsigned>(j.rank()));
        const auto dawdle = [&] {
            const unsigned d = delays() % 64;
            if (d == 0) std::this_thread::yield();
            for (std::uint64_t until = comm::ticks() + 100 * d; comm::ticks() < until;) {
            }
        };
        std::uint64_t wrong = 0;
        for (std::uint64_t k = 1; k <= epochs; ++k) {
            p.start([&](int message, std::int64_t first, std::int64_t last, std::byte* target) {
                const int f = p.messages()[static_cast<std::size_t>(message)].where.index();
                const std::uint64_t value = mixed(k) + static_cast<std::uint64_t>(16 * j.rank() + f);
                for (std::int64_t i = first * 8; i < last * 8; ++i) std::memcpy(target + 8 * i, &value, 8);
            });
            dawdle();
            ASSERT_EQ(p.finish(), status::ok);
            dawdle();
            for (const auto& m : p.messages()) {
                const std::uint64_t value =
                    mixed(k) + static_cast<std::uint64_t>(16 * m.peer + m.where.opposite().index());
                for (std::int64_t i = 0; i < m.ghost_sites * 8; ++i)
                    wrong += std::memcmp(p.ghost(m.where) + 8 * i, &value, 8) != 0;
            }
        }
        EXPECT_EQ(wrong, 0U);
    });
}

TEST(Plan, MakesNoAllocationBetweenStartAndFinish) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    std::barrier meet(2);

    run(2, [&](const comm::job& j) {
        const lattice::box local = cut.local_box(j.rank());
        lattice::field<float> plain(lattice::site_order::lexicographic(local.extents), 24);
        lattice::field<float> lanes(lattice::site_order::blocked(local, cut.global(), {2, 2, 2, 2}, 8), 24);
        for (const halo::path way : {halo::path::direct, halo::path::streamed}) {
            plan p(j, cut, {.bytes_per_site = 96, .self_exchange = true, .way = way});
            bool ok = true;
            meet.arrive_and_wait();
            const std::uint64_t before = halocline_test::allocations();
            meet.arrive_and_wait();
            for (int k = 0; k < 100; ++k) {
                if (k % 3 == 0)
                    p.start([](int, std::int64_t first, std::int64_t last, std::byte* target) {
                        std::memset(target + 96 * first, 0, static_cast<std::size_t>(96 * (last - first)));
                    });
                else
                    p.start(k % 3 == 1 ? plain : lanes);
                (void)p.test();
                ok = p.finish() == status::ok && ok;
            }
            meet.arrive_and_wait();
            const std::uint64_t after = halocline_test::allocations();
            meet.arrive_and_wait();

            EXPECT_TRUE(ok);
            EXPECT_EQ(after - before, 0U) << to_string(way);
        }
    });
}

TEST(Plan, StreamsWhatItIsToldTo) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    const auto ways_of = [](const plan& p) {
        std::set<halo::path> ways;
        for (const auto& m : p.messages()) ways.insert(m.way);
        return ways;
    };
    using halo::path;

    run(2, [&](const comm::job& j) {
        EXPECT_EQ(ways_of(plan(j, cut, {.bytes_per_site = 96, .way = path::direct})), std::set{path::direct});
        const plan streamed(j, cut, {.bytes_per_site = 96, .way = path::streamed});
        EXPECT_EQ(ways_of(streamed), std::set{path::streamed});
        EXPECT_NE(streamed.describe().find(" streamed "), std::string::npos) << streamed.describe();
        const plan sealed(j, cut, {.bytes_per_site = 96, .way = path::streamed, .checks = check_level::comm});
        EXPECT_EQ(ways_of(sealed), std::set{path::direct});
    });
    comm::job_options options = small_job();
    options.streaming = comm::streaming::always;
    comm::run_threads(
        2,
        [&](const comm::job& j) {
            EXPECT_EQ(ways_of(plan(j, cut, {.bytes_per_site = 96})), std::set{path::streamed});
            EXPECT_EQ(ways_of(plan(j, cut, {.bytes_per_site = 96, .way = path::direct})), std::set{path::direct});
        },
        options);
}

TEST(Plan, RefusesPackedAndUnlikePaths) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});

    const auto packed = errors_of<input_error>(
        2, [&](const comm::job& j) { plan(j, cut, {.bytes_per_site = 8, .way = halo::path::packed}); });
    const auto unlike = errors_of<input_error>(2, [&](const comm::job& j) {
        plan(j, cut, {.bytes_per_site = 8, .way = j.rank() == 0 ? halo::path::direct : halo::path::streamed});
    });

    for (const std::string& text : packed) EXPECT_NE(text.find("path packed"), std::string::npos) << text;
    for (const std::string& text : unlike) {
        EXPECT_NE(text.find("path direct"), std::string::npos) << text;
        EXPECT_NE(text.find("path streamed"), std::string::npos) << text;
    }
}

TEST(Plan, ComputesWhileThePeerIsLate) {
    constexpr int units = 1000;
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    std::atomic<int> done{0};
    std::atomic<bool> peer_started{false};

    run(2, [&](const comm::job& j) {
        plan p(j, cut, {.bytes_per_site = 8});
        lattice::field<double> x(lattice::site_order::lexicographic(cut.local_box(j.rank()).extents), 1);
        fill_with_oracle(x, cut, j.rank(), 1);
        if (j.rank() == 0) {
            p.start(x); // must not wait for the peer
            for (int i = 0; i < units; ++i) {
                EXPECT_FALSE(p.test());
                ++done;
            }
            EXPECT_FALSE(peer_started);
        } else {
            while (done < units) std::this_thread::yield(); // the peer starts when all interior work is done
            peer_started = true;
            p.start(x);
            EXPECT_TRUE(p.test()); // what rank 0 sent was there all the time
        }
        EXPECT_EQ(p.finish(), status::ok);
        EXPECT_EQ(wrong_ghosts<double>(p, cut, 1, 1), 0);
    });
    EXPECT_EQ(done, units);
}

TEST(Plan, CallsALatePeerImbalance) {
    const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});

    std::atomic<bool> first_started{false};
    run(2, [&](const comm::job& j) {
        plan p(j, cut, {.bytes_per_site = 8});
        lattice::field<double> x(lattice::site_order::lexicographic(cut.local_box(j.rank()).extents), 1);
        if (j.rank() == 1) {
            first_started.wait(false);
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
        }
        p.start(x);
        if (j.rank() == 0) {
            first_started = true;
            first_started.notify_one();
        }
        ASSERT_EQ(p.finish(), status::ok);

        const auto s = p.statistics();
        EXPECT_LE(s.imbalance_seconds, s.wait_seconds);
        if (j.rank() == 0) {
            EXPECT_GT(s.imbalance_seconds, 0.02);
        } else {
            EXPECT_EQ(s.imbalance_seconds, 0);
        }
    });
}

TEST(Plan, RefusesDifferentWidthsOnTwoRanks) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});

    const auto texts = errors_of<input_error>(2, [&](const comm::job& j) {
        plan_options options{.name = "spinors", .bytes_per_site = 8};
        if (j.rank() == 1) options.widths.low[3] = 2;
        plan p(j, cut, options);
    });

    for (const std::string& text : texts) {
        EXPECT_NE(text.find("spinors"), std::string::npos) << text;
        EXPECT_NE(text.find("rank 0"), std::string::npos) << text;
        EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
        EXPECT_NE(text.find("low 1.1.1.1"), std::string::npos) << text;
        EXPECT_NE(text.find("low 1.1.1.2"), std::string::npos) << text;
    }
}

TEST(Plan, RefusesADifferentSelectionOnTwoRanks) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});

    const auto texts = errors_of<input_error>(2, [&](const comm::job& j) {
        plan_options options{.name = "even", .bytes_per_site = 8};
        if (j.rank() == 1) options.select = [](const coordinate& x) { return lattice::parity(x) == 0; };
        plan p(j, cut, options);
    });

    for (const std::string& text : texts) {
        EXPECT_NE(text.find("sends 512 bytes"), std::string::npos) << text; // 4^3 sites of 8 bytes, or half of them
        EXPECT_NE(text.find("expects 256"), std::string::npos) << text;
    }
}

TEST(Plan, RefusesAHaloWiderThanALocalBoxOnEveryRank) {
    const lattice::decomposition cut({4, 4, 4, 7}, {{{0, 4}, {0, 4}, {0, 4}, {0, 3, 5, 7}}});

    const auto texts = errors_of<input_error>(3, [&](const comm::job& j) {
        plan p(j, cut, {.name = "wide", .widths = {{0, 0, 0, 3}, {0, 0, 0, 1}}, .bytes_per_site = 8});
    });

    for (const std::string& text : texts)
        EXPECT_NE(text.find("ghost width 3 behind t-low is wider than the local box of rank 1, 4.4.4.2 with 2 in t"),
                  std::string::npos)
            << text;
}

TEST(Plan, AllowsAWidthThatOnlyABoxAtAnOpenEdgeCouldNotFill) {
    const lattice::decomposition cut({2, 2, 2, 5}, {{{0, 2}, {0, 2}, {0, 2}, {0, 3, 5}}});
    plan_options options{.widths = {{0, 0, 0, 3}, {0, 0, 0, 1}}, .bytes_per_site = 8};
    options.boundaries[3] = lattice::boundary::open;

    run(2, [&](const comm::job& j) { EXPECT_NO_THROW(plan(j, cut, options)); });
}

TEST(Plan, RefusesADecompositionForAnotherNumberOfRanks) {
    const auto texts = errors_of<input_error>(2, [&](const comm::job& j) {
        plan p(j, decomposition::even({4, 4, 4, 8}, {1, 1, 2, 2}), {.bytes_per_site = 8});
    });

    for (const std::string& text : texts)
        EXPECT_NE(text.find("4 ranks (rank grid 1.1.2.2), the job has 2"), std::string::npos) << text;
}

TEST(Plan, RefusesToSendAFieldOfAnotherShape) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    plan p(comm::job::single(small_job()), cut, {.bytes_per_site = 8, .self_exchange = true});
    lattice::field<double> x(lattice::site_order::lexicographic({4, 4, 4, 4}), 2); // 16 bytes per site

    p.start(x);

    EXPECT_EQ(p.finish(), status::wrong_data);
    EXPECT_EQ(p.epoch(), 0U);
}

TEST(Plan, EndsThePeersWaitWhenAnExceptionLeavesAnExchange) {
    const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        lattice::field<double> x(lattice::site_order::lexicographic(cut.local_box(j.rank()).extents), 1);
        if (j.rank() == 1) {
            try {
                plan p(j, cut, {.name = "cancelled", .bytes_per_site = 8});
                p.start(x);
                throw std::runtime_error("between start and finish");
            } catch (const std::runtime_error&) {
            }
        } else {
            plan p(j, cut, {.name = "cancelled", .bytes_per_site = 8});
            p.start(x);
            EXPECT_EQ(p.finish(), status::ok); // that exchange was sent
            p.start(x);
            EXPECT_EQ(p.finish(), status::aborted);
            p.start(x);
            EXPECT_EQ(p.finish(), status::aborted); // sticky
            try {
                p.finish_or_throw();
                ADD_FAILURE() << "no exception";
            } catch (const job_error& e) {
                EXPECT_NE(std::string(e.what()).find("halo 'cancelled' epoch 2"), std::string::npos) << e.what();
            }
        }
        j.barrier(); // the job itself goes on
    });
}

TEST(Plan, DescribesEachFace) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        plan p(j, cut,
               {.name = "spinors",
                .widths = {{1, 0, 0, 1}, {1, 0, 0, 2}},
                .bytes_per_site = 96,
                .self_exchange = true,
                .way = halo::path::direct});
        const std::string text = p.describe();

        EXPECT_NE(text.find("halo 'spinors', 96 bytes per site"), std::string::npos) << text;
        EXPECT_NE(text.find("x-low"), std::string::npos) << text;
        EXPECT_NE(text.find("self"), std::string::npos) << text;
        EXPECT_NE(text.find("direct"), std::string::npos) << text;
        EXPECT_NE(text.find("12288"), std::string::npos) << text; // two layers of 4^3 sites of 96 bytes
    });
}

TEST(Plan, ReportsEachFaceOnceAsItArrives) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 2, 2});

    run(4, [&](const comm::job& j) {
        plan p(j, cut, {.bytes_per_site = 8, .self_exchange = true});
        lattice::field<double> x(lattice::site_order::lexicographic(cut.local_box(j.rank()).extents), 1);
        for (std::uint64_t k = 1; k <= 50; ++k) {
            fill_with_oracle(x, cut, j.rank(), k);
            std::multiset<int> seen;
            p.start(x);
            for (int polls = 0; polls < 3; ++polls)
                for (const face f : p.completed()) {
                    seen.insert(f.index());
                    double first = 0; // may be read at once
                    std::memcpy(&first, p.ghost(f), sizeof first);
                    const auto expected = oracle_value<double>(expected_ghosts(cut, j.rank(), p.options(), f).front(),
                                                               cut.global(), 0, k);
                    EXPECT_EQ(std::memcmp(&first, expected.data(), sizeof first), 0);
                }
            ASSERT_EQ(p.finish(), status::ok);
            for (const face f : p.completed()) seen.insert(f.index());

            EXPECT_TRUE(p.completed().empty());
            EXPECT_EQ(seen, (std::multiset<int>{0, 1, 2, 3, 4, 5, 6, 7}));
        }
    });
}

TEST(Plan, ExchangesOnlyFieldsThatWereWritten) {
    const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        plan p(j, cut, {.bytes_per_site = 8});
        const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
        lattice::field<double> x(order, 1), y(order, 1);
        const auto exchanges = [&](lattice::field<double>& f) {
            EXPECT_EQ(p.ensure_halo(f), status::ok);
            return p.epoch();
        };

        EXPECT_EQ(exchanges(x), 1U);
        EXPECT_EQ(exchanges(x), 1U);
        x.mark_written();
        EXPECT_FALSE(p.is_fresh(x));
        EXPECT_EQ(exchanges(x), 2U);
        EXPECT_EQ(exchanges(y), 3U); // the ghosts are of one field
        EXPECT_EQ(exchanges(x), 4U);
        y.copy_from(x);
        EXPECT_EQ(exchanges(y), 5U);
    });
}

TEST(Plan, CatchesStaleGhosts) {
    const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        plan p(j, cut, {.name = "stale", .bytes_per_site = 8, .checks = check_level::normal});
        plan trusting(j, cut, {.bytes_per_site = 8, .checks = check_level::light});
        const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
        lattice::field<double> x(order, 1), y(order, 1);
        fill_with_oracle(x, cut, j.rank(), 1);
        const auto why = [&](const lattice::field<double>& f) {
            try {
                p.require_fresh(f);
            } catch (const error& e) {
                return std::string(e.what());
            }
            return std::string("fresh");
        };
        EXPECT_NE(why(x).find("is not what the last finished exchange sent"), std::string::npos);
        p.start(x);
        EXPECT_NE(why(x).find("is not what"), std::string::npos) << "not finished";
        ASSERT_EQ(p.finish(), status::ok);

        EXPECT_EQ(why(x), "fresh");
        EXPECT_NE(why(y).find("is not what"), std::string::npos);
        x.at(0, 0) = 7; // nobody says so
        EXPECT_EQ(
            why(x),
            "halo 'stale': stale ghosts after exchange 1: the field was written since; call start() and finish(), "
            "or ensure_halo()");
        EXPECT_NO_THROW(trusting.require_fresh(x));
        x.mark_written();
        EXPECT_NE(why(x).find("was marked as written since"), std::string::npos);
    });
}

TEST(Plan, RefusesAnotherNumberOfFields) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    plan p(comm::job::single(small_job()), cut, {.bytes_per_site = 8, .self_exchange = true, .fields = 2});
    lattice::field<double> x(lattice::site_order::lexicographic({4, 4, 4, 4}), 1);

    p.start(x);

    EXPECT_EQ(p.finish(), status::wrong_data);
}
