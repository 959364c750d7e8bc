// SPDX-License-Identifier: Apache-2.0
#include "bootstrap.hpp"

#include "control/descriptor.hpp"
#include "control/host_addresses.hpp"
#include "control/socket_plane.hpp"
#include "control/wire.hpp"
#include "mpi/world.hpp"
#include "network/worlds.hpp"
#include "witness.hpp"

#include <halocline/comm/bad_input.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <sched.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

namespace halocline::comm {
namespace {

std::string first_line(const char* path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

/// Same text: same kernel, which numbers the cores and says who runs on them.
std::string kernel_id() { return first_line("/proc/sys/kernel/random/boot_id"); }

/// Same text: same kernel and same network namespace, so abstract sockets and descriptors get through.
std::string network_id() {
    char ns[128]{};
    if (readlink("/proc/self/ns/net", ns, sizeof ns - 1) < 0) ns[0] = '?';
    return kernel_id() + " " + ns;
}

std::string from_environment(const char* variable) {
    const char* text = std::getenv(variable);
    return text == nullptr ? "" : text;
}

/// Bytes of address space that this process may still map.
std::uint64_t address_room() {
    rlimit space{};
    if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY)
        return std::numeric_limits<std::uint64_t>::max();
    std::uint64_t pages = 0; // that are mapped
    std::ifstream("/proc/self/statm") >> pages;
    const std::uint64_t mapped = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return space.rlim_cur > mapped ? space.rlim_cur - mapped : 0;
}

std::string random_secret() {
    std::string s(32, '\0');
    if (getrandom(s.data(), s.size(), 0) != static_cast<ssize_t>(s.size())) throw error("getrandom gives no secret");
    return s;
}

/// As the halo layer and config files name it.
std::string path_text(const job_options& o) {
    const std::string writing = o.streaming == streaming::always  ? "streamed"
                                : o.streaming == streaming::never ? "direct"
                                                                  : "automatic";
    return o.in_place ? writing : writing == "automatic" ? "packed" : "packed, " + writing;
}

std::string options_text(const job_options& o) {
    std::string s = "transports";
    for (const std::string& t : o.transports) s += " " + t;
    return s + ", deadline " + std::to_string(o.deadline.count()) + " ms, slab " + std::to_string(o.slab_bytes) +
           " bytes" + ", link timeout " + std::to_string(o.link_timeout.count()) + " ms" + ", path " + path_text(o) +
           (o.ofi_provider.empty() ? "" : ", ofi provider " + o.ofi_provider) +
           (o.mpi == mpi_mode::one_sided ? ", mpi one-sided" : ", mpi two-sided") + (o.checksums ? ", checksums" : "");
}

[[noreturn]] void disagree(const char* what, const std::string& of_0, int rank, const std::string& theirs) {
    throw input_error("ranks disagree on " + std::string(what) + ": rank 0 has '" + of_0 + "', rank " +
                      std::to_string(rank) + " has '" + theirs + "'");
}

/// What each rank tells the others at first.
struct card {
    std::string version, options;
    std::string kernel;  ///< kernel_id()
    std::string network; ///< network_id()
    std::string node; ///< the same, and what HALOCLINE_NODE says: parts of one host that are to be nodes of their own
    std::string host, door, secret;
    std::string trouble;        ///< bad input, or why this rank has no slab; "": none
    std::uint64_t address_room; ///< for those of the other ranks of its node
    std::uint64_t descriptor_room;
    int pid = 0;
    cpu_set_t cores;
    std::vector<host_address> addresses;

