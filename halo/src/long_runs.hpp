// SPDX-License-Identifier: Apache-2.0
// From where on contiguous bytes are left to memcpy, and whether short runs are gathered for that.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halocline::halo {

/// Longer runs are left to memcpy (glibc 2.36: a string move from 2 KiB up), which writes whole lines without waiting
/// for those that it replaces. 4 KiB on Zen 5, elsewhere 8 KiB (docs/decisions/0050-copies-by-pieces.md).
extern const std::size_t long_run_bytes;

/// Do short runs pay for being gathered in the first-level cache, so that memcpy can write what they amount to? On Zen 5,
/// where stores of vectors wait for lines that the peer has read and moves don't (0050). Elsewhere it is not known to,
/// and lines are claimed instead.
extern const bool short_runs_are_gathered;

/// Are so many runs short, if they have so many bytes in all?
[[nodiscard]] inline bool are_short(std::int64_t runs, std::size_t bytes) noexcept {
    return bytes < static_cast<std::size_t>(runs) * long_run_bytes;
}

} // namespace halocline::halo
