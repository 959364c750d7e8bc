// SPDX-License-Identifier: Apache-2.0
// The worlds in which the channels of transports with cards are made, one line per transport; and how a job opens those
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

#include <string>

namespace halocline::comm {

inline verbs_world& world_of(const job_core& core, const verbs_channel*) { return *core.networks.verbs; }
inline ofi_world& world_of(const job_core& core, const ofi_channel*) { return *core.networks.ofi; }
inline verbs_world& world_of(const job_core& core, const verbs_direct_channel*) { return *core.networks.verbs; }
inline ofi_world& world_of(const job_core& core, const ofi_direct_channel*) { return *core.networks.ofi; }
inline verbs_world& world_of(const job_core& core, const verbs_window_channel*) { return *core.networks.verbs; }
inline ofi_world& world_of(const job_core& core, const ofi_window_channel*) { return *core.networks.ofi; }
inline mpi_world& world_of(const job_core& core, const mpi_channel*) { return *core.networks.mpi; }
inline mock_world& world_of(const job_core&, const mock_channel*) {
    static mock_world nothing; // has no state
    return nothing;
}

/// Opens verbs and libfabric, in the order of the job's transports, on the ranks that can, and only if the previous
/// ones do not reach all peers. Notes which peers each does not reach, and why. `address`: of this host, for networks
/// over IP. Collective.
void open_networks(const job& j, bool one_node, const std::string& address, refusals& refused);

} // namespace halocline::comm
