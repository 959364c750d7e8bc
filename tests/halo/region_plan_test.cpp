// SPDX-License-Identifier: Apache-2.0
// Exchanges other than faces of a box: unions of boxes, transposes. Ranks are threads.
#include "oracle.hpp"
#include "phase_oracle.hpp"
#include "small_job.hpp"

#include <halocline/comm/slab.hpp>
#include <halocline/halo/region_plan.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

using namespace halocline_test;
using comm::status;
using halo::region_plan;
using halo::transfer;
using lattice::box;
using lattice::field;
using lattice::site_order;

namespace {

/// The order of a number of sites in a row.
std::shared_ptr<const site_order> row_of(std::int64_t sites) {
    return site_order::lexicographic({static_cast<int>(std::max<std::int64_t>(sites, 1)), 1, 1, 1});
}

/// Disjoint boxes of a lattice, each with an owner, as adaptive refinement produces them.
struct patch {
    box interior;
    int rank = 0;
    std::int64_t first = 0; ///< its first site in the owner's storage, which holds the grown boxes one after another
    [[nodiscard]] box grown(int width) const {
        box g = interior;
        for (int mu = 0; mu < dimensions; ++mu) {
            g.origin[mu] -= width;
            g.extents[mu] += 2 * width;
        }
        return g;
    }
};

std::vector<patch> random_patches(std::mt19937& g, int ranks, int width) {
    std::vector<patch> patches;
    std::vector<std::int64_t> used(static_cast<std::size_t>(ranks), 0);
    for (int x = 0; x < 9; x += 3)
        for (int y = 0; y < 8; y += 4)
            for (int z = 0; z < 6; z += 2) {
                if (drawn(g, 0, 3) == 0) continue;
                patch p{{{x, y, z, 0}, {drawn(g, 1, 3), drawn(g, 1, 4), drawn(g, 1, 2), 1}}, drawn(g, 0, ranks - 1), 0};
                p.first = used[p.rank];
                used[p.rank] += p.grown(width).volume();
                patches.push_back(p);
            }
    return patches;
}

box intersection(const box& a, const box& b) {
    box c;
    for (int mu = 0; mu < dimensions; ++mu) {
        c.origin[mu] = std::max(a.origin[mu], b.origin[mu]);
        c.extents[mu] =
            std::max(0, std::min(a.origin[mu] + a.extents[mu], b.origin[mu] + b.extents[mu]) - c.origin[mu]);
    }
    return c;
}

/// How an end of a transfer describes its sites.
enum class described { by_list, by_box, by_both };

/// A transfer of `part`, which lies in the storage of p.
transfer transfer_of(int peer, std::uint32_t tag, const patch& p, const box& part, int width, described how) {
    transfer t{peer, tag, {}};
    const box g = p.grown(width);
    box local = part;
    for (int mu = 0; mu < dimensions; ++mu) local.origin[mu] -= g.origin[mu];
    box listed = local, rest = local;
    listed.extents[2] = how == described::by_list ? local.extents[2] : how == described::by_box ? 0 : 1;
    rest.origin[2] += listed.extents[2];
    rest.extents[2] -= listed.extents[2];
    t.sites = halo::sites_of(listed, g.extents);
    for (std::int32_t& s : t.sites) s += static_cast<std::int32_t>(p.first);
    if (how != described::by_list) t.boxes.push_back(halo::box_in(rest, g.extents, {1, 1, 1, 1}, p.first));
    return t;
}

/// What a rank sends and receives so that each of its grown boxes is filled from the patches that own its sites.
struct shell_transfers {
    std::vector<transfer> sends, receives;
    std::int64_t sites = 0; ///< in the rank's storage
};
shell_transfers transfers_of(const std::vector<patch>& patches, int rank, int width) {
    shell_transfers all;
    for (std::size_t a = 0; a < patches.size(); ++a) {
        const patch& from = patches[a];
        if (from.rank == rank) all.sites += from.grown(width).volume();
        for (std::size_t b = 0; b < patches.size(); ++b) {
            const patch& to = patches[b];
            const box part = intersection(from.interior, to.grown(width));
            if (a == b || part.volume() == 0) continue;
            const auto tag = static_cast<std::uint32_t>(a * patches.size() + b);
            const auto out = static_cast<described>(mixed(tag) % 3), in = static_cast<described>(mixed(tag + 1) % 3);
            if (from.rank == rank) all.sends.push_back(transfer_of(to.rank, tag, from, part, width, out));
            if (to.rank == rank) all.receives.push_back(transfer_of(from.rank, tag, to, part, width, in));
        }
    }
    return all;
}

/// Calls visit(patch, global coordinate, site in the storage) for each site of the rank's grown boxes.
template <class Visit>
void for_each_site(const std::vector<patch>& patches, int rank, int width, Visit&& visit) {
    for (const patch& p : patches) {
        if (p.rank != rank) continue;
        const box grown = p.grown(width);
        for (std::int64_t i = 0; i < grown.volume(); ++i) visit(p, grown.site(i), p.first + i);
    }
}

/// The patch that owns a site, found by searching all of them; nullptr if none does.
const patch* owner_of(const std::vector<patch>& patches, const coordinate& x) {
    for (const patch& p : patches)
        if (p.interior.contains(x)) return &p;
    return nullptr;
}

double value_at(const coordinate& x, int component, std::uint64_t epoch) {
    coordinate shifted = x;
    for (int& c : shifted) c += 4;
    const auto index = static_cast<std::uint64_t>(lattice::lexicographic_index(shifted, {32, 32, 32, 32}));
    return static_cast<double>(mixed(mixed(index) + 1000 * epoch + static_cast<std::uint64_t>(component)) >> 12);
}
constexpr double poison = -7.25;

class RegionPlanOnRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, RegionPlanOnRanks, testing::Values(1, 2, 3, 4, 6));

