// SPDX-License-Identifier: Apache-2.0
// Plans with ranks as threads of one process: what is sent, and where it arrives.
#include "random_exchanges.hpp"
#include "small_job.hpp"

#include <halocline/comm/slab.hpp>
#include <halocline/halo/shell_plan.hpp>

#include <atomic>
#include <cstdio>
#include <set>
#include <string>
#include <thread>

using namespace halocline_test;
using comm::status;
using halo::plan;
using halo::plan_options;
using lattice::decomposition;
using lattice::side;

namespace {

constexpr unsigned seed = 20140911;

class PlanOnRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, PlanOnRanks, testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 12));

TEST_P(PlanOnRanks, GhostEqualsNeighbourFace) {
    const auto ranks = static_cast<unsigned>(GetParam());
    std::printf("seed %u\n", seed + ranks);
    run(GetParam(), [&](const comm::job& j) { exchange_random_cases(j, kinds::slots, seed + ranks, 60); });
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
        ASSERT_EQ(statistics.by_transport.size(), 1U);
        EXPECT_EQ(statistics.by_transport[0].transport, "shm");
        EXPECT_EQ(statistics.by_transport[0].messages, 5U * 4U);
        EXPECT_EQ(statistics.by_transport[0].bytes, 5U * 96U * 2U * (4 * 4 * 4 + 4 * 3 * 4)); // y faces, t faces
        p.reset_statistics();
        EXPECT_EQ(p.statistics().by_transport[0].messages, 0U);
    });
}

TEST(Plan, NamesTheSitesThatItsGhostsAreCopiesOf) {
    const auto cut = decomposition::even({2, 1, 1, 6}, {1, 1, 1, 2});
    run(2, [&](const comm::job& j) {
        const plan p(j, cut, {.widths = {{1, 1, 1, 1}, {1, 1, 1, 2}}, .bytes_per_site = 8, .parity = 1});

        using sites = std::vector<coordinate>;
        EXPECT_EQ(p.ghost_sites({3, side::high}),
                  (j.rank() == 0 ? sites{{0, 0, 0, 3}, {1, 0, 0, 4}} : sites{{1, 0, 0, 0}, {0, 0, 0, 1}}));
        EXPECT_EQ(p.ghost_sites({3, side::low}), (j.rank() == 0 ? sites{{0, 0, 0, 5}} : sites{{1, 0, 0, 2}}));
        EXPECT_EQ(p.ghost_sites({0, side::low}), sites{}) << "not cut";
    });
}

