// SPDX-License-Identifier: Apache-2.0
// The worlds in which the channels of transports with cards are made, chosen by their type; and how a job opens those
// that it needs. worlds.cpp also has what a transport's name decides of bulk_link.hpp and direct_memory.hpp.
#pragma once

#include "job/job_core.hpp"
#include "mpi/world.hpp"
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

/// The world in which channels of that type are made.
template <class Channel>
[[nodiscard]] auto& world_of(const job_core& core) {
    using world = typename Channel::world_type;
    if constexpr (std::same_as<world, verbs_world>) {
        return *core.networks.verbs;
    } else if constexpr (std::same_as<world, ofi_world>) {
        return *core.networks.ofi;
    } else if constexpr (std::same_as<world, mpi_world>) {
        return *core.networks.mpi;
    } else {
        static_assert(std::same_as<world, mock_world>);
        static mock_world nothing; // has no state
        return nothing;
    }
}

/// Opens verbs and libfabric, in the order of the job's transports, on the ranks that can, and only if the previous
/// ones do not reach all peers. Notes which peers each does not reach, and why. `address`: of this host, for networks
/// over IP. Collective.
void open_networks(const job& j, bool one_node, const std::string& address, refusals& refused);

} // namespace halocline::comm
