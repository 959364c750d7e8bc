// SPDX-License-Identifier: Apache-2.0
// Writes straight into a neighbour's field: the free flag that makes them safe, the memory they take, and what happens
// when a plan ends early. Ranks are threads.
#include "node/agreed_costs.hpp"
#include "padded_oracle.hpp"
#include "path_model.hpp"
#include "small_job.hpp"

#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/processors.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <optional>
#include <thread>

using namespace halocline_test;
using comm::status;
using halo::path;
using halo::region_plan;
using lattice::decomposition;
using lattice::field;

namespace {

std::shared_ptr<const site_order> row_of(int sites) { return site_order::lexicographic({sites, 1, 1, 1}); }

/// Two ranks write 8 words into each other's memory; rank 1 does so as fast as it may, rank 0 reads late.
/// How many words of a later exchange did rank 0 read?
std::int64_t later_words(bool wait_for_free) {
    std::int64_t later = 0;
    run(2, [&](const comm::job& j) {
        using word = std::atomic<std::uint64_t>;
        constexpr int words = 8, epochs = 50;
        auto* mine = static_cast<word*>(j.memory().allocate(words * sizeof(word), 128));
        for (int i = 0; i < words; ++i) new (mine + i) word(0);
        const int peer = 1 - j.rank();
        const std::array peers{peer};
        const auto offset = reinterpret_cast<std::byte*>(mine) - j.memory().base();
        const std::string theirs = j.exchange(peers, std::array{std::to_string(offset)})[0];
        const std::array request{comm::channel_request{peer, 0, 0, words * 8, words * 8, "words", true}};
        comm::channel_set set(j, request, {"words", "", {}});
        for (std::uint64_t k = 1; k <= epochs; ++k) {
            const auto send = [&](auto& c) {
                if (c.sent(k) || (wait_for_free && !c.freed(k))) return;
                auto* target = reinterpret_cast<word*>(c.memory() + std::stoll(theirs));
                for (int i = 0; i < words; ++i) target[i].store(k, std::memory_order_relaxed);
                c.send(k, comm::ticks());
            };
            set.for_each_direct([&](auto& c) { c.free(k, 0); });
            set.for_each_direct(send);
            if (set.wait(k, [&] { set.for_each_direct(send); }) != status::ok) return j.abort("wait");
            if (j.rank() != 0) continue;
            // Read late: until the fast rank's next words would be here, if it sent them.
            const auto patience =
                std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_for_free ? 1 : 1000);
            while (std::chrono::steady_clock::now() < patience &&
                   (k == epochs || mine[0].load(std::memory_order_relaxed) == k))
                if (k == epochs)
                    break;
                else
                    std::this_thread::yield();
            for (int i = 0; i < words; ++i) later += mine[i].load(std::memory_order_relaxed) != k;
        }
        j.barrier();
        j.memory().deallocate(mine, words * sizeof(word), 128);
    });
    return later;
}

} // namespace

TEST(FreeFlag, KeepsAFastRankFromOverwritingWhatASlowOneReads) { EXPECT_EQ(later_words(true), 0); }
TEST(FreeFlag, IsNeeded) { EXPECT_GT(later_words(false), 0); }

class DirectPathOnRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, DirectPathOnRanks, testing::Values(1, 2, 3, 4));

// 200,000 exchanges in all, ranks late at random; every ghost carries its exchange, and fields take turns.
TEST_P(DirectPathOnRanks, NeverReadsAStaleOrLaterGhost) {
    const int ranks = GetParam();
    const std::uint64_t epochs = std::array{150'000U, 15'000U, 20'000U, 15'000U}[static_cast<std::size_t>(ranks - 1)];
    run(ranks, [&](const comm::job& j) {
        const int up = (j.rank() + 1) % ranks, down = (j.rank() + ranks - 1) % ranks;
        field<double> x(row_of(4), 4, &j.memory()), y(row_of(4), 4, &j.memory());
        // Sites 1 and 2 are ours; 0 is a copy of the lower neighbour's 2, 3 of the upper one's 1.
        region_plan plan(j, {{up, 0, {2}}, {down, 1, {1}}}, {{down, 0, {0}}, {up, 1, {3}}},
                         {halo::bind(x), halo::bind(y)}, {.name = "line", .path = path::direct});
        std::mt19937 delays(static_cast<unsigned>(j.rank()));
        const auto dawdle = [&] {
            const unsigned d = delays() % 64;
            if (d == 0 && ranks > 1) std::this_thread::yield();
            for (std::uint64_t until = comm::ticks() + 20 * d; comm::ticks() < until;) {
            }
        };
        std::uint64_t wrong = 0;
        for (std::uint64_t k = 1; k <= epochs; ++k) {
            const int which = static_cast<int>((k + static_cast<std::uint64_t>(j.rank())) % 2);
            field<double>& f = which == 0 ? x : y;
            const auto value = [&](int rank, int site) { return static_cast<double>(k * 100) + 10 * rank + site; };
            for (int site = 1; site <= 2; ++site)
                for (int c = 0; c < 4; ++c) f.at(site, c) = value(j.rank(), site);
            plan.start(which);
            dawdle();
            if (k % 3 == 0) (void)plan.test();
            ASSERT_EQ(plan.finish(), status::ok);
            dawdle();
            for (int c = 0; c < 4; ++c) wrong += (f.at(0, c) != value(down, 2)) + (f.at(3, c) != value(up, 1));
        }
        EXPECT_EQ(wrong, 0U);
    });
}

