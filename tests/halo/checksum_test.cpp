// SPDX-License-Identifier: Apache-2.0
// Messages with checksums: the sum itself compared with a plain one on every SIMD target; bits flipped anywhere in a
// message or its sum, a zeroed message and one of another exchange are caught before the ghosts can be seen.
#include "message_sum.hpp"
#include "pack_reference.hpp"
#include "random_case.hpp"
#include "small_job.hpp"

#include <halocline/comm/slab.hpp>
#include <halocline/halo/box_stencil.hpp>
#include <halocline/halo/region_plan.hpp>
#include <halocline/halo/shell_plan.hpp>
#include <halocline_test/simd_targets.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

using namespace halocline_test;
using comm::status;
using halo::plan;
using lattice::decomposition;
using lattice::face;
using lattice::side;

namespace {

constexpr coordinate extents{4, 2, 2, 4};
constexpr std::size_t message_bytes = 2 * 2 * 4 * 24, seal_bytes = 8;

/// Exchanges with itself twice; before the second finish() `harm` gets the message that arrives behind x-high.
template <class Harm>
void expect_caught(Harm&& harm) {
    const auto cut = decomposition::even(extents, {1, 1, 1, 1});
    const comm::job j = comm::job::single(small_job());
    plan p(j, cut, {.name = "sealed", .bytes_per_site = 24, .self_exchange = true, .checksums = true});
    lattice::field<double> x(lattice::site_order::lexicographic(extents), 3);
    fill_with_oracle(x, cut, 0, 1);
    p.start(x);
    ASSERT_EQ(p.finish(), status::ok);
    ASSERT_EQ(wrong_ghosts<double>(p, cut, 3, 1), 0);
    fill_with_oracle(x, cut, 0, 2);
    std::byte* message = p.target({0, side::low}); // what leaves through x-low comes back behind x-high
    p.start(x);
    harm(message);

    try {
        p.finish_or_throw();
        FAIL() << "a changed message was taken for good";
    } catch (const error& e) {
        EXPECT_NE(std::string(e.what()).find("halo 'sealed' epoch 2: what arrived behind x-high from rank 0"),
                  std::string::npos)
            << e.what();
    }
    EXPECT_EQ(p.finish(), status::wrong_data); // permanently
    EXPECT_EQ(p.epoch(), 1U);
}

} // namespace

TEST(MessageSum, EqualsThePlainOneOnEveryTarget) {
    on_each_simd_target([] {
        std::mt19937 g(5);
        for (const std::size_t offset : {0, 1, 7, 8, 63, 64, 100, 5000})
            for (const std::size_t size : {0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 100, 1000, 4096, 5003}) {
                std::vector<std::byte> bytes(size);
                for (std::byte& b : bytes) b = static_cast<std::byte>(g());
                ASSERT_EQ(halo::message_sum(bytes.data(), size, offset), halo::reference::message_sum(bytes, offset))
                    << size << " bytes at " << offset;
            }
    });
}

TEST(MessageSum, IsThatOfItsPieces) {
    std::mt19937 g(6);
    std::vector<std::byte> bytes(3000);
    for (std::byte& b : bytes) b = static_cast<std::byte>(g());
    const std::uint64_t whole = halo::message_sum(bytes.data(), bytes.size(), 0);
    for (int k = 0; k < 200; ++k) {
        std::uint64_t sum = 0;
        for (std::size_t at = 0, next = 0; at < bytes.size(); at = next) {
            next = std::min(bytes.size(), at + 1 + g() % 700);
            sum += halo::message_sum(&bytes[at], next - at, at);
        }
        ASSERT_EQ(sum, whole);
    }
}

TEST(MessageSum, ChangesWithAnyBitsInARowAndWithWordsThatChangePlaces) {
    std::vector<std::byte> bytes(1003);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i / 7);
    const auto sum = [&] { return halo::message_sum(bytes.data(), bytes.size(), 0); };
    const std::uint64_t before = sum();
    std::mt19937 g(7);
    for (std::size_t first = 0; first < 8 * bytes.size(); ++first)
        for (const std::uint_fast32_t pattern :
             {std::uint_fast32_t{1}, std::uint_fast32_t{0xffffffff}, g() | 1, g() | 1}) {
            const auto flip = [&] {
                for (std::size_t bit = first; bit < std::min(first + 32, 8 * bytes.size()); ++bit)
                    if ((pattern >> (bit - first) & 1) != 0) bytes[bit / 8] ^= std::byte{1} << (bit % 8);
            };
            flip();
            ASSERT_NE(sum(), before) << "bits from " << first;
            flip();
        }
    for (const std::size_t apart : {4U, 8U, 64U, 96U, 128U, 512U})
        for (std::size_t at = 0; at + apart + 4 <= bytes.size(); at += 4) {
            const auto exchange = [&] { std::swap_ranges(&bytes[at], &bytes[at + 4], &bytes[at + apart]); };
            if (std::equal(&bytes[at], &bytes[at + 4], &bytes[at + apart])) continue;
            exchange();
            ASSERT_NE(sum(), before) << "words at " << at << " and " << apart << " behind it";
            exchange();
        }
}