TEST_P(RegionPlanOnRanks, FillsTheShellsOfARandomUnionOfBoxes) {
    constexpr unsigned seed = 4711;
    constexpr int components = 3;
    std::printf("seed %u\n", seed);
    run(GetParam(), [&](const comm::job& j) {
        std::mt19937 generator(seed);
        for (int round = 0; round < 30; ++round) {
            const int width = drawn(generator, 1, 2);
            const std::vector<patch> patches = random_patches(generator, j.ranks(), width);
            const shell_transfers all = transfers_of(patches, j.rank(), width);
            field<double> x(row_of(all.sites), components,
                            round % 2 == 0 ? static_cast<std::pmr::memory_resource*>(&j.memory())
                                           : std::pmr::get_default_resource());
            region_plan plan(j, all.sends, all.receives, {halo::bind(x)}, {.name = "patches"});
            for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
                for_each_site(patches, j.rank(), width, [&](const patch& p, const coordinate& c, std::int64_t site) {
                    for (int k = 0; k < components; ++k)
                        x.at(site, k) = p.interior.contains(c) ? value_at(c, k, epoch) : poison;
                });

                plan.start();
                ASSERT_EQ(plan.finish(), status::ok);

                std::int64_t wrong = 0;
                for_each_site(patches, j.rank(), width, [&](const patch&, const coordinate& c, std::int64_t site) {
                    const bool owned = owner_of(patches, c) != nullptr; // otherwise it must stay unchanged
                    for (int k = 0; k < components; ++k)
                        wrong += x.at(site, k) != (owned ? value_at(c, k, epoch) : poison);
                });
                ASSERT_EQ(wrong, 0) << "rank " << j.rank() << " round " << round << " epoch " << epoch;
            }
        }
    });
}

/// The sites are listed at the receiving end, or form a box there whose dimensions are swapped.
void transpose_a_matrix(const comm::job& j, bool listed) {
    constexpr int rows = 13, columns = 17, components = 2;
    const int n = j.ranks(), me = j.rank();
    const auto begin = [&](int size, int rank) { return size * rank / n; };
    const auto count = [&](int size, int rank) { return begin(size, rank + 1) - begin(size, rank); };
    // Before: each rank has some rows. After: it has some columns, each a row of the transposed matrix.
    const coordinate before{columns, count(rows, me), 1, 1}, after{rows, count(columns, me), 1, 1};
    std::vector<transfer> sends, receives;
    for (int r = 0; r < n; ++r) {
        const box part{{begin(columns, r), 0, 0, 0}, {count(columns, r), before[1], 1, 1}};
        sends.push_back({r, 0, {}, {halo::box_in(part, before)}});
        transfer in{r, 0, {}};
        if (listed) {
            for (int i = begin(rows, r); i < begin(rows, r + 1); ++i) // the sender's order: its rows
                for (int c = 0; c < after[1]; ++c) in.sites.push_back(static_cast<std::int32_t>(c * rows + i));
        } else {
            in.boxes.push_back({begin(rows, r), {after[1], count(rows, r), 1, 1}, {rows, 1, 0, 0}});
        }
        receives.push_back(in);
    }
    field<float> a(site_order::lexicographic(before), components, &j.memory());
    field<float> t(site_order::lexicographic(after), components, &j.memory());
    region_plan plan(j, sends, receives, {{{halo::view(a)}, {halo::view(t)}}}, {.name = "transpose"});
    const auto element = [](int row, int column, int c) { return static_cast<float>(1000 * row + 10 * column + c); };
    for (int i = 0; i < before[1]; ++i)
        for (int k = 0; k < columns; ++k)
            for (int c = 0; c < components; ++c) a.at(i * columns + k, c) = element(begin(rows, me) + i, k, c);

    plan.start();
    ASSERT_EQ(plan.finish(), status::ok);

    for (int k = 0; k < after[1]; ++k)
        for (int i = 0; i < rows; ++i)
            for (int c = 0; c < components; ++c)
                ASSERT_EQ(t.at(k * rows + i, c), element(i, begin(columns, me) + k, c));
}

TEST_P(RegionPlanOnRanks, TransposesADistributedMatrix) {
    for (const bool listed : {true, false}) run(GetParam(), [&](const comm::job& j) { transpose_a_matrix(j, listed); });
}

/// Lexicographic, even/odd, blocked with 4 lanes.
std::array<std::shared_ptr<const site_order>, 3> orders_of(const coordinate& extents) {
    return {site_order::lexicographic(extents), site_order::even_odd({{}, extents}),
            site_order::blocked({{}, extents}, extents, {2, 2, 2, 2}, 4)};
}

// Every second site along x and every third along z travels to a box that runs backwards along y.
TEST_P(RegionPlanOnRanks, BoxesTakeSitesAtAnyDistanceInAnySiteOrder) {
    const coordinate extents{8, 4, 6, 2};
    const box part{{1, 1, 0, 0}, {7, 2, 6, 2}};
    const halo::strided_box sent = halo::box_in(part, extents, {2, 1, 3, 1});
    ASSERT_EQ(sent.extents, (coordinate{4, 2, 2, 2}));
    const halo::strided_box received{8 * 3, {4, 2, 2, 2}, {1, -8, 8 * 4, 8 * 4 * 6}};
    run(GetParam(), [&](const comm::job& j) {
        const int up = (j.rank() + 1) % j.ranks(), down = (j.rank() + j.ranks() - 1) % j.ranks();
        for (const auto& from : orders_of(extents))
            for (const auto& to : orders_of(extents)) {
                field<double> x(from, 3, &j.memory()), y(to, 3, &j.memory());
                region_plan plan(j, {{up, 0, {}, {sent}}}, {{down, 0, {}, {received}}},
                                 {{{halo::view(x)}, {halo::view(y)}}});
                const auto value = [](int rank, std::int64_t site, int c) {
                    return static_cast<double>(10000 * rank + 10 * site + c + 1);
                };
                for (std::int64_t i = 0; i < x.volume(); ++i)
                    for (int c = 0; c < 3; ++c) x.at(i, c) = value(j.rank(), i, c);
                std::fill(y.values().begin(), y.values().end(), poison);

                plan.start();
                ASSERT_EQ(plan.finish(), status::ok);

                std::map<std::int64_t, std::int64_t> source_of; // where the boxes say that each site comes from
                for (int t = 0; t < 2; ++t)
                    for (int z = 0; z < 2; ++z)
                        for (int k = 0; k < 2; ++k)
                            for (int i = 0; i < 4; ++i)
                                source_of[lattice::lexicographic_index({i, 3 - k, z, t}, extents)] =
                                    lattice::lexicographic_index({1 + 2 * i, 1 + k, 3 * z, t}, extents);
                for (std::int64_t i = 0; i < y.volume(); ++i)
                    for (int c = 0; c < 3; ++c)
                        ASSERT_EQ(y.at(i, c), source_of.contains(i) ? value(down, source_of[i], c) : poison);
            }
    });
}

