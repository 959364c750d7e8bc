// SPDX-License-Identifier: Apache-2.0
// The available transports, and the choice of one for each peer.
#include "job_core.hpp"
#include "mpi/world.hpp"
#include "ofi/world.hpp"
#include "say.hpp"
#include "verbs/world.hpp"

#include <halocline/comm/transport_names.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

namespace halocline::comm {
namespace {

bool always() { return true; }

struct known_transport {
    std::string_view name;
    bool (*built)();
    std::string_view remedy; ///< if it is not available
};
constexpr std::array known_transports{
    known_transport{"self", always, ""},
    known_transport{"shm", always, ""},
    known_transport{"verbs", verbs_is_built, "; install libibverbs-dev and configure again"},
    known_transport{"ofi", ofi_is_built, "; install libfabric-dev and configure again"},
    known_transport{"mpi", always, ""},
    known_transport{"mock", always, ""},
};

std::string joined(const std::vector<std::string>& words, std::string_view between) {
    std::string s;
    for (const std::string& w : words) s.append(s.empty() ? "" : between).append(w);
    return s;
}

/// The command line of this process, its words joined by blanks: a hint for people, not quoted for a shell.
std::string command_line() {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    std::string all((std::istreambuf_iterator<char>(file)), {});
    if (all.empty()) return "<program> ...";
    all.pop_back();
    std::replace(all.begin(), all.end(), '\0', ' ');
    return all;
}

} // namespace

std::string job_core::why_not(const std::string& transport, int peer, const refusals& refused) const {
    if (transport == "shm") return peer_base[peer] != nullptr ? "" : refused.shm[peer];
    if (transport == "mpi") return networks.mpi ? "" : "this job was not started by an MPI launcher";
    if (const auto it = refused.networks.find(transport); it != refused.networks.end()) return it->second[peer];
    return transport == "self" ? "serves only the own rank" : "";
}

void job_core::choose_transports(const refusals& refused) {
    const bool mock = options.transports == std::vector<std::string>{"mock"};
    for (rank_info& member : members) {
        if (member.rank == rank && !mock) {
            member.transport = "self";
            continue;
        }
        member.transport.clear();
        std::vector<std::string> reasons;
        for (const std::string& t : options.transports) {
            const std::string reason = why_not(t, member.rank, refused);
            if (reason.empty()) {
                member.transport = t;
                break;
            }
            reasons.push_back(t + ": " + reason);
        }
        networks.move_when_asked = networks.move_when_asked || member.transport == "ofi" || member.transport == "mpi";
        member.refused = joined(reasons, "; ");
        if (member.transport.empty()) {
            throw input_error("no transport of [" + joined(options.transports, ", ") + "] reaches " +
                              name_of(member.rank) + " from " + name_of(rank) + " (" + member.refused + ")");
        }
    }
}

void job_core::tell_passed_over(const refusals& refused) const {
    const std::vector<std::string>& named = options.transports;
    if (named == default_transports()) return; // nobody asked for one of them
    for (auto t = named.begin(); t != named.end(); ++t) {
        const auto served_later = [&](const rank_info& m) {
            return m.rank != rank && std::find(t + 1, named.end(), m.transport) != named.end();
        };
        const auto peer = std::ranges::find_if(members, served_later);
        if (*t == "self" || *t == "shm" || peer == members.end()) continue;
        if (std::ranges::find(members, *t, &rank_info::transport) != members.end()) continue;
        say("halocline: " + name_of(rank) + ": transport " + *t + " reaches nobody, though it is named before " +
            peer->transport + ": " + why_not(*t, peer->rank, refused));
    }
}

void job_core::compare_transports() {
    const auto sharing = std::ranges::count(members, "shm", &rank_info::transport); // not this rank itself
    const auto all_of = [](const std::string& lower, const std::string& upper, int) {
        std::string both = lower;
        for (std::size_t i = 0; i < both.size(); ++i) both[i] = std::min(lower[i], upper[i]);
        return both;
    };
    const auto letter = [](bool yes) { return yes ? 'y' : 'n'; };
    const std::string all = setup_mail->combine(
        {letter(sharing == ranks - 1), letter(spin.has_own_core() && !spin.rationed()), letter(sharing == 0)}, all_of,
        "every rank's list of transports");
    all_share_memory = all[0] == 'y';
    all_have_own_cores = all[1] == 'y';
    some_share_memory = all[2] == 'n';
}

void check_transport_names(const std::vector<std::string>& names, bool mpi_there, int ranks) {
    std::vector<std::string> built;
    for (const known_transport& k : known_transports) {
        if (k.built()) built.emplace_back(k.name);
    }
    const std::string all = joined(built, ", ");
    bool usable = false;
    for (const std::string& t : names) {
        const auto known = std::find_if(known_transports.begin(), known_transports.end(),
                                        [&](const known_transport& k) { return k.name == t; });
        if (known == known_transports.end()) throw input_error("unknown transport '" + t + "'; known are " + all);
        if (!known->built()) {
            throw input_error("transport '" + t + "' is not built in; this build has " + all +
                              std::string(known->remedy));
        }
        if (std::count(names.begin(), names.end(), t) > 1)
            throw input_error("transport '" + t + "' is named twice in " + joined(names, ", "));
        usable = usable || (t == "mpi" ? mpi_there : t != "self" || ranks == 1);
    }
    if (names.size() > 1 && std::find(names.begin(), names.end(), "mock") != names.end())
        throw input_error("transport 'mock' moves nothing between ranks: it is for benches and tests, and named alone");
    if (names.empty()) throw input_error("no transport was named; known are " + all);
    if (!usable && std::find(names.begin(), names.end(), "mpi") != names.end()) {
        throw input_error("transport 'mpi' needs an MPI launcher: mpirun -n " + std::to_string(ranks) + " " +
                          command_line());
    }
    if (!usable)
        throw input_error("transport 'self' serves only the own rank; " + std::to_string(ranks) +
                          " ranks need another; known are " + all);
}

std::vector<std::string> transport_names() {
    std::vector<std::string> names;
    for (const known_transport& k : known_transports) names.emplace_back(k.name);
    return names;
}

std::vector<std::string> default_transports() {
    std::vector<std::string> names{"shm", "verbs", "mpi", "ofi"};
    std::erase_if(names, [](const std::string& n) {
        return !std::ranges::find(known_transports, n, &known_transport::name)->built();
    });
    return names;
}

} // namespace halocline::comm
