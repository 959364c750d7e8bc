// SPDX-License-Identifier: Apache-2.0
// Sums over many ranks: the tree's bits, the messages they take, and which ranks learn of a mismatch.
#include <halocline/base/error.hpp>
#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/job.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace halocline::comm;

/// The part of rank r in sum k: numbers whose sum depends on the order of additions.
double part(int rank, int k, std::size_t i) {
    return std::sin(1 + rank + 100 * k + 7 * static_cast<double>(i)) * std::pow(10.0, (rank * 5 + k) % 9);
}

/// The tree in its simplest form.
double by_tree(const std::vector<double>& parts, std::size_t first, std::size_t last) {
    if (last - first == 1) return parts[first];
    const std::size_t middle = first + (last - first) / 2;
    return by_tree(parts, first, middle) + by_tree(parts, middle, last);
}

const std::vector<int> rank_counts{1, 2, 3, 7, 8, 9, 11, 12, 16, 17, 19, 32, 35};

TEST(GlobalSum, HasTheBitsOfTheTreeOnAnyNumberOfRanks) {
    for (const int ranks : rank_counts) {
        run_threads(ranks, [&](const job& j) {
            std::vector<int> order(static_cast<std::size_t>(ranks)); // 2, 1, 0, 5, 4, 3, ...
            std::iota(order.begin(), order.end(), 0);
            for (std::size_t i = 0; i + 2 < order.size(); i += 3) std::swap(order[i], order[i + 2]);
            int wrong = 0;
            global_sum usual(j, 20, order), by_level(j, 20, order, 1), groups(j, 20, order, 5);
            for (int k = 0; k < 12; ++k) {
                global_sum& sum = k % 3 == 0 ? usual : k % 3 == 1 ? by_level : groups;
                std::vector<double> values(std::vector<std::size_t>{1, 20, 2, 3}[k % 4]);
                for (std::size_t i = 0; i < values.size(); ++i) values[i] = part(j.rank(), k, i);
                ASSERT_EQ(sum(values), status::ok) << sum.pending();
                for (std::size_t i = 0; i < values.size(); ++i) {
                    std::vector<double> parts;
                    for (const int r : order) parts.push_back(part(r, k, i));
                    wrong += values[i] != by_tree(parts, 0, parts.size());
                }
            }
            EXPECT_EQ(wrong, 0) << "rank " << j.rank() << " of " << ranks;
        });
    }
}

TEST(GlobalSum, CanBeAskedWhetherItIsThere) {
    for (const int ranks : {1, 2, 9, 19}) {
        for (const int group : {0, 1, 5}) {
            run_threads(ranks, [&](const job& j) {
                global_sum sum(j, 20, {}, group);
                for (int k = 0; k < 6; ++k) {
                    std::vector<double> values(std::vector<std::size_t>{1, 20, 2}[k % 3]);
                    std::vector<double> parts;
                    for (int r = 0; r < ranks; ++r) parts.push_back(part(r, k, values.size() - 1));
                    for (std::size_t i = 0; i < values.size(); ++i) values[i] = part(j.rank(), k, i);

                    sum.start(values);
                    while (!sum.test()) {
                    }
                    EXPECT_TRUE(sum.test());

                    ASSERT_EQ(sum.finish(values), status::ok) << sum.pending();
                    EXPECT_EQ(values.back(), by_tree(parts, 0, parts.size())) << "rank " << j.rank() << " of " << ranks;
                }
            });
        }
    }
}

TEST(GlobalSum, IsNotThereBeforeAllHaveStarted) {
    for (const int ranks : {2, 9}) {
        run_threads(ranks, [&](const job& j) {
            global_sum sum(j, 1, {}, 2);
            double value = 1;
            const bool late = j.rank() == ranks - 1;
            if (!late) {
                sum.start({&value, 1});
                for (int n = 0; n < 100; ++n) EXPECT_FALSE(sum.test());
            }
            j.barrier();
            if (late) sum.start({&value, 1});
            ASSERT_EQ(sum.finish({&value, 1}), status::ok) << sum.pending();
            EXPECT_EQ(value, ranks);
        });
    }
}

