// SPDX-License-Identifier: Apache-2.0
// How a plan chooses, by made-up or measured costs: between packing and writing into a neighbour's field, whether lines
// are claimed first, and the route of edges and corners. Ranks are threads.
#include "measure/agreed_costs.hpp"
#include "padded_oracle.hpp"
#include "path_model.hpp"
#include "small_job.hpp"

#include <halocline/comm/processors.hpp>

#include <algorithm>
#include <array>
#include <cmath>

using namespace halocline_test;
using halo::path;
using lattice::decomposition;
using lattice::field;

namespace {

/// A message of box faces: two of L^3 sites to the same peer, each face a single run or a run per site.
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

} // namespace

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

/// With more ranks than cores, two ranks get a core each for as long as their lines are timed.
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

    EXPECT_EQ(halo::choose_path(c, {9'000, 1, 0}).choice, path::packed);  // 0.91 us
    EXPECT_EQ(halo::choose_path(c, {10'000, 1, 0}).choice, path::direct); // 1.01 us
    EXPECT_EQ(halo::choose_path(c, {100, 100, 0}).choice, path::direct);  // many short runs

    comm::costs far = c;
    far.cached.line_seconds = 12.8e-9;                                     // half of that per line, there
    EXPECT_EQ(halo::choose_path(far, {4'900, 0, 0}).choice, path::packed); // 0.98 us
    EXPECT_EQ(halo::choose_path(far, {5'100, 0, 0}).choice, path::direct); // 1.02 us
}

TEST(PathModel, PacksWhatWouldShareTooManyLinesWithSitesOfThePeer) {
    comm::costs c{
        .flag_seconds = 1e-7, .copy_seconds_per_byte = 1e-10, .cached = {0, 8e-9}, .scattered_line_seconds = 2e-8};

    EXPECT_EQ(halo::choose_path(c, {20'000, 0, 160}).choice, path::direct); // 2 us; 1.92
    EXPECT_EQ(halo::choose_path(c, {20'000, 0, 170}).choice, path::packed); // 2.04

    c.scattered_line_seconds = 7e-9; // not more expensive than others, by a rough measurement
    EXPECT_EQ(halo::choose_path(c, {20'000, 0, 1000}).choice, path::direct);
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
             {one(own_core, 5e-6, 142e-6, 37e-12, 14.5e-9, 19e-9), // observed
              one(own_core, 4e-3, 4e-3, 25e-12, 14.1e-9, 30e-9), one(own_core, 1, 1, 37e-12, 13e-9, 1)})
            for (const std::vector<comm::measurement>& all : {std::vector{busy, busy}, {busy, quiet}}) {
                const comm::costs c = comm::agreed(all);
                for (const face_message& m : face_messages())
                    EXPECT_EQ(halo::choose_path(c, {m.bytes, m.runs, m.shared_lines}).choice,
                              halo::choose_path(expected, {m.bytes, m.runs, m.shared_lines}).choice)
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
/// small faces are not worth another context switch.
TEST(PathModel, WritesFacesDirectlyWhereRanksShareCores) {
    const comm::measurement sharing{.seen = {.flag_seconds = 4e-3,
                                             .copy_seconds_per_byte = 25e-12,
                                             .cached = {2e-7, 14e-9},
                                             .scattered_line_seconds = 24e-9,
                                             .take_seconds = 90e-9},
                                    .shares_memory = true};
    const comm::costs c = comm::agreed({sharing, sharing, sharing, sharing});
    const auto face_of = [](std::size_t L, std::size_t site_bytes) { return L * L * L * site_bytes; };

    EXPECT_EQ(halo::choose_path(c, {face_of(4, 96), 1, 0}).choice, path::packed);
    EXPECT_EQ(halo::choose_path(c, {face_of(6, 96), 1, 0}).choice, path::direct);
    EXPECT_EQ(halo::choose_path(c, {face_of(8, 96), 1, 0}).choice, path::direct);
    EXPECT_EQ(halo::choose_path(c, {face_of(8, 96), 1, 512}).choice, path::packed); // it would share its lines
}

/// As on Zen 5: short runs take 2 (near) or 4 times as long as one move of what they are gathered to. What is not
/// gathered, since it is too large, gains past the cache.
TEST(PathModel, PacksFarWhatIsGatheredWhereMovesSkipWaits) {
    const auto zen5 = [](bool far) {
        return comm::costs{.flag_seconds = far ? 4e-7 : 1.2e-7,
                           .copy_seconds_per_byte = 30e-12,
                           .run_seconds = 1e-9,
                           .cached = {2e-7, far ? 3.9e-9 : 2.1e-9},
                           .streamed = {3e-7, far ? 3.5e-9 : 5.1e-9},
                           .run_line_seconds = far ? 15e-9 : 4.6e-9,
                           .moves_skip_waits = true,
                           .pulled_line_seconds = far ? 10e-9 : 3.3e-9,
                           .take_seconds = far ? 140e-9 : 40e-9};
    };
    const auto face = [](std::int64_t L, std::size_t site_bytes, bool gathered) {
        const std::int64_t sites = L * L * L;
        halo::message_outline m{
            .bytes = static_cast<std::size_t>(sites) * site_bytes, .runs = sites, .in_runs = !gathered};
        m.filled.in_runs = true;
        m.filled.whole = static_cast<double>(sites) * std::floor(static_cast<double>(site_bytes) / 64);
        m.filled.part = site_bytes % 64 != 0 ? static_cast<double>(sites) : 0;
        return m;
    };
    for (const bool far : {false, true}) {
        const comm::costs c = zen5(far);
        for (const std::int64_t L : {4, 8, 16})
            for (const std::size_t site_bytes : {96, 192}) {
                const auto m = face(L, site_bytes, true);
                const auto found = halo::choose_path(c, m);
                EXPECT_EQ(found.choice, far ? path::packed : path::direct)
                    << L << ", " << site_bytes << ": " << found.why;
                EXPECT_EQ(found.why.find("moved as one message") == 0, far) << found.why;
                EXPECT_TRUE(halo::depends_on_distance(c, m)) << L << ", " << site_bytes;
                comm::costs elsewhere = c;
                elsewhere.moves_skip_waits = false;
                EXPECT_NE(halo::choose_path(elsewhere, m).why.find("moved as one message"), 0u);
            }
        const auto large = face(16, 96, false);
        EXPECT_EQ(halo::choose_path(c, large).choice, far ? path::packed : path::direct);
        EXPECT_TRUE(halo::depends_on_distance(c, large));
    }
}

/// If the costs say that shared lines are expensive: faces in x of a field with ghosts, whose runs of 96 bytes share
/// their lines with owned sites, are packed; those in t, which are contiguous, are not.
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

/// Both ranks send as much; but the ghosts of rank 1 lie between the sites that it sends, so that it wants them packed.
TEST(PathModel, SaysWhichRankChosePacked) {
    constexpr int sites = 4096;
    run(2, [&](const comm::job& j) {
        comm::assume_costs(j, {.flag_seconds = 1e-7,
                               .copy_seconds_per_byte = 1e-10,
                               .cached = {0, 8e-9},
                               .streamed = {0, 8e-9},
                               .scattered_line_seconds = 1e-6});
        field<double> x(site_order::lexicographic({2 * sites, 1, 1, 1}), 1, &j.memory());
        const std::int64_t every = j.rank() == 0 ? 1 : 2;
        const halo::strided_box own{0, {sites, 1, 1, 1}, {every, 0, 0, 0}},
            ghosts{j.rank() == 0 ? sites : 1, {sites, 1, 1, 1}, {every, 0, 0, 0}};
        const int peer = 1 - j.rank();

        const halo::region_plan p(j, {{.peer = peer, .sites = {}, .boxes = {own}}},
                                  {{.peer = peer, .sites = {}, .boxes = {ghosts}}}, {halo::bind(x)});

        const std::string text = p.describe();
        EXPECT_NE(text.find("packed"), std::string::npos) << text;
        const std::string why = j.rank() == 0 ? "rank 1 chooses it by the cost model; its describe() says why"
                                              : "lines that ghosts share with sites";
        EXPECT_NE(text.find(why), std::string::npos) << text;
    });
}

TEST(PathModel, MessagesThatGoOneWayAreDirectWhereThatPays) {
    constexpr int sites = 4096;
    run(2, [&](const comm::job& j) {
        comm::assume_costs(
            j, {.flag_seconds = 1e-7, .copy_seconds_per_byte = 1e-10, .cached = {0, 8e-9}, .streamed = {0, 8e-9}});
        field<double> x(site_order::lexicographic({2 * sites, 1, 1, 1}), 1, &j.memory());
        for (int i = 0; i < sites; ++i) x.at(i, 0) = i + 1000.0 * j.rank();
        const halo::strided_box own{0, {sites, 1, 1, 1}, {1, 0, 0, 0}}, ghosts{sites, {sites, 1, 1, 1}, {1, 0, 0, 0}};
        std::vector<halo::transfer> sends, receives;
        if (j.rank() == 0) sends.push_back({.peer = 1, .sites = {}, .boxes = {own}});
        if (j.rank() == 1) receives.push_back({.peer = 0, .sites = {}, .boxes = {ghosts}});

        halo::region_plan p(j, sends, receives, {halo::bind(x)});

        const std::string text = p.describe();
        EXPECT_NE(text.find("direct"), std::string::npos) << text;
        EXPECT_EQ(text.find("packed"), std::string::npos) << text;
        for (int step = 0; step < 3; ++step) {
            p.start();
            p.finish_or_throw();
            if (j.rank() == 1) {
                EXPECT_EQ(x.at(sites + 17, 0), 17);
            }
        }
    });
}

TEST(PathModel, ClaimsLinesOfWhichMostAreFilledWhole) {
    constexpr int rows = 64, row = 10; // ghosts at the start of each row: a box of 8 sites cut in x
    std::vector<std::int64_t> message(rows), ghosts(rows);
    for (int i = 0; i < rows; ++i) message[i] = i, ghosts[i] = row * i;
    const halo::site_copy face(message, 1, ghosts, 1);
    const auto claimed = [&](int words) {
        return halo::claiming_pays(face.lines(0, {words, 8, halo::scalar::float64}));
    };

    EXPECT_FALSE(claimed(12)); // one whole line, one partial
    EXPECT_FALSE(claimed(15));
    EXPECT_TRUE(claimed(20)); // two whole, one partial
    EXPECT_TRUE(claimed(24)); // three whole
    EXPECT_TRUE(claimed(30));
    EXPECT_TRUE(claimed(48));
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
        // Whichever reason this machine's costs give.
        constexpr std::array reasons{"than a free flag, ", "than in place, ", "than a second copy, "};
        EXPECT_TRUE(std::ranges::any_of(reasons, [&](const char* why) { return text.find(why) != std::string::npos; }))
            << text;
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