TEST(DirectPath, ClaimsLinesOfWhichMostAreFilledWhole) {
    constexpr int rows = 64, row = 10; // ghosts at the start of each row: a box of 8 sites cut in x
    std::vector<std::int64_t> message(rows), ghosts(rows);
    for (int i = 0; i < rows; ++i)
        message[static_cast<std::size_t>(i)] = i, ghosts[static_cast<std::size_t>(i)] = row * i;
    const halo::site_copy face(message, 1, ghosts, 1);
    const auto claimed = [&](int words) {
        return halo::claiming_pays(face.lines(0, {words, 8, halo::scalar::float64}));
    };

    EXPECT_FALSE(claimed(12)); // a line whole, a line in part
    EXPECT_FALSE(claimed(15));
    EXPECT_TRUE(claimed(20)); // two whole, one in part
    EXPECT_TRUE(claimed(24)); // three whole
    EXPECT_TRUE(claimed(30));
    EXPECT_TRUE(claimed(48));
}

TEST(DirectPath, TakesOnlyControlLinesBeyondTheFields) {
    const auto cut = decomposition::even({8, 8, 8, 16}, {1, 1, 1, 2});
    const halo::ghost_widths widths{{0, 0, 0, 1}, {0, 0, 0, 1}};

    run(2, [&](const comm::job& j) {
        const auto order = site_order::lexicographic(halo::grown(cut.local_box(j.rank()), widths).extents);
        field<double> in_slab(order, 12, &j.memory()), elsewhere(order, 12);
        const std::size_t ghost_bytes = 2 * 8 * 8 * 8 * 96;
        const std::size_t before = j.memory().used();
        shell_plan direct(j, cut, {.widths = widths, .path = path::direct}, {halo::bind(in_slab)});
        const std::size_t between = j.memory().used();
        shell_plan packed(j, cut, {.widths = widths}, {halo::bind(elsewhere)});

        EXPECT_EQ(between - before, direct.slab_bytes());
        EXPECT_EQ(j.memory().used() - between, packed.slab_bytes());
        EXPECT_LE(direct.slab_bytes(), 3 * sizeof(comm::line_label));
        EXPECT_LE(packed.slab_bytes(), 4 * ghost_bytes);
        EXPECT_NE(direct.describe().find("direct"), std::string::npos) << direct.describe();
        EXPECT_NE(packed.describe().find("packed"), std::string::npos) << packed.describe();
        EXPECT_NE(packed.describe().find("is not in its slab"), std::string::npos) << packed.describe();
    });
}

TEST(DirectPath, IsNotTakenWhereTheJobAsksForPacked) {
    const auto cut = decomposition::even({8, 8, 8, 16}, {1, 1, 1, 2});
    const halo::ghost_widths widths{{0, 0, 0, 1}, {0, 0, 0, 1}};
    comm::job_options options = small_job();
    options.path = path::packed;

    comm::run_threads(
        2,
        [&](const comm::job& j) {
            const auto order = site_order::lexicographic(halo::grown(cut.local_box(j.rank()), widths).extents);
            field<double> x(order, 12, &j.memory());
            shell_plan packed(j, cut, {.widths = widths}, {halo::bind(x)});
            shell_plan direct(j, cut, {.widths = widths, .path = path::direct}, {halo::bind(x)});
            for (shell_plan* p : {&packed, &direct}) {
                fill_own(x, cut, j.rank(), p->options(), 1);
                p->start();
                ASSERT_EQ(p->finish(), status::ok);
                EXPECT_EQ(wrong_words(x, cut, j.rank(), p->options(), 1), 0);
            }

            EXPECT_GT(packed.slab_bytes(), 2 * 8 * 8 * 8 * 96U) << "slots";
            EXPECT_NE(packed.describe().find("the job asks for it"), std::string::npos) << packed.describe();
            EXPECT_LE(direct.slab_bytes(), 3 * sizeof(comm::line_label)) << "what a plan asks for counts more";
        },
        options);
}

