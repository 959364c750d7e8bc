// SPDX-License-Identifier: Apache-2.0
// What published two-sided programs do, on comm/two_sided.hpp: the calls one by one, and the communication of three
// programs, written from their descriptions. Presta's com and laten (pairs half the ranks apart, one way and both ways,
// the slowest rank's time), the particle shift of GTC-P (counts, then particles, to both neighbours in a ring until
// nobody has any left to send), and an exchange whose pieces are taken in order of arrival, as BoxLib's FillBoundary
// does with MPI_Waitany. Every word of the payloads is checked.
#include "messenger_bodies.hpp"

#include <halocline/comm/two_sided.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace halocline_test::messages;
namespace api = halocline::comm::two_sided;
using api::datatype;

TEST(TwoSided, CountsThatNoMemoryHoldsAreRefused) {
    run_threads(2, [](const job& j) {
        api::communicator c(j);
        std::int32_t value = 0;
        for (const std::size_t count : {~std::size_t{0}, (std::size_t{1} << 62) + 1}) {
            EXPECT_THROW(api::send(&value, count, datatype::int32, 1 - j.rank(), 0, c), halocline::input_error);
            EXPECT_THROW(api::recv(&value, count, datatype::int32, 1 - j.rank(), 0, c), halocline::input_error);
        }
        api::barrier(c);
    });
}

TEST(TwoSided, CountsThatAnIntCannotSayAreUndefined) {
    using namespace two_sided;
    const std::size_t most = std::numeric_limits<int>::max();

    EXPECT_EQ(get_count({.bytes = most}, datatype::byte), std::numeric_limits<int>::max());
    EXPECT_EQ(get_count({.bytes = most + 1}, datatype::byte), undefined);
    EXPECT_EQ(get_count({.bytes = 8 * most}, datatype::float64), std::numeric_limits<int>::max());
    EXPECT_EQ(get_count({.bytes = 8 * (most + 1)}, datatype::float64), undefined);
    EXPECT_EQ(get_count({.bytes = 12}, datatype::float64), undefined);
}

TEST(TwoSided, CallsBehaveLikeTheirNamesakes) {
    on_ranks({1, 2, 5}, [](const job& j) {
        api::communicator c(j);
        const int next = (c.rank() + 1) % c.size(), before = (c.rank() + c.size() - 1) % c.size();
        // A number goes round the ring and grows.
        int sum = 0;
        api::request r[2];
        if (c.rank() == 0) api::isend(&sum, 1, api::datatype::int32, next, 3, c, &r[0]);
        int got = -1;
        api::receive_status s;
        api::recv(&got, 1, api::datatype::int32, api::any_source, 3, c, &s);
        EXPECT_EQ(s.source, before);
        EXPECT_EQ(api::get_count(s, api::datatype::int32), 1);
        if (c.rank() == 0)
            api::wait(&r[0], c);
        else
            api::send(&(sum = got + 1), 1, api::datatype::int32, next, 3, c);
        if (c.rank() == 0) {
            EXPECT_EQ(got, c.size() - 1);
        }
        // Halves go both ways, with late waits.
        double out[2] = {c.rank() + 0.25, c.rank() + 0.5}, in[2] = {};
        api::irecv(&in[0], 1, api::datatype::float64, before, 1, c, &r[0]);
        api::isend(&out[0], 1, api::datatype::float64, next, 1, c, &r[1]);
        api::barrier(c);
        bool done = false;
        while (!done) api::test(&r[0], &done, c, &s);
        api::waitall(2, r, c); // one of them is request_null
        api::sendrecv(&out[1], 1, api::datatype::float64, before, 2, &in[1], 1, api::datatype::float64, next, 2, c);
        EXPECT_EQ(in[0], before + 0.25);
        EXPECT_EQ(in[1], next + 0.5);
        api::iprobe(api::any_source, api::any_tag, c, &done);
        EXPECT_FALSE(done);
        api::barrier(c);
    });
}

