// SPDX-License-Identifier: Apache-2.0
// A channel over InfiniBand or RoCE verbs: one reliable connection (RC queue pair). The payload is written into the
// peer's slot; the write's immediate consumes one of the peer's posted receives, whose completion is the arrival and
// carries the rest: the epoch (in the immediate) and the number of bytes. A label travels only if it says more.
#pragma once

#include <halocline/comm/detail/channel.hpp>
#include <halocline/comm/detail/network_channel.hpp>
#include <halocline/comm/detail/network_direct_channel.hpp>

#include <cstdint>

namespace halocline::comm {

class verbs_world; // private: comm/src/verbs/world.hpp
struct verbs_end;  // private: comm/src/verbs/world.hpp

class verbs_channel : public network_channel<verbs_world, verbs_end> {
  public:
    static constexpr const char* transport = "verbs";
    using network_channel::network_channel;
    /// Receives posted at this end, and completions taken.
    [[nodiscard]] std::uint64_t receives() const noexcept;
    [[nodiscard]] std::uint64_t completions() const noexcept;
};
static_assert(channel<verbs_channel> && carded_channel<verbs_channel>);

/// A direct channel: the device writes from field to field.
class verbs_direct_channel : public network_direct_channel<verbs_world, verbs_end> {
  public:
    static constexpr const char* transport = "verbs";
    using network_direct_channel::network_direct_channel;
};
static_assert(rdma_channel<verbs_direct_channel> && carded_channel<verbs_direct_channel>);
static_assert(!channel<verbs_direct_channel>);

} // namespace halocline::comm
