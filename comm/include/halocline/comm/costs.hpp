// SPDX-License-Identifier: Apache-2.0
// What the parts of an exchange cost on this job's machine: measured once per job, the same numbers on every rank, so
// that all come to the same choice of path. Estimates on a possibly busy machine: good for choosing, not for reporting.
#pragma once

#include <halocline/comm/job.hpp>

#include <cstddef>

namespace halocline::comm {

/// What a message costs that is written where its receiver has read the one before: until it has read this one.
struct write_cost {
    double message_seconds = 0; ///< of any size
    double line_seconds = 0;    ///< each cache line of 64 bytes
    [[nodiscard]] double seconds(std::size_t bytes) const {
        return message_seconds + line_seconds * (static_cast<double>(bytes) / 64);
    }
};

struct costs {
    double flag_seconds = 0;          ///< from a rank's send of next to nothing to the peer that waits for it
    double message_seconds = 0;       ///< each further message of the same exchange
    double copy_seconds_per_byte = 0; ///< of contiguous bytes
    double run_seconds = 0;           ///< each run of contiguous bytes, beyond its bytes
    /// Into the peer's memory: through the cache, lines claimed first (claim_lines.hpp), or by streaming stores
    /// (stream_bytes.hpp). Both 0 where no two ranks share memory, or where ranks share cores.
    write_cost cached{}, streamed{};
    /// How long ticks_to_take() (take_line.hpp) needs for a line of such a message, which the peer has read (0 where the
    /// above is), and for a line that only this core has used.
    double take_seconds = 0, keep_seconds = 0;
};

/// How much better streaming has to be: estimates are rough.
inline constexpr double streaming_margin = 1.3;

/// Should a message of so many bytes that goes into a peer's memory bypass its writer's cache (stream_bytes.hpp)? Where
/// that was measured to be clearly better.
[[nodiscard]] inline bool streaming_pays(streaming wish, const costs& c, std::size_t bytes) {
    if (wish != streaming::automatic) return wish == streaming::always;
    return streaming_margin * c.streamed.seconds(bytes) < c.cached.seconds(bytes); // not, where nothing was measured
}

/// Collective at the first call of a job, local afterwards.  Err: job_error.
/// Cost: half a millisecond once; two small channel sets between pairs of neighbouring ranks.
const costs& measured_costs(const job& j);

/// From now on measured_costs() says this: for machines that are known, and for tests. The same on every rank.
void assume_costs(const job& j, const costs& c);

} // namespace halocline::comm