TEST(TwoSided, RequestsEndInTheOrderInWhichTheyAreDone) {
    on_ranks({2, 4}, [](const job& j) {
        api::communicator c(j);
        const int peer = c.rank() ^ 1;
        constexpr int n = 5;
        if (peer < c.size()) {
            std::array<int, n> in{}, out{};
            std::array<api::request, n> r{};
            for (int i = 0; i < n; ++i) api::irecv(&in[i], 1, datatype::int32, peer, i, c, &r[i]);
            bool done = true;
            int index = 0;
            api::testany(n, r.data(), &index, &done, c);
            EXPECT_FALSE(done);
            EXPECT_EQ(index, api::undefined);
            api::testall(n, r.data(), &done, c);
            EXPECT_FALSE(done);
            api::sendrecv(nullptr, 0, datatype::byte, peer, n, nullptr, 0, datatype::byte, peer, n, c);

            for (const int i : {3, 1}) { // one by one: each is received before the next is sent
                out[i] = 100 * c.rank() + i;
                api::send(&out[i], 1, datatype::int32, peer, i, c);
                api::receive_status s;
                api::waitany(n, r.data(), &index, c, &s);
                EXPECT_EQ(index, i);
                EXPECT_EQ(r[i], api::request_null);
                EXPECT_EQ(s.source, peer);
                EXPECT_EQ(s.tag, i);
                EXPECT_EQ(in[i], 100 * peer + i);
                api::sendrecv(nullptr, 0, datatype::byte, peer, n, nullptr, 0, datatype::byte, peer, n, c);
            }
            for (const int i : {4, 0}) {
                out[i] = 100 * c.rank() + i;
                api::send(&out[i], 1, datatype::int32, peer, i, c);
            }
            for (int left = 2; left > 0;) {
                std::array<int, n> indices{};
                std::array<api::receive_status, n> s{};
                int count = 0;
                api::waitsome(n, r.data(), &count, indices.data(), c, s.data());
                ASSERT_GE(count, 1);
                left -= count;
                for (int k = 0; k < count; ++k) {
                    EXPECT_EQ(s[k].tag, indices[k]);
                    EXPECT_EQ(in[indices[k]], 100 * peer + indices[k]);
                }
            }
            api::sendrecv(nullptr, 0, datatype::byte, peer, n, nullptr, 0, datatype::byte, peer, n, c);
            out[2] = 100 * c.rank() + 2;
            api::send(&out[2], 1, datatype::int32, peer, 2, c);
            for (done = false; !done;) api::testany(n, r.data(), &index, &done, c);
            EXPECT_EQ(index, 2);
            EXPECT_EQ(in[2], 100 * peer + 2);

            // Now all requests are null.
            api::testany(n, r.data(), &index, &done, c);
            EXPECT_TRUE(done);
            EXPECT_EQ(index, api::undefined);
            api::testall(n, r.data(), &done, c);
            EXPECT_TRUE(done);
            api::waitany(n, r.data(), &index, c);
            EXPECT_EQ(index, api::undefined);
            int count = 0;
            api::waitsome(n, r.data(), &count, &index, c);
            EXPECT_EQ(count, api::undefined);
        }
        api::barrier(c);
    });
}

TEST(TwoSided, ProbeWaitsForAMessageAndSaysHowLongItIs) {
    on_ranks({2, 3}, [](const job& j) {
        api::communicator c(j);
        constexpr int rounds = 20;
        for (int round = 0; round < rounds && c.rank() > 0; ++round) {
            const std::vector<double> out(static_cast<std::size_t>(round * 700), c.rank() + 0.5);
            api::send(out.data(), out.size(), datatype::float64, 0, 4, c);
        }
        for (int k = 0; k < rounds * (c.size() - 1) && c.rank() == 0; ++k) {
            api::receive_status s;
            api::probe(api::any_source, 4, c, &s);
            const int count = api::get_count(s, datatype::float64);
            ASSERT_EQ(count % 700, 0);
            std::vector<double> in(static_cast<std::size_t>(count));
            api::recv(in.data(), in.size(), datatype::float64, s.source, s.tag, c);
            ASSERT_EQ(std::ranges::count(in, s.source + 0.5), count);
        }
        api::barrier(c);
    });
}

