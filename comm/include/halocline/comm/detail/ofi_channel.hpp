// SPDX-License-Identifier: Apache-2.0
// A channel over libfabric: label and payload are written into the peer's slot (fi_writedata); the data that
// accompanies the write identifies the channel and slot at the peer. No receive is posted and nothing is matched.
#pragma once

#include <halocline/comm/detail/channel.hpp>
#include <halocline/comm/detail/network_channel.hpp>
#include <halocline/comm/detail/network_direct_channel.hpp>

namespace halocline::comm {

class ofi_world; // private: comm/src/ofi/world.hpp
struct ofi_end;  // private: comm/src/ofi/world.hpp

class ofi_channel : public network_channel<ofi_world, ofi_end> {
  public:
    static constexpr const char* transport = "ofi";
    using network_channel::network_channel;
};
static_assert(channel<ofi_channel> && carded_channel<ofi_channel>);

/// A direct channel: writes from field to field.
class ofi_direct_channel : public network_direct_channel<ofi_world, ofi_end> {
  public:
    static constexpr const char* transport = "ofi";
    using network_direct_channel::network_direct_channel;
};
static_assert(rdma_channel<ofi_direct_channel> && carded_channel<ofi_direct_channel>);
static_assert(!channel<ofi_direct_channel>);

} // namespace halocline::comm