TEST(Plan, SendsFacesOfSeveralBlocksOfLinesWhole) {
    const auto cut = decomposition::even({8, 4, 4, 16}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        const lattice::box local = cut.local_box(j.rank());
        for (const auto& order :
             {lattice::site_order::lexicographic(local.extents), lattice::site_order::even_odd(local),
              lattice::site_order::blocked(local, cut.global(), {4, 4, 4, 4}, 4)})
            for (const int components : {1, 13, 24, 700}) { // a site of 5600 B is larger than a block
                const auto bytes = static_cast<std::size_t>(components) * sizeof(double);
                plan p(j, cut, {.bytes_per_site = bytes, .order = order, .path = halo::path::direct});
                lattice::field<double> x(order, components);
                for (std::uint64_t k = 1; k <= 3; ++k) {
                    fill_with_oracle(x, cut, j.rank(), k);
                    p.start(x);
                    ASSERT_EQ(p.finish(), status::ok);
                    EXPECT_EQ(wrong_ghosts<double>(p, cut, components, k), 0) << components << " components";
                }
            }
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
            EXPECT_FALSE(p.test()); // rank 0 has not even started: nothing may be mistaken for its flag
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
            const auto& m = p.messages()[message];
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
                EXPECT_NE(target, last[m.where.index() % 2]); // the neighbour is still reading that one
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

TEST(Plan, StreamsWhatItIsToldTo) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    const auto ways_of = [](const plan& p) {
        std::set<halo::path> ways;
        for (const auto& m : p.messages()) ways.insert(m.path);
        return ways;
    };
    using halo::path;

    run(2, [&](const comm::job& j) {
        EXPECT_EQ(ways_of(plan(j, cut, {.bytes_per_site = 96, .path = path::direct})), std::set{path::direct});
        const plan streamed(j, cut, {.bytes_per_site = 96, .path = path::streamed});
        EXPECT_EQ(ways_of(streamed), std::set{path::streamed});
        EXPECT_NE(streamed.describe().find(" streamed "), std::string::npos) << streamed.describe();
        const plan sealed(j, cut, {.bytes_per_site = 96, .path = path::streamed, .checks = check_level::comm});
        EXPECT_EQ(ways_of(sealed), std::set{path::streamed});
    });
    comm::job_options options = small_job();
    options.path = path::streamed;
    comm::run_threads(
        2,
        [&](const comm::job& j) {
            EXPECT_EQ(ways_of(plan(j, cut, {.bytes_per_site = 96})), std::set{path::streamed});
            EXPECT_EQ(ways_of(plan(j, cut, {.bytes_per_site = 96, .path = path::direct})), std::set{path::direct});
        },
        options);
}

TEST(Plan, SendsBytesAsItSendsAField) {
    const auto cut = decomposition::even({4, 6, 4, 8}, {1, 2, 1, 2});
    const std::array ways{halo::path::direct, halo::path::streamed, halo::path::joint};

    run(4, [&](const comm::job& j) {
        for (const halo::path way : ways)
            for (const bool named : {false, true}) { // the order of the bytes
                lattice::field<float> x(lattice::site_order::lexicographic(cut.local_box(j.rank()).extents), 3,
                                        &j.memory());
                halo::plan_options options = halo::options_for(x, {.self_exchange = true, .path = way});
                if (!named) options.order = nullptr;
                plan p(j, cut, options);
                for (std::uint64_t k = 1; k <= 3; ++k) {
                    fill_with_oracle(x, cut, j.rank(), k);
                    p.start_bytes(reinterpret_cast<const std::byte*>(x.data()));
                    ASSERT_EQ(p.finish(), status::ok);
                    ASSERT_EQ(wrong_ghosts<float>(p, cut, 3, k), 0);
                }
            }
    });
}

TEST(Plan, SendsMemoryOfTheProgramsOwnInAnyOrder) {
    const auto cut = decomposition::even({4, 2, 4, 8}, {1, 1, 1, 2});
    run(2, [&](const comm::job& j) {
        const lattice::box local = cut.local_box(j.rank());
        for (const auto& order :
             {lattice::site_order::lexicographic(local.extents), lattice::site_order::even_odd(local),
              lattice::site_order::blocked(local, cut.global(), {2, 2, 2, 2}, 4)}) {
            lattice::field<double> x(order, 3), y(order, 3);
            fill_with_oracle(x, cut, j.rank(), 1);
            fill_with_oracle(y, cut, j.rank(), 2);
            std::vector<double> a(x.values().begin(), x.values().end()), b(y.values().begin(), y.values().end());
            const std::array views{halo::view(a.data(), order, 3), halo::view(b.data(), order, 3)};
            plan one(j, cut, halo::options_for(x, {.name = "one", .checks = check_level::normal})),
                two(j, cut, halo::options_for(x, {.fields = 2, .checks = check_level::normal}));

            one.start(views[1]);
            two.start(views);
            ASSERT_EQ(one.finish(), status::ok);
            ASSERT_EQ(two.finish(), status::ok);
            EXPECT_EQ(wrong_ghosts<double>(one, cut, 3, 2), 0);
            EXPECT_EQ(wrong_ghosts<double>(two, cut, 3, 1), 0);
            EXPECT_EQ(wrong_ghosts<double>(two, cut, 3, 2, 1), 0);

            EXPECT_NO_THROW(one.require_fresh(views[1]));
            EXPECT_NO_THROW(two.require_fresh(views));
            EXPECT_THROW(one.require_fresh(views[0]), error);
            EXPECT_FALSE(one.is_fresh(views[1]) || two.is_fresh(views)) << "nothing marks them";
            ASSERT_EQ(one.ensure_halo(views[1]), status::ok);
            EXPECT_EQ(one.epoch(), 2U);
            const halo::field_view of_field = halo::view(x); // has the field's marks
            ASSERT_EQ(one.ensure_halo(of_field), status::ok);
            ASSERT_EQ(one.ensure_halo(of_field), status::ok);
            ASSERT_EQ(one.ensure_halo(x), status::ok);
            EXPECT_EQ(one.epoch(), 3U);
            x.mark_written();
            EXPECT_FALSE(one.is_fresh(of_field));

            std::vector<float> narrow(a.size() * 2);
            one.start(halo::view(narrow.data(), order, 6));
            EXPECT_EQ(one.finish(), status::misused) << "as many bytes";
            two.start(std::array{views[0], halo::view<double>(nullptr, order, 3)});
            EXPECT_NE(refusal([&] { two.finish_or_throw(); }).find("one without storage"), std::string::npos);
        }
    });
}

TEST(Plan, HasItsSlotsInMemoryThatTheStartOfTheJobPaidFor) {
    const auto cut = decomposition::even({16, 16, 16, 32}, {1, 1, 1, 2});

    comm::job_options options = small_job();
    options.slab_bytes = std::size_t{1} << 30;

    const auto body = [&](const comm::job& j) {
        const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
        std::vector<lattice::field<double>> fields; // more than was committed at the start
        for (int i = 0; i < 3; ++i) fields.emplace_back(order, 12, &j.memory());
        plan p(j, cut, {.bytes_per_site = 96});
        p.start(fields[0]);
        ASSERT_EQ(p.finish(), status::ok);

        for (const halo::plan_message& m : p.messages()) EXPECT_LT(p.ghost(m.where) - j.memory().base(), 8 << 20);
    };
    comm::run_threads(2, body, options);
}

TEST(Plan, DescribesEachFace) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        plan p(j, cut,
               {.name = "spinors",
                .widths = {{1, 0, 0, 1}, {1, 0, 0, 2}},
                .bytes_per_site = 96,
                .self_exchange = true,
                .path = halo::path::direct});
        const std::string text = p.describe();

        EXPECT_NE(text.find("halo 'spinors', 96 bytes per site"), std::string::npos) << text;
        EXPECT_NE(text.find("x-low"), std::string::npos) << text;
        EXPECT_NE(text.find("self"), std::string::npos) << text;
        EXPECT_NE(text.find("direct"), std::string::npos) << text;
        EXPECT_NE(text.find("12288"), std::string::npos) << text; // two layers of 4^3 sites of 96 bytes
        EXPECT_NE(text.find("of width 0"), std::string::npos) << text;
        const std::string local = plan(j, cut, {.bytes_per_site = 96}).describe();
        EXPECT_NE(local.find("not cut: wraps around in the box, without ghosts"), std::string::npos) << local;
        for (const int mu : {0, 3}) { // not cut, and cut
            plan_options open{.bytes_per_site = 96};
            open.boundaries[mu] = lattice::boundary::open;
            const std::string at_edge = plan(j, cut, open).describe();
            EXPECT_NE(at_edge.find("an open edge of the lattice"), std::string::npos) << at_edge;
        }
    });
}

