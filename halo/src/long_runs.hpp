// SPDX-License-Identifier: Apache-2.0
// From where on a run of contiguous bytes is left to memcpy.
#pragma once

#include <cstddef>

namespace halocline::halo {

/// Longer runs are left to memcpy (glibc 2.36: a string move from 2 KiB up), which writes whole lines without waiting
/// for those that it replaces. 8 KiB: on Zen 4 it is equal from 20 KB up and takes 20 to 40 ns more at 6 KB, on Zen 3 it
/// takes 0.85 of the time from 12 KB up. On Zen 5 4 KiB: a step of faces of 6 KB takes 0.77 of the time near.
extern const std::size_t long_run_bytes;

} // namespace halocline::halo
