// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job join: they swap business cards, connect, and choose the transport of each pair.
#include "bootstrap.hpp"

#include "business_card.hpp"
#include "control/descriptor.hpp"
#include "control/socket_plane.hpp"
#include "control/wire.hpp"
#include "environment.hpp"
#include "measure/measure_at_start.hpp"
#include "mpi/world.hpp"
#include "network/worlds.hpp"
#include "watchdog.hpp"

#include <halocline/base/check.hpp>
#include <halocline/comm/processors.hpp>

#include <algorithm>
#include <map>

namespace halocline::comm {
namespace {

/// Err: input_error, the same on every rank, if a rank can't map the slabs of its node, or can't open as many
/// descriptors as it takes to meet the others: a socket per rank; within its node also a pidfd and, for a moment, a
/// slab.
void check_limits(const std::vector<business_card>& cards, std::size_t slab_bytes) {
    const auto who = [&](std::size_t rank) { return "rank " + std::to_string(rank) + " on " + cards[rank].host; };
    constexpr std::uint64_t descriptors_to_spare = 2; // a slab, a listening socket or a connection that will be refused
    std::map<std::string_view, std::uint64_t> ranks_on;
    for (const business_card& c : cards) ++ranks_on[c.node];
    for (std::size_t r = 0; r < cards.size(); ++r) {
        const std::uint64_t others = ranks_on[cards[r].node] - 1;
        const std::uint64_t needed = cards.size() > 1 ? cards.size() - 1 + others + descriptors_to_spare : 0;
        if (needed > cards[r].descriptor_room)
            throw input_error(who(r) + " may open " + std::to_string(cards[r].descriptor_room) +
                              " files more, but to meet the other ranks of the job takes " + std::to_string(needed) +
                              "; raise 'ulimit -n'");
        // The last slab that is mapped needs room to be aligned in.
        const std::uint64_t room = cards[r].address_room, spare = slab_mapping::room_to_align;
        if (others <= (room > spare ? room - spare : 0) / slab_bytes) continue;
        throw input_error(who(r) + " can map " + std::to_string(room >> 20) + " MiB more, but the slabs of the " +
                          std::to_string(others) + " other ranks there take " +
                          std::to_string((others * slab_bytes + spare) >> 20) + " MiB of address space; " +
                          limit_remedy("-v"));
    }
}

/// The other ranks, as seen from this one.
struct surroundings {
    std::vector<peer_address> near;      // on this node
    std::vector<far_address> far;        // on other nodes; their endpoints are not known yet
    std::vector<std::string> why_no_shm; // by rank
};

/// Sorts the other ranks into near and far ones, and enters all of them in core.members.
surroundings sort_by_node(job_core& core, const std::vector<business_card>& cards) {
    const business_card& mine = cards[core.rank];
    surroundings around{{}, {}, std::vector<std::string>(cards.size())};
    std::vector<std::string> nodes;
    for (int r = 0; r < core.ranks; ++r) {
        const business_card& c = cards[r];
        core.members[r].pid = c.pid;
        core.members[r].host = c.host;
        const auto known = std::ranges::find(nodes, c.node);
        core.members[r].node = static_cast<int>(known - nodes.begin());
        if (known == nodes.end()) nodes.push_back(c.node);
        if (r == core.rank) continue;
        if (c.node != mine.node) {
            around.why_no_shm[r] = core.name_of(r) + " is on another node or in another network namespace";
            around.far.push_back({r, ""});
            continue;
        }
        around.near.push_back({r, c.socket_name, c.pids == mine.pids ? c.pid : 0});
    }
    return around;
}

/// Decides this rank's share of processors and of their time, over all ranks of one kernel: nodes may share both, if
/// they are containers or parts of a host.
void share_processors(job_core& core, const std::vector<business_card>& cards) {
    const business_card& mine = cards[core.rank];
    std::vector<std::vector<int>> usable;
    std::vector<processor_share> shares;
    std::size_t own = 0;
    for (const business_card& c : cards) {
        if (c.kernel != mine.kernel) continue;
        if (&c == &mine) own = usable.size();
        usable.push_back(c.share.processors);
        shares.push_back(c.share);
    }
    core.processor = one_processor_each(usable)[own];
    core.spin = {core.options, core.processor >= 0, exceeded_quotas(shares)[own]};
}

std::string wanted_network(const job_options& options) {
    return options.network.empty() ? short_variable("NETWORK") : options.network;
}

/// Where this rank waits for the ranks of other nodes.  Pre: there are other nodes.
std::string far_address_of(const job_options& options, const std::vector<business_card>& cards, int rank) {
    std::vector<std::string> names; // of nodes
    std::vector<std::vector<host_address>> nodes;
    std::size_t own = 0;
    bool one_network = true;
    for (const business_card& c : cards) {
        const auto known = std::find(names.begin(), names.end(), c.node);
        if (&c == &cards[rank]) own = static_cast<std::size_t>(known - names.begin());
        one_network = one_network && c.network == cards[0].network;
        if (known != names.end()) continue;
        names.push_back(c.node);
        nodes.push_back(c.addresses);
    }
    const std::string wanted = wanted_network(options);
    if (one_network && wanted.empty()) return "127.0.0.1";
    return meeting_address(wanted, nodes, own);
}

/// Where the ranks of other nodes find this one.
struct far_side {
    std::string address = "127.0.0.1";    // of this host
    std::optional<tcp_listener> listener; // none if there is only one node
};

/// Every rank listens for those of other nodes, or all learn why one can't; fills in the endpoints of `far`.
/// Collective.
far_side listen_for_far(const bootstrap& start, const job_core& core, const std::vector<business_card>& cards,
                        std::vector<far_address>& far) {
    far_side own;
    if (far.empty()) return own;
    std::string name, trouble;
    try {
        own.address = far_address_of(core.options, cards, start.rank);
        own.listener.emplace(own.address, std::min(start.ranks + 16, 1024));
        name = own.listener->name();
    } catch (const std::exception& e) {
        trouble = e.what();
    }
    std::vector<std::string> names;
    for (const std::string& bytes : start.gather(wire_writer().text(trouble).text(name).take())) {
        wire_reader reader(bytes);
        trouble = reader.text();
        if (!trouble.empty()) throw input_error(core.name_of(static_cast<int>(names.size())) + ": " + trouble);
        names.push_back(reader.text());
    }
    for (far_address& f : far) f.endpoint = names[f.rank];
    return own;
}

/// Tells the ranks of other nodes why this one gives up before it has met them.
void tell_far_end(job_core& core, far_side far, const surroundings& around, const std::string& secret) {
    if (!far.listener) return;
    try {
        socket_plane(core, unix_listener(1), {}, secret).tell_end(std::move(*far.listener), around.far, secret);
    } catch (const error&) { // this rank reports the first one
    }
}

/// Connects this rank with all others; from here on they exchange mail and watch each other. Collective.
void connect_ranks(job_core& core, unix_listener listener, far_side far, const surroundings& around,
                   const std::string& secret) {
    std::unique_ptr<socket_plane> plane;
    try {
        plane = std::make_unique<socket_plane>(core, std::move(listener), around.near, secret);
    } catch (const error&) { // the record of failure says which
        tell_far_end(core, std::move(far), around, secret);
        throw;
    }
    socket_plane& sockets = *plane;
    core.setup_mail = plane.get();
    core.alive = std::move(plane);
    if (far.listener) sockets.connect_far(std::move(*far.listener), around.far, secret);
}

} // namespace

std::shared_ptr<job_core> join(bootstrap start, const job_options& options) {
    if (start.mpi) start.mpi->use(options.mpi);
    std::chrono::milliseconds grace{};
    std::shared_ptr<node_slab> memory;
    std::optional<unix_listener> listener;
    std::string trouble;
    try {
        (void)default_checks(); // reports a bad variable now, on all ranks, not when the first plan is made
        grace = watchdog::grace_of_environment();
        (void)stall_watch::time_of_environment();
        if (const std::string network = wanted_network(options); !network.empty()) check_network(network);
        // Sockets and processes of the other ranks, and what networks and the program open.
        if (start.ranks > 1) make_descriptor_room(64 + 4 * static_cast<std::uint64_t>(start.ranks));
        listener.emplace(start.ranks);
        memory = std::make_shared<node_slab>(options.slab_bytes);
    } catch (const error& e) {
        trouble = e.what();
    }

    const std::string name = listener ? listener->name() : "";
    const std::vector<business_card> cards = swap_cards(start, own_card(start, options, name, trouble));
    check_limits(cards, memory->bytes());
    auto core = std::make_shared<job_core>(start.rank, start.ranks, options, start.launcher, std::move(memory));
    core->networks.mpi = start.mpi;
    if (start.mpi) start.mpi->tell_calls(&core->own_activity);
    surroundings around = sort_by_node(*core, cards);
    check_transport_names(options.transports, core->networks.mpi != nullptr, start.ranks);
    const int ranks_here = static_cast<int>(around.near.size()) + 1;
    share_processors(*core, cards);

    far_side far = listen_for_far(start, *core, cards, around.far);
    const std::string address = far.address;
    connect_ranks(*core, std::move(*listener), std::move(far), around, cards[0].secret);
    // MPI launchers end all ranks as soon as they see one die.
    if (start.ranks > 1 && grace.count() > 0)
        core->own_watchdog =
            std::make_unique<watchdog>(*core, grace, start.launcher != local_launcher, start.launcher_end);

    const job j(core);
    refusals refused{std::move(around.why_no_shm), {}};
    open_networks(j, ranks_here == start.ranks, address, refused);
    j.collectively([&] { core->choose_transports(refused); });
    if (start.rank == 0) core->tell_passed_over(refused);
    core->compare_transports();
    measure_at_start(j);
    return core;
}

} // namespace halocline::comm