TEST(DirectPath, IsRefusedByNameWhereItCantBe) {
    std::vector<std::string> texts(2);
    run(2, [&](const comm::job& j) {
        field<double> x(row_of(4), 1,
                        j.rank() == 0 ? static_cast<std::pmr::memory_resource*>(&j.memory())
                                      : std::pmr::get_default_resource());
        const int other = 1 - j.rank();
        try {
            region_plan plan(j, {{other, 0, {0}}}, {{other, 0, {1}}}, {halo::bind(x)},
                             {.name = "no", .path = path::direct});
        } catch (const input_error& e) {
            texts[static_cast<std::size_t>(j.rank())] = e.what();
        }
    });
    for (const std::string& text : texts)
        EXPECT_EQ(text, "'no': rank 0 can't have path direct with rank 1: a field of rank 1 is not in its slab");
}

TEST(DirectPath, RefusesPeersThatDontNameEachOther) {
    std::atomic<int> refused{0};
    run(3, [&](const comm::job& j) {
        field<double> x(row_of(4), 1, &j.memory());
        std::vector<halo::transfer> sends;
        if (j.rank() == 0) sends.push_back({2, 0, {0}});
        try {
            region_plan plan(j, sends, {}, {halo::bind(x)}, {.name = "one-sided"});
        } catch (const input_error& e) {
            refused +=
                std::string(e.what()).find("rank 0 wants 1 channels with rank 2, which wants 0") != std::string::npos;
        }
    });
    EXPECT_EQ(refused, 3);
}

// An exception between start() and finish() takes plan and field along, while the peer may be writing that field: it
// must not hit what the memory is used for next.
TEST(DirectPath, KeepsAFieldsMemoryUntilThePeerIsDoneWithIt) {
    constexpr std::size_t bytes = 1 << 12;
    std::barrier meet(2);
    run(2, [&](const comm::job& j) {
        const int other = 1 - j.rank();
        const std::array request{comm::channel_request{other, 0, 0, bytes, bytes, "bytes", true}};
        const std::size_t used = j.memory().used();
        std::optional<field<double>> x;
        x.emplace(row_of(bytes / 8), 1, &j.memory());
        const std::array peers{other};
        const std::string theirs = j.exchange(
            peers, std::array{std::to_string(reinterpret_cast<std::byte*>(x->data()) - j.memory().base())})[0];
        std::optional<comm::channel_set> set;
        set.emplace(j, request, comm::channel_set_options{"cut short", "", {x->data()}});
        const void* const place = x->data();
        if (j.rank() == 0) {
            set->for_each_direct([](auto& c) { c.free(1, 0); });
            meet.arrive_and_wait(); // rank 1 has seen it
            set.reset();
            x.reset();
            auto* reused = static_cast<std::byte*>(j.memory().allocate(bytes, 128)); // first fit
            std::fill_n(reused, bytes, std::byte{0x5A});
            meet.arrive_and_wait(); // now rank 1 copies
            meet.arrive_and_wait(); // and is done
            EXPECT_NE(static_cast<void*>(reused), place);
            EXPECT_EQ(std::count(reused, reused + bytes, std::byte{0x5A}), static_cast<std::ptrdiff_t>(bytes));
            j.memory().deallocate(reused, bytes, 128);
            comm::channel_set(j, {}, {"gives back what is due", "", {}});
            EXPECT_EQ(j.memory().used(), used);
        } else {
            set->for_each_direct([&](auto& c) {
                while (!c.freed(1)) std::this_thread::yield();
                meet.arrive_and_wait();
                meet.arrive_and_wait(); // rank 0 has gone on
                std::memset(c.memory() + std::stoll(theirs), 0, bytes);
                c.send(1, 0);
            });
            EXPECT_EQ(set->wait(1), status::aborted);
            set.reset();
            meet.arrive_and_wait();
            comm::channel_set(j, {}, {"gives back what is due", "", {}});
        }
    });
}

