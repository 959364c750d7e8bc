// SPDX-License-Identifier: Apache-2.0
#include "bulk_link.hpp"

#include "mpi_bulk.hpp"
#include "worlds.hpp"

namespace halocline::comm {

std::unique_ptr<bulk_link> make_bulk_link(job_core& core, int peer) {
    const std::string& transport = core.members[static_cast<std::size_t>(peer)].transport;
    if (transport == ofi_channel::transport) return core.ofi->open_bulk(*core.memory, peer);
    if (transport == verbs_channel::transport) return core.verbs->open_bulk(*core.memory, peer);
    if (transport == mpi_channel::transport) return std::make_unique<mpi_bulk_link>(*core.mpi, peer);
    return nullptr;
}

} // namespace halocline::comm
