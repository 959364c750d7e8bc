// SPDX-License-Identifier: Apache-2.0
// Whether a field's ghosts match the field as it is now.
#include "padded_oracle.hpp"
#include "small_job.hpp"

#include <algorithm>
#include <string>

using namespace halocline_test;
using comm::status;
using lattice::decomposition;
using lattice::field;

namespace {

/// Two ranks, cut in t, one ghost site all around.
const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});

field<double> make_field(const comm::job& j) {
    return {site_order::lexicographic(halo::grown(cut.local_box(j.rank()), {}).extents), 1, &j.memory()};
}

/// Number of exchanges made by ensure_halo().
std::uint64_t exchanges(shell_plan& p, int which) {
    const std::uint64_t before = p.epoch();
    EXPECT_EQ(p.ensure_halo(which), status::ok);
    EXPECT_TRUE(p.is_fresh(which));
    return p.epoch() - before;
}

} // namespace

TEST(PaddedPlan, ExchangesOnlyBindingsThatWereWritten) {
    run(2, [&](const comm::job& j) {
        auto w = make_field(j), x = make_field(j), y = make_field(j), z = make_field(j);
        shell_plan p(j, cut, {}, {halo::bind(w, x), halo::bind(y, z)});

        EXPECT_EQ(exchanges(p, 0), 1U);
        EXPECT_EQ(exchanges(p, 0), 0U);
        EXPECT_EQ(exchanges(p, 1), 1U);
        EXPECT_EQ(exchanges(p, 0), 0U) << "each binding has its own ghosts";
        z.mark_written();
        EXPECT_FALSE(p.is_fresh(1));
        EXPECT_EQ(exchanges(p, 0), 0U);
        EXPECT_EQ(exchanges(p, 1), 1U);
        p.start();
        EXPECT_FALSE(p.is_fresh(0)) << "not finished";
        ASSERT_EQ(p.finish(), status::ok);
        EXPECT_EQ(exchanges(p, 0), 0U);
        EXPECT_FALSE(p.is_fresh(2)) << "no such binding";
    });
}

TEST(PaddedPlan, KnowsFieldsByTheirMemory) {
    run(2, [&](const comm::job& j) {
        auto x = make_field(j), y = make_field(j);
        shell_plan p(j, cut, {}, {halo::bind(x), halo::bind(y)});
        ASSERT_EQ(exchanges(p, 0) + exchanges(p, 1), 2U);

        x.swap(y); // as time steps do: x is binding 1 now
        field<double> moved = std::move(x);
        moved.mark_written();

        EXPECT_EQ(exchanges(p, 0), 0U);
        EXPECT_EQ(exchanges(p, 1), 1U);
    });
}

TEST(PaddedPlan, GhostsAreAsTheFieldWasMarkedLast) {
    run(2, [&](const comm::job& j) {
        const std::uint64_t epochs = 20;
        auto x = make_field(j), y = make_field(j);
        shell_plan p(j, cut, {.shape = halo::shell::box}, {halo::bind(x), halo::bind(y)});
        std::mt19937 same_on_every_rank(4);
        for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
            const int which = drawn(same_on_every_rank, 0, 1);
            field<double>& f = which == 0 ? x : y;
            fill_own(f, cut, j.rank(), p.options(), epoch);
            f.mark_written();

            ASSERT_EQ(p.ensure_halo(0), status::ok);
            ASSERT_EQ(p.ensure_halo(1), status::ok);

            ASSERT_EQ(wrong_words(f, cut, j.rank(), p.options(), epoch), 0) << "epoch " << epoch;
        }
        EXPECT_LE(p.epoch(), epochs + 1);
    });
}

TEST(PaddedPlan, AReverseExchangeMarksWhatItAddsTo) {
    run(2, [&](const comm::job& j) {
        auto x = make_field(j);
        shell_plan p(j, cut, {.reverse = true}, {halo::bind(x)});
        ASSERT_EQ(exchanges(p, 0), 1U);

        p.start_reverse();
        ASSERT_EQ(p.finish(), status::ok);

        EXPECT_EQ(exchanges(p, 0), 1U);
        EXPECT_EQ(exchanges(p, 0), 0U);
    });
}

TEST(PaddedPlan, GhostsOfOtherSourcesInTheSamePlaceAreNotFresh) {
    run(2, [&](const comm::job& j) {
        auto x = make_field(j), y = make_field(j), to = make_field(j);
        shell_plan p(j, cut, {}, {{{halo::view(x)}, {halo::view(to)}}, {{halo::view(y)}, {halo::view(to)}}});

        EXPECT_EQ(exchanges(p, 0), 1U);
        EXPECT_EQ(exchanges(p, 0), 0U);
        EXPECT_EQ(exchanges(p, 1), 1U);
        EXPECT_EQ(exchanges(p, 0), 1U);
    });
}

