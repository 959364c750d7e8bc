// SPDX-License-Identifier: Apache-2.0
// What plans refuse, and with which texts.
#include "oracle.hpp"
#include "random_exchanges.hpp"
#include "small_job.hpp"

#include <halocline/comm/slab_full.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace halocline_test;
using comm::status;
using halo::plan;
using halo::plan_options;
using lattice::decomposition;

namespace {

TEST(Plan, RefusesPackedAndUnlikePaths) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});

    const auto packed =
        refusals(2, [&](const comm::job& j) { plan(j, cut, {.bytes_per_site = 8, .path = halo::path::packed}); });
    const auto unlike = refusals(2, [&](const comm::job& j) {
        plan(j, cut, {.bytes_per_site = 8, .path = j.rank() == 0 ? halo::path::direct : halo::path::streamed});
    });

    for (const std::string& text : packed) EXPECT_NE(text.find("path packed"), std::string::npos) << text;
    for (const std::string& text : unlike) {
        EXPECT_NE(text.find("path direct"), std::string::npos) << text;
        EXPECT_NE(text.find("path streamed"), std::string::npos) << text;
    }
}

TEST(Plan, RefusesABoxOfMoreSitesThanItNumbers) {
    const auto cut = decomposition::even({1 << 16, 1 << 16, 1, 1}, {1, 1, 1, 1});

    const auto texts = refusals(1, [&](const comm::job& j) {
        plan(j, cut, {.widths = {{1, 1, 0, 0}, {1, 1, 0, 0}}, .bytes_per_site = 8, .self_exchange = true});
    });

    EXPECT_NE(texts[0].find("65536.65536.1.1 has more than 2147483647 sites"), std::string::npos) << texts[0];
}

TEST(Plan, RefusesDifferentWidthsOnTwoRanks) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});

    const auto texts = refusals(2, [&](const comm::job& j) {
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

TEST(Plan, RefusesASelectionOnOneRankOnly) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});

    const auto texts = refusals(2, [&](const comm::job& j) {
        plan_options options{.name = "even", .bytes_per_site = 8};
        if (j.rank() == 1) options.select = [](const coordinate& x) { return lattice::parity(x) == 0; };
        plan p(j, cut, options);
    });

    for (const std::string& text : texts)
        for (const char* const part : {"the shape of halo 'even'", "rank 0", "8 bytes per site, selected sites"})
            EXPECT_NE(text.find(part), std::string::npos) << text;
}

// Nothing else tells if the two choose equally many.
TEST(Plan, RefusesSelectionsOfOtherSitesOnTwoRanks) {
    const auto cut = decomposition::even({4, 4, 4, 12}, {1, 1, 1, 3});
    for (const bool as_many : {false, true}) {
        const auto texts = refusals(3, [&](const comm::job& j) {
            const auto chosen = [odd = j.rank() == 2 ? 1 : 0, as_many](const coordinate& x) {
                return x[0] % 2 == odd || (!as_many && odd == 1);
            };
            plan p(j, cut, {.name = "half", .bytes_per_site = 8, .select = chosen});
        });

        for (const std::string& text : texts)
            EXPECT_EQ(text, "halo 'half': rank 0 sends rank 2 other sites, for its ghosts behind t-high, than rank 2 "
                            "expects; select must choose the same sites on all ranks");
    }
}

TEST(Plan, AcceptsASelectionThatIsEqualOnAllRanks) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    const plan_options options{
        .bytes_per_site = 8, .self_exchange = true, .select = [](const coordinate& x) { return x[3] < 3; }};

    run(2, [&](const comm::job& j) { EXPECT_NO_THROW(plan(j, cut, options)); }); // nothing of some faces
}