TEST(DirectPath, EndsThePeersWaitWhenAnExceptionLeavesAnExchange) {
    run(2, [&](const comm::job& j) {
        const int other = 1 - j.rank();
        field<double> x(row_of(4), 1, &j.memory());
        std::optional<region_plan> plan;
        plan.emplace(j, std::vector<halo::transfer>{{other, 0, {0}}}, std::vector<halo::transfer>{{other, 0, {1}}},
                     std::vector{halo::bind(x)}, halo::region_plan_options{.name = "cut short", .path = path::direct});
        if (j.rank() == 0) {
            plan->start(); // and that is all
            plan.reset();
        } else {
            plan->start();
            (void)plan->finish(); // whether its copy came before the farewell is chance
            plan->start();
            EXPECT_EQ(plan->finish(), status::aborted);
            EXPECT_THROW(plan->finish_or_throw(), job_error);
        }
        j.barrier(); // the job itself goes on
    });
}

// A peer that waits for a late copy must get it whatever this rank waits for: else two ranks that finish two exchanges
// in different orders, or sum in between, would wait for each other.
TEST(DirectPath, CopiesInEveryWaitOfTheRank) {
    run(2, [&](const comm::job& j) {
        const int other = 1 - j.rank();
        const std::vector<halo::transfer> sends{{other, 0, {0}}}, receives{{other, 0, {1}}};
        field<double> x(row_of(2), 1, &j.memory()), y(row_of(2), 1, &j.memory());
        region_plan p(j, sends, receives, {halo::bind(x)}, {.name = "p", .path = path::direct});
        region_plan q(j, sends, receives, {halo::bind(y)}, {.name = "q", .path = path::direct});
        comm::global_sum sum(j, 1);
        region_plan& first = j.rank() == 0 ? p : q;
        region_plan& second = j.rank() == 0 ? q : p;
        for (int k = 1; k <= 300; ++k) {
            x.at(0, 0) = 10 * k + j.rank();
            y.at(0, 0) = -x.at(0, 0);
            p.start();
            q.start();
            if (j.rank() == k % 2) std::this_thread::yield();
            double one = 1;
            ASSERT_EQ(sum({&one, 1}), status::ok);
            ASSERT_EQ(first.finish(), status::ok);
            ASSERT_EQ(second.finish(), status::ok);
            ASSERT_EQ(x.at(1, 0), 10 * k + other);
            ASSERT_EQ(y.at(1, 0), -(10 * k + other));
        }
    });
}

TEST(PathModel, HasTheSameNumbersOnEveryRank) {
    run(3, [&](const comm::job& j) {
        const comm::costs& c = comm::measured_costs(j);
        const auto text = [](double v) { return std::to_string(1e15 * v); };

        EXPECT_NO_THROW(j.agree("costs", text(c.flag_seconds) + text(c.message_seconds) +
                                             text(c.copy_seconds_per_byte) + text(c.run_seconds)));
        EXPECT_GT(c.flag_seconds, 0);
        EXPECT_GT(c.copy_seconds_per_byte, 0);
        EXPECT_EQ(&comm::measured_costs(j), &c); // once per job
    });
}

/// Two ranks then get a core each for as long as their lines are timed.
TEST(PathModel, KnowsWhatLinesCostWhereRanksShareCores) {
    const std::vector<int> all = comm::usable_processors();
    std::vector<int> cores = all;
    cores.resize(std::min<std::size_t>(2, all.size()));
    ASSERT_TRUE(comm::bind_to(cores));
    run(static_cast<int>(cores.size()) + 1, [&](const comm::job& j) {
        const comm::costs& c = comm::measured_costs(j);

        const bool several = cores.size() > 1;
        EXPECT_EQ(c.cached_seconds(16384) > 0, several);
        EXPECT_EQ(c.streamed_seconds(16384) > 0, several);
        EXPECT_EQ(c.take_seconds > 0, several);
        EXPECT_EQ(comm::usable_processors(), cores) << "a rank stays bound";
    });
    comm::bind_to(all);
}

