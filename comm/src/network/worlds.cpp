// SPDX-License-Identifier: Apache-2.0
#include "worlds.hpp"

#include "control/wire.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace halocline::comm {
namespace {

/// Opens a transport's world on every rank that can. Collective.
/// `option` is what decides on the kind that two ranks must have alike.
/// Returns by rank why it is not reached from here; if all that is empty on one rank, it is on all.
template <class World>
std::vector<std::string> open_world(const job& j, std::shared_ptr<World>& place, const std::string& option,
                                    const std::function<std::shared_ptr<World>()>& make) {
    std::shared_ptr<World> world;
    std::string mine;
    try {
        world = make();
        mine = wire_writer().text("").text(world->kind()).text(world->address()).take();
    } catch (const std::exception& e) {
        mine = wire_writer().text(e.what()).text("").text("").take();
    }
    std::vector<std::string> troubles, kinds, addresses;
    for (const std::string& bytes : j.gather(mine)) {
        wire_reader reader(bytes);
        for (auto* of_ranks : {&troubles, &kinds, &addresses}) of_ranks->push_back(reader.text());
        j.core().greets = j.core().greets || troubles.back().empty();
    }

    const auto named = [](std::size_t rank) { return "rank " + std::to_string(rank); };
    const auto own = static_cast<std::size_t>(j.rank());
    std::vector<std::string> why_not(addresses.size());
    for (std::size_t r = 0; r < addresses.size(); ++r) {
        if (r == own) continue;
        const std::size_t lacking = troubles[own].empty() ? r : own;
        if (!troubles[lacking].empty())
            why_not[r] = named(lacking) + ": " + troubles[lacking];
        else if (kinds[r] != kinds[own])
            why_not[r] = named(std::max(r, own)) + " found " + kinds[std::max(r, own)] + ", " +
                         named(std::min(r, own)) + " " + kinds[std::min(r, own)] + "; name one (" + option + ")";
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
    return open_world<verbs_world>(j, j.core().verbs, "verbs_device, verbs_port",
                                   [&] { return std::make_shared<verbs_world>(j.options().verbs); });
}

/// `address`: of this host, for providers over IP.
std::vector<std::string> open_ofi(const job& j, const std::string& address) {
    std::vector<std::string> why_not = open_world<ofi_world>(j, j.core().ofi, "ofi_provider", [&] {
        return std::make_shared<ofi_world>(j.options().ofi_provider, address);
    });
    if (!j.core().greets) return why_not;
    const std::shared_ptr<ofi_world>& world = j.core().ofi;
    const auto mapped = j.gather(!world || world->has_mapped_all() ? "all" : "");
    if (world && std::ranges::count(mapped, "all") == j.ranks()) world->remove_name();
    return why_not;
}

} // namespace

void open_networks(const job& j, bool one_node, const std::string& address, refusals& refused) {
    for (const std::string& t : j.options().transports) {
        if (j.ranks() == 1 || (t == "shm" && one_node) || (t == "mpi" && j.core().mpi)) break;
        if (t != "verbs" && t != "ofi") continue;
        refused.networks[t] = t == "verbs" ? open_verbs(j) : open_ofi(j, address);
        if (std::ranges::all_of(refused.networks[t], &std::string::empty)) break;
    }
}

} // namespace halocline::comm
