// SPDX-License-Identifier: Apache-2.0
// How values travel to a peer. A plan chooses when it is made, by costs that were measured in the job (path_model.hpp),
// and may change between direct and streamed later, when the machine has changed (path_watch.hpp).
#pragma once

#include <cstdint>
#include <string_view>

namespace halocline::halo {

enum class path : std::uint8_t {
    automatic, ///< as the cost model says
    direct,    ///< over shared memory: one copy, from the source into the peer's memory
    streamed, ///< the same copy with stores that bypass the cache: between cores that are far apart (docs/decisions/0030)
    packed,   ///< through a slot at the peer, which unpacks it; every other transport
};

constexpr std::string_view to_string(path p) {
    switch (p) {
    case path::automatic: return "automatic";
    case path::direct: return "direct";
    case path::streamed: return "streamed";
    case path::packed: return "packed";
    }
    return "?";
}

} // namespace halocline::halo
