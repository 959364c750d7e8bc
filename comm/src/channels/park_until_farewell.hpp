// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "job/job_core.hpp"
#include "job/slab_block.hpp"

#include <halocline/comm/detail/control_line.hpp>

#include <utility>

namespace halocline::comm {

/// A window closes: its block goes back to the slab when the peer's farewell has arrived, on the control line at the
/// block's start, or the letter of a peer that never connected. `pinned`: a buffer in the slab that the peer may access
/// until then; nullptr: none.
inline void park_until_farewell(job_core& core, slab_block& block, keyed_letters::name never_connected,
                                const void* pinned = nullptr) {
    const auto* const line = reinterpret_cast<const control_line*>(block.start());
    parked_block parked = block.release();
    parked.lines.push_back(line);
    parked.or_letter = std::move(never_connected);
    if (pinned != nullptr) parked.pinned.push_back(pinned);
    core.park(std::move(parked));
}

} // namespace halocline::comm
