// SPDX-License-Identifier: Apache-2.0
// The channel of a rank with itself: the shared-memory protocol with both ends in this rank's slab, in its own lane.
#pragma once

#include <halocline/comm/detail/shm_channel.hpp>

namespace halocline::comm {

class self_channel : public shm_channel {
  public:
    static constexpr const char* transport = "self";
    static constexpr const char* path_name = "self";
    static constexpr bool in_peer_memory = false;
    using shm_channel::shm_channel;
};
static_assert(channel<self_channel>);

} // namespace halocline::comm
