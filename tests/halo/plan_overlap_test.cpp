// SPDX-License-Identifier: Apache-2.0
// Exchanges in time: nothing early, nothing late, nothing allocated, work while a peer is late.
#include "oracle.hpp"
#include "small_job.hpp"

#include <halocline_test/allocation_counter.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <set>
#include <string>
#include <thread>

using namespace halocline_test;
using comm::status;
using halo::plan;
using lattice::decomposition;
using lattice::face;

namespace {

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
                const int f = p.messages()[message].where.index();
                const std::uint64_t value = mixed(k) + static_cast<std::uint64_t>(16 * j.rank() + f);
                auto* const words = reinterpret_cast<std::uint64_t*>(target);
                std::fill(words + first * 8, words + last * 8, value);
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
        lattice::field<float> plain(lattice::site_order::lexicographic(local.extents), 24, &j.memory());
        lattice::field<float> lanes(lattice::site_order::blocked(local, cut.global(), {2, 2, 2, 2}, 8), 24,
                                    &j.memory());
        for (const halo::path way : {halo::path::direct, halo::path::streamed, halo::path::joint}) {
            plan p(j, cut, {.bytes_per_site = 96, .self_exchange = true, .path = way});
            bool ok = true;
            const std::uint64_t made = halocline_test::allocations_in(meet, [&] {
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
            });

            EXPECT_TRUE(ok);
            EXPECT_EQ(made, 0U) << to_string(way);
        }
    });
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
                EXPECT_FALSE(peer_started);
                ++done;
            }
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
        j.barrier(); // the job itself continues
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

} // namespace