TEST(MessageSeal, IsOfTheValuesAndOfTheExchange) {
    EXPECT_EQ(halo::message_seal(comm::job::single({.transports = {"mock"}}), true).bytes(), 0U);
    EXPECT_EQ(halo::message_seal().bytes(), 0U);
    EXPECT_EQ(halo::message_seal(comm::job::single(), true).bytes(), sizeof(std::uint64_t));

    std::array<std::byte, sizeof(std::uint64_t)> seal{};
    EXPECT_FALSE(halo::message_seal::is_at(seal.data(), 0, 1)) << "nothing was ever written";
    halo::message_seal::put(seal.data(), 17, 3);
    EXPECT_TRUE(halo::message_seal::is_at(seal.data(), 17, 3));
    EXPECT_FALSE(halo::message_seal::is_at(seal.data(), 18, 3));
    EXPECT_FALSE(halo::message_seal::is_at(seal.data(), 17, 5));
}

TEST(Checksum, CatchesAFlippedBitAnywhere) {
    for (std::size_t byte = 0; byte < message_bytes + seal_bytes; byte += 13) // the last ones are the sum's own
        expect_caught([&](std::byte* message) { message[byte] ^= std::byte{0x10}; });
}

TEST(Checksum, CatchesAMessageOfAnotherExchangeAndOneThatIsNotThere) {
    expect_caught([](std::byte* message) { std::memset(message, 0, message_bytes + seal_bytes); });
    expect_caught([](std::byte* message) { // the values may be right: the sum is that of exchange 5
        halo::message_seal::put(message + message_bytes, halo::message_seal::sum_of(message, message_bytes), 5);
    });
}

TEST(Checksum, CatchesItBetweenRanksAndTheOtherSideGoesOn) {
    const auto cut = decomposition::even({4, 2, 2, 8}, {1, 1, 1, 2});
    std::atomic<bool> harmed{false};
    comm::job_options options = small_job();
    options.checksums = true; // applies to all plans of the job

    comm::run_threads(
        2,
        [&](const comm::job& j) {
            plan p(j, cut, {.bytes_per_site = 8});
            lattice::field<double> x(lattice::site_order::lexicographic({4, 2, 2, 4}), 1);
            std::byte* message = p.target({3, side::high});
            p.start(x);
            if (j.rank() == 0) {
                message[17] ^= std::byte{1};
                harmed = true;
                EXPECT_EQ(p.finish(), status::ok);
            } else {
                while (!harmed) std::this_thread::yield();
                for (const face f : p.completed()) EXPECT_EQ(f, (face{3, side::high})); // never the damaged one
                EXPECT_EQ(p.finish(), status::wrong_data);
            }
        },
        options);
}

TEST(Checksum, GoesWithTeamsAndRandomPlans) {
    comm::run_threads(
        3,
        [&](const comm::job& j) {
            std::mt19937 g(11);
            for (int k = 0; k < 20; ++k) {
                halo_case c = random_case(g, j.ranks());
                c.options.checks = check_level::comm;
                c.options.bytes_per_site = 8;
                plan p(j, c.cut, c.options);
                lattice::field<double> x(lattice::site_order::lexicographic(c.cut.local_box(j.rank()).extents), 1);
                fill_with_oracle(x, c.cut, j.rank(), 1);
                for (int i = 0; i < 2; ++i)
                    p.start(
                        [&](int m, std::int64_t first, std::int64_t last, std::byte* target) {
                            for (std::int64_t s = first; s < last; ++s)
                                std::memcpy(target + 8 * s, &x.at(p.messages()[m].send_sites[s], 0), 8);
                        },
                        {i, 2});
                ASSERT_EQ(p.finish(), status::ok) << c.text;
                ASSERT_EQ(wrong_ghosts<double>(p, c.cut, 1, 1), 0) << c.text;
            }
        },
        small_job());
}

