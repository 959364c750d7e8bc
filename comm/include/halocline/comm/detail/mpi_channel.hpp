// SPDX-License-Identifier: Apache-2.0
// A channel over MPI: persistent requests made once and started each epoch, or (job_options::mpi) a put into the peer's
// exposed slot. A message is a whole slot; the receive of epoch k + 1 is posted when k is sent, so that a message never
// has to wait for it.
#pragma once

#include <halocline/comm/detail/channel.hpp>
#include <halocline/comm/detail/network_channel.hpp>

#include <functional>
#include <span>
#include <string>

namespace halocline::comm {

class mpi_world; // private: comm/src/mpi/world.hpp
struct mpi_end;  // private: comm/src/mpi/end.hpp

class mpi_channel : public network_channel<mpi_world, mpi_end> {
  public:
    static constexpr const char* transport = "mpi";
    using network_channel::network_channel;
    /// connect() for all channels of a plan; cards by index(). Collective over the world if one-sided, because of
    /// windows.
    static void connect_all(mpi_world& world, std::span<mpi_channel> all, std::span<const std::string> peer_cards,
                            const std::function<void()>& check);
    /// "one-sided" or "packed".
    [[nodiscard]] const char* path_taken() const noexcept;
    /// MPI's tag of what the peer sends here; no other channel of this world uses it.
    [[nodiscard]] int tag() const noexcept;
};
static_assert(channel<mpi_channel> && carded_channel<mpi_channel>);

} // namespace halocline::comm
