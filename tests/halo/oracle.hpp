// SPDX-License-Identifier: Apache-2.0
// The oracle of all halo tests: every component of every site holds a hash of its global coordinate and of the epoch,
// so a ghost is right only if it is the copy of exactly the right site, component and epoch.
// What ghosts should be is derived from the receiver's side (its box, continued across the edge and wrapped), which is
// not how the plan does it.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/halo/plan.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory_resource>
#include <random>

namespace halocline_test {

using namespace halocline;
using lattice::coordinate;
using lattice::dimensions;

inline std::uint64_t mixed(std::uint64_t x) { // splitmix64
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/// The bits of one component, as many as T has.
template <class T>
std::array<std::byte, sizeof(T)> oracle_value(const coordinate& site, const coordinate& global, int component,
                                              std::uint64_t epoch) {
    const auto index = static_cast<std::uint64_t>(lattice::lexicographic_index(site, global));
    const std::uint64_t hash = mixed(mixed(index) + 1000 * epoch + static_cast<std::uint64_t>(component));
    std::array<std::byte, sizeof(T)> bits;
    std::memcpy(bits.data(), &hash, sizeof(T));
    return bits;
}

template <class T>
void fill_with_oracle(lattice::field<T>& x, const lattice::decomposition& cut, int rank, std::uint64_t epoch) {
    const lattice::box local = cut.local_box(rank);
    for (std::int64_t s = 0; s < x.volume(); ++s) {
        const coordinate site = local.site(s);
        for (int c = 0; c < x.components(); ++c)
            std::memcpy(&x.at(s, c), oracle_value<T>(site, cut.global(), c, epoch).data(), sizeof(T));
    }
}

/// Global coordinates of the ghosts behind face f, in message order; empty if the face is not exchanged.
inline std::vector<coordinate> expected_ghosts(const lattice::decomposition& cut, int rank,
                                               const halo::plan_options& options, lattice::face f) {
    const bool low = f.end == lattice::side::low;
    if (cut.rank_grid()[f.mu] == 1 && !options.self_exchange) return {};
    const lattice::box local = cut.local_box(rank);
    const int width = low ? options.widths.low[f.mu] : options.widths.high[f.mu];
    lattice::box shell = local;
    shell.extents[f.mu] = width;
    shell.origin[f.mu] += low ? -width : local.extents[f.mu];
    const int extent = cut.global()[f.mu];
    const bool beyond = shell.origin[f.mu] < 0 || shell.origin[f.mu] >= extent;
    if (beyond && options.boundaries[f.mu] == lattice::boundary::open) return {};

    std::vector<coordinate> sites;
    for (int t = 0; t < shell.extents[3]; ++t)
        for (int z = 0; z < shell.extents[2]; ++z)
            for (int y = 0; y < shell.extents[1]; ++y)
                for (int x = 0; x < shell.extents[0]; ++x) {
                    coordinate site{shell.origin[0] + x, shell.origin[1] + y, shell.origin[2] + z, shell.origin[3] + t};
                    site[f.mu] = (site[f.mu] + extent) % extent;
                    if (options.parity && lattice::parity(site) != *options.parity) continue;
                    if (!options.select || options.select(site)) sites.push_back(site);
                }
    return sites;
}

/// Number of ghost components that are not what they should be; missing ghosts count too.
template <class T>
std::int64_t wrong_ghosts(const halo::plan& plan, const lattice::decomposition& cut, int components,
                          std::uint64_t epoch, int field = 0) {
    const int rank = plan.job().rank();
    std::int64_t wrong = 0;
    for (int i = 0; i < lattice::faces; ++i) {
        const lattice::face f = lattice::face_of(i);
        const std::vector<coordinate> sites = expected_ghosts(cut, rank, plan.options(), f);
        const int message = plan.message_of(f);
        const std::int64_t ghost_sites = message < 0 ? 0 : plan.messages()[message].ghost_sites;
        if (ghost_sites != static_cast<std::int64_t>(sites.size())) {
            ++wrong;
            continue;
        }
        if (message < 0) continue;
        const std::byte* ghost = plan.ghost(f, field);
        for (const coordinate& site : sites)
            for (int c = 0; c < components; ++c, ghost += sizeof(T))
                wrong += std::memcmp(ghost, oracle_value<T>(site, cut.global(), c, epoch).data(), sizeof(T)) != 0;
    }
    return wrong;
}

/// One random plan, the same on every rank that draws it from the same generator state: odd, uneven and extent-1 boxes,
/// widths 0 to 3 per side, every boundary, parities and selections, three site orders with 1 to 16 lanes, 1 to 3
/// fields.
struct halo_case {
    lattice::decomposition cut;
    halo::plan_options options;
    coordinate block{1, 1, 1, 1};
    int order = 0; ///< 0: lexicographic, 1: even/odd, 2: blocked
    int lane_width = 1;
    int components = 1;
    int prepared = 0;         ///< the order that the plan is told in advance: 0: none, 1: the fields', 2: another one
    bool in_slab = false;     ///< the fields, where receivers can read them
    bool by_function = false; ///< a function packs, rather than the plan
    std::string text;
};

inline int drawn(std::mt19937& g, int low, int high) { // [low, high]; the same with every standard library
    return low + static_cast<int>(g() % static_cast<unsigned>(high - low + 1));
}

/// Lexicographic in half of the cases.
inline std::vector<int> random_rank_order(std::mt19937& g, int ranks) {
    std::vector<int> order;
    if (drawn(g, 0, 1) == 0) return order;
    for (int rank = 0; rank < ranks; ++rank) order.insert(order.begin() + drawn(g, 0, rank), rank);
    return order;
}

/// Every fiftieth random plan is large: boxes of up to 16 in one or two dimensions, up to 1 KiB per site, so that
/// messages have several blocks, lines are claimed in parts, and caches overflow; the paths are requested in turn.
inline constexpr int plans_per_large_one = 50;
constexpr bool is_large(int plan) { return plan % plans_per_large_one == plans_per_large_one - 1; }
/// The path for the plan of that number, if it is large: the next one of `paths`.
template <std::size_t N>
constexpr halo::path path_in_turn(int plan, const std::array<halo::path, N>& paths) {
    return paths[static_cast<std::size_t>(plan / plans_per_large_one) % N];
}

/// Which dimensions of a large plan are long.
inline std::array<bool, dimensions> random_long_dimensions(std::mt19937& g, bool large) {
    std::array<bool, dimensions> is_long{};
    for (int n = large ? drawn(g, 1, 2) : 0; n > 0; --n) is_long[drawn(g, 0, 3)] = true;
    return is_long;
}
/// Components of 8 bytes, up to 1 KiB of them, so that no field of a rank is much larger than a MiB.
inline int random_components(std::mt19937& g, const std::vector<std::int64_t>& volumes) {
    const std::int64_t most = *std::max_element(volumes.begin(), volumes.end());
    return drawn(g, 16, static_cast<int>(std::clamp<std::int64_t>(131'072 / most, 16, 128)));
}
inline std::vector<std::int64_t> local_volumes(const lattice::decomposition& cut) {
    std::vector<std::int64_t> volumes;
    for (int r = 0; r < cut.ranks(); ++r) volumes.push_back(cut.local_box(r).volume());
    return volumes;
}

/// Counts the messages of 64 KiB or more in random plans of this process, by their path.
struct large_messages {
    std::array<std::atomic<std::uint64_t>, 5> by_path{};
    std::atomic<std::uint64_t> most_bytes{0};
    void count(halo::path p, std::uint64_t bytes) {
        if (bytes >= 64 * 1024) ++by_path[static_cast<std::size_t>(p)];
        for (std::uint64_t most = most_bytes; bytes > most && !most_bytes.compare_exchange_weak(most, bytes);) continue;
    }
    /// Restarts the count of that path from 0.
    std::uint64_t take(halo::path p) { return by_path[static_cast<std::size_t>(p)].exchange(0); }
};
inline large_messages& large_messages_seen() {
    static large_messages seen;
    return seen;
}

/// A grid of `ranks` ranks: each prime factor of their number in some dimension.
inline coordinate random_rank_grid(std::mt19937& g, int ranks) {
    coordinate grid{1, 1, 1, 1};
    for (int p = 2; ranks > 1; ++p)
        for (; ranks % p == 0; ranks /= p) grid[drawn(g, 0, 3)] *= p;
    return grid;
}

/// The plan with this number among those drawn from g.
inline halo_case random_case(std::mt19937& g, int ranks, int number = 0) {
    const bool large = is_large(number);
    const coordinate grid = random_rank_grid(g, ranks);
    halo::plan_options options;
    options.self_exchange = large || drawn(g, 0, 2) == 0;
    coordinate global{}, block{}, least{};
    std::array<std::vector<int>, dimensions> cuts;
    const auto is_long = random_long_dimensions(g, large);
    for (int mu = 0; mu < dimensions; ++mu) {
        block[mu] = drawn(g, 0, 3) == 0 ? 2 : 1;
        cuts[mu].push_back(0);
        least[mu] = 1000;
        for (int i = 0; i < grid[mu]; ++i) {
            const int extent = is_long[mu] ? block[mu] * drawn(g, 4, 16 / block[mu]) : block[mu] * drawn(g, 1, 4);
            least[mu] = std::min(least[mu], extent);
            cuts[mu].push_back(cuts[mu].back() + extent);
        }
        global[mu] = cuts[mu].back();
        options.widths.low[mu] = drawn(g, large ? 1 : 0, std::min(3, least[mu]));
        options.widths.high[mu] = drawn(g, large ? 1 : 0, std::min(3, least[mu]));
        options.boundaries[mu] = static_cast<lattice::boundary>(drawn(g, 0, 2));
    }
    switch (drawn(g, 0, 4)) {
    case 0: options.select = [](const coordinate& x) { return lattice::parity(x) == 0; }; break;
    case 2: options.parity = drawn(g, 0, 1); break;
    case 1:
        options.select = [](const coordinate& x) { return (x[0] / 2 + x[1] / 2 + x[2] / 2 + x[3] / 2) % 2 == 1; };
        break;
    default: break;
    }
    halo_case c{.cut = lattice::decomposition(global, cuts).with_rank_order(random_rank_order(g, ranks)),
                .options = options,
                .block = block,
                .text = {}};
    c.order = drawn(g, 0, 2);
    c.lane_width = std::array{1, 4, 8, 16}[drawn(g, 0, 3)];
    c.components = large ? random_components(g, local_volumes(c.cut)) : drawn(g, 1, 7);
    c.options.fields = drawn(g, 0, 2) == 0 ? drawn(g, 2, 3) : 1;
    c.prepared = drawn(g, 0, 2);
    c.by_function = drawn(g, 0, 2) == 0;
    c.in_slab = drawn(g, 0, 3) > 0;
    c.options.path =
        std::array{halo::path::automatic, halo::path::direct, halo::path::streamed, halo::path::joint}[drawn(g, 0, 3)];
    if (large)
        c.options.path = path_in_turn(
            number, std::array{halo::path::direct, halo::path::streamed, halo::path::joint, halo::path::automatic});
    c.text = "lattice " + lattice::to_string(global) + " grid " + lattice::to_string(grid) + " low " +
             lattice::to_string(options.widths.low) + " high " + lattice::to_string(options.widths.high) + " order " +
             std::to_string(c.order) + " W " + std::to_string(c.lane_width) + " components " +
             std::to_string(c.components) + (c.in_slab ? " in slab" : "") + " path " +
             std::string(to_string(c.options.path)) + (c.by_function ? " by function" : "");
    for (const int rank : c.cut.rank_order()) c.text += " " + std::to_string(rank);
    return c;
}

template <class T>
void exchange_and_check(const comm::job& j, halo_case c, int exchanges = 3) {
    const lattice::box local = c.cut.local_box(j.rank());
    const auto order = c.order == 0   ? lattice::site_order::lexicographic(local.extents)
                       : c.order == 1 ? lattice::site_order::even_odd(local)
                                      : lattice::site_order::blocked(local, c.cut.global(), c.block, c.lane_width);
    c.options.bytes_per_site = sizeof(T) * static_cast<std::size_t>(c.components);
    if (c.prepared == 1) c.options.order = order;
    if (c.prepared == 2)
        c.options.order =
            c.order == 1 ? lattice::site_order::lexicographic(local.extents) : lattice::site_order::even_odd(local);
    halo::plan plan(j, c.cut, c.options);
    for (const halo::plan_message& m : plan.messages())
        large_messages_seen().count(m.path, m.send_sites.size() * c.options.bytes_per_site *
                                                static_cast<std::size_t>(c.options.fields));
    std::vector<lattice::field<T>> fields;
    std::pmr::memory_resource* const memory = c.in_slab ? &j.memory() : std::pmr::get_default_resource();
    for (int f = 0; f < c.options.fields; ++f) fields.emplace_back(order, c.components, memory);
    std::vector<const lattice::field<T>*> xs;
    for (const auto& x : fields) xs.push_back(&x);
    const auto value = [](std::uint64_t epoch, int f) { return 10 * epoch + static_cast<std::uint64_t>(f); };
    for (std::uint64_t epoch = 1; epoch <= static_cast<std::uint64_t>(exchanges); ++epoch) {
        for (int f = 0; f < c.options.fields; ++f) fill_with_oracle(fields[f], c.cut, j.rank(), value(epoch, f));

        if (c.by_function)
            plan.start([&](int message, std::int64_t first, std::int64_t last, std::byte* target) {
                const auto& sites = plan.messages()[message].send_sites;
                for (const lattice::field<T>* x : xs) {
                    for (std::int64_t i = first; i < last; ++i)
                        for (int n = 0; n < c.components; ++n)
                            std::memcpy(target + sizeof(T) * static_cast<std::size_t>(i * c.components + n),
                                        &x->at(sites[i], n), sizeof(T));
                    target += sites.size() * c.options.bytes_per_site;
                }
            });
        else
            plan.start(std::span<const lattice::field<T>* const>(xs));
        const comm::status status = plan.finish();

        ASSERT_EQ(status, comm::status::ok) << c.text;
        ASSERT_EQ(plan.epoch(), epoch);
        for (int f = 0; f < c.options.fields; ++f)
            ASSERT_EQ(wrong_ghosts<T>(plan, c.cut, c.components, value(epoch, f), f), 0)
                << "rank " << j.rank() << ", " << c.text;
    }
}

/// `count` random plans on the ranks of j, drawn from `seed`.
inline void exchange_random_cases(const comm::job& j, unsigned seed, int count, int exchanges = 3) {
    std::mt19937 generator(seed);
    for (int i = 0; i < count; ++i) {
        const halo_case c = random_case(generator, j.ranks(), i);
        if (i % 2 == 0)
            exchange_and_check<double>(j, c, exchanges);
        else
            exchange_and_check<float>(j, c, exchanges);
        if (testing::Test::HasFatalFailure()) return j.abort("test failed");
    }
}

} // namespace halocline_test
