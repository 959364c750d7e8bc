// SPDX-License-Identifier: Apache-2.0
// The two measures of bench/halo, in batches (docs/decisions/0009-benches-read-the-ghosts.md):
//   step   dirty the source, exchange, read the ghosts: what a program pays; ratios are claimed from this
//   bare   of the same step only the exchange, from its start to its end; "the exchange alone" in README.md and in
//          tables
// Exchanges that move no bytes are also timed in a row: in_a_row of them between two readings of the clock, with
// nothing dirtied in between. For two readings take a third as long as one such exchange, and dirtying evicts the plan
// from the cache.
#pragma once

#include "halo/tracked_field.hpp"
#include "support/statistics.hpp"

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <vector>

namespace halocline::bench {

inline constexpr std::array<const char*, 2> measures{"step", "bare"};
inline constexpr int batches = 8;
inline constexpr int in_a_row = 64; ///< exchanges between two readings of the clock

/// One way to exchange the faces of a field.
template <class E>
concept exchanger = requires(E& e, std::size_t f) {
    { e.source() } -> std::same_as<tracked_field&>;
    {e.exchange()};                                    ///< complete: when it returns, the ghosts are here
    { e.ghosts(f) } -> std::same_as<const std::byte*>; ///< base address of box_face::ghosts
};

template <exchanger E>
void read_ghosts(E& e) {
    for (std::size_t f = 0; f < e.source().box().faces.size(); ++f) e.source().read(f, e.ghosts(f));
}

/// Ticks of `steps` steps.
template <exchanger E>
std::uint64_t step_ticks(E& e, int steps) {
    const std::uint64_t begin = comm::ticks();
    for (int i = 0; i < steps; ++i) {
        e.source().dirty();
        e.exchange();
        read_ghosts(e);
    }
    return comm::ticks() - begin;
}
/// Ticks of the exchanges of `steps` steps.
template <exchanger E>
std::uint64_t bare_ticks(E& e, int steps) {
    std::uint64_t sum = 0;
    for (int i = 0; i < steps; ++i) {
        e.source().dirty();
        const std::uint64_t begin = comm::ticks();
        e.exchange();
        sum += comm::ticks() - begin;
        read_ghosts(e); // else no line would ever leave the writer's cache, as in no program
    }
    return sum;
}

/// Ticks that in_a_row exchanges take.
template <exchanger E>
std::uint64_t ticks_in_a_row(E& e) {
    const std::uint64_t begin = comm::ticks();
    for (int i = 0; i < in_a_row; ++i) e.exchange();
    return comm::ticks() - begin;
}

/// About `seconds` of work on this rank alone. Returns microseconds per exchange for `batches` batches, each the median
/// of many rows, most of which are too short to be interrupted.
template <exchanger E>
std::vector<double> timed_in_a_row(E& e, double seconds) {
    for (int i = 0; i < 64; ++i) ticks_in_a_row(e);
    std::vector<double> rows(64), us;
    for (double& row : rows) row = comm::seconds(ticks_in_a_row(e));
    rows.resize(std::clamp<std::size_t>(static_cast<std::size_t>(seconds / (batches * median(rows))), 1, 20'000));
    for (int b = 0; b < batches; ++b) {
        for (double& row : rows) row = comm::seconds(ticks_in_a_row(e));
        us.push_back(1e6 * median(rows) / in_a_row);
    }
    return us;
}

/// About `seconds` of work; returns microseconds per step: `batches` of each measure, on this rank.
/// greatest(x): the greatest x of all ranks, on each; they must agree on the number of steps.
template <exchanger E, class Greatest>
std::vector<double> timed_slice(E& e, double seconds, Greatest&& greatest) {
    step_ticks(e, 4); // the first messages make connections and touch memory
    const double each = greatest(std::max(comm::seconds(step_ticks(e, 4)) / 4, 1e-8));
    const int steps = std::clamp(static_cast<int>(seconds / (2 * batches * each)), 1, 20'000);
    std::vector<double> us;
    for (int b = 0; b < batches; ++b) us.push_back(1e6 * comm::seconds(step_ticks(e, steps)) / steps);
    for (int b = 0; b < batches; ++b) us.push_back(1e6 * comm::seconds(bare_ticks(e, steps)) / steps);
    return us;
}

/// Are all ghosts those of the latest step?
template <exchanger E>
bool verified(E& e) {
    for (std::size_t f = 0; f < e.source().box().faces.size(); ++f)
        if (!e.source().holds(f, e.ghosts(f))) return false;
    return true;
}

} // namespace halocline::bench
