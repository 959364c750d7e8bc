// SPDX-License-Identifier: Apache-2.0
#include "bootstrap.hpp"

#include "ofi_world.hpp"
#include "socket_plane.hpp"
#include "wire.hpp"

#include <fstream>
#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

namespace halocline::comm {
namespace {

std::string first_line(const char* path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

/// Same text: same kernel and same network namespace, so abstract sockets and descriptors get through.
std::string node_id() {
    char ns[128]{};
    if (readlink("/proc/self/ns/net", ns, sizeof ns - 1) < 0) ns[0] = '?';
    return first_line("/proc/sys/kernel/random/boot_id") + " " + ns;
}

std::string random_secret() {
    std::string s(32, '\0');
    if (getrandom(s.data(), s.size(), 0) != static_cast<ssize_t>(s.size())) throw error("getrandom gives no secret");
    return s;
}

std::string options_text(const job_options& o) {
    std::string s = "transports";
    for (const std::string& t : o.transports) s += " " + t;
    return s + ", deadline " + std::to_string(o.deadline.count()) + " ms, slab " + std::to_string(o.slab_bytes) + " bytes" +
           (o.ofi_provider.empty() ? "" : ", ofi provider " + o.ofi_provider);
}

/// What each rank tells the others at first.
struct card {
    std::string options, node, host, door, secret;
    int pid = 0;
    cpu_set_t cores;

    [[nodiscard]] std::string written() const {
        wire_writer w;
        w.text(options).text(node).text(host).text(door).text(secret).number(pid).number(cores);
        return w.take();
    }
    static card read(std::string_view bytes) {
        wire_reader r(bytes);
        card c;
        c.options = r.text();
        c.node = r.text();
        c.host = r.text();
        c.door = r.text();
        c.secret = r.text();
        c.pid = r.number<int>();
        c.cores = r.number<cpu_set_t>();
        return c;
    }
};

/// Opens libfabric on every rank, or on none. Collective.  Returns why not.
std::string open_ofi(const job& j, bool one_node) {
    std::shared_ptr<ofi_world> world;
    std::string mine, why_not;
    try {
        world = std::make_shared<ofi_world>(j.options().ofi_provider, one_node);
        mine = wire_writer().text("").text(world->provider()).text(world->address()).take();
    } catch (const std::exception& e) {
        mine = wire_writer().text(e.what()).text("").text("").take();
    }
    std::vector<std::string> addresses, providers;
    for (const std::string& bytes : j.gather(mine)) {
        wire_reader reader(bytes);
        const std::string trouble = reader.text();
        const std::string who = "rank " + std::to_string(addresses.size()) + ": ";
        providers.push_back(reader.text());
        addresses.push_back(reader.text());
        if (!why_not.empty()) continue;
        if (!trouble.empty()) {
            why_not = who + trouble;
        } else if (providers.back() != providers.front()) {
            why_not = who + "libfabric chose " + providers.back() + ", on rank 0 " + providers.front() +
                      "; name one (job_options::ofi_provider)";
        }
    }
    j.collectively([&] {
        if (!why_not.empty()) return;
        world->connect(addresses, j.rank());
        j.core().ofi = std::move(world);
    });
    return why_not;
}

} // namespace

std::shared_ptr<job_core> join(bootstrap start, const job_options& options) {
    auto core = std::make_shared<job_core>(start.rank, start.ranks, options, start.launcher,
                                           std::make_shared<node_slab>(options.slab_bytes));
    core->mpi = start.mpi;
    listener door(start.ranks);
    card mine{options_text(options), node_id(), host_name(), door.name(), start.rank == 0 ? random_secret() : "",
              static_cast<int>(getpid()), {}};
    CPU_ZERO(&mine.cores);
    sched_getaffinity(0, sizeof mine.cores, &mine.cores);

    std::vector<card> cards;
    for (const std::string& bytes : start.gather(mine.written())) cards.push_back(card::read(bytes));
    std::vector<peer_address> peers;
    std::vector<std::string> why_no_shm(cards.size());
    cpu_set_t cores = mine.cores;
    int ranks_here = 1;
    for (int r = 0; r < start.ranks; ++r) {
        const card& c = cards[r];
        if (c.options != cards[0].options) {
            throw input_error("ranks disagree on the options of the job: rank 0 has '" + cards[0].options + "', rank " +
                              std::to_string(r) + " has '" + c.options + "'");
        }
        core->members[r].pid = c.pid;
        core->members[r].host = c.host;
        if (r == start.rank) continue;
        if (c.node != mine.node) {
            why_no_shm[r] = core->name_of(r) + " is on another node or in another network namespace";
            continue;
        }
        peers.push_back({r, c.door, c.pid});
        CPU_OR(&cores, &cores, &c.cores);
        ++ranks_here;
    }
    check_transport_names(options.transports, core->mpi != nullptr, start.ranks);
    core->spin_polls = options.spin_polls > 0 ? options.spin_polls : (ranks_here <= CPU_COUNT(&cores) ? 2000 : 50);

    auto plane = std::make_unique<socket_plane>(*core, std::move(door), peers, cards[0].secret);
    if (ranks_here == start.ranks) {
        core->post = plane.get();
    } else {
        core->far_mail = mpi_mail(*core);
        core->post = core->far_mail.get();
    }
    core->watch = std::move(plane);
    const job j(core);
    refusals refused{std::move(why_no_shm), {}};
    const bool one_node = ranks_here == start.ranks;
    for (const std::string& t : options.transports) {
        // Opened on all ranks or none, and only if some pair of ranks is reached by nothing before it.
        if (start.ranks == 1 || (t == "shm" && one_node) || (t == "mpi" && core->mpi)) break;
        if (t == "ofi" && (refused.for_all[t] = open_ofi(j, one_node)).empty()) break;
    }
    j.collectively([&] { core->choose_transports(refused); });
    return core;
}

job job::from_environment(const job_options& options) {
    if (auto start = local_bootstrap(options)) return job(join(std::move(*start), options));
    if (auto start = mpi_bootstrap(options)) return job(join(std::move(*start), options));
    return single(options);
}

job job::from_mpi_handle(const void* communicator, std::size_t bytes, const job_options& options) {
    return job(join(mpi_bootstrap(communicator, bytes, options), options));
}

} // namespace halocline::comm