/// What completes it may arrive after its test has looked, and be taken by the work of every wait.
TEST(GlobalSum, CanBeCompletedWithinATestThatFoundNothing) {
    constexpr int tests = 256; // after this many a sum looks for a mismatch
    std::atomic<bool> go{false}, sent{false};
    struct late_peer {
        std::atomic<bool>&go, &sent;
        int calls = -1; // -1: not yet
        static void come(void* object) {
            auto& self = *static_cast<late_peer*>(object);
            if (self.calls < 0 || ++self.calls != tests) return;
            self.go = true;
            self.go.notify_one();
            self.sent.wait(false);
        }
    };
    run_threads(2, [&](const job& j) {
        channel_set first(j, std::span<const channel_request>(), {"first", ""});
        late_peer peer{go, sent};
        if (j.rank() == 0) first.work_in_every_wait(&peer, late_peer::come);
        global_sum sum(j, 1, {}, 1);
        double value = 1;

        if (j.rank() == 1) go.wait(false);
        sum.start({&value, 1});
        if (j.rank() == 0) {
            peer.calls = 0;
            for (int n = 1; n < tests; ++n) EXPECT_FALSE(sum.test());
            EXPECT_TRUE(sum.test());
        } else {
            while (!sum.test()) {
            }
            sent = true;
            sent.notify_one();
        }

        ASSERT_EQ(sum.finish({&value, 1}), status::ok) << sum.pending();
        EXPECT_EQ(value, 2);
    });
}

TEST(GlobalSum, OfNothingIsASum) {
    run_threads(2, [](const job& j) {
        global_sum sum(j, 4);

        EXPECT_EQ(sum({}), status::ok) << sum.pending();

        EXPECT_EQ(sum.statistics().bytes, 0U);
        j.barrier();
    });
}

/// Ranks that finish it first need the others' messages for it, while those wait for something else.
TEST(GlobalSum, GetsOnWhileItsRankWaitsForSomethingElse) {
    job_options options;
    options.deadline = std::chrono::seconds(5);
    for (const int ranks : {4, 9}) {
        run_threads(
            ranks,
            [&](const job& j) {
                global_sum sum(j, 3, {}, 1), other(j, 1);
                for (int k = 0; k < 20; ++k) {
                    std::vector<double> values(k % 2 == 0 ? 1 : 3, 1.0);
                    double one = 1;
                    sum.start(values);
                    const bool first = (j.rank() + k) % 2 == 0;
                    if (first) {
                        ASSERT_EQ(sum.finish(values), status::ok) << sum.pending();
                    }
                    ASSERT_EQ(other({&one, 1}), status::ok) << other.pending();
                    if (!first) {
                        ASSERT_EQ(sum.finish(values), status::ok) << sum.pending();
                    }
                    EXPECT_EQ(values.back(), ranks);
                }
            },
            options);
    }
}

/// While one thread of each rank starts and finishes sums, waits of another one advance them.
TEST(GlobalSum, GetsOnInWaitsOfAnotherThread) {
    constexpr int ranks = 4, rounds = 300;
    run_threads(ranks, [](const job& j) {
        global_sum by_levels(j, 2, {}, 1), other(j, 2);
        std::atomic<int> wrong{0};
        std::atomic<bool> known{false}; // both threads, to the check for crossed waits
        std::thread second([&] {
            for (int k = 0; k <= rounds; ++k) {
                double one = 1;
                wrong += other({&one, 1}) != status::ok || one != ranks;
                known = true;
                known.notify_one();
            }
        });
        known.wait(false);
        for (int k = 0; k < rounds; ++k) {
            double value = j.rank() + k;
            by_levels.start({&value, 1});
            while (k % 2 == 0 && !by_levels.test()) {
            }
            wrong += by_levels.finish({&value, 1}) != status::ok || value != ranks * k + 6;
        }
        second.join();
        EXPECT_EQ(wrong, 0);
    });
}

