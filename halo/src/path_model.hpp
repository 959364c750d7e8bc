// SPDX-License-Identifier: Apache-2.0
// The cost model: which path a message takes, and which route edges and corners, by costs measured in the job.
//   direct     2 flags + 1 copy    the peer's "free", then "it is here"; and lines in which ghosts lie beside sites of
//                                  the peer go back and forth once more
//   packed     1 flag + 2 copies   into the slot, and out of the slot, whose lines come from the peer's core
//   over a network: direct 2 flags, and nothing is copied; packed 1 flag + 2 copies
//   streamed   a fixed cost + a cost per cache line, as measured; against the same through the cache, by which go also
//              lines that a run fills in part
//   corners    at once: 1 flag + 1 message per distinct neighbour; by dimension: as many flags as dimensions
#pragma once

#include <halocline/comm/claim_lines.hpp>
#include <halocline/comm/costs.hpp>
#include <halocline/halo/path.hpp>
#include <halocline/halo/detail/path_watch.hpp>
#include <halocline/halo/shell_plan.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace halocline::halo {

inline std::string microseconds(double seconds) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.2f us", 1e6 * seconds);
    return text.data();
}

/// A choice and the reason for it.
template <class Choice>
struct verdict {
    Choice choice;
    std::string why;
};

/// Direct or packed, for the message between this rank and a peer. Direct is used if both ends choose it, and they do
/// where a second copy is more work than the lines that ghosts share with sites, and takes longer, with the way of the
/// slot's lines from the peer's core, than a free flag. That way and a flag are both made of lines: as cores are moved
/// together and apart, they stay in proportion.
/// Pre: bytes and runs are of what is sent; the lines are those of this rank in which ghosts lie beside own sites.
inline verdict<path> choose_path(const comm::costs& c, std::size_t bytes, std::int64_t runs, double shared_lines) {
    const double copy =
        c.copy_seconds_per_byte * static_cast<double>(bytes) + c.run_seconds * static_cast<double>(runs);
    const double shared = shared_lines * std::max(0.0, c.scattered_line_seconds - c.cached.line_seconds);
    if (shared > copy)
        return {path::packed, "lines that ghosts share with sites, " + microseconds(shared) +
                                  ", cost more than a second copy, " + microseconds(copy)};
    constexpr double there = 0.5; // of the way there and back
    const double slot = copy + there * c.cached.line_seconds * comm::written_lines(bytes).whole;
    const bool pays = slot > c.flag_seconds;
    return {pays ? path::direct : path::packed, "out of a slot, " + microseconds(slot) + ", takes" +
                                                    (pays ? " longer" : " no longer") + " than a free flag, " +
                                                    microseconds(c.flag_seconds)};
}

/// Direct or packed over a network, whose device writes runs from field to field: direct spares packing here and
/// unpacking there, and costs a free flag and a write for each run.
inline verdict<path> choose_far_path(const comm::costs& c, std::size_t bytes, std::int64_t runs) {
    const double copies =
        2 * (c.copy_seconds_per_byte * static_cast<double>(bytes) + c.run_seconds * static_cast<double>(runs));
    const double flag = c.far_flag_seconds + c.message_seconds * static_cast<double>(runs);
    const bool pays = c.far_flag_seconds > 0 && copies > flag;
    const std::string cost = c.far_flag_seconds > 0 ? microseconds(flag) : std::string("not measured");
    return {pays ? path::direct : path::packed, "packing and unpacking, " + microseconds(copies) + ", cost" +
                                                    (pays ? " more" : " no more") + " than a free flag, " + cost};
}

/// The smallest piece of a copy that is worth another thread of a team: taking it and reporting it done costs two
/// flags.
inline std::size_t least_piece_bytes(const comm::costs& c) {
    constexpr double least = 2048;
    return static_cast<std::size_t>(std::max(least, 4 * c.flag_seconds / std::max(c.copy_seconds_per_byte, 1e-12)));
}

/// Should the lines of a message be claimed before they are filled (claim_lines.hpp)? One that a run fills in part may
/// hold a site of the peer, too, which packs it at that time: claimed first, such a line comes twice.
inline bool claiming_pays(const comm::written_lines& lines) { return 2 * lines.whole >= 3 * lines.part; }

/// How a message is written into memory that the peer shares, what may change that later, and the reason.
struct writing {
    path_watch watch;
    std::string why = "the job asks for it";
};

/// The choice for a message when its plan is made; it may be empty.
inline writing choose_writing(path wish, const comm::costs& c, const comm::written_lines& lines) {
    const bool empty = lines.whole + lines.part == 0;
    if (wish == path::streamed) return {.watch = path_watch::always_streamed()};
    if (wish == path::direct) return {.watch = empty ? path_watch() : path_watch::claims_only(c)};
    writing w;
    if (!empty) w.watch = path_watch(c, lines, comm::streaming_pays(wish, c, lines));
    const double cached = c.cached_seconds(lines), streamed = c.streamed_seconds(lines);
    w.why = cached == 0 ? "not measured: all ranks share a core, or no two share memory"
                        : microseconds(cached) + " through the cache, " + microseconds(streamed) + " past it";
    if (const std::string when = w.watch.describe(); !when.empty()) w.why += "; " + when;
    return w;
}

/// Nothing is claimed where that could be more than pays (claim_lines.hpp). watch(m) and bytes(m) are a message's.
template <class Messages, class Watch, class Bytes>
void limit_claims(Messages& messages, Watch&& watch, Bytes&& bytes) {
    std::size_t claimed = 0;
    for (auto& m : messages)
        if (watch(m).may_claim()) claimed += bytes(m);
    if (claimed > comm::largest_claimed())
        for (auto& m : messages) watch(m).never_claim();
}

/// The route for edges and corners, judged for a rank with neighbours on all sides, so that all ranks choose the same.
inline verdict<corner_route> choose_route(const comm::costs& c, const lattice::coordinate& rank_grid,
                                          const ghost_widths& widths) {
    int once = 1, serial = 0, phases = 0;
    for (int mu = 0; mu < lattice::dimensions; ++mu) {
        if (widths.low[mu] == 0 && widths.high[mu] == 0) continue;
        const int places = rank_grid[mu] < 3 ? rank_grid[mu] : 3; // distinct ranks along mu, the own one among them
        once *= places;
        serial += places < 3 ? 1 : 2;
        ++phases;
    }
    const double at_once = c.flag_seconds + once * c.message_seconds;
    const double by_dimension = phases * c.flag_seconds + serial * c.message_seconds;
    const std::string why = "at once " + std::to_string(once) + " messages, " + microseconds(at_once) +
                            "; by dimension " + std::to_string(serial) + " in " + std::to_string(phases) + " phases, " +
                            microseconds(by_dimension);
    return {at_once <= by_dimension ? corner_route::at_once : corner_route::by_dimension, why};
}

} // namespace halocline::halo
