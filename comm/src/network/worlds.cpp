// SPDX-License-Identifier: Apache-2.0
#include "worlds.hpp"

#include "bulk_link.hpp"
#include "control/wire_format.hpp"
#include "direct_memory.hpp"
#include "mpi/bulk.hpp"

#include <halocline/comm/transport_names.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace halocline::comm {
namespace {

/// The options for opening a transport.
struct opening {
    std::string options; ///< the keys that determine its kind, which must be equal on two ranks
    std::string key;     ///< the key that names a device or a provider
    bool named;          ///< does the key have a value? Then what it names must exist
};

/// A rank's result of opening a transport.
struct found_world {
    std::string trouble, kind, address;
    bool named = false;

    template <class Self, class Pass>
    static void fields(Self& w, Pass& pass) {
        pass(w.trouble, w.kind, w.address, w.named);
    }
};

/// Err: input_error, the same on every rank, if a rank can't use what its options name.
void require_named(const job& j, const std::vector<found_world>& found, const std::string& key) {
    const auto bad = std::ranges::find_if(found, [](const found_world& w) { return w.named && !w.trouble.empty(); });
    if (bad == found.end()) return;
    const bool all = std::ranges::all_of(found, [&](const found_world& w) { return w.trouble == bad->trouble; });
    const auto rank = bad - found.begin();
    throw input_error((all ? "" : "rank " + std::to_string(rank) + " on " + j.members()[rank].host + ": ") +
                      bad->trouble + "; what is named must be there: name another, or leave " + key +
                      " empty, and the job takes what it finds");
}

/// Opens a transport's world on every rank that can. Collective.
/// Returns, by rank, why it is not reached from here; if that is all empty on one rank, it is so on all.
/// Err: input_error, as require_named().
template <class World>
std::vector<std::string> open_world(const job& j, std::shared_ptr<World>& place, const opening& how,
                                    const std::function<std::shared_ptr<World>()>& make) {
    std::shared_ptr<World> world;
    std::string mine;
    try {
        world = make();
        mine = to_wire(found_world{"", world->kind(), world->address(), how.named});
    } catch (const std::exception& e) {
        mine = to_wire(found_world{e.what(), "", "", how.named});
    }
    std::vector<found_world> found;
    std::vector<std::string> addresses;
    for (const std::string& bytes : j.gather(mine)) {
        found.push_back(from_wire<found_world>(bytes));
        addresses.push_back(found.back().address);
        j.core().networks.greet = j.core().networks.greet || found.back().trouble.empty();
    }
    require_named(j, found, how.key);

    const auto named = [](std::size_t rank) { return "rank " + std::to_string(rank); };
    const auto own = static_cast<std::size_t>(j.rank());
    std::vector<std::string> why_not(addresses.size());
    for (std::size_t r = 0; r < addresses.size(); ++r) {
        if (r == own) continue;
        const std::size_t lacking = found[own].trouble.empty() ? r : own;
        if (!found[lacking].trouble.empty())
            why_not[r] = named(lacking) + ": " + found[lacking].trouble;
        else if (found[r].kind != found[own].kind)
            why_not[r] = named(std::max(r, own)) + " found " + found[std::max(r, own)].kind + ", " +
                         named(std::min(r, own)) + " " + found[std::min(r, own)].kind + "; name one (" + how.options +
                         ")";
        if (!why_not[r].empty()) addresses[r].clear();
    }
    j.collectively([&] {
        if (!world) return;
        world->connect(addresses, j.rank());
        place = std::move(world);
    });
    return why_not;
}

std::vector<std::string> open_verbs(const job& j) {
    const verbs_options& options = j.options().verbs;
    return open_world<verbs_world>(j, j.core().networks.verbs,
                                   {"verbs_device, verbs_port", "verbs_device", !options.device.empty()},
                                   [&] { return std::make_shared<verbs_world>(options, j.options().link_timeout); });
}

/// `address`: of this host, for providers over IP.
std::vector<std::string> open_ofi(const job& j, const std::string& address) {
    const std::string& provider = j.options().ofi_provider;
    std::vector<std::string> why_not =
        open_world<ofi_world>(j, j.core().networks.ofi, {"ofi_provider", "ofi_provider", !provider.empty()},
                              [&] { return std::make_shared<ofi_world>(provider, address); });
    if (!j.core().networks.greet) return why_not;
    const std::shared_ptr<ofi_world>& world = j.core().networks.ofi;
    const auto mapped = j.gather(!world || world->has_mapped_all() ? "all" : "");
    if (world && std::ranges::count(mapped, "all") == j.ranks()) world->remove_name();
    return why_not;
}

} // namespace

void open_networks(const job& j, bool one_node, const std::string& address, refusals& refused) {
    for (const std::string& t : j.options().transports) {
        if (j.ranks() == 1 || (t == "shm" && one_node) || (t == "mpi" && j.core().networks.mpi)) break;
        if (t != "verbs" && t != "ofi") continue;
        refused.networks[t] = t == "verbs" ? open_verbs(j) : open_ofi(j, address);
        if (std::ranges::all_of(refused.networks[t], &std::string::empty)) break;
    }
}

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
