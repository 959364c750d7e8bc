// SPDX-License-Identifier: Apache-2.0
// How a message is written where its receiver shares memory with its sender. If left automatic, the choice follows from
// costs measured in the job (costs.hpp), and is made again when the machine has changed
// (docs/decisions/0032-paths-follow-the-machine.md).
#pragma once

#include <cstdint>
#include <string_view>

namespace halocline::comm {

enum class path : std::uint8_t {
    automatic, ///< chosen by measured costs
    direct,    ///< one copy through the cache, from the source into the peer's memory
    streamed,  ///< the same copy with stores that bypass the cache: between cores that are far apart (decision 0030)
    joint,     ///< direct, and a receiver that waits copies pieces of large messages, too (decision 0049)
    packed,    ///< ghosts in a field go through a slot at the peer, which unpacks it (over networks see decision 0041)
};

constexpr std::string_view to_string(path p) {
    switch (p) {
    case path::automatic: return "automatic";
    case path::direct: return "direct";
    case path::streamed: return "streamed";
    case path::joint: return "joint";
    case path::packed: return "packed";
    }
    return "?";
}

} // namespace halocline::comm
