// SPDX-License-Identifier: Apache-2.0
// What the parts of an exchange cost on this machine: measured once per job, and the same numbers on every rank, so
// that all make the same choices. These are estimates on a machine that may be busy, bounded by what hardware can do:
// good enough for choosing, not for reporting.
#pragma once

#include <halocline/comm/job.hpp>

#include <algorithm>
#include <cstddef>

namespace halocline::comm {

/// The time from writing a message until the receiver has read it, where the lines written are in the receiver's cache
/// because it has read the previous message.
struct write_cost {
    double message_seconds = 0; ///< per message
    double line_seconds = 0;    ///< per cache line of 64 bytes
    [[nodiscard]] double seconds(double lines) const { return message_seconds + line_seconds * lines; }
};

/// The cache lines that a message is written into.
struct written_lines {
    double whole = 0; ///< filled completely: these can bypass the cache
    double part = 0;  ///< filled partly, where runs begin and end: these go through the cache in any case
    /// Are they filled by short runs? Otherwise by moves of many lines (copy_bytes()).
    bool in_runs = false;

    written_lines() = default;
    /// The lines of a contiguous message.
    written_lines(std::size_t bytes, bool short_runs = false)
        : whole(static_cast<double>(bytes) / 64), in_runs(short_runs) {}
    [[nodiscard]] double all() const { return whole + part; }
};

struct costs {
    /// One-way latency of an empty message: from send() until the waiting peer sees it. Where ranks share cores, at
    /// most one context switch: the rest of the wait is other ranks' work.
    double flag_seconds = 0;
    double message_seconds = 0;       ///< for each further message of the same exchange
    double copy_seconds_per_byte = 0; ///< for contiguous bytes
    double run_seconds = 0;           ///< for each run of contiguous bytes, in addition to its bytes
    /// Writing into the peer's memory, timed between two cores: through the cache, in the faster of two ways
    /// (claims_pay()), and with streaming stores (stream_bytes.hpp). Both 0 if no two ranks share memory, or all share
    /// one core.
    write_cost cached{}, streamed{};
    /// The time per line of such a message through the cache that is copied in short runs; 0 if not measured.
    double run_line_seconds = 0;
    /// comm::moves_skip_waits(), of all ranks. Short runs take longer there, and claims don't help.
    bool moves_skip_waits = false;
    /// The time per line of such a message that its receiver copies from where its sender has changed one word of each
    /// line; 0 if not measured.
    double pulled_line_seconds = 0;
    /// The time per line of such a message through the cache whose lines are claimed first (claim_lines.hpp), divided
    /// by that of one whose lines are not. 0 if not measured.
    double claimed_ratio = 0;
    /// Cost per cache line that both ranks write: one half holds ghosts (written by the peer), the other half owned
    /// sites (sent by this rank). Applies to padded fields with short runs.
    double scattered_line_seconds = 0;
    /// Time to take back a line (take_line.hpp): typically, for a line of such a message that the peer has read (0 if
    /// `cached` and `streamed` are 0); at least, for one that only this core has used.
    double take_seconds = 0, keep_seconds = 0;
    /// Time of a message of joint_bytes for whose receiver nothing is left to do but to wait: copied by its sender
    /// alone, through the cache, and by both ends (joint_channel.hpp). Both 0 if they were not measured: where not
    /// every rank has a core of its own, or slabs are too small.
    double alone_seconds = 0, joint_seconds = 0;
    /// flag_seconds between ranks joined by a network; 0 if there are none.
    double network_flag_seconds = 0;