/// Three transfers around the ring of ranks with different phases, into sites in reverse order.
template <class T>
void multiply_by_phases(const comm::job& j, halo::path way, bool add, const std::shared_ptr<const site_order>& order) {
    constexpr int components = 6;
    const std::array<std::complex<double>, 3> phases{{{0, 1}, 1, {-3, 2}}};
    const int up = (j.rank() + 1) % j.ranks(), down = (j.rank() + j.ranks() - 1) % j.ranks();
    const auto volume = static_cast<std::int32_t>(order->volume());
    std::vector<transfer> sends, receives;
    for (std::int32_t tag = 0; tag < 3; ++tag) {
        const std::int32_t first = volume * tag / 3, sites = volume * (tag + 1) / 3 - first;
        sends.push_back({up, static_cast<std::uint32_t>(tag), {}, {{first, {sites, 1, 1, 1}, {1, 0, 0, 0}}}});
        receives.push_back({down,
                            static_cast<std::uint32_t>(tag),
                            {},
                            {{volume - 1 - first, {sites, 1, 1, 1}, {-1, 0, 0, 0}}},
                            phases[static_cast<std::size_t>(tag)]});
    }
    field<T> x(order, components, &j.memory()), y(order, components, &j.memory()), also(order, 2, &j.memory()),
        too(order, 2, &j.memory());
    region_plan plan(j, sends, receives, {{{halo::view(x), halo::view(also)}, {halo::view(y), halo::view(too)}}},
                     {.path = way, .add = add});
    const auto value = [&](int rank, std::int64_t site, int c) {
        return static_cast<T>(1 + mixed(static_cast<std::uint64_t>(1000 * site + 10 * c + rank)) % 4096);
    };
    for (int k = 0; k < 3; ++k) {
        for (std::int64_t i = 0; i < volume; ++i) {
            for (int c = 0; c < components; ++c) x.at(i, c) = value(j.rank(), i, c), y.at(i, c) = 5;
            for (int c = 0; c < 2; ++c) also.at(i, c) = value(j.rank(), i, c + 6), too.at(i, c) = 5;
        }

        plan.start();
        ASSERT_EQ(plan.finish(), status::ok);

        for (std::int32_t i = 0; i < volume; ++i) {
            const std::int32_t from = volume - 1 - i, tag = from < volume / 3 ? 0 : from < volume * 2 / 3 ? 1 : 2;
            for (int c = 0; c < components + 2; ++c) {
                const T sum = (add ? 5 : 0) + times(phases[static_cast<std::size_t>(tag)], c,
                                                    [&](int m) { return value(down, from, m); });
                ASSERT_EQ(c < components ? y.at(i, c) : too.at(i, c - components), sum) << i << " " << c;
            }
        }
    }
}

TEST_P(RegionPlanOnRanks, MultipliesWhatArrivesByThePhaseOfItsTransfer) {
    using enum halo::path;
    run(GetParam(), [&](const comm::job& j) {
        for (const auto& order : orders_of({8, 4, 6, 4}))
            for (const bool add : {false, true})
                for (const halo::path way : {packed, direct, streamed}) {
                    if (add && way != packed) continue;
                    multiply_by_phases<float>(j, way, add, order);
                    multiply_by_phases<double>(j, way, add, order);
                }
    });
}

/// Bytes that this rank has sent to others and itself.
std::uint64_t sent_bytes(const region_plan& plan) {
    std::uint64_t bytes = 0;
    for (const comm::transport_counts& traffic : plan.statistics().by_transport) bytes += traffic.bytes;
    return bytes;
}

