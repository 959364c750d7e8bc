// SPDX-License-Identifier: Apache-2.0
#include "bulk_link.hpp"

#include "mpi/bulk.hpp"
#include "worlds.hpp"

namespace halocline::comm {

std::unique_ptr<bulk_link> make_bulk_link(job_core& core, int peer, std::uint32_t records) {
    const std::string& transport = core.members[peer].transport;
    if (transport == ofi_channel::transport) return core.networks.ofi->open_bulk(*core.memory, peer, records);
    if (transport == verbs_channel::transport) return core.networks.verbs->open_bulk(*core.memory, peer, records);
    if (transport == mpi_channel::transport) return std::make_unique<mpi_bulk_link>(*core.networks.mpi, peer, records);
    return nullptr;
}

std::shared_ptr<const exposed_memory> expose(job_core& core, const std::string& transport,
                                             std::span<std::byte> memory) {
    if (transport == ofi_channel::transport) return core.networks.ofi->expose(memory);
    if (transport == verbs_channel::transport) return core.networks.verbs->expose(memory);
    return nullptr;
}

} // namespace halocline::comm