TEST(GlobalSum, AMaximumGetsANumberThatIsNoneFromAnyRank) {
    for (const int ranks : {9, 19}) {
        run_threads(ranks, [&](const job& j) {
            global_sum sum(j, 2, {}, 4);
            for (int who = 0; who < ranks; ++who) {
                double values[2]{static_cast<double>((j.rank() * 7 + who) % ranks), 0};
                if (j.rank() == who) values[1] = std::numeric_limits<double>::quiet_NaN();
                ASSERT_EQ(sum.maximum(values), status::ok);
                EXPECT_EQ(values[0], ranks - 1);
                EXPECT_TRUE(std::isnan(values[1])) << "from rank " << who;
            }
        });
    }
}

/// Which of two NaNs is kept depends on which is added to which.
TEST(GlobalSum, RanksGetTheSameBitsAlsoOfNumbersThatAreNone) {
    for (const int ranks : {2, 3, 8}) {
        std::vector<std::uint64_t> bits(static_cast<std::size_t>(ranks));
        for (int positive = 0; positive < ranks; ++positive) {
            run_threads(ranks, [&](const job& j) {
                global_sum sum(j, 1, {}, 1);
                double value = std::copysign(std::numeric_limits<double>::quiet_NaN(), j.rank() == positive ? 1 : -1);
                ASSERT_EQ(sum({&value, 1}), status::ok);
                bits[static_cast<std::size_t>(j.rank())] = std::bit_cast<std::uint64_t>(value);
            });
            EXPECT_EQ(bits, std::vector<std::uint64_t>(bits.size(), bits[0])) << ranks << ", " << positive;
        }
    }
}

TEST(GlobalSum, ManyRanksTakeFewMessages) {
    for (const int ranks : rank_counts) {
        run_threads(ranks, [&](const job& j) {
            global_sum sum(j, 1, {}, 8);
            double value = 1;
            ASSERT_EQ(sum({&value, 1}), status::ok);
            const std::uint64_t messages = sum.statistics().messages;
            std::uint64_t most = 7;
            for (int r = ranks; r > 8; r -= r / 2) most += 2;
            EXPECT_LE(messages, most) << ranks << " ranks";
            if (ranks <= 8) {
                EXPECT_EQ(messages, static_cast<std::uint64_t>(ranks - 1));
            }
        });
    }
}

/// Includes ranks that never meet the one that sums something else.
TEST(GlobalSum, AllRanksAreToldWhoSumsSomethingElse) {
    const auto at_once = [](global_sum& sum, std::span<double> values) { return sum(values); };
    const auto asked = [](global_sum& sum, std::span<double> values) {
        sum.start(values);
        while (!sum.test()) {
        }
        return sum.finish(values);
    };
    constexpr std::size_t pairs[][2] = {{1, 2}, {2, 3}, {8, 1}, {4, 5}, {0, 1}}; // in one set of channels or in two
    for (const int ranks : {9, 12, 17, 19, 35}) {
        for (const auto& [odd, others] : pairs) {
            run_threads(ranks, [&, odd = odd, others = others](const job& j) {
                const int who = ranks / 3;
                global_sum sum(j, 8, {}, 8);
                std::vector<double> values(5, 1.0);
                ASSERT_EQ(sum(values), status::ok);
                values.resize(j.rank() == who ? odd : others);

                const status seen = ranks % 2 == 0 ? at_once(sum, values) : asked(sum, values);
                EXPECT_EQ(seen, status::wrong_data) << odd << " and " << others << " on rank " << j.rank();

                const std::string text = sum.pending(), own = std::to_string(values.size());
                EXPECT_NE(
                    text.find("rank " + std::to_string(j.rank()) + " sums " + own + (own == "1" ? " value," : "")),
                    std::string::npos)
                    << text;
                const std::string other = std::to_string(j.rank() == who ? others : odd);
                EXPECT_TRUE(text.ends_with(" sums " + other)) << text;
                j.barrier();
            });
        }
    }
}