TEST(PaddedPlan, GhostsThatAnotherBindingOverwroteAreNotFresh) {
    run(2, [&](const comm::job& j) {
        auto x = make_field(j), y = make_field(j);
        shell_plan p(j, cut, {}, {{{halo::view(y)}, {halo::view(x)}}, halo::bind(x)});

        EXPECT_EQ(exchanges(p, 0), 1U);
        EXPECT_EQ(exchanges(p, 1), 1U);
        EXPECT_FALSE(p.is_fresh(0)) << "the ghosts in x are copies of x";
        EXPECT_EQ(exchanges(p, 0), 1U);
        EXPECT_FALSE(p.is_fresh(1)) << "they are copies of y";

        auto a = make_field(j), b = make_field(j);
        shell_plan pairs(j, cut, {},
                         {halo::bind(a, b), {{halo::view(a), halo::view(b)}, {halo::view(b), halo::view(a)}}});
        shell_plan other(j, cut, {}, {halo::bind(a)});

        EXPECT_EQ(exchanges(pairs, 0), 1U);
        EXPECT_EQ(exchanges(other, 0), 1U);
        EXPECT_EQ(exchanges(pairs, 1), 1U);
        EXPECT_FALSE(pairs.is_fresh(0)) << "each field has the other's ghosts";
        EXPECT_FALSE(other.is_fresh(0));
        EXPECT_EQ(exchanges(pairs, 0), 1U);
        EXPECT_FALSE(pairs.is_fresh(1));
    });
}

TEST(PaddedPlan, GhostsThatAnotherBindingFilledFromTheSameFieldsAreFresh) {
    run(2, [&](const comm::job& j) {
        auto a = make_field(j), b = make_field(j);
        shell_plan p(j, cut, {}, {halo::bind(a, b), halo::bind(b, a)});

        EXPECT_EQ(exchanges(p, 0), 1U);
        EXPECT_EQ(exchanges(p, 1), 1U);
        EXPECT_EQ(exchanges(p, 0), 0U);
    });
}

TEST(PaddedPlan, CatchesGhostsThatAnotherBindingOverwroteInMemoryWithoutAVersion) {
    run(2, [&](const comm::job& j) {
        auto x = make_field(j), y = make_field(j);
        halo::field_view in_x = halo::view(x), in_y = halo::view(y);
        in_x.version = in_y.version = nullptr;
        shell_plan p(j, cut, {.checks = check_level::normal}, {{{in_y}, {in_x}}, {{in_x}, {in_x}}});
        ASSERT_EQ(p.ensure_halo(0), status::ok);
        EXPECT_NO_THROW(p.require_fresh(0));
        ASSERT_EQ(p.ensure_halo(1), status::ok);

        EXPECT_NE(refusal<error>([&] { p.require_fresh(0); }).find("another binding's exchange overwrote them"),
                  std::string::npos);
        EXPECT_NO_THROW(p.require_fresh(1));
    });
}

TEST(PaddedPlan, AlwaysExchangesMemoryWithoutAVersion) {
    run(2, [&](const comm::job& j) {
        auto x = make_field(j);
        halo::field_view by_hand = halo::view(x);
        by_hand.version = nullptr;
        shell_plan p(j, cut, {}, {{{by_hand}, {by_hand}}});

        ASSERT_EQ(p.ensure_halo(), status::ok);
        EXPECT_FALSE(p.is_fresh());
        ASSERT_EQ(p.ensure_halo(), status::ok);
        EXPECT_EQ(p.epoch(), 2U);
    });
}

