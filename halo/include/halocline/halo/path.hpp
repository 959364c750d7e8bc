// SPDX-License-Identifier: Apache-2.0
// How values travel to a peer. The choice is made when a plan is made, by the costs that were measured in the job
// (path_model.hpp). Between direct and streamed it is made again when the machine changes (path_watch.hpp).
#pragma once

#include <cstdint>
#include <string_view>

namespace halocline::halo {

enum class path : std::uint8_t {
    automatic, ///< by the cost model of the job
    direct,    ///< one copy from the source into memory of the peer, through the cache: shared memory
    streamed,  ///< the same past the cache, by streaming stores: between cores that are far apart (docs/decisions/0030)
    packed,    ///< through a slot at the peer, who unpacks; or as the transport sends it
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