TEST(Plan, RefusesAHaloWiderThanALocalBoxOnEveryRank) {
    const lattice::decomposition cut({4, 4, 4, 7}, {{{0, 4}, {0, 4}, {0, 4}, {0, 3, 5, 7}}});

    const auto texts = refusals(3, [&](const comm::job& j) {
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
    const auto texts = refusals(2, [&](const comm::job& j) {
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

    EXPECT_EQ(p.finish(), status::misused);
    EXPECT_EQ(p.epoch(), 0U);
    try {
        p.finish_or_throw();
        ADD_FAILURE() << "no exception";
    } catch (const input_error& e) {
        EXPECT_STREQ(e.what(), "halo 'halo': start() was given 1 field, one of 16 bytes per site on a box of 4.4.4.4; "
                               "it sends 1 of 8 bytes per site on a box of 4.4.4.4");
    }
}

TEST(Plan, RefusesToSendAFieldOfOtherComponents) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const lattice::field<double> x(lattice::site_order::lexicographic({4, 4, 4, 4}), 1);
    const lattice::field<float> y(lattice::site_order::lexicographic({4, 4, 4, 4}), 2);
    plan p(comm::job::single(small_job()), cut, halo::options_for(x, {.self_exchange = true}));
    p.start(x);
    EXPECT_EQ(p.finish(), status::ok);

    p.start(y);

    EXPECT_EQ(
        refusal([&] { p.finish_or_throw(); }),
        "halo 'halo': start() was given 1 field, one of 8 bytes per site (float32) on a box of 4.4.4.4; it sends 1 "
        "of 8 bytes per site (float64) on a box of 4.4.4.4");
    plan of_any(comm::job::single(small_job()), cut, {.bytes_per_site = 8, .self_exchange = true});
    of_any.start(y);
    EXPECT_EQ(of_any.finish(), status::ok) << "of which the plan was told nothing";
}

/// The bytes are as many, so the ghosts would be garbage.
TEST(Plan, RanksOfDifferentComponentsAreRefused) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 2});
    const auto texts = refusals(2, [&](const comm::job& j) {
        const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
        const lattice::field<double> x(order, 1);
        const lattice::field<float> y(order, 2);
        plan p(j, cut, j.rank() == 0 ? halo::options_for(x) : halo::options_for(y));
    });
    for (const std::string& text : texts)
        for (const char* const part : {"the shape of halo 'halo'", "8 bytes per site of float64", "of float32"})
            EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Plan, RefusesSitesThatTheirComponentsDoNotFill) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    EXPECT_EQ(refusal([&] {
                  plan p(comm::job::single(small_job()), cut,
                         {.bytes_per_site = 12, .element = comm::element_type_of<double>(), .self_exchange = true});
              }),
              "halo 'halo': 12 bytes per site don't consist of float64");
}

TEST(Plan, RefusesMessagesOfNothing) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    const auto expect_refused = [&](const plan_options& options, const std::string& expected) {
        for (const std::string& text : refusals(2, [&](const comm::job& j) { plan(j, cut, options); }))
            EXPECT_EQ(text, "halo 'halo': " + expected);
    };

    expect_refused({}, "0 bytes per site; say in plan_options::bytes_per_site what a site sends");
}

TEST(Plan, TakesAFieldThatIsNullForOneWithoutStorage) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const lattice::field<double> x(lattice::site_order::lexicographic({4, 4, 4, 4}), 1);
    const lattice::field<double>* const xs[]{&x, nullptr};
    const std::span<const lattice::field<double>* const> both = xs;
    plan p(comm::job::single(small_job()), cut,
           {.bytes_per_site = 8, .self_exchange = true, .fields = 2, .checks = check_level::normal});

    EXPECT_FALSE(p.is_fresh(both));
    EXPECT_THROW(p.require_fresh(both), error);
    EXPECT_EQ(p.ensure_halo(both), status::misused);
    EXPECT_EQ(refusal([&] { p.finish_or_throw(); }), "halo 'halo': start() was given 2 fields, one without storage; it "
                                                     "sends 2 of 8 bytes per site on a box of 4.4.4.4");
}

TEST(Plan, RefusesAnotherNumberOfFields) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    plan p(comm::job::single(small_job()), cut, {.bytes_per_site = 8, .self_exchange = true, .fields = 2});
    lattice::field<double> x(lattice::site_order::lexicographic({4, 4, 4, 4}), 1);

    p.start(x);

    EXPECT_EQ(p.finish(), status::misused);
}