TEST(PathModel, CopiesDirectlyWhatComesOutOfASlotLaterThanAFlag) {
    const comm::costs c{.flag_seconds = 1e-6, .copy_seconds_per_byte = 1e-10, .run_seconds = 1e-8};

    EXPECT_EQ(halo::choose_path(c, 9'000, 1, 0).choice, path::packed);  // 0.91 us
    EXPECT_EQ(halo::choose_path(c, 10'000, 1, 0).choice, path::direct); // 1.01 us
    EXPECT_EQ(halo::choose_path(c, 100, 100, 0).choice, path::direct);  // many short runs

    comm::costs far = c;
    far.cached.line_seconds = 12.8e-9;                                   // half of that a line, there
    EXPECT_EQ(halo::choose_path(far, 4'900, 0, 0).choice, path::packed); // 0.98 us
    EXPECT_EQ(halo::choose_path(far, 5'100, 0, 0).choice, path::direct); // 1.02 us
}

TEST(PathModel, PacksWhatWouldShareTooManyLinesWithSitesOfThePeer) {
    comm::costs c{
        .flag_seconds = 1e-7, .copy_seconds_per_byte = 1e-10, .cached = {0, 8e-9}, .scattered_line_seconds = 2e-8};

    EXPECT_EQ(halo::choose_path(c, 20'000, 0, 160).choice, path::direct); // 2 us; 1.92
    EXPECT_EQ(halo::choose_path(c, 20'000, 0, 170).choice, path::packed); // 2.04

    c.scattered_line_seconds = 7e-9; // not dearer than others, by a rough measurement
    EXPECT_EQ(halo::choose_path(c, 20'000, 0, 1000).choice, path::direct);
}

/// A message of box faces: two of L^3 sites to the one peer, each face a run of its own or a run for each site.
struct face_message {
    std::size_t bytes;
    std::int64_t runs;
    double shared_lines;
};
std::vector<face_message> face_messages() {
    std::vector<face_message> all;
    for (const std::size_t site_bytes : {24, 96, 192})
        for (const std::int64_t L : {2, 4, 8, 16})
            for (const bool scattered : {false, true}) {
                const std::int64_t sites = 2 * L * L * L;
                const bool shares = scattered && site_bytes % 64 != 0;
                all.push_back({static_cast<std::size_t>(sites) * site_bytes, scattered ? sites : 2 * L,
                               shares ? static_cast<double>(sites) : 0});
            }
    return all;
}

/// Costs as ranks measured them on a quiet machine, on the same with loops running on all cores, and at the worst.
TEST(PathModel, ChoosesOnABusyMachineAsOnAQuietOne) {
    const auto one = [](bool own_core, double flag, double message, double copy, double line, double scattered) {
        return comm::measurement{.seen = {.flag_seconds = flag,
                                          .message_seconds = message,
                                          .copy_seconds_per_byte = copy,
                                          .cached = {2e-7, line},
                                          .streamed = {4e-7, 11e-9},
                                          .scattered_line_seconds = scattered,
                                          .take_seconds = 85e-9,
                                          .keep_seconds = 25e-9},
                                 .own_core = own_core,
                                 .shares_memory = true};
    };
    for (const bool own_core : {true, false}) {
        const auto quiet = own_core ? one(true, 150e-9, 20e-9, 25e-12, 13.7e-9, 25e-9)
                                    : one(false, 1.7e-6, 30e-9, 25e-12, 13.9e-9, 24e-9);
        const comm::costs expected = comm::agreed({quiet, quiet});
        for (const auto& busy :
             {one(own_core, 5e-6, 142e-6, 37e-12, 14.5e-9, 19e-9), // seen
              one(own_core, 4e-3, 4e-3, 25e-12, 14.1e-9, 30e-9), one(own_core, 1, 1, 37e-12, 13e-9, 1)})
            for (const std::vector<comm::measurement>& all : {std::vector{busy, busy}, {busy, quiet}}) {
                const comm::costs c = comm::agreed(all);
                for (const face_message& m : face_messages())
                    EXPECT_EQ(halo::choose_path(c, m.bytes, m.runs, m.shared_lines).choice,
                              halo::choose_path(expected, m.bytes, m.runs, m.shared_lines).choice)
                        << m.bytes << " B, " << m.shared_lines << " shared lines";
                const halo::ghost_widths all_sides{}, plane{{1, 1, 0, 0}, {1, 1, 0, 0}};
                EXPECT_EQ(halo::choose_route(c, {2, 2, 1, 1}, plane).choice,
                          halo::choose_route(expected, {2, 2, 1, 1}, plane).choice);
                EXPECT_EQ(halo::choose_route(c, {3, 3, 3, 3}, all_sides).choice,
                          halo::choose_route(expected, {3, 3, 3, 3}, all_sides).choice);
            }
    }
}

/// With more ranks than cores one copy is less work than two, however long a flag took that waited for time slices; but
/// small faces are not worth another change of process.
TEST(PathModel, WritesFacesDirectlyWhereRanksShareCores) {
    const comm::measurement sharing{.seen = {.flag_seconds = 4e-3,
                                             .copy_seconds_per_byte = 25e-12,
                                             .cached = {2e-7, 14e-9},
                                             .scattered_line_seconds = 24e-9,
                                             .take_seconds = 90e-9},
                                    .shares_memory = true};
    const comm::costs c = comm::agreed({sharing, sharing, sharing, sharing});
    const auto face_of = [](std::size_t L, std::size_t site_bytes) { return L * L * L * site_bytes; };

    EXPECT_EQ(halo::choose_path(c, face_of(4, 96), 1, 0).choice, path::packed);
    EXPECT_EQ(halo::choose_path(c, face_of(6, 96), 1, 0).choice, path::direct);
    EXPECT_EQ(halo::choose_path(c, face_of(8, 96), 1, 0).choice, path::direct);
    EXPECT_EQ(halo::choose_path(c, face_of(8, 96), 1, 512).choice, path::packed); // that would share its lines
}

/// Where the costs say that shared lines are dear: faces in x of a field with ghosts in it, whose runs of 96 bytes share
/// their lines with own sites, are packed, those in t, which are contiguous, are not.
TEST(PathModel, CountsTheLinesThatGhostsShareWithSites) {
    for (const int mu : {0, 3}) {
        lattice::coordinate global{8, 8, 8, 8}, ranks{1, 1, 1, 1};
        global[mu] *= 2;
        ranks[mu] = 2;
        const auto cut = decomposition::even(global, ranks);
        run(2, [&](const comm::job& j) {
            comm::assume_costs(j, {.flag_seconds = 1e-7,
                                   .copy_seconds_per_byte = 1e-10,
                                   .cached = {0, 8e-9},
                                   .streamed = {0, 8e-9},
                                   .scattered_line_seconds = 1e-6});
            field<float> x(site_order::lexicographic(halo::grown(cut.local_box(j.rank()), {}).extents), 24,
                           &j.memory());

            const shell_plan ghosts(j, cut, {}, {halo::bind(x)});

            const std::string text = ghosts.describe();
            EXPECT_EQ(text.find("packed") != std::string::npos, mu == 0) << text;
        });
    }
}

TEST(PathModel, TakesTheRouteWithTheShorterSum) {
    const halo::ghost_widths all{}, plane{{1, 1, 0, 0}, {1, 1, 0, 0}};
    // 81 messages in one phase, or 8 in four.
    EXPECT_EQ(halo::choose_route({1e-6, 1e-7, 0, 0}, {3, 3, 3, 3}, all).choice, halo::corner_route::by_dimension);
    EXPECT_EQ(halo::choose_route({1e-6, 1e-8, 0, 0}, {3, 3, 3, 3}, all).choice, halo::corner_route::at_once);
    // 9 or 4.
    EXPECT_EQ(halo::choose_route({1e-6, 1e-7, 0, 0}, {3, 3, 1, 1}, plane).choice, halo::corner_route::at_once);
    EXPECT_EQ(halo::choose_route({1e-6, 3e-7, 0, 0}, {3, 3, 1, 1}, plane).choice, halo::corner_route::by_dimension);
}

TEST(PathModel, IsPrintedWithItsNumbersAndOverridden) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    run(2, [&](const comm::job& j) {
        field<double> x(site_order::lexicographic(halo::grown(cut.local_box(j.rank()), {}).extents), 1, &j.memory());
        shell_plan automatic(j, cut, {.shape = halo::shell::box}, {halo::bind(x)});
        const std::string text = automatic.describe();
        EXPECT_NE(text.find("a free flag"), std::string::npos) << text;
        EXPECT_NE(text.find("by dimension"), std::string::npos) << text;

        shell_plan asked(j, cut,
                         {.shape = halo::shell::box, .corners = halo::corner_route::by_dimension, .path = path::direct},
                         {halo::bind(x)});
        EXPECT_EQ(asked.route(), halo::corner_route::by_dimension);
        EXPECT_EQ(asked.describe().find("packed"), std::string::npos) << asked.describe();
        EXPECT_NE(asked.describe().find("asked for"), std::string::npos) << asked.describe();
        shell_plan packed(j, cut, {.path = path::packed}, {halo::bind(x)});
        EXPECT_EQ(packed.describe().find("direct"), std::string::npos) << packed.describe();
    });
}
