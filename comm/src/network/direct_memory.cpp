// SPDX-License-Identifier: Apache-2.0
#include "direct_memory.hpp"

#include "worlds.hpp"

#include <halocline/comm/transport_names.hpp>

namespace halocline::comm {

std::shared_ptr<const direct_memory> register_fields(const job& j, const std::string& transport,
                                                     std::span<const std::span<std::byte>> fields) {
    const job_core& core = j.core();
    auto memory = std::make_shared<direct_memory>(core.memory);
    for (const std::span<std::byte> f : fields) memory->add(f.data(), expose(j.core(), transport, f));
    return memory;
}

std::string direct_obstacle(const job& j, int peer) {
    const std::string& transport = j.members()[peer].transport;
    if (is_in_memory(transport) || transport == verbs_channel::transport) return {};
    if (transport == ofi_channel::transport)
        return j.core().networks.ofi->writes_memory()
                   ? ""
                   : "over ofi no field can be written in place: its provider has no RMA";
    return "over " + transport + " no field can be written in place";
}

} // namespace halocline::comm