TEST(TwoSided, DuplicatesHaveMessagesOfTheirOwn) {
    on_ranks({2, 4}, [](const job& j) {
        api::communicator c(j), library = api::dup(c), other = api::dup(library);
        const int next = (c.rank() + 1) % c.size();
        std::array<int, 3> out{1, 2, 3}, in{};
        std::array<api::request, 3> r{};
        api::isend(&out[0], 1, datatype::int32, next, 7, c, &r[0]);
        api::isend(&out[1], 1, datatype::int32, next, 7, library, &r[1]);
        api::isend(&out[2], 1, datatype::int32, next, 7, other, &r[2]);
        api::barrier(library);
        api::recv(&in[2], 1, datatype::int32, api::any_source, api::any_tag, other);
        api::recv(&in[1], 1, datatype::int32, api::any_source, api::any_tag, library);
        bool there = true;
        api::iprobe(api::any_source, api::any_tag, other, &there);
        EXPECT_FALSE(there);
        api::recv(&in[0], 1, datatype::int32, api::any_source, api::any_tag, c);
        EXPECT_EQ(in, out);
        api::waitall(3, r.data(), c);
        api::barrier(c);
    });
}

template <class T>
void expect_reductions(api::communicator& c, datatype type, std::size_t count) {
    std::vector<T> mine(count), got(count);
    const auto part = [](int rank, std::size_t i) { return static_cast<T>((rank * 7 + static_cast<int>(i)) % 5 - 2); };
    for (std::size_t i = 0; i < count; ++i) mine[i] = part(c.rank(), i);
    for (const api::op how : {api::op::sum, api::op::min, api::op::max}) {
        api::allreduce(mine.data(), got.data(), count, type, how, c);
        for (std::size_t i = 0; i < count; ++i) {
            T expected = part(0, i);
            for (int rank = 1; rank < c.size(); ++rank) {
                const T x = part(rank, i);
                expected = how == api::op::sum   ? expected + x
                           : how == api::op::min ? std::min(expected, x)
                                                 : std::max(expected, x);
            }
            ASSERT_EQ(got[i], expected) << i;
        }
    }
}

TEST(TwoSided, AllreduceIsTheSumLeastOrLargestOfAllRanks) {
    on_ranks({1, 2, 3, 4, 7}, [](const job& j) {
        api::communicator c(j), d = api::dup(c);
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{300}}) {
            expect_reductions<std::int32_t>(c, datatype::int32, count);
            expect_reductions<std::int64_t>(d, datatype::int64, count);
            expect_reductions<float>(c, datatype::float32, count);
            expect_reductions<double>(d, datatype::float64, count);
        }
        std::int64_t large = (std::int64_t{1} << 60) + c.rank(), all = 0; // has more bits than a double
        api::allreduce(&large, &all, 1, datatype::int64, api::op::max, c);
        EXPECT_EQ(all, (std::int64_t{1} << 60) + c.size() - 1);
        // In place, with the same bits everywhere, although rounding depends on the order.
        double third = 1.0 / (3 + c.rank());
        float fourth = 1.0f / (4 + static_cast<float>(c.rank()));
        api::allreduce(&third, &third, 1, datatype::float64, api::op::sum, c);
        api::allreduce(&fourth, &fourth, 1, datatype::float32, api::op::sum, c);
        const std::string bits = std::to_string(std::bit_cast<std::uint64_t>(third)) + ' ' +
                                 std::to_string(std::bit_cast<std::uint32_t>(fourth));
        EXPECT_NO_THROW(j.agree("the bits", bits));
        EXPECT_THROW(api::allreduce(&third, &third, 8, datatype::byte, api::op::sum, c), input_error);
        api::barrier(c);
    });
}