TEST(Plan, GhostsOfATypeAreThoseOfEachField) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        lattice::field<float> x(cut.local_box(j.rank()).extents, 6), y(x.shared_order(), 6);
        plan p(j, cut, halo::options_for(x, {.name = "pair", .fields = 2}));
        fill_with_oracle(x, cut, j.rank(), 1);
        fill_with_oracle(y, cut, j.rank(), 2);
        p.start(std::array{&x, &y});
        ASSERT_EQ(p.finish(), status::ok);

        for (const halo::plan_message& m : p.messages())
            for (int f = 0; f < 2; ++f) {
                const std::span<const float> ghosts = p.ghosts<float>(m.where, f);
                EXPECT_EQ(std::ssize(ghosts), m.ghost_sites * 6);
                EXPECT_EQ(reinterpret_cast<const std::byte*>(ghosts.data()), p.ghost(m.where, f));
            }
        EXPECT_EQ(p.ghosts<std::int16_t>({3, side::low}).size(), 4U * 4U * 4U * 12U);
        EXPECT_TRUE(p.ghosts<float>({0, side::low}).empty()); // x is not cut
    });
}

TEST(Plan, OptionsForAFieldPrepareCopiesInItsOrder) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        const lattice::box local = cut.local_box(j.rank());
        const lattice::field<double> x(lattice::site_order::even_odd(local), 3), other(local.extents, 3);
        const plan_options options = halo::options_for(x, {.name = "three", .order = other.shared_order()});
        EXPECT_EQ(options.name, "three");
        EXPECT_EQ(options.bytes_per_site, 3 * sizeof(double));
        EXPECT_EQ(options.order, x.shared_order());

        plan p(j, cut, options);
        const auto is_copied_one_by_one = [&](const lattice::field<double>& sent) {
            p.start(sent);
            EXPECT_EQ(p.finish(), status::ok);
            return p.describe().find("another order than prepared: copied site by site") != std::string::npos;
        };
        EXPECT_FALSE(is_copied_one_by_one(x)) << p.describe();
        EXPECT_TRUE(is_copied_one_by_one(other)) << p.describe();
        EXPECT_FALSE(is_copied_one_by_one(x)) << p.describe();
    });
}

TEST(Plan, DescribesWhatWasRefused) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    comm::job_options options = small_job();
    options.transports = {"self", "shm"};

    comm::run_threads(
        2,
        [&](const comm::job& j) {
            const auto grown = lattice::site_order::lexicographic(halo::grown(cut.local_box(j.rank()), {}).extents);
            lattice::field<double> padded(grown, 1, &j.memory());
            const std::string appended_ghosts = plan(j, cut, {.bytes_per_site = 96}).describe();
            const std::string padded_ghosts = halo::shell_plan(j, cut, {}, {halo::bind(padded)}).describe();
            for (const std::string& text : {appended_ghosts, padded_ghosts})
                EXPECT_NE(text.find("instead of self: serves only the own rank"), std::string::npos) << text;
        },
        options);
}

} // namespace
