// SPDX-License-Identifier: Apache-2.0
// The oracle of all halo tests: every component of every site holds a hash of its global coordinate and of the epoch,
// so a ghost is right only if it is the copy of exactly the right site, component and epoch.
// What ghosts should be is derived from the receiver's side (its box, continued across the edge and wrapped), which is
// not how the plan does it.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/halo/plan.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstring>
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

/// One component of the site with this index in the global lattice; values are the first bytes of it.
inline std::uint64_t oracle_hash(std::int64_t index, int component, std::uint64_t epoch) {
    return mixed(mixed(static_cast<std::uint64_t>(index)) + 1000 * epoch + static_cast<std::uint64_t>(component));
}
/// The bits of one component, as many as T has.
template <class T>
std::array<std::byte, sizeof(T)> oracle_value(const coordinate& site, const coordinate& global, int component,
                                              std::uint64_t epoch) {
    const std::uint64_t hash = oracle_hash(lattice::lexicographic_index(site, global), component, epoch);
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

/// Number of ghost components that are not what they should be; missing ghosts count too, and faces whose ghosts the
/// plan takes for copies of other sites.
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
        wrong += plan.ghost_sites(f) != sites;
        if (message < 0) continue;
        const std::byte* ghost = plan.ghost(f, field);
        for (const coordinate& site : sites)
            for (int c = 0; c < components; ++c, ghost += sizeof(T))
                wrong += std::memcmp(ghost, oracle_value<T>(site, cut.global(), c, epoch).data(), sizeof(T)) != 0;
    }
    return wrong;
}

inline int drawn(std::mt19937& g, int low, int high) { // [low, high]; the same with every standard library
    return low + static_cast<int>(g() % static_cast<unsigned>(high - low + 1));
}

/// A grid of `ranks` ranks: each prime factor of their number in some dimension.
inline coordinate random_rank_grid(std::mt19937& g, int ranks) {
    coordinate grid{1, 1, 1, 1};
    for (int p = 2; ranks > 1; ++p)
        for (; ranks % p == 0; ranks /= p) grid[drawn(g, 0, 3)] *= p;
    return grid;
}

} // namespace halocline_test
