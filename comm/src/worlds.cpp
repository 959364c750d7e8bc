// SPDX-License-Identifier: Apache-2.0
#include "worlds.hpp"

#include "wire.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace halocline::comm {
namespace {

/// Opens a transport's world on every rank, or on none. Collective.  Returns why not.
/// `option` is what decides on the kind that all ranks must have alike.
template <class World>
std::string open_world(const job& j, std::shared_ptr<World>& place, const std::string& option,
                       const std::function<std::shared_ptr<World>()>& make) {
    std::shared_ptr<World> world;
    std::string mine, why_not;
    try {
        world = make();
        mine = wire_writer().text("").text(world->kind()).text(world->address()).take();
    } catch (const std::exception& e) {
        mine = wire_writer().text(e.what()).text("").text("").take();
    }
    std::vector<std::string> addresses, kinds;
    for (const std::string& bytes : j.gather(mine)) {
        wire_reader reader(bytes);
        const std::string trouble = reader.text();
        const std::string who = "rank " + std::to_string(addresses.size()) + ": ";
        kinds.push_back(reader.text());
        addresses.push_back(reader.text());
        if (!why_not.empty()) continue;
        if (!trouble.empty()) {
            why_not = who + trouble;
        } else if (kinds.back() != kinds.front()) {
            why_not = who + "found " + kinds.back() + ", rank 0 " + kinds.front() + "; name one (" + option + ")";
        }
    }
    j.collectively([&] {
        if (!why_not.empty()) return;
        world->connect(addresses, j.rank());
        place = std::move(world);
    });
    return why_not;
}

std::string open_verbs(const job& j) {
    return open_world<verbs_world>(j, j.core().verbs, "verbs_device, verbs_port",
                                   [&] { return std::make_shared<verbs_world>(j.options().verbs); });
}

/// `address`: of this host, for providers over IP.
std::string open_ofi(const job& j, const std::string& address) {
    std::string why_not = open_world<ofi_world>(j, j.core().ofi, "ofi_provider", [&] {
        return std::make_shared<ofi_world>(j.options().ofi_provider, address);
    });
    if (!why_not.empty()) return why_not;
    const ofi_world& world = *j.core().ofi;
    const auto mapped = j.gather(world.has_mapped_all() ? "all" : "");
    if (std::ranges::count(mapped, "all") == j.ranks()) world.remove_name();
    return why_not;
}

} // namespace

void open_networks(const job& j, bool one_node, const std::string& address, refusals& refused) {
    for (const std::string& t : j.options().transports) {
        if (j.ranks() == 1 || (t == "shm" && one_node) || (t == "mpi" && j.core().mpi)) break;
        if (t == "verbs" && (refused.for_all[t] = open_verbs(j)).empty()) break;
        if (t == "ofi" && (refused.for_all[t] = open_ofi(j, address)).empty()) break;
    }
}

} // namespace halocline::comm