/// Values that must be rounded travel around the ring of ranks, and are multiplied by a phase at the end.
void round_in_messages(const comm::job& j, halo::message_format format, bool add,
                       const std::shared_ptr<const site_order>& order) {
    constexpr int components = 6;
    const double error = format == halo::message_format::half ? 0x1p-11 : 0x1p-8;
    const int up = (j.rank() + 1) % j.ranks(), down = (j.rank() + j.ranks() - 1) % j.ranks();
    const auto volume = static_cast<std::int32_t>(order->volume());
    const halo::strided_box all{0, {volume, 1, 1, 1}, {1, 0, 0, 0}};
    field<float> x(order, components, &j.memory()), y(order, components, &j.memory());
    region_plan plan(j, {{up, 0, {}, {all}}}, {{down, 0, {}, {all}, {0, -1}}}, {{{halo::view(x)}, {halo::view(y)}}},
                     {.add = add, .format = format, .scale = 0x1p-20}); // too large for half as they are
    const auto value = [&](int rank, std::int64_t site, int c) {
        const std::uint64_t hash = mixed(static_cast<std::uint64_t>(1000 * site + 10 * c + rank));
        return static_cast<float>(1e6 + static_cast<double>(hash % 1'000'000'000));
    };
    for (std::int64_t i = 0; i < volume; ++i)
        for (int c = 0; c < components; ++c) x.at(i, c) = value(j.rank(), i, c), y.at(i, c) = 0;

    plan.start();
    ASSERT_EQ(plan.finish(), status::ok);

    EXPECT_EQ(sent_bytes(plan), static_cast<std::uint64_t>(volume) * components * 2);
    EXPECT_NE(plan.describe().find("reals as " + std::string(to_string(format))), std::string::npos);
    std::int64_t rounded = 0;
    for (std::int32_t i = 0; i < volume; ++i)
        for (int c = 0; c < components; ++c) { // times -i
            const float exact = c % 2 == 0 ? value(down, i, c + 1) : -value(down, i, c - 1);
            ASSERT_LE(std::abs(y.at(i, c) - exact), error * std::abs(exact)) << i << " " << c;
            rounded += y.at(i, c) != exact;
        }
    EXPECT_GT(rounded, volume);
}

/// A float, a double and a float of each site: the doubles of a message start at a multiple of 8 bytes.
TEST_P(RegionPlanOnRanks, AlignsTheRealsOfEachField) {
    run(GetParam(), [&](const comm::job& j) {
        const int up = (j.rank() + 1) % j.ranks(), down = (j.rank() + j.ranks() - 1) % j.ranks();
        const halo::strided_box sent{0, {3, 1, 1, 1}, {1, 0, 0, 0}}, received{3, {3, 1, 1, 1}, {1, 0, 0, 0}};
        for (const bool checksums : {false, true}) {
            field<float> x(row_of(6), 1), z(row_of(6), 1);
            field<double> y(row_of(6), 1);
            region_plan plan(
                j, {{up, 0, {}, {sent}}}, {{down, 0, {}, {received}}},
                {{{halo::view(x), halo::view(y), halo::view(z)}, {halo::view(x), halo::view(y), halo::view(z)}}},
                {.path = halo::path::packed, .checksums = checksums});
            for (int i = 0; i < 3; ++i) {
                x.at(i, 0) = static_cast<float>(10 * j.rank() + i);
                y.at(i, 0) = 0.1 * (10 * j.rank() + i);
                z.at(i, 0) = static_cast<float>(-10 * j.rank() - i);
            }

            plan.start();
            ASSERT_EQ(plan.finish(), status::ok);

            constexpr std::uint64_t message = 16 + 24 + 12;
            if (checksums)
                EXPECT_GT(sent_bytes(plan), message);
            else
                EXPECT_EQ(sent_bytes(plan), message);
            for (int i = 0; i < 3; ++i) {
                EXPECT_EQ(x.at(3 + i, 0), 10 * down + i);
                EXPECT_EQ(y.at(3 + i, 0), 0.1 * (10 * down + i));
                EXPECT_EQ(z.at(3 + i, 0), -10 * down - i);
            }
        }
    });
}

TEST_P(RegionPlanOnRanks, RoundsRealsToTheFormatOfItsMessages) {
    run(GetParam(), [&](const comm::job& j) {
        for (const auto format : {halo::message_format::half, halo::message_format::bfloat16})
            for (const auto& order : orders_of({8, 4, 6, 4}))
                for (const bool add : {false, true}) round_in_messages(j, format, add, order);
    });
}

} // namespace

TEST(RegionPlan, ReportsEachTransferOnceAsItComesIntoPlace) {
    run(2, [&](const comm::job& j) {
        field<double> x(row_of(8), 1, &j.memory());
        const int other = 1 - j.rank();
        region_plan plan(j, {{other, 5, {0}}, {j.rank(), 6, {1}}}, {{other, 5, {2}}, {j.rank(), 6, {3}}},
                         {halo::bind(x)});
        for (int k = 0; k < 50; ++k) {
            std::vector<int> seen;
            plan.start();
            for (int polls = 0; polls < 3; ++polls)
                for (const int i : plan.completed()) seen.push_back(i);
            ASSERT_EQ(plan.finish(), status::ok);
            for (const int i : plan.completed()) seen.push_back(i);

            EXPECT_TRUE(plan.completed().empty());
            std::sort(seen.begin(), seen.end());
            EXPECT_EQ(seen, (std::vector<int>{0, 1}));
        }
    });
}

TEST(RegionPlan, AddsInFixedOrder) {
    run(3, [&](const comm::job& j) {
        field<double> x(row_of(4), 1);
        const int n = j.ranks();
        std::vector<transfer> sends, receives;
        for (int r = 0; r < n; ++r) {
            sends.push_back({r, 0, {0}});
            receives.push_back({r, 0, {1}});
        }
        region_plan plan(j, sends, receives, {halo::bind(x)}, {.add = true});
        const auto value = [](int rank) { return rank == 1 ? 1e16 : 1.0; };
        for (int k = 0; k < 100; ++k) {
            x.at(0, 0) = value(j.rank());
            x.at(1, 0) = 0.5;
            plan.start();
            ASSERT_EQ(plan.finish(), status::ok);
            ASSERT_EQ(x.at(1, 0), ((0.5 + value(0)) + value(1)) + value(2)); // any other order would round differently
        }
    });
}

namespace {
/// The error that all ranks report.
std::string refusal_by_all(int ranks, const std::function<void(const comm::job&)>& body) {
    const std::vector<std::string> texts = refusals(ranks, body);
    for (const std::string& text : texts) EXPECT_EQ(text, texts.front());
    return texts.front();
}
} // namespace

TEST(RegionPlan, NamesBothEndsOfATransferThatDisagree) {
    const std::string text = refusal_by_all(2, [](const comm::job& j) {
        field<double> x(row_of(8), 1);
        const int other = 1 - j.rank();
        region_plan plan(
            j, {{other, 9, {0, 1}}},
            {{other, 9, j.rank() == 0 ? std::vector<std::int32_t>{4, 5} : std::vector<std::int32_t>{4, 5, 6}}},
            {halo::bind(x)}, {.name = "uneven"});
    });
    EXPECT_EQ(text,
              "'uneven': rank 0 sends 2 sites as tag 9 to rank 1, which expects 3 sites; list the transfer on both "
              "ranks, with the same tag and number of sites");
}

TEST(RegionPlan, NamesBothEndsWhereABoxMeetsAList) {
    const std::string text = refusal_by_all(2, [](const comm::job& j) {
        field<double> x(row_of(8), 1);
        const int other = 1 - j.rank();
        const halo::strided_box four = halo::box_in({{}, {2, 2, 1, 1}}, {4, 2, 1, 1});
        region_plan plan(j, {{other, 9, {}, {four}}}, {{other, 9, {2, 3, 7}}}, {halo::bind(x)}, {.name = "uneven"});
    });
    EXPECT_EQ(text,
              "'uneven': rank 0 sends 4 sites as tag 9 to rank 1, which expects 3 sites; list the transfer on both "
              "ranks, with the same tag and number of sites");
}

TEST(RegionPlan, RefusesBoxesThatTheFieldDoesNotHave) {
    const auto refused = [](const halo::strided_box& sent, const halo::strided_box& received) {
        return refusal_by_all(1, [&](const comm::job& j) {
            field<double> x(row_of(8), 1), y(row_of(8), 1);
            region_plan plan(j, {{0, 3, {}, {sent}}}, {{0, 3, {}, {received}}}, {{{halo::view(x)}, {halo::view(y)}}});
        });
    };
    const halo::strided_box pair{0, {2, 1, 1, 1}, {1, 0, 0, 0}}, none{};
    const std::string where = ", in the transfer with rank 0, tag 3";

    EXPECT_EQ(refused(pair, pair), "accepted");
    EXPECT_EQ(refused(none, none), "accepted");
    EXPECT_EQ(refused({7, {1, 2, 1, 1}, {0, 2, 0, 0}}, pair),
              "'regions': site 9 is not in the field of 8 sites" + where);
    EXPECT_EQ(refused(pair, {1, {2, 1, 1, 1}, {-2, 0, 0, 0}}),
              "'regions': site -1 is not in the field of 8 sites" + where);
    EXPECT_EQ(refused({-1, {1, 1, 1, 1}, {}}, pair), "'regions': site -1 is not in the field of 8 sites" + where);
    EXPECT_EQ(refused(pair, {0, {1, 1, 2, 1}, {1, 1, std::int64_t{1} << 62, 1}}),
              "'regions': a box has stride 4611686018427387904 in z, the field 8 sites" + where);
    EXPECT_EQ(refused({0, {2, -1, 1, 1}, {}}, pair), "'regions': a box of 2.-1.1.1: extents must be 0 or more" + where);
    constexpr int most = std::numeric_limits<int>::max();
    EXPECT_EQ((halo::strided_box{0, {most, most, most, 0}, {}}.sites()), 0);
    EXPECT_EQ(refused({0, {most, most, most, 0}, {}}, none), "accepted") << "no sites, whatever the other extents";
    EXPECT_EQ(refused({0, {1 << 20, 1 << 20, 1, 1}, {}}, pair),
              "'regions': a box of 1048576.1048576.1.1 has more than 2147483647 sites" + where);
    EXPECT_EQ(refused(pair, {5, {2, 1, 1, 1}, {}}), "'regions': site 5 is received twice, last" + where.substr(1));
    EXPECT_EQ(refused({5, {2, 1, 1, 1}, {}}, pair), "accepted") << "a site may be sent twice";
}

TEST(RegionPlan, RefusesPhasesThatDoNotFit) {
    const auto refused = []<class T>(T, int components, std::complex<double> sent, std::complex<double> received) {
        return refusal_by_all(1, [&](const comm::job& j) {
            field<T> x(row_of(8), components);
            region_plan plan(j, {{0, 3, {0}, {}, sent}}, {{0, 3, {1}, {}, received}}, {halo::bind(x)});
        });
    };
    const std::string where = ", in the transfer with rank 0, tag 3";

    EXPECT_EQ(refused(1.0, 1, 1, -1), "accepted");
    EXPECT_EQ(refused(1.0F, 2048, 1, {0, 1}), "accepted");
    EXPECT_EQ(refused(1.0, 1, -1, 1), "'regions': phase (-1, 0): sends have none, it belongs to the receive" + where);
    EXPECT_EQ(refused(1.0, 3, 1, {0, 1}),
              "'regions': field 0 has 3 components per site, which are no pairs (re, im) to multiply by phase (0, 1)" +
                  where);
    EXPECT_EQ(refused(1.0, 1025, 1, -1),
              "'regions': field 0 has 8200 bytes per site, more than the 8192 that can be multiplied by phase (-1, 0)" +
                  where);
    EXPECT_EQ(refused(1, 1, 1, -1),
              "'regions': field 0 is not of float or double: nothing can be multiplied by phase (-1, 0)" + where);
    EXPECT_EQ(refused(1.0, 1, 1, std::numeric_limits<double>::infinity()),
              "'regions': phase (inf, 0) in the transfer with rank 0, tag 3: must be finite");
}

TEST(RegionPlan, RefusesFormatsThatDoNotFit) {
    using enum halo::message_format;
    const auto refused = []<class T>(T, int components, const halo::region_plan_options& options) {
        return refusal_by_all(1, [&](const comm::job& j) {
            field<T> x(row_of(8), components, &j.memory());
            region_plan plan(j, {{0, 3, {0}}}, {{0, 3, {1}}}, {halo::bind(x)}, options);
        });
    };

    EXPECT_EQ(refused(1.0F, 2048, {.format = half}), "accepted");
    EXPECT_EQ(refused(1.0, 2, {.format = half}),
              "'regions': field 0 has 2 doubles per site: half messages are made of floats");
    EXPECT_EQ(refused(1.0F, 2049, {.format = bfloat16}),
              "'regions': field 0 has 8196 bytes per site, more than the 8192 that a change of format takes");
    EXPECT_EQ(refused(1.0F, 1, {.scale = 0}), "'regions': scale 0: must be positive, from 1.2e-38 to 8.5e+37");
    EXPECT_EQ(refused(1.0F, 1, {.path = halo::path::direct, .format = half}),
              "'regions': rank 0 can't have path direct with rank 0: what is sent in another format waits in slots");
}

TEST(RegionPlan, RefusesFormatsThatDifferBetweenRanks) {
    const std::vector<std::string> texts = refusals(2, [](const comm::job& j) {
        field<float> x(row_of(8), 1);
        region_plan plan(j, {{1 - j.rank(), 0, {1}}}, {{1 - j.rank(), 0, {4}}}, {halo::bind(x)},
                         {.format = halo::message_format::half, .scale = j.rank() == 0 ? 2.0 : 4.0});
    });
    for (const std::string& text : texts)
        for (const char* const part : {"as half of 2 * value", "as half of 4 * value"})
            EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(RegionPlan, NamesTheOptionThatDiffersBetweenRanks) {
    const auto refused = [](const halo::region_plan_options& first, const halo::region_plan_options& second) {
        return refusal_by_all(2, [&](const comm::job& j) {
            field<float> x(row_of(8), 1);
            region_plan plan(j, {{1 - j.rank(), 0, {1}}}, {{1 - j.rank(), 0, {4}}}, {halo::bind(x)},
                             j.rank() == 0 ? first : second);
        });
    };

    EXPECT_EQ(refused({.add = true}, {}),
              "'regions': rank 0 adds what arrives, rank 1 stores it; option add must be equal on both ranks");
    EXPECT_EQ(refused({}, {.checksums = true}),
              "'regions': rank 0 sends messages without checksums, rank 1 with; option checksums, or checks = "
              "comm, must be equal on both ranks");
    EXPECT_EQ(refused({.format = halo::message_format::half}, {}),
              "'regions': rank 0 sends reals as half of 1 * value, rank 1 as stored; options format and scale must be "
              "equal on both ranks");
    EXPECT_EQ(refused({}, {.scale = 2}), "accepted") << "without a format there is no scale";
}

TEST(RegionPlan, SaysThatOneEndListsATransferThatTheOtherDoesNot) {
    const std::string text = refusal_by_all(3, [](const comm::job& j) {
        field<double> x(row_of(8), 1);
        std::vector<transfer> sends, receives;
        if (j.rank() == 1) sends.push_back({2, 0, {1}});
        region_plan plan(j, sends, receives, {halo::bind(x)}, {.name = "one-sided"});
    });

    EXPECT_TRUE(text.starts_with("'one-sided': one end lists a transfer that the other doesn't: rank 1 names rank 2 in "
                                 "1 request, which names it in 0"))
        << text;
}

TEST(RegionPlan, RefusesPartsThatTheirArrayDoesNotHave) {
    const auto refused = [](const box& part, const coordinate& every) {
        return refusal([&] { (void)halo::box_in(part, {8, 4, 2, 1}, every); });
    };

    EXPECT_EQ(refused({{6, 0, 0, 0}, {3, 1, 1, 1}}, {1, 1, 1, 1}),
              "box_in: the box of 3.1.1.1 at 6.0.0.0 does not lie in an array of 8.4.2.1");
    EXPECT_EQ(refused({{0, 0, -1, 0}, {3, 1, 1, 1}}, {1, 1, 1, 1}),
              "box_in: the box of 3.1.1.1 at 0.0.-1.0 does not lie in an array of 8.4.2.1");
    EXPECT_EQ(refused({{}, {3, 1, 1, 1}}, {1, 0, 1, 1}), "box_in: every 1.0.1.1: must be 1 or more in each dimension");
    EXPECT_EQ(refused({{}, {8, 4, 2, 1}}, {1, 1, 1, 1}), "accepted");
    constexpr int most = std::numeric_limits<int>::max();
    EXPECT_EQ(refusal([&] {
                  (void)halo::box_in({{}, {1, 1, 1, 1}}, {most, most, most, 1});
              }),
              "box_in: an array of 2147483647.2147483647.2147483647.1 has more than 2147483647 sites");
    EXPECT_EQ(refusal([&] { (void)halo::box_in({{}, {1, 1, 1, 1}}, {most, 1, 1, 1}); }), "accepted");
}

TEST(RegionPlan, RefusesSitesThatAreNotInTheField) {
    const std::string text = refusal_by_all(1, [](const comm::job& j) {
        field<double> x(row_of(8), 1);
        region_plan plan(j, {{0, 0, {8}}}, {{0, 0, {1}}}, {halo::bind(x)});
    });
    EXPECT_NE(text.find("site 8 is not in the field of 8 sites"), std::string::npos) << text;
}

TEST(RegionPlan, RefusesADestinationThatIsFilledTwice) {
    const std::string text = refusal_by_all(1, [](const comm::job& j) {
        field<double> x(row_of(8), 1);
        region_plan plan(j, {{0, 0, {1}}, {0, 1, {2}}}, {{0, 0, {4}}, {0, 1, {4}}}, {halo::bind(x)});
    });
    EXPECT_NE(text.find("site 4 is received twice"), std::string::npos) << text;
}

TEST(RegionPlan, RefusesASiteThatIsSentAndReceived) {
    const auto both = [](const comm::job& j, field<double>& from, field<double>& to) {
        region_plan plan(j, {{0, 0, {1, 4}}}, {{0, 0, {4, 5}}}, {{{halo::view(from)}, {halo::view(to)}}});
    };
    const std::string text = refusal_by_all(1, [&](const comm::job& j) {
        field<double> x(row_of(8), 1), y(row_of(8), 1);
        both(j, x, y);
        both(j, x, x);
    });
    EXPECT_EQ(text, "'regions': site 4 is both sent and received in one exchange");
}

TEST(RegionPlan, RefusesBindingsWhoseOrdersPlaceTheSitesOtherwise) {
    const lattice::box cube{{}, {4, 4, 4, 4}};
    const auto refused = [&](const box& second, const std::vector<std::int32_t>& sites) {
        return refusal_by_all(1, [&](const comm::job& j) {
            field<double> x(site_order::even_odd(cube), 1), y(site_order::even_odd(second), 1);
            region_plan plan(j, {{0, 0, {0}}}, {{0, 0, sites}}, {halo::bind(x), halo::bind(y)});
        });
    };

    EXPECT_EQ(refused(cube, {5}), "accepted") << "another order that is equal";
    EXPECT_EQ(refused({{1, 0, 0, 0}, {4, 4, 4, 4}}, {5}),
              "'regions': field 0 differs between bindings: all must have the same components and site order");
}

// The same memory seen through two orders: what counts is where the sites lie.
TEST(RegionPlan, RefusesAPlaceThatIsSentAndReceivedByTwoOrders) {
    const std::string text = refusal_by_all(1, [](const comm::job& j) {
        const lattice::box cube{{}, {4, 4, 4, 4}};
        field<double> x(site_order::lexicographic(cube.extents), 1);
        halo::field_view other = halo::view(x);
        other.order = site_order::even_odd(cube);
        const auto place = static_cast<std::int32_t>(other.order->position(9));
        region_plan plan(j, {{0, 0, {place}}}, {{0, 0, {9}}}, {{{halo::view(x)}, {other}}});
    });
    EXPECT_NE(text.find(" is both sent and received in one exchange"), std::string::npos) << text;
}

TEST(RegionPlan, RefusesComponentsOfAnotherTypeAtTheOtherEnd) {
    const std::string text = refusal_by_all(2, [](const comm::job& j) {
        field<double> x(row_of(8), 1);
        field<float> y(row_of(8), 2); // the same number of bytes
        region_plan plan(j, {{1 - j.rank(), 0, {1}}}, {{1 - j.rank(), 0, {4}}},
                         {j.rank() == 0 ? halo::bind(x) : halo::bind(y)});
    });
    EXPECT_EQ(text, "'regions': rank 0 sends fields of 1 double per site, rank 1 of 2 floats");
}

TEST(RegionPlan, RefusesFieldsWithoutStorage) {
    const std::string text = refusal_by_all(2, [](const comm::job& j) {
        field<double> x(row_of(8), 1);
        const field<double> taken(std::move(x));
        region_plan plan(j, {{1 - j.rank(), 0, {1}}}, {{1 - j.rank(), 0, {4}}}, {halo::bind(x)});
    });
    EXPECT_NE(text.find("a field is bound that has no storage"), std::string::npos) << text;
}

TEST(RegionPlan, RefusesBindingsWhoseFieldsHaveNoPartner) {
    field<double> x(row_of(8), 1), y(row_of(8), 1);
    const auto refused = [&](const std::vector<halo::binding>& bindings) {
        return refusal_by_all(1, [&](const comm::job& j) {
            region_plan plan(j, {{0, 0, {1}}}, {{0, 0, {4}}}, bindings);
        });
    };
    const std::string uneven =
        "'regions': each binding needs as many sources and destinations as the first has sources, ";

    EXPECT_EQ(refused({halo::bind(x), halo::bind(y)}), "accepted");
    EXPECT_EQ(refused({}), "'regions': no field is bound");
    EXPECT_EQ(refused({{}}), "'regions': no field is bound");
    EXPECT_EQ(refused({{{halo::view(x)}, {}}}), uneven + "1");
    EXPECT_EQ(refused({{{halo::view(x)}, {halo::view(x), halo::view(y)}}}), uneven + "1");
    EXPECT_EQ(refused({{{halo::view(x), halo::view(y)}, {halo::view(x), halo::view(y)}}, halo::bind(x)}), uneven + "2");
}

TEST(RegionPlan, RefusesTransfersWithNoRankAndTwoOfOneTag) {
    const auto refused = [](const std::vector<transfer>& sends, const std::vector<transfer>& receives) {
        return refusal_by_all(2, [&](const comm::job& j) {
            field<double> x(row_of(8), 1);
            const std::vector<transfer> none;
            region_plan plan(j, j.rank() == 1 ? sends : none, j.rank() == 1 ? receives : none, {halo::bind(x)});
        });
    };

    EXPECT_EQ(refused({{2, 0, {1}}}, {}), "'regions': rank 1 sends to rank 2, which is not of this job (0 to 1)");
    EXPECT_EQ(refused({}, {{-1, 0, {1}}}),
              "'regions': rank 1 receives from rank -1, which is not of this job (0 to 1)");
    EXPECT_EQ(refused({{1, 7, {1}}, {1, 7, {2}}}, {{1, 7, {4}}}), "'regions': rank 1 sends to rank 1 tag 7 twice");
    EXPECT_EQ(refused({{1, 7, {1}}}, {{1, 7, {4}}, {1, 7, {5}}}), "'regions': rank 1 receives from rank 1 tag 7 twice");
}

TEST(RegionPlan, RefusesABindingThatThereIsNot) {
    const std::string text = refusal_by_all(2, [](const comm::job& j) {
        field<double> x(row_of(8), 1);
        region_plan plan(j, {{1 - j.rank(), 0, {1}}}, {{1 - j.rank(), 0, {4}}}, {halo::bind(x)});
        plan.start(1);
        EXPECT_EQ(plan.finish(), status::misused);
        plan.finish_or_throw();
    });
    EXPECT_EQ(text, "'regions': start(1): the plan was made with 1 binding, 0");
}

TEST(RegionPlan, TellsOfCallsAtTheWrongTime) {
    const auto text_after = [](const std::function<void(region_plan&)>& calls) {
        return refusal_by_all(2, [&](const comm::job& j) {
            field<double> x(row_of(8), 1);
            region_plan plan(j, {{1 - j.rank(), 0, {1}}}, {{1 - j.rank(), 0, {4}}}, {halo::bind(x)});
            calls(plan);
            plan.finish_or_throw();
        });
    };

    EXPECT_EQ(text_after([](region_plan& p) {
                  p.start();
                  p.start();
              }),
              "'regions': start() before finish() of the last exchange");
    EXPECT_EQ(text_after([](region_plan&) {}), "'regions': finish() without start()");
}

TEST(RegionPlan, RefusesTwoFieldsWithOneDestination) {
    const std::string twice = refusal_by_all(1, [](const comm::job& j) {
        field<double> a(row_of(8), 1), b(row_of(8), 1), c(row_of(8), 1);
        region_plan plan(j, {{0, 0, {1}}}, {{0, 0, {4}}},
                         {{{halo::view(a), halo::view(b)}, {halo::view(c), halo::view(c)}}});
    });
    EXPECT_EQ(twice, "'regions': fields 0 and 1 of a binding have one destination: its sites would be received twice");
}

TEST(RegionPlan, RefusesASiteThatIsSentFromOneFieldAndReceivedByAnother) {
    const std::string text = refusal_by_all(2, [](const comm::job& j) {
        field<double> a(row_of(8), 1), b(row_of(8), 1);
        const int other = 1 - j.rank();
        region_plan plan(j, {{other, 0, {1, 4}}}, {{other, 0, {4, 5}}},
                         {{{halo::view(a), halo::view(b)}, {halo::view(b), halo::view(a)}}});
    });
    EXPECT_EQ(text, "'regions': site 4 is both sent and received in one exchange");
}

TEST(RegionPlan, RefusesViewsThatNoSiteHas) {
    const auto refused = [](const std::function<void(halo::field_view&)>& change) {
        return refusal_by_all(1, [&](const comm::job& j) {
            field<double> x(row_of(8), 1);
            halo::field_view view = halo::view(x);
            change(view);
            region_plan plan(j, {{0, 0, {1}}}, {{0, 0, {4}}}, {{{view}, {view}}});
        });
    };

    EXPECT_EQ(refused([](halo::field_view& v) { v.shape.kind = static_cast<halo::scalar>(9); }),
              "'regions': field 0: scalar 9: must be one of bits, float32, float64");
    EXPECT_EQ(
        refused([](halo::field_view& v) { v.shape.component_bytes = 4; }),
        "'regions': field 0: components of 4 bytes, float64: must be float32 of 4, float64 of 8, or bits of 1 or more");
    EXPECT_EQ(refused([](halo::field_view& v) {
                  v.shape = {8, (std::size_t{1} << 61) + 1, halo::scalar::bits}; // 8 bytes, if it wraps
              }),
              "'regions': field 0: 8 components of 2305843009213693953 bytes per site, more than any memory holds");
    EXPECT_EQ(refused([](halo::field_view& v) { v.shape.components = 0; }),
              "'regions': field 0: 0 components per site: must be 1 or more");
    EXPECT_EQ(refused([](halo::field_view& v) {
                  v.order = site_order::blocked({{}, {8, 2, 2, 2}}, {8, 2, 2, 2}, {2, 2, 2, 2}, 4);
                  v.shape = {8, 1, halo::scalar::bits};
              }),
              "'regions': field 0: components of 1 bytes in a storage with lanes: must be of 2, 4 or 8");
}

// 2^17 sites of 2^47 bytes each would be a message of 0 bytes.
TEST(RegionPlan, RefusesMessagesWhoseSizeOverflows) {
    const std::string text = refusal_by_all(1, [](const comm::job& j) {
        std::byte source{}, destination{};
        const auto order = site_order::lexicographic({1 << 17, 1, 1, 1});
        const halo::site_shape huge{1, std::size_t{1} << 47, halo::scalar::bits};
        const halo::strided_box all = halo::box_in({{}, {1 << 17, 1, 1, 1}}, {1 << 17, 1, 1, 1});
        region_plan plan(j, {{.peer = 0, .sites = {}, .boxes = {all}}}, {{.peer = 0, .sites = {}, .boxes = {all}}},
                         {{{{&source, order, huge}}, {{&destination, order, huge}}}});
    });
    EXPECT_EQ(text,
              "'regions': the message between rank 0 and rank 0, 131072 sites, 1 x 140737488355328 bytes each, is "
              "larger than any memory");
}

// Each box fits into 32 bits; together they would be a message of a negative number of sites.
TEST(RegionPlan, RefusesMessagesOfMoreSitesThanItNumbers) {
    const std::string text = refusal_by_all(1, [](const comm::job& j) {
        field<float> x(row_of(1 << 16), 1), y(row_of(1 << 16), 1);
        const halo::strided_box again_and_again{0, {1 << 16, 1 << 14, 1, 1}, {1, 0, 0, 0}};
        const std::vector<halo::transfer> list{{.peer = 0, .sites = {}, .boxes = {again_and_again, again_and_again}}};
        region_plan plan(j, list, list, {{{halo::view(x)}, {halo::view(y)}}}, {.add = true});
    });
    EXPECT_EQ(text, "'regions': rank 0 sends 2147483648 sites to rank 0; one message takes at most 2147483647");
}

TEST(RegionPlan, RefusesAPathThatThereIsNot) {
    const std::string text = refusal_by_all(2, [](const comm::job& j) {
        field<double> x(row_of(8), 1);
        region_plan plan(j, {{1 - j.rank(), 0, {1}}}, {{1 - j.rank(), 0, {4}}}, {halo::bind(x)},
                         {.path = static_cast<halo::path>(5)});
    });
    EXPECT_EQ(text, "'regions': path 5: must be one of automatic, direct, streamed, joint, packed");
}

TEST(RegionPlan, TellsOfMembersThatTheirTeamDoesNotHave) {
    const auto text_after = [](const std::function<void(region_plan&)>& calls) {
        return refusal_by_all(1, [&](const comm::job& j) {
            field<double> x(row_of(8), 1);
            region_plan plan(j, {{0, 0, {1}}}, {{0, 0, {4}}}, {halo::bind(x)});
            calls(plan);
            plan.finish_or_throw();
        });
    };
    const std::string text =
        "'regions': it was called as member 0 of a team of 0: a team has 1 member or more, which count from 0";

    EXPECT_EQ(text_after([](region_plan& p) { p.start(0, {0, 0}); }), text);
    EXPECT_EQ(text_after([](region_plan& p) {
                  p.start();
                  EXPECT_EQ(p.finish({0, 0}), status::misused);
              }),
              text);
}

TEST(RegionPlan, SaysThatItWasMovedFrom) {
    const std::string text = refusal_by_all(1, [](const comm::job& j) {
        field<double> x(row_of(8), 1);
        region_plan plan(j, {{0, 0, {1}}}, {{0, 0, {4}}}, {halo::bind(x)});
        const region_plan taken = std::move(plan);
        plan.finish_or_throw();
    });
    EXPECT_EQ(text, "a region_plan is used after it was moved from: it can be assigned to or destroyed, nothing else");
}