    [[nodiscard]] std::string written() const {
        wire_writer w;
        for (const std::string* s : {&version, &options, &kernel, &network, &node, &host, &door, &secret, &trouble})
            w.text(*s);
        w.number(address_room).number(descriptor_room).number(pid).number(cores);
        for (const host_address& a : addresses) w.text(a.interface).text(a.address).text(a.network);
        return w.take();
    }
    /// Err: input_error if rank 0, whose version that is, has another: the rest might be laid out otherwise.
    static card read(std::string_view bytes, int rank, const std::string& version_of_0) {
        wire_reader r(bytes);
        card c;
        c.version = r.text();
        if (c.version != version_of_0) disagree("the version of halocline", version_of_0, rank, c.version);
        for (std::string* s : {&c.options, &c.kernel, &c.network, &c.node, &c.host, &c.door, &c.secret, &c.trouble})
            *s = r.text();
        c.address_room = r.number<std::uint64_t>();
        c.descriptor_room = r.number<std::uint64_t>();
        c.pid = r.number<int>();
        c.cores = r.number<cpu_set_t>();
        while (!r.empty()) {
            host_address& a = c.addresses.emplace_back();
            for (std::string* s : {&a.interface, &a.address, &a.network}) *s = r.text();
        }
        return c;
    }
};

/// Where this rank waits for the ranks of other nodes; "" if there is one node.
std::string far_address_of(const job_options& options, const std::vector<card>& cards, int rank) {
    std::vector<std::string> names; // of nodes
    std::vector<std::vector<host_address>> nodes;
    std::size_t own = 0;
    bool one_network = true;
    for (const card& c : cards) {
        const auto known = std::find(names.begin(), names.end(), c.node);
        if (&c == &cards[static_cast<std::size_t>(rank)]) own = static_cast<std::size_t>(known - names.begin());
        one_network = one_network && c.network == cards[0].network;
        if (known != names.end()) continue;
        names.push_back(c.node);
        nodes.push_back(c.addresses);
    }
    if (nodes.size() == 1) return "";
    const std::string wanted = options.network.empty() ? from_environment("HALOCLINE_NETWORK") : options.network;
    if (one_network && wanted.empty()) return "127.0.0.1";
    return meeting_address(wanted, nodes, own);
}

/// `door`: where the ranks of this node knock.
card own_card(const bootstrap& start, const job_options& options, const std::string& door, const std::string& trouble) {
    const std::string network = network_id();
    const std::string part = from_environment("HALOCLINE_NODE");
    card mine{HALOCLINE_VERSION,
              options_text(options),
              kernel_id(),
              network,
              network + " " + part,
              host_name() + (part.empty() ? "" : "/" + part),
              door,
              start.rank == 0 ? random_secret() : "",
              trouble,
              address_room(),
              descriptor_room(),
              static_cast<int>(getpid()),
              {},
              host_addresses()};
    CPU_ZERO(&mine.cores);
    sched_getaffinity(0, sizeof mine.cores, &mine.cores);
    return mine;
}

/// Err: input_error, the same on every rank, if one is in trouble.
void refuse_trouble(const std::vector<card>& cards) {
    const auto troubled = std::ranges::find_if(cards, [](const card& c) { return !c.trouble.empty(); });
    if (troubled == cards.end()) return;
    const bool all = std::ranges::all_of(cards, [&](const card& c) { return c.trouble == troubled->trouble; });
    throw input_error((all ? "" : "rank " + std::to_string(troubled - cards.begin()) + " on " + troubled->host + ": ") +
                      troubled->trouble);
}

/// The cards of all ranks, by rank. Collective.  Err: input_error if they disagree on the job, or one is in trouble.
std::vector<card> swap_cards(const bootstrap& start, const card& mine) {
    std::vector<card> cards;
    const std::vector<std::string> written = start.gather(mine.written());
    for (int r = 0; r < start.ranks; ++r) cards.push_back(card::read(written[r], r, wire_reader(written[0]).text()));
    refuse_trouble(cards); // first: a rank with bad input has no options
    for (int r = 0; r < start.ranks; ++r) {
        if (cards[r].options != cards[0].options)
            disagree("the options of the job", cards[0].options, r, cards[r].options);
    }
    return cards;
}

/// Err: input_error, the same on every rank, if one can't map those of its node, or can't have as many
/// descriptors as it takes to meet the others: a socket per rank; within its node a pidfd, too, and for a moment a slab.
void check_limits(const std::vector<card>& cards, std::size_t slab_bytes) {
    const auto who = [&](std::size_t rank) { return "rank " + std::to_string(rank) + " on " + cards[rank].host; };
    constexpr std::uint64_t descriptors_to_spare = 2; // a slab, a door or a stranger
    std::map<std::string_view, std::uint64_t> ranks_on;
    for (std::size_t r = 0; r < cards.size(); ++r) {
        ++ranks_on[cards[r].node];
    }
    for (std::size_t r = 0; r < cards.size(); ++r) {
        const std::uint64_t others = ranks_on[cards[r].node] - 1;
        const std::uint64_t needed = cards.size() > 1 ? cards.size() - 1 + others + descriptors_to_spare : 0;
        if (needed > cards[r].descriptor_room)
            throw input_error(who(r) + " may open " + std::to_string(cards[r].descriptor_room) +
                              " files more, but to meet the other ranks of the job takes " + std::to_string(needed) +
                              "; raise 'ulimit -n'");
        if (others <= cards[r].address_room / slab_bytes) continue;
        throw input_error(who(r) + " can map " + std::to_string(cards[r].address_room >> 20) +
                          " MiB more, but the slabs of the " + std::to_string(others) + " other ranks there take " +
                          std::to_string(others * slab_bytes >> 20) + " MiB of address space; " + smaller_slab("-v"));
    }
}

/// The other ranks, as seen from this one.
struct surroundings {
    std::vector<peer_address> near;      // on this node
    std::vector<far_address> far;        // on others; their doors are not known yet
    std::vector<std::string> why_no_shm; // by rank
};

/// Also enters all ranks in core.members.
surroundings sort_by_node(job_core& core, const std::vector<card>& cards) {
    const card& mine = cards[static_cast<std::size_t>(core.rank)];
    surroundings around{{}, {}, std::vector<std::string>(cards.size())};
    std::vector<std::string> nodes;
    for (int r = 0; r < core.ranks; ++r) {
        const card& c = cards[r];
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
        around.near.push_back({r, c.door, c.pid});
    }
    return around;
}

/// Nodes may share cores: containers, parts of a host.
spinning spinning_among(const std::vector<card>& cards, const card& mine, const job_options& options) {
    int ranks = 0;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (const card& c : cards) {
        if (c.kernel != mine.kernel) continue;
        ++ranks;
        CPU_OR(&cores, &cores, &c.cores);
    }
    return {options, ranks, CPU_COUNT(&cores)};
}

/// Where the ranks of other nodes find this one.
struct far_side {
    std::string address = "127.0.0.1"; // of this host
    std::optional<far_door> door;      // none if there is one node
};

/// Every rank opens a door, or all learn why not; enters the doors of `far`. Collective.
far_side open_far_door(const bootstrap& start, const job_core& core, const std::vector<card>& cards,
                       std::vector<far_address>& far) {
    far_side own;
    if (std::all_of(cards.begin(), cards.end(), [&](const card& c) { return c.node == cards[0].node; })) return own;
    std::string name, trouble;
    try {
        own.address = far_address_of(core.options, cards, start.rank);
        own.door.emplace(own.address, std::min(start.ranks + 16, 1024));
        name = own.door->name();
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
    for (far_address& f : far) f.door = names[f.rank];
    return own;
}

/// Connects this rank with all others; from here on they exchange mail and watch each other. Collective.
void connect_ranks(job_core& core, listener door, far_side far, const surroundings& around, const std::string& secret) {
    auto plane = std::make_unique<socket_plane>(core, std::move(door), around.near, secret);
    socket_plane& sockets = *plane;
    core.post = plane.get();
    core.watch = std::move(plane);
    if (far.door) sockets.connect_far(std::move(*far.door), around.far, secret);
}

} // namespace

std::shared_ptr<job_core> join(bootstrap start, const job_options& options) {
    if (start.mpi) start.mpi->use(options.mpi);
    const std::chrono::milliseconds grace = witness::grace_of_environment();
    std::shared_ptr<node_slab> memory;
    std::string trouble;
    try {
        memory = std::make_shared<node_slab>(options.slab_bytes);
    } catch (const error& e) {
        trouble = e.what();
    }

    listener door(start.ranks);
    const std::vector<card> cards = swap_cards(start, own_card(start, options, door.name(), trouble));
    check_limits(cards, memory ? memory->bytes() : 0);
    auto core = std::make_shared<job_core>(start.rank, start.ranks, options, start.launcher, std::move(memory));
    core->mpi = start.mpi;
    surroundings around = sort_by_node(*core, cards);
    check_transport_names(options.transports, core->mpi != nullptr, start.ranks);
    const int ranks_here = static_cast<int>(around.near.size()) + 1;
    core->spin = spinning_among(cards, cards[static_cast<std::size_t>(start.rank)], options);

    far_side far = open_far_door(start, *core, cards, around.far);
    const std::string address = far.address;
    connect_ranks(*core, std::move(door), std::move(far), around, cards[0].secret);
    // The MPIs' launchers end all ranks as soon as they see one die.
    if (start.ranks > 1 && grace.count() > 0)
        core->guard = std::make_unique<witness>(*core, grace, start.launcher != local_launcher);

    const job j(core);
    refusals refused{std::move(around.why_no_shm), {}};
    open_networks(j, ranks_here == start.ranks, address, refused);
    j.collectively([&] { core->choose_transports(refused); });
    return core;
}

void share_bad_input(std::string_view what) {
    std::optional<bootstrap> start;
    try {
        const job_options unknown;
        start = local_bootstrap(unknown);
        const bool ended_by_launcher = std::getenv("PMIX_RANK") != nullptr;
        if (!start && !ended_by_launcher) start = mpi_bootstrap(unknown);
    } catch (const input_error&) { // no job to be joined either; of the two, `what` is the user's
    }
    if (start) refuse_trouble(swap_cards(*start, own_card(*start, {}, "", std::string(what))));
    throw input_error(std::string(what));
}

job job::from_environment(const job_options& options) {
    const std::string wanted =
        options.bootstrap.empty() ? comm::from_environment("HALOCLINE_BOOTSTRAP") : options.bootstrap;
    struct way {
        const char* name;
        const char* started_by;
        std::optional<bootstrap> (*start)(const job_options&);
    };
    static constexpr way ways[]{{"local", "halocline-run", local_bootstrap},
                                {"pmix", "a launcher with a PMIx server (PMIX_RANK is not set)", pmix_bootstrap},
                                {"mpi", "the launcher of an MPI", mpi_bootstrap}};
    if (!wanted.empty()) {
        for (const way& w : ways) {
            if (wanted != w.name) continue;
            if (wanted == "pmix" && !pmix_is_built()) {
                throw input_error("bootstrap 'pmix' is not built in; install libpmix-dev and configure again");
            }
            if (auto start = w.start(options)) return job(join(std::move(*start), options));
            throw input_error("bootstrap '" + wanted + "': this program was not started by " + w.started_by);
        }
        throw input_error("unknown bootstrap '" + wanted + "'; known are local, pmix, mpi");
    }
    const auto& t = options.transports;
    const bool without_mpi = std::find(t.begin(), t.end(), "mpi") == t.end();
    for (const way& w : ways) {
        if (w.start == pmix_bootstrap && !without_mpi) continue; // transport mpi needs MPI's world
        if (auto start = w.start(options)) return job(join(std::move(*start), options));
    }
    return single(options);
}

job job::from_mpi_handle(const void* communicator, std::size_t bytes, const job_options& options) {
    return job(join(mpi_bootstrap(communicator, bytes, options), options));
}

} // namespace halocline::comm