// Before anything of their number is made.
TEST(Plan, OfMoreFieldsThanTheSlabHoldsIsRefusedOnEveryRank) {
    std::array<std::string, 2> texts;
    run(2, [&](const comm::job& j) {
        texts[j.rank()] = refusal<comm::slab_full>([&] {
            plan(j, decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2}),
                 {.bytes_per_site = std::size_t{1} << 30, .fields = 1 << 16});
        });
    });

    for (const std::string& text : texts) EXPECT_NE(text.find("slab: need"), std::string::npos) << text;
}

TEST(Plan, OfTooManyFieldsIsRefusedAlsoWithoutAMessage) {
    for (const int fields : {std::numeric_limits<int>::max(), (1 << 16) + 1, 0, -1}) {
        const std::string text = refusal([&] {
            plan(comm::job::single(small_job()), decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1}),
                 {.bytes_per_site = 8, .fields = fields});
        });
        EXPECT_EQ(text, "halo 'halo': " + std::to_string(fields) + " fields in a message: must be from 1 to 65536");
    }
}

TEST(Plan, RefusesBytesThatItIsNotPreparedFor) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const std::vector<std::byte> values(4 * 4 * 4 * 4 * 8);
    plan two(comm::job::single(small_job()), cut, {.bytes_per_site = 8, .self_exchange = true, .fields = 2});
    plan ordered(
        comm::job::single(small_job()), cut,
        {.bytes_per_site = 8, .self_exchange = true, .order = lattice::site_order::even_odd(cut.local_box(0))});

    for (plan* p : {&two, &ordered}) {
        p->start_bytes(values.data());
        EXPECT_EQ(p->finish(), status::misused);
        EXPECT_THROW(p->finish_or_throw(), input_error);
    }
}

/// What fails at one rank ends the others' waits for that plan, not the job.
TEST(Plan, AFailedExchangeIsNotWaitedFor) {
    const auto without_address = [](plan& p, halo::team me) {
        p.start_bytes(static_cast<const std::byte*>(nullptr), me);
    };
    const auto never_started = [](plan&, halo::team) {};
    for (const auto& [fail, members] : std::vector<std::pair<std::function<void(plan&, halo::team)>, int>>{
             {without_address, 1}, {without_address, 2}, {never_started, 1}}) {
        std::atomic<bool> told{false};
        run(2, [&](const comm::job& j) {
            plan p(j, decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2}), {.name = "p", .bytes_per_site = 8});
            if (j.rank() == 0) {
                as_team(members, [&](halo::team me) {
                    fail(p, me);
                    EXPECT_EQ(p.finish(me), status::misused);
                });
                const auto began = std::chrono::steady_clock::now();
                while (!told && std::chrono::steady_clock::now() - began < std::chrono::seconds(20))
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                EXPECT_TRUE(told) << "before rank 0 goes on";
            } else {
                const std::vector<std::byte> values(4 * 4 * 4 * 4 * 8);
                p.start_bytes(values.data());
                EXPECT_EQ(p.finish(), status::aborted);
                told = true;
            }
            j.barrier();
        });
    }
}

/// Not while a member of its team may still be packing: the peer would free the memory that it packs into.
TEST(Plan, AFailedExchangeIsNotLeftWhileAMemberPacks) {
    enum class mistake { a_stranger_finishes, member_0_finishes_alone };
    for (const mistake what : {mistake::a_stranger_finishes, mistake::member_0_finishes_alone}) {
        std::atomic<bool> packs{false}, goes_on{false}, ended{false};
        const auto await = [](const std::atomic<bool>& flag) {
            while (!flag) std::this_thread::yield();
        };
        run(2, [&](const comm::job& j) {
            plan p(j, decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2}), {.name = "p", .bytes_per_site = 1024});
            const auto pack = [&](int, std::int64_t, std::int64_t, std::byte*) {};
            if (j.rank() == 0) {
                const auto slow = [&](int, std::int64_t, std::int64_t, std::byte*) {
                    packs = true;
                    await(goes_on);
                };
                as_team(2, [&](halo::team me) {
                    if (me.index == 1) return p.start(slow, me);
                    p.start(pack, me);
                    await(packs);
                    if (what == mistake::a_stranger_finishes) {
                        EXPECT_EQ(p.finish({2, 2}), status::misused);
                    }
                    EXPECT_EQ(what == mistake::a_stranger_finishes ? p.finish(me) : p.finish(), status::misused);
                    std::this_thread::sleep_for(std::chrono::milliseconds(50));
                    EXPECT_FALSE(ended) << "the peer was told";
                    goes_on = true;
                });
            } else {
                p.start(pack);
                (void)p.finish(); // with the messages, or because rank 0 has left at last
                ended = true;
            }
        });
    }
}