namespace {

/// Flips a bit of each copy of this number that lies in the slab. Returns their number.
int harm_copies(const comm::job& j, double number) {
    int copies = 0;
    std::byte* const slab = j.memory().base();
    const std::size_t end = std::min(j.memory().bytes(), j.memory().peak() + (1 << 20)); // the allocator has gaps
    for (std::size_t i = 0; i + sizeof number <= end; i += 4) {
        if (std::memcmp(slab + i, &number, sizeof number) != 0) continue;
        slab[i] ^= std::byte{1};
        ++copies;
    }
    return copies;
}

constexpr double sent = 12345.678;

} // namespace

TEST(Checksum, OfRegionsIsComparedBeforeAnythingIsStoredOrAdded) {
    for (const bool add : {false, true}) {
        const comm::job j = comm::job::single(small_job());
        lattice::field<double> x({8, 1, 1, 1}, 1);
        halo::region_plan p(j, {{0, 0, {1}}}, {{0, 0, {4}}}, {halo::bind(x)},
                            {.name = "sealed", .add = add, .checksums = true});
        x.at(1, 0) = 1;
        p.start();
        p.finish_or_throw();
        x.at(1, 0) = sent;

        p.start();
        ASSERT_EQ(harm_copies(j, sent), 1);
        const std::string text = refusal<error>([&] { p.finish_or_throw(); });

        EXPECT_NE(text.find("regions 'sealed' epoch 2: what arrived from rank 0 does not have the checksum"),
                  std::string::npos)
            << text;
        EXPECT_EQ(x.at(4, 0), 1) << "the value of exchange 1 stays";
        EXPECT_EQ(p.finish(), status::wrong_data); // permanently
        EXPECT_EQ(p.epoch(), 1U);
        EXPECT_TRUE(p.completed().empty());
    }
}

TEST(Checksum, OfShellsAndBoxStencilsIsOnWithChecksCommAndIfTheJobAsksForIt) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    for (const bool by_job : {false, true}) {
        comm::job_options options = small_job();
        options.checksums = by_job;
        const check_level checks = by_job ? check_level::light : check_level::comm;
        const comm::job j = comm::job::single(options);
        const auto padded = lattice::site_order::lexicographic({6, 6, 6, 6});
        const std::int64_t corner = lattice::lexicographic_index({1, 1, 1, 1}, {6, 6, 6, 6});
        const auto expect_caught = [&](const auto& start, const auto& finish) {
            start();
            EXPECT_GT(harm_copies(j, sent), 0);
            const std::string text = refusal<error>(finish);
            EXPECT_NE(text.find("does not have the checksum that it was sent with"), std::string::npos) << text;
        };
        for (const halo::corner_route route : {halo::corner_route::at_once, halo::corner_route::by_dimension}) {
            lattice::field<double> x(padded, 1);
            halo::shell_plan p(j, cut, {.shape = halo::shell::box, .corners = route, .reverse = true, .checks = checks},
                               {halo::bind(x)});
            x.at(corner, 0) = sent;
            EXPECT_NE(p.describe().find("with checksums"), std::string::npos) << p.describe();
            expect_caught([&] { p.start(); }, [&] { p.finish_or_throw(); });
        }
        lattice::field<double> y(padded, 1);
        halo::shell_plan back(j, cut, {.reverse = true, .checks = checks}, {halo::bind(y)});
        y.at(lattice::lexicographic_index({0, 1, 1, 1}, {6, 6, 6, 6}), 0) = sent;
        expect_caught([&] { back.start_reverse(); }, [&] { back.finish_or_throw(); });

        halo::box_stencil<double> s(j, cut, {.widths = {{1, 1, 1, 1}, {1, 1, 1, 1}}, .checks = checks});
        s.field(0).at(s.index({0, 0, 0, 0}), 0) = sent;
        expect_caught([&] { s.start(0); }, [&] { s.finish_or_throw(); });
    }
}

TEST(Checksum, KeepsFieldsFromBeingWrittenInPlace) {
    const comm::job j = comm::job::single(small_job());
    const auto made = [&](halo::path way) {
        lattice::field<double> x({8, 1, 1, 1}, 1, &j.memory());
        return halo::region_plan(j, {{0, 0, {1}}}, {{0, 0, {4}}}, {halo::bind(x)}, {.path = way, .checksums = true})
            .describe();
    };

    EXPECT_NE(made(halo::path::automatic).find("what carries a checksum waits in slots"), std::string::npos);
    EXPECT_EQ(refusal([&] { (void)made(halo::path::direct); }),
              "'regions': rank 0 can't have path direct with rank 0: what carries a checksum waits in slots");
}
