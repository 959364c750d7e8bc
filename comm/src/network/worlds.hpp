// SPDX-License-Identifier: Apache-2.0
// The worlds in which the channels of transports with cards are made, chosen by their type; and how a job opens those
// that it needs.
#pragma once

#include "job/job_core.hpp"
#include "mpi/world.hpp"
#include "network_window_channel.hpp"
#include "ofi/world.hpp"
#include "verbs/world.hpp"

#include <halocline/comm/detail/mock_channel.hpp>
#include <halocline/comm/detail/mpi_channel.hpp>
#include <halocline/comm/detail/ofi_channel.hpp>
#include <halocline/comm/detail/verbs_channel.hpp>
#include <halocline/comm/job.hpp>

#include <concepts>
#include <string>

namespace halocline::comm {

template <class Channel, class... Others>
inline constexpr bool is_any_of = (std::same_as<Channel, Others> || ...);

/// The world in which channels of that type are made.
template <class Channel>
[[nodiscard]] auto& world_of(const job_core& core) {
    if constexpr (is_any_of<Channel, verbs_channel, verbs_direct_channel, verbs_window_channel>) {
        return *core.networks.verbs;
    } else if constexpr (is_any_of<Channel, ofi_channel, ofi_direct_channel, ofi_window_channel>) {
        return *core.networks.ofi;
    } else if constexpr (std::same_as<Channel, mpi_channel>) {
        return *core.networks.mpi;
    } else {
        static_assert(std::same_as<Channel, mock_channel>);
        static mock_world nothing; // has no state
        return nothing;
    }
}

/// Opens verbs and libfabric, in the order of the job's transports, on the ranks that can, and only if the previous
/// ones do not reach all peers. Notes which peers each does not reach, and why. `address`: of this host, for networks
/// over IP. Collective.
void open_networks(const job& j, bool one_node, const std::string& address, refusals& refused);

} // namespace halocline::comm