TEST(TwoSided, BcastReachesAllRanksFromAnyOfThem) {
    on_ranks({1, 2, 3, 4, 7}, [](const job& j) {
        api::communicator c(j);
        for (int root = 0; root < c.size(); ++root) {
            for (const std::size_t n : {std::size_t{1}, std::size_t{100}, std::size_t{100'000}}) {
                bytes data(n, &j.memory());
                if (c.rank() == root) fill(data, root, n);
                api::bcast(data.data(), n, datatype::byte, root, c);
                ASSERT_EQ(wrong(data, root, n), 0u) << "root " << root << ", " << n << " bytes";
            }
        }
        int word = 0;
        for (const int nobody : {-1, c.size()})
            EXPECT_THROW(api::bcast(&word, 1, datatype::int32, nobody, c), input_error);
        api::barrier(c);
    });
}

// Presta: com and laten.

/// With an odd number of ranks, the one without a partner only takes part in barriers and maxima.
struct presta_pair {
    explicit presta_pair(const api::communicator& c)
        : pairs(c.size() / 2), there(c.rank() < 2 * pairs), sends(c.rank() < pairs),
          partner(there ? (c.rank() + pairs) % (2 * pairs) : -1) {}
    int pairs;
    bool there, sends;
    int partner;
};

double slowest(double mine, api::communicator& c) {
    double all = 0;
    api::allreduce(&mine, &all, 1, datatype::float64, api::op::max, c);
    return all;
}

TEST(TwoSidedPrograms, PrestaComOneWayAndBothWays) {
    on_ranks({2, 3, 4}, [](const job& j) {
        api::communicator c(j);
        const presta_pair p(c);
        constexpr int operations = 12, tag = 1;
        for (std::size_t n = 32; n <= 1 << 20; n *= 2) {
            for (const bool both_ways : {false, true}) {
                bytes out(n, &j.memory()), in(n, &j.memory());
                std::size_t wrong_bytes = 0;
                const auto once = [&](std::uint64_t number) {
                    if (!p.there) return;
                    // The payload changes each time, so only what was sent this time is right.
                    fill(out, c.rank(), number);
                    if (both_ways)
                        api::sendrecv(out.data(), n, datatype::byte, p.partner, tag, in.data(), n, datatype::byte,
                                      p.partner, tag, c);
                    else if (p.sends)
                        api::send(out.data(), n, datatype::byte, p.partner, tag, c);
                    else
                        api::recv(in.data(), n, datatype::byte, p.partner, tag, c);
                    if (both_ways || !p.sends) wrong_bytes += wrong(in, p.partner, number);
                };
                once(0); // to warm up
                api::barrier(c);
                api::barrier(c);
                const double begin = api::wtime();
                for (std::uint64_t i = 1; i <= operations; ++i) once(i);
                api::barrier(c); // is part of the measured time
                const double mine = api::wtime() - begin, all = slowest(mine, c);

                ASSERT_EQ(wrong_bytes, 0u) << n << " bytes, both ways: " << both_ways;
                EXPECT_GE(all, mine);
                EXPECT_EQ(all, slowest(all, c)); // the same on every rank
                const double bandwidth = operations * p.pairs * (both_ways ? 2 : 1) * static_cast<double>(n) / all;
                EXPECT_TRUE(std::isfinite(bandwidth) && bandwidth > 0);
            }
        }
    });
}

TEST(TwoSidedPrograms, PrestaLaten) {
    on_ranks({2, 3, 4}, [](const job& j) {
        api::communicator c(j);
        const presta_pair p(c);
        constexpr int rounds = 500;
        int answered = 0;
        api::barrier(c);
        const double begin = api::wtime();
        for (int i = 0; i < rounds && p.there; ++i) {
            api::receive_status s;
            if (p.sends) api::send(nullptr, 0, datatype::byte, p.partner, i, c);
            api::recv(nullptr, 0, datatype::byte, p.partner, i, c, &s);
            if (!p.sends) api::send(nullptr, 0, datatype::byte, p.partner, i, c);
            answered += s.bytes == 0 && s.tag == i && s.source == p.partner;
        }
        EXPECT_EQ(answered, p.there ? rounds : 0);
        EXPECT_GT(slowest(api::wtime() - begin, c), 0);
    });
}

// GTC-P: the toroidal shift.

struct particle {
    std::array<double, 12> z; ///< [0]: number; [2]: angle in [0, 1), a share of the ring; others derive from both
};

double word_of(double number, double angle, std::size_t i) { return number * 12 + angle + static_cast<double>(i) / 64; }
particle particle_at(double number, double angle) {
    particle p{};
    for (std::size_t i = 0; i < p.z.size(); ++i) p.z[i] = word_of(number, angle, i);
    p.z[0] = number;
    p.z[2] = angle;
    return p;
}
bool is_whole(const particle& p) {
    for (std::size_t i = 0; i < p.z.size(); ++i)
        if (i != 0 && i != 2 && p.z[i] != word_of(p.z[0], p.z[2], i)) return false;
    return true;
}

/// Sends each particle to the neighbour that is nearer to its domain until all are home.  Returns the number of rounds.
int shift(std::vector<particle>& mine, api::communicator& c) {
    const int ranks = c.size(), right = (c.rank() + 1) % ranks, left = (c.rank() + ranks - 1) % ranks;
    const auto home = [&](const particle& p) { return std::min(ranks - 1, static_cast<int>(p.z[2] * ranks)); };
    std::size_t looked_at = 0; // only newcomers may have to move on
    for (int round = 1;; ++round) {
        std::vector<particle> to_right, to_left, stay;
        stay.assign(mine.begin(), mine.begin() + static_cast<std::ptrdiff_t>(looked_at));
        for (std::size_t i = looked_at; i < mine.size(); ++i) {
            const int way = (home(mine[i]) - c.rank() + ranks) % ranks;
            (way == 0 ? stay : 2 * way <= ranks ? to_right : to_left).push_back(mine[i]);
        }
        mine = std::move(stay);
        looked_at = mine.size();
        const int sent = static_cast<int>(to_right.size() + to_left.size());
        int all = 0;
        api::allreduce(&sent, &all, 1, datatype::int32, api::op::sum, c);
        if (all == 0) return round;

        const std::array<int, 2> going{static_cast<int>(to_right.size()), static_cast<int>(to_left.size())};
        std::array<int, 2> coming{};
        api::sendrecv(&going[0], 1, datatype::int32, right, 101, &coming[0], 1, datatype::int32, left, 101, c);
        api::sendrecv(&going[1], 1, datatype::int32, left, 102, &coming[1], 1, datatype::int32, right, 102, c);
        std::vector<particle> from_left(static_cast<std::size_t>(coming[0])),
            from_right(static_cast<std::size_t>(coming[1]));
        const auto words = [](const std::vector<particle>& p) { return 12 * p.size(); };
        api::receive_status s;
        api::sendrecv(to_right.data(), words(to_right), datatype::float64, right, 103, from_left.data(),
                      words(from_left), datatype::float64, left, 103, c, &s);
        EXPECT_EQ(api::get_count(s, datatype::float64), 12 * coming[0]);
        api::sendrecv(to_left.data(), words(to_left), datatype::float64, left, 104, from_right.data(),
                      words(from_right), datatype::float64, right, 104, c, &s);
        EXPECT_EQ(api::get_count(s, datatype::float64), 12 * coming[1]);
        mine.insert(mine.end(), from_left.begin(), from_left.end());
        mine.insert(mine.end(), from_right.begin(), from_right.end());
    }
}

TEST(TwoSidedPrograms, GtcpShiftBringsEveryParticleHome) {
    on_ranks({1, 2, 3, 4}, [](const job& j) {
        api::communicator c(j);
        const int ranks = c.size();
        constexpr int each = 3000;
        std::mt19937 random(17); // the same everywhere, so all ranks know where all particles are
        std::vector<double> angles(static_cast<std::size_t>(ranks * each));
        const auto uniform = [&] { return static_cast<double>(random()) / 4294967296.0; };
        for (double& a : angles) a = uniform();
        std::vector<particle> mine;
        const auto is_here = [&](std::size_t i) { return static_cast<int>(angles[i] * ranks) == c.rank(); };
        for (std::size_t i = 0; i < angles.size(); ++i)
            if (is_here(i)) mine.push_back(particle_at(static_cast<double>(i), angles[i]));
        int most_rounds = 0;
        for (int step = 0; step < 12; ++step) {
            // Far at first, then less far; in one step nothing moves, in another only one rank's particles.
            const double reach = step == 5 ? 0 : 1.0 / (1 + step % 4);
            for (std::size_t i = 0; i < angles.size(); ++i) {
                const double moved = angles[i] + reach * (uniform() - 0.5);
                const bool stays = step == 7 && static_cast<int>(angles[i] * ranks) != 0;
                if (!stays) angles[i] = moved - std::floor(moved);
                if (angles[i] >= 1) angles[i] = 0;
            }
            for (particle& p : mine) p = particle_at(p.z[0], angles[static_cast<std::size_t>(p.z[0])]);
            most_rounds = std::max(most_rounds, shift(mine, c));

            std::vector<std::size_t> here, expected;
            for (const particle& p : mine) {
                ASSERT_TRUE(is_whole(p)) << "step " << step;
                here.push_back(static_cast<std::size_t>(p.z[0]));
            }
            for (std::size_t i = 0; i < angles.size(); ++i)
                if (is_here(i)) expected.push_back(i);
            std::ranges::sort(here);
            ASSERT_EQ(here, expected) << "step " << step;
        }
        EXPECT_EQ(most_rounds, 1 + ranks / 2) << "some had more than one domain to cross";
    });
}

// BoxLib: pieces from all neighbours, each unpacked on arrival.

TEST(TwoSidedPrograms, PiecesAreTakenInTheOrderInWhichTheyCome) {
    on_ranks({2, 3, 4}, [](const job& j) {
        api::communicator c(j);
        constexpr std::size_t each = 3;                                   // pieces from every other rank
        const auto size_of_piece = [&](int from, int to, std::size_t k) { // 8 B to 256 KiB
            return std::size_t{8} << (static_cast<std::size_t>(5 * from + 3 * to) + 7 * k) % 16;
        };
        for (std::uint64_t step = 0; step < 10; ++step) {
            std::vector<api::request> receives, sends;
            std::vector<bytes> in, out;
            std::vector<int> from;
            for (int r = 0; r < c.size(); ++r) {
                for (std::size_t k = 0; k < each && r != c.rank(); ++k) {
                    in.emplace_back(size_of_piece(r, c.rank(), k), &j.memory());
                    from.push_back(r);
                    receives.emplace_back();
                    api::irecv(in.back().data(), in.back().size(), datatype::byte, r, static_cast<int>(k), c,
                               &receives.back());
                }
            }
            for (int r = 0; r < c.size(); ++r) {
                for (std::size_t k = 0; k < each && r != c.rank(); ++k) {
                    out.emplace_back(size_of_piece(c.rank(), r, k), &j.memory());
                    fill(out.back(), c.rank(), step + k);
                    sends.emplace_back();
                    api::isend(out.back().data(), out.back().size(), datatype::byte, r, static_cast<int>(k), c,
                               &sends.back());
                }
            }
            for (std::size_t taken = 0; taken < receives.size(); ++taken) {
                int index = api::undefined;
                api::receive_status s;
                api::waitany(receives.size(), receives.data(), &index, c, &s);
                ASSERT_NE(index, api::undefined);
                const auto i = static_cast<std::size_t>(index);
                EXPECT_EQ(s.source, from[i]);
                EXPECT_EQ(s.bytes, in[i].size());
                ASSERT_EQ(wrong(in[i], from[i], step + static_cast<std::uint64_t>(s.tag)), 0u);
            }
            api::waitall(sends.size(), sends.data(), c);
        }
        api::barrier(c);
    });
}

} // namespace