TEST(PaddedPlan, CatchesStaleGhosts) {
    run(2, [&](const comm::job& j) {
        auto x = make_field(j), y = make_field(j);
        shell_plan p(j, cut, {.name = "stale", .checks = check_level::normal}, {halo::bind(x), halo::bind(y)});
        const auto why = [&](int which) {
            try {
                p.require_fresh(which);
            } catch (const error& e) {
                return std::string(e.what());
            }
            return std::string("fresh");
        };
        EXPECT_NE(why(0).find("no finished exchange filled them"), std::string::npos);
        p.start();
        EXPECT_EQ(why(0),
                  "halo 'stale': stale ghosts of binding 0 after exchange 0: their exchange is not finished; call "
                  "finish() first");
        ASSERT_EQ(p.finish(), status::ok);

        EXPECT_EQ(why(0), "fresh");
        EXPECT_EQ(why(1), "halo 'stale': stale ghosts of binding 1 after exchange 1: no finished exchange filled them; "
                          "call start(1) and finish(), or ensure_halo(1)");
        EXPECT_NE(why(2).find("2 bindings, from 0 on"), std::string::npos);
        ASSERT_EQ(p.ensure_halo(1), status::ok);
        EXPECT_EQ(why(0), "fresh") << "an exchange of another field";
        const lattice::box outer = halo::grown(cut.local_box(j.rank()), p.options().widths);
        x.at(lattice::lexicographic_index({1, 1, 1, 1}, outer.extents), 0) += 1; // the first owned site, not marked
        EXPECT_NE(why(0).find("a field was written since, without mark_written(); call start(0) and finish()"),
                  std::string::npos);
        x.mark_written();
        EXPECT_NE(why(0).find("a field was marked as written since"), std::string::npos);
        ASSERT_EQ(p.ensure_halo(0), status::ok);
        EXPECT_EQ(why(0), "fresh");
        x.at(lattice::lexicographic_index({1, 1, 1, 1}, outer.extents), 0) += 1;
        EXPECT_EQ(p.ensure_halo(0), status::misused) << "it would have to trust the mark";
        EXPECT_EQ(refusal([&] { p.finish_or_throw(); }),
                  "halo 'stale': ensure_halo() of a field that was written since its exchange, without mark_written()");
    });
}

// A loop that goes one site too far writes ghosts. Those behind edges and corners are not exchanged by these faces.
TEST(PaddedPlan, CatchesGhostsThatWereWrittenByHand) {
    run(2, [&](const comm::job& j) {
        auto x = make_field(j), y = make_field(j);
        shell_plan p(j, cut, {.name = "by hand", .checks = check_level::normal}, {halo::bind(x, y)});
        const coordinate extents = halo::grown(cut.local_box(j.rank()), p.options().widths).extents;
        const auto write = [&](field<double>& f, const coordinate& site) {
            f.at(lattice::lexicographic_index(site, extents), 0) += 1;
        };
        for (field<double>* const f : {&x, &y}) {
            p.start();
            ASSERT_EQ(p.finish(), status::ok);

            write(*f, {0, 0, 1, 1});
            EXPECT_NO_THROW(p.require_fresh());
            write(*f, {0, 1, 1, 1});

            EXPECT_EQ(refusal<error>([&] { p.require_fresh(); }),
                      "halo 'by hand': stale ghosts of binding 0 after exchange " + std::to_string(p.epoch()) +
                          ": ghosts were written since; call start(0) and finish()");
        }
        EXPECT_EQ(p.ensure_halo(), status::misused) << "it would have to trust the ghosts";
        EXPECT_EQ(refusal([&] { p.finish_or_throw(); }),
                  "halo 'by hand': ensure_halo() of ghosts that were written since their exchange");
    });
}

// Components in memory that is not a lattice::field may have any size: complex<double> has 16 bytes, a spinor 96.
TEST(PaddedPlan, SeesEachByteOfAComponentOfAnySize) {
    for (const std::size_t component_bytes : {1U, 7U, 8U, 9U, 16U, 96U}) {
        const comm::job j = comm::job::single(small_job());
        const auto whole = decomposition::even({2, 2, 2, 2}, {1, 1, 1, 1});
        const auto order = site_order::lexicographic(halo::grown(whole.local_box(0), {}).extents);
        const std::size_t sites = static_cast<std::size_t>(order->volume()), bytes = 2 * sites * component_bytes;
        auto* const values = static_cast<std::byte*>(j.memory().allocate(bytes));
        std::fill_n(values, bytes, std::byte{0x5a});
        const halo::field_view x{values, order, {.components = 2, .component_bytes = component_bytes}};
        {
            shell_plan p(j, whole, {.checks = check_level::normal}, {{{x}, {x}}});
            p.start();
            ASSERT_EQ(p.finish(), status::ok);
            ASSERT_NO_THROW(p.require_fresh());
            std::byte* const first_own =
                values + x.shape.offset(lattice::lexicographic_index({1, 1, 1, 1}, order->extents()), 1);
            for (std::size_t b = 0; b < x.shape.bytes(); ++b) {
                first_own[b] ^= std::byte{0x10};
                EXPECT_THROW(p.require_fresh(), error) << "byte " << b << ", components of " << component_bytes;
                first_own[b] ^= std::byte{0x10};
            }
            EXPECT_NO_THROW(p.require_fresh());
        }
        j.memory().deallocate(values, bytes);
    }
}