    /// Should lines be claimed before they are filled? Cores differ: claims take 0.6 to 0.85 of the time where stores
    /// to lines that are away wait for each other, 1 to 1.2 where they don't (docs/decisions/0010).
    [[nodiscard]] bool claims_pay() const {
        constexpr double clearly_less = 0.93;
        return !moves_skip_waits && claimed_ratio < clearly_less; // or not measured
    }
    /// The time per line of what short runs fill through the cache.
    [[nodiscard]] double seconds_per_run_line() const {
        return moves_skip_waits ? std::max(run_line_seconds, cached.line_seconds) : cached.line_seconds;
    }
    /// Are these lines written best by moves, near and far? Past the cache the receiver fetches them from memory.
    [[nodiscard]] bool best_moved(const written_lines& l) const { return moves_skip_waits && !l.in_runs; }
    /// Were the two cores far apart when these were measured? A cached line then takes 2 to 3 times as long as a streamed
    /// one; between near cores 0.6 to 1.2 times. Where lines written in full don't wait for those that they replace
    /// (Zen 5), it is a pulled line that takes so long.
    [[nodiscard]] bool were_far() const {
        return 1.5 * streamed.line_seconds < std::max(cached.line_seconds, pulled_line_seconds);
    }
    /// The costs of a message that would be pulled, in place of one that would be pushed through the cache.
    [[nodiscard]] costs of_pulled() const {
        costs c = *this;
        c.moves_skip_waits = false; // the lines are not moved
        c.cached.line_seconds = std::max(c.cached.line_seconds, pulled_line_seconds);
        return c;
    }
    [[nodiscard]] double cached_seconds(const written_lines& l) const {
        return cached.message_seconds + (l.in_runs ? seconds_per_run_line() : cached.line_seconds) * l.all();
    }
    [[nodiscard]] double streamed_seconds(const written_lines& l) const {
        return streamed.seconds(l.whole) + part_seconds(l);
    }
    /// Time for the part of a streamed message that goes through the cache. A line there takes less than a line of a
    /// cached message, because fewer wait for each other: 17 ns instead of 24 (faces of 8^4 sites of 96 bytes cut in x,
    /// cores far apart).
    [[nodiscard]] double part_seconds(const written_lines& l) const { return 0.77 * seconds_per_run_line() * l.part; }
};

/// The usual ratio between the time of a line for cores that share no cache and for cores that do, and the least.
inline constexpr double far_by_near = 3, least_far_by_near = 2.5;

/// How many times faster streaming must look to be chosen: estimates are rough.
inline constexpr double streaming_margin = 1.3;

/// True if the costs decide whether messages bypass the writer's cache.
[[nodiscard]] constexpr bool leaves_streaming(path wish) { return wish == path::automatic || wish == path::packed; }

/// The size of the message of which alone_seconds and joint_seconds are the times.
inline constexpr std::size_t joint_bytes = std::size_t{256} << 10;
/// How many times faster a message must be with both ends copying.
inline constexpr double joint_margin = 1.1;

/// Whether a receiver that waits should copy pieces of messages of this size: if the caller asked for it, or if that
/// was measured to be faster for one that is no larger.
[[nodiscard]] inline bool joint_pays(path wish, const costs& c, std::size_t bytes) {
    if (!leaves_streaming(wish)) return wish == path::joint && bytes > 0;
    return bytes >= joint_bytes && joint_margin * c.joint_seconds < c.alone_seconds; // false if nothing was measured
}

/// Whether a message that fills these lines of a peer's memory should bypass the writer's cache (stream_bytes.hpp): if
/// the caller asked for it, or if it was measured to be clearly faster.
[[nodiscard]] inline bool streaming_pays(path wish, const costs& c, const written_lines& l) {
    if (!leaves_streaming(wish)) return wish == path::streamed;
    if (c.best_moved(l)) return false;
    return streaming_margin * c.streamed_seconds(l) < c.cached_seconds(l); // false if nothing was measured
}

/// The costs of this job. The first call measures and is collective, later ones are local; where any two ranks share
/// memory they are measured when the job starts, unless job_options::path asks for a specific path.  Err: job_error.
/// Cost: a few milliseconds once; two small channel sets between pairs of neighbouring ranks, up to two between the
/// pairs that time their writes; for that time up to 2 MiB of the slab.
const costs& measured_costs(const job& j);

/// What is known where nothing was measured: no time, but how this processor writes.
[[nodiscard]] costs unmeasured_costs();

/// Makes measured_costs() return `c` from now on, for known machines and for tests.  Pre: the same on every rank.
void assume_costs(const job& j, const costs& c);

} // namespace halocline::comm
