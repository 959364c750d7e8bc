// SPDX-License-Identifier: Apache-2.0
// What the connections of one rank and their windows share.
#pragma once

#include "control/keyed_letters.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace halocline::comm {

class window_end;

struct open_windows {
    keyed_letters letters; ///< by which the ends of a connection, and of a window, find each other
    /// Connections made with a peer, send tag and receive tag: both ends count them in the order in which they make
    /// them.
    std::map<std::tuple<int, int, int>, std::uint32_t> connections;
    std::size_t count = 0;        ///< windows that exist
    std::size_t sending = 0;      ///< between post() and wait() of a sender
    std::vector<window_end*> due; ///< those that still have to send something
};

} // namespace halocline::comm