TEST(Plan, AFailedOneHasNoTargets) {
    plan p(comm::job::single(small_job()), decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1}),
           {.bytes_per_site = 8, .self_exchange = true});
    EXPECT_NE(p.target({3, lattice::side::low}), nullptr);
    EXPECT_EQ(p.finish(), status::misused);
    EXPECT_EQ(p.target({3, lattice::side::low}), nullptr);
}

/// The text for a status that the plan keeps.
template <class Plan>
std::string refusal_of(Plan& p) {
    EXPECT_EQ(p.finish(), status::misused);
    return refusal([&] { p.finish_or_throw(); });
}

TEST(Plan, TellsOfCallsAtTheWrongTime) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const plan_options options{.name = "early", .bytes_per_site = 8, .self_exchange = true};
    const auto j = comm::job::single(small_job());
    const lattice::field<double> x(lattice::site_order::lexicographic({4, 4, 4, 4}), 1);

    plan twice(j, cut, options), never(j, cut, options);
    twice.start(x);
    ASSERT_EQ(twice.finish(), status::ok);
    twice.start(x);
    twice.start_bytes(reinterpret_cast<const std::byte*>(x.data()));

    EXPECT_EQ(refusal_of(twice), "halo 'early': start() before finish() of the last exchange");
    EXPECT_EQ(twice.epoch(), 1U);
    EXPECT_EQ(refusal_of(never), "halo 'early': finish() without start()");
}

TEST(Plan, ATeamThatStartsTwiceIsTold) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    plan p(comm::job::single(small_job()), cut, {.bytes_per_site = 8, .self_exchange = true});
    const lattice::field<double> x(lattice::site_order::lexicographic({4, 4, 4, 4}), 1);
    const auto together = [](const auto& call) {
        std::thread other([&] { call(halo::team{1, 2}); });
        call(halo::team{0, 2});
        other.join();
    };

    together([&](halo::team t) { p.start(x, t); });
    together([&](halo::team t) { p.start(x, t); });
    together([&](halo::team t) { EXPECT_EQ(p.finish(t), status::misused); });
}

TEST(Plan, RefusesChoicesThatNoEnumeratorStandsFor) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    const auto expect_refusal = [&](const plan_options& options, const std::string& text) {
        for (const std::string& said : refusals(2, [&](const comm::job& j) { plan(j, cut, options); }))
            EXPECT_EQ(said, "halo 'halo': " + text);
    };

    plan_options path{.bytes_per_site = 8}, checks = path, boundary = path;
    path.path = static_cast<halo::path>(77);
    checks.checks = static_cast<check_level>(-1);
    boundary.boundaries[1] = static_cast<lattice::boundary>(3);

    expect_refusal(path, "path 77: must be one of automatic, direct, streamed, joint, packed");
    expect_refusal(checks, "checks -1: must be one of off, light, normal, comm");
    expect_refusal(boundary, "boundary in y 3: must be one of periodic, antiperiodic, open");
}

