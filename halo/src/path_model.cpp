// SPDX-License-Identifier: Apache-2.0
#include "path_model.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace halocline::halo {
namespace {

std::string microseconds(double seconds) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.2f us", 1e6 * seconds);
    return text.data();
}

/// Costs that would have been measured if the cores were in the other place: near each other instead of far apart, or
/// the reverse. Lines that go through the cache take twice as long there, or half; those that bypass it, and copies, as
/// long as here. Where moves skip waits (Zen 5), lines in short runs, and pulled ones, take 3.3 times as long far, and
/// those that bypass the cache less (docs/decisions/0032-paths-follow-the-machine.md).
comm::costs in_the_other_place(const comm::costs& c) {
    const auto scale = [&](double& seconds, double far_by_near) {
        seconds *= c.were_far() ? 1 / far_by_near : far_by_near;
    };
    comm::costs other = c;
    for (double* const time : {&other.flag_seconds, &other.cached.line_seconds, &other.scattered_line_seconds})
        scale(*time, 2);
    for (double* const time : {&other.run_line_seconds, &other.pulled_line_seconds}) scale(*time, 3.3);
    if (c.moves_skip_waits) scale(other.streamed.line_seconds, 0.7);
    return other;
}

} // namespace

verdict<path> choose_path(const comm::costs& c, const message_outline& m) {
    const double copy =
        c.copy_seconds_per_byte * static_cast<double>(m.bytes) + c.run_seconds * static_cast<double>(m.runs);
    const double shared = m.shared_lines * std::max(0.0, c.scattered_line_seconds - c.cached.line_seconds);
    if (shared > copy)
        return {path::packed, "lines that ghosts share with sites, " + microseconds(shared) +
                                  ", cost more than a second copy, " + microseconds(copy)};
    constexpr double there = 0.5; // of a round trip
    const double slot = copy + there * c.cached.line_seconds * comm::written_lines(m.bytes).whole;
    if (slot <= c.flag_seconds)
        return {path::packed, "out of a slot, " + microseconds(slot) + ", takes no longer than a free flag, " +
                                  microseconds(c.flag_seconds)};
    const comm::written_lines one(m.bytes, m.in_runs);
    constexpr double writes = 0.5; // of a copy: what it reads is in the time of a line
    if (m.filled.part > 0 && comm::streaming_pays(path::automatic, c, one)) {
        const double past = c.streamed_seconds(one) + writes * copy;
        const double in_place = std::min(c.cached_seconds(m.filled), c.streamed_seconds(m.filled));
        if (past < in_place)
            return {path::packed, "past the cache as one message, " + microseconds(past) +
                                      ", takes less than in place, " + microseconds(in_place)};
    }
    // Near a step would gain an eighth at most, and an exchange alone take 1.5 to 1.8 times as long.
    if (m.filled.in_runs && c.best_moved(one) && c.were_far()) {
        const double moved = c.cached_seconds(one) + writes * copy, in_place = c.cached_seconds(m.filled);
        if (moved < in_place)
            return {path::packed, "moved as one message, " + microseconds(moved) + ", takes less than in place, " +
                                      microseconds(in_place)};
    }
    return {path::direct, "out of a slot, " + microseconds(slot) + ", takes longer than a free flag, " +
                              microseconds(c.flag_seconds)};
}

bool depends_on_distance(const comm::costs& c, const message_outline& m) {
    if (c.take_seconds == 0) return false;
    const comm::costs other = in_the_other_place(c);
    const path near = choose_path(c.were_far() ? other : c, m).choice,
               far = choose_path(c.were_far() ? c : other, m).choice;
    return near == path::direct && far == path::packed;
}

verdict<path> choose_network_path(const comm::costs& c, std::size_t bytes, std::int64_t runs) {
    const double copies =
        2 * (c.copy_seconds_per_byte * static_cast<double>(bytes) + c.run_seconds * static_cast<double>(runs));
    const double flag = c.network_flag_seconds + c.message_seconds * static_cast<double>(runs);
    const bool pays = c.network_flag_seconds > 0 && copies > flag;
    const std::string cost = c.network_flag_seconds > 0 ? microseconds(flag) : std::string("not measured");
    return {pays ? path::direct : path::packed, "packing and unpacking, " + microseconds(copies) + ", cost" +
                                                    (pays ? " more" : " no more") + " than a free flag, " + cost};
}

void limit_claims(const std::vector<watched_bytes>& messages) {
    std::size_t claimed = 0;
    for (const watched_bytes& m : messages)
        if (m.watch->may_claim()) claimed += m.bytes;
    if (claimed > comm::largest_claimed())
        for (const watched_bytes& m : messages) m.watch->never_claim();
}

std::size_t least_piece_bytes(const comm::costs& c) {
    constexpr double least = 2048;
    return static_cast<std::size_t>(std::max(least, 4 * c.flag_seconds / std::max(c.copy_seconds_per_byte, 1e-12)));
}

writing choose_writing(path wish, const comm::costs& c, const comm::written_lines& lines) {
    const bool empty = lines.all() == 0;
    if (wish == path::streamed) return {.watch = path_watch::always_streamed()};
    if (wish == path::direct || wish == path::joint)
        return {.watch = empty ? path_watch() : path_watch::claims_only(c)};
    writing w;
    if (!empty) w.watch = path_watch(c, lines, comm::streaming_pays(wish, c, lines));
    const double cached = c.cached_seconds(lines), streamed = c.streamed_seconds(lines);
    w.why = cached == 0 ? "not measured: all ranks share a core, or no two share memory"
                        : microseconds(cached) + " through the cache, " + microseconds(streamed) + " past it";
    if (const std::string when = w.watch.describe(); !when.empty()) w.why += "; " + when;
    return w;
}

std::string why_joint(path wish, const comm::costs& c, int fields, bool joint) {
    if (joint && wish != path::joint)
        return "; with both ends copying, 256 KiB take " + microseconds(c.joint_seconds) + " instead of " +
               microseconds(c.alone_seconds);
    constexpr auto most = comm::joint_source::most_fields;
    if (wish == path::joint && fields > static_cast<int>(most))
        return "; both ends copy messages of at most " + std::to_string(most) + " fields";
    return {};
}

verdict<corner_route> choose_route(const comm::costs& c, const lattice::coordinate& rank_grid,
                                   const ghost_widths& widths) {
    int once = 1, serial = 0, phases = 0;
    for (int mu = 0; mu < lattice::dimensions; ++mu) {
        if (widths.low[mu] == 0 && widths.high[mu] == 0) continue;
        const int places = rank_grid[mu] < 3 ? rank_grid[mu] : 3; // distinct ranks along mu, including this one
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