TEST(GlobalSum, SumOrThrowAddsOrSaysWhoDisagrees) {
    run_threads(3, [](const job& j) {
        global_sum sum(j);
        std::vector<double> values{1.0 + j.rank()};

        sum.sum_or_throw(values);

        EXPECT_EQ(values[0], 6);
        values.resize(j.rank() == 1 ? 2 : 1);
        try {
            sum.sum_or_throw(values);
            ADD_FAILURE() << "ranks that sum 1 and 2 values agreed";
        } catch (const halocline::error& e) {
            EXPECT_NE(std::string(e.what()).find(" sums "), std::string::npos) << e.what();
        }
    });
}

/// The rank that can't send its values says so, rather than let the others wait.
TEST(GlobalSum, AllRanksAreToldWhoSumsTooMuch) {
    job_options options;
    options.deadline = std::chrono::seconds(5);
    for (const int ranks : {2, 9, 12, 19})
        for (const std::size_t others : {std::size_t{1}, std::size_t{8}})
            run_threads(
                ranks,
                [&](const job& j) {
                    const int who = ranks / 3;
                    global_sum sum(j, 8, {}, 8);
                    std::vector<double> values(8, 1.0);
                    ASSERT_EQ(sum(values), status::ok);
                    values.resize(j.rank() == who ? 5000 : others);

                    EXPECT_EQ(sum(values), status::wrong_data) << "rank " << j.rank() << " of " << ranks;

                    const std::string text = sum.pending();
                    EXPECT_TRUE(text.ends_with(j.rank() == who ? "of 5000 values, made for up to 8"
                                                               : ", rank " + std::to_string(who) + " sums more than 8"))
                        << text;
                    j.barrier();
                },
                options);
}

/// Two values travel like one, also where the sum was made for one.
TEST(GlobalSum, AllRanksAreToldWhoSumsTooMuchByOne) {
    job_options options;
    options.deadline = std::chrono::seconds(5);
    for (const int most : {1, 2})
        run_threads(
            3,
            [&](const job& j) {
                global_sum sum(j, most);
                std::vector<double> values(1, 1.0);
                for (int n = 0; n < 3; ++n) {
                    values[0] = j.rank();
                    ASSERT_EQ(sum(values), status::ok);
                    ASSERT_EQ(values[0], 3.0);
                }
                values.assign(static_cast<std::size_t>(j.rank() == 1 ? most + 1 : most), 1.0);

                EXPECT_EQ(sum(values), status::wrong_data) << "rank " << j.rank();

                const std::string text = sum.pending();
                const std::string made = std::to_string(most);
                EXPECT_TRUE(text.ends_with(j.rank() == 1
                                               ? "of " + std::to_string(most + 1) + " values, made for up to " + made
                                               : ", rank 1 sums more than " + made))
                    << text;
                j.barrier();
            },
            options);
}