TEST(Plan, ThatWasMisusedSaysSoInTheEndUnlessFinishDid) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const auto j = comm::job::single(small_job());
    const lattice::field<double> x(lattice::site_order::lexicographic({4, 4, 4, 4}), 1);
    const auto said = [&](bool misused, bool told) {
        testing::internal::CaptureStderr();
        {
            plan p(j, cut, {.name = "p", .bytes_per_site = 8, .self_exchange = true});
            p.start(x);
            if (misused) p.start(x); // finish() was forgotten
            if (!misused || told) {
                EXPECT_EQ(p.finish(), misused ? status::misused : status::ok);
            }
            const plan moved = std::move(p);
        }
        return testing::internal::GetCapturedStderr();
    };

    EXPECT_EQ(said(true, true), "");
    EXPECT_EQ(said(false, true), "");
    const std::string text = said(true, false);
    EXPECT_TRUE(text.starts_with("halocline: rank 0 (")) << text;
    EXPECT_TRUE(text.ends_with("): halo 'p': start() before finish() of the last exchange; since then nothing was "
                               "exchanged, and finish(), which would have said so, was never called\n"))
        << text;
}

TEST(Plan, ThatWasMisusedSaysSoWhenAnotherTakesItsPlace) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const auto j = comm::job::single(small_job());
    const lattice::field<double> x(lattice::site_order::lexicographic({4, 4, 4, 4}), 1);
    const plan_options options{.name = "p", .bytes_per_site = 8, .self_exchange = true};
    plan p(j, cut, options);
    p.start(x);
    p.start(x); // finish() was forgotten

    testing::internal::CaptureStderr();
    p = plan(j, cut, options);
    const std::string text = testing::internal::GetCapturedStderr();

    EXPECT_NE(text.find("halo 'p': start() before finish() of the last exchange; since then"), std::string::npos)
        << text;
    p.start(x);
    EXPECT_EQ(p.finish(), status::ok);
}

TEST(Plan, TellsOfMembersThatTheirTeamDoesNotHave) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const auto j = comm::job::single(small_job());
    const lattice::field<double> x(lattice::site_order::lexicographic({4, 4, 4, 4}), 1);
    for (const halo::team t :
         {halo::team{0, 0}, halo::team{1, 1}, halo::team{2, 2}, halo::team{-1, 2}, halo::team{0, -3}}) {
        plan p(j, cut, {.bytes_per_site = 8, .self_exchange = true}),
            q(j, cut, {.bytes_per_site = 8, .self_exchange = true});
        const std::string text = "halo 'halo': it was called as member " + std::to_string(t.index) + " of a team of " +
                                 std::to_string(t.size) + ": a team has 1 member or more, which count from 0";

        p.start(x, t);
        q.start(x);

        EXPECT_EQ(p.finish(t), status::misused);
        EXPECT_EQ(refusal_of(p), text);
        EXPECT_EQ(q.finish(t), status::misused);
    }
}

TEST(Plan, SaysThatItWasMovedFrom) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const lattice::field<double> x(lattice::site_order::lexicographic({4, 4, 4, 4}), 1);
    plan p(comm::job::single(small_job()), cut, {.bytes_per_site = 8, .self_exchange = true});
    p.start(x);
    ASSERT_EQ(p.finish(), status::ok);

    plan q = std::move(p);

    q.start(x);
    EXPECT_EQ(q.finish(), status::ok);
    const std::string text =
        "a halo::plan is used after it was moved from: it can be assigned to or destroyed, nothing else";
    EXPECT_EQ(refusal([&] { p.finish_or_throw(); }), text);
    EXPECT_EQ(refusal([&] { (void)p.describe(); }), text);
    EXPECT_EQ(refusal([&] { (void)p.message_of(lattice::face_of(0)); }), text);
    EXPECT_EQ(refusal([&] { (void)p.slab_bytes(); }), text);
    EXPECT_EQ(refusal([&] { (void)p.staging_bytes(); }), text);
    EXPECT_EQ(refusal([&] { (void)p.statistics(); }), text);
    EXPECT_EQ(refusal([&] { p.reset_statistics(); }), text);
    EXPECT_EQ(refusal([&] { p.require_fresh(x); }), text);
    EXPECT_EQ(refusal([&] { p.require_fresh(std::span<const lattice::field<double>* const>()); }), text);
    EXPECT_EQ(refusal([&] { (void)p.messages(); }), text);
    EXPECT_EQ(refusal([&] { (void)p.job(); }), text);
    EXPECT_DEATH(p.start(x), text);
    EXPECT_DEATH((void)p.ghost(lattice::face_of(0)), text);
}

} // namespace