/// As on a machine with much other load: a rank that yields polls again only when all others have had their turn.
TEST(GlobalSum, RanksWhosePollsAreFarApartAreToldInTime) {
    job_options options;
    options.deadline = std::chrono::seconds(2);
    run_threads(
        2,
        [](const job& j) {
            channel_set slow(j, std::span<const channel_request>(), {"slow", ""});
            slow.work_in_every_wait(&slow, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
            global_sum sum(j, 8);
            std::vector<double> values(j.rank() == 0 ? 8 : 1, 1.0);

            EXPECT_EQ(sum(values), status::wrong_data) << sum.pending();

            j.barrier();
        },
        options);
}

/// Halves of a job that sum different things: each is consistent until they meet.
TEST(GlobalSum, HalvesThatDisagreeFindOutWhereTheyMeet) {
    for (const int ranks : {12, 19}) {
        run_threads(ranks, [&](const job& j) {
            global_sum sum(j, 8, {}, 8);
            std::vector<double> values(j.rank() < ranks / 2 ? 1 : 4, 1.0);
            EXPECT_EQ(sum(values), status::wrong_data);
            EXPECT_TRUE(sum.pending().ends_with(j.rank() < ranks / 2 ? " sums 4" : " sums 1")) << sum.pending();
            j.barrier();
        });
    }
}

/// One rank adds, the others take the maximum, or vice versa: nobody gets a number.
TEST(GlobalSum, ASumAndAMaximumAreNotOneSum) {
    for (const int ranks : {2, 9, 12}) {
        for (const std::size_t values : {std::size_t{2}, std::size_t{5}}) {
            run_threads(ranks, [&](const job& j) {
                const bool adds = j.rank() == ranks / 3;
                global_sum sum(j, 8, {}, 8);
                std::vector<double> own(values, 1.0);
                ASSERT_EQ(sum.maximum(own), status::ok);

                EXPECT_EQ(adds ? sum(own) : sum.maximum(own), status::wrong_data) << "rank " << j.rank();

                const std::string text = sum.pending(), n = std::to_string(values);
                EXPECT_NE(text.find(adds ? " sums " + n + " values" : " takes the maximum of " + n + " values"),
                          std::string::npos)
                    << text;
                EXPECT_TRUE(text.ends_with(adds ? " takes the maximum of " + n : " sums " + n)) << text;
                j.barrier();
            });
        }
    }
}

/// Their trees would differ, and so would the bits.
TEST(GlobalSum, RankOrdersThatDifferAreRefused) {
    std::atomic<int> refused{0};
    run_threads(2, [&](const job& j) {
        const std::array<int, 2> order{j.rank(), 1 - j.rank()};
        try {
            global_sum sum(j, 8, order);
        } catch (const halocline::input_error& e) {
            refused +=
                std::string(e.what()).find("rank 0 has '0, ranks 0 1', rank 1 has '0, ranks 1 0'") != std::string::npos;
        }
    });
    EXPECT_EQ(refused, 2);
}

TEST(GlobalSum, ATestWithoutAStartLeavesItToFinish) {
    run_threads(2, [](const job& j) {
        for (const bool has_summed : {false, true}) {
            global_sum sum(j, 8);
            double value = 1;
            if (has_summed) {
                ASSERT_EQ(sum({&value, 1}), status::ok);
            }
            EXPECT_TRUE(sum.test());
            EXPECT_EQ(sum.finish({&value, 1}), status::misused);
            j.barrier();
        }
    });
}

/// Other mistakes of a caller, which would produce meaningless numbers.
TEST(GlobalSum, CallsInAWrongOrderAreTold) {
    const auto expect_misused = [](const std::function<status(global_sum&, std::span<double>)>& calls,
                                   const std::string& text) {
        run_threads(2, [&](const job& j) {
            global_sum sum(j, 8);
            std::vector<double> values(8, 1.0);
            ASSERT_EQ(sum(values), status::ok);

            EXPECT_EQ(calls(sum, values), status::misused);
            EXPECT_NE(sum.pending().find(text), std::string::npos) << sum.pending();
            EXPECT_EQ(sum(values), status::misused) << "sticky";
            EXPECT_EQ(values, std::vector<double>(8, 2.0)) << "values were written";
            j.barrier();
        });
    };

    expect_misused([](global_sum& sum, std::span<double> values) { return sum.finish(values); }, "without start()");
    for (const std::size_t started : {std::size_t{2}, std::size_t{5}})
        expect_misused(
            [=](global_sum& sum, std::span<double> values) {
                sum.start(values.first(started));
                return sum.finish(values);
            },
            "another number of values");
    expect_misused(
        [](global_sum& sum, std::span<double> values) {
            sum.start(values);
            sum.start(values);
            return sum.finish(values);
        },
        "before finish()");
    expect_misused(
        [](global_sum& sum, std::span<double> values) {
            sum.start(values);
            return sum.maximum(values);
        },
        "before finish()");
}

} // namespace
