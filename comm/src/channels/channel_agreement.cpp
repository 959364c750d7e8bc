// SPDX-License-Identifier: Apache-2.0
#include "channel_agreement.hpp"

#include "control/wire_format.hpp"
#include "job/job_core.hpp"

#include <algorithm>
#include <utility>

namespace halocline::comm {
namespace {

/// A rank's description of one of its ends.
struct end_card {
    std::uint32_t key = 0, peer_key = 0;
    std::uint64_t send_bytes = 0, receive_bytes = 0;
    channel_kind kind = channel_kind::slots;
    std::string label;
    end_told told;

    template <class Self, class Pass>
    static void fields(Self& e, Pass& pass) {
        pass(e.key, e.peer_key, e.send_bytes, e.receive_bytes, e.kind, e.label, e.told.card, e.told.note);
    }
};

/// A rank's description of its ends with the reader.
struct set_card {
    std::uint32_t plan_id = 0;
    std::string name, shape, transport;
    std::vector<end_card> ends;

    template <class Self, class Pass>
    static void fields(Self& s, Pass& pass) {
        pass(s.plan_id, s.name, s.shape, s.transport, counted<std::uint64_t>(s.ends));
    }
};

std::uint64_t mixed(std::uint64_t x) { // splitmix64
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

std::string rank_text(int r) { return "rank " + std::to_string(r); }

/// The remedy for two ends that don't match.
constexpr const char* describe_alike =
    "; both ranks must describe the same exchange: the same lattice, cut, widths, choice "
    "of sites and bytes per site";
constexpr const char* same_order = "; make the plans, sums and messengers of a job on all ranks in the same order";

/// `remedy`: what to do if they are not equal.
template <class T>
void require_equal(const std::string& name, std::string_view what, int me, const T& mine, int peer, const T& theirs,
                   const char* remedy) {
    if (mine == theirs) return;
    const auto text = [](const T& value) {
        if constexpr (std::is_same_v<T, std::string>) {
            return "'" + value + "'";
        } else {
            return std::to_string(value);
        }
    };
    throw input_error("'" + name + "': " + std::string(what) + " differs: " + rank_text(me) + " has " + text(mine) +
                      ", " + rank_text(peer) + " has " + text(theirs) + remedy);
}

/// The end of `peer` that belongs to `r`, after comparing sizes.
const end_card& matching_end(const std::string& name, int me, const channel_request& r, const set_card& theirs) {
    const auto it =
        std::find_if(theirs.ends.begin(), theirs.ends.end(), [&](const end_card& e) { return e.key == r.peer_key; });
    const std::string mine = rank_text(me) + " '" + r.label + "'";
    if (it == theirs.ends.end() || it->peer_key != r.key) {
        throw input_error("'" + name + "': " + mine + " (key " + std::to_string(r.key) + ") expects key " +
                          std::to_string(r.peer_key) + " of " + rank_text(r.peer) +
                          (it == theirs.ends.end() ? std::string(", which has no such end")
                                                   : ", which expects key " + std::to_string(it->peer_key)) +
                          describe_alike);
    }
    const std::string other = rank_text(r.peer) + " '" + it->label + "'";
    if (r.send_bytes != it->receive_bytes) {
        throw input_error("'" + name + "': " + mine + " sends " + std::to_string(r.send_bytes) + " bytes, " + other +
                          " expects " + std::to_string(it->receive_bytes) + describe_alike);
    }
    if (r.receive_bytes != it->send_bytes) {
        throw input_error("'" + name + "': " + mine + " expects " + std::to_string(r.receive_bytes) + " bytes, " +
                          other + " sends " + std::to_string(it->send_bytes) + describe_alike);
    }
    if (r.kind != it->kind) {
        const auto is = [](channel_kind kind) { return " " + std::string(description_of(kind)); };
        throw input_error("'" + name + "': " + mine + is(r.kind) + ", " + other + is(it->kind) +
                          "; ask for the same kind on both ranks");
    }
    return *it;
}

/// Why that request can't have a channel of its kind; empty if it can.
std::string obstacle_to(const job& j, const channel_request& r) {
    const std::string& transport = j.members()[r.peer].transport;
    if (is_direct(r.kind)) {
        if (std::string obstacle = direct_obstacle(j, r.peer); !obstacle.empty()) return obstacle;
    }
    const bool everywhere = r.kind == channel_kind::slots || r.kind == channel_kind::direct;
    return everywhere || transport == shm_channel::transport ? ""
                                                             : "it goes over " + transport + ", and only shm has these";
}

} // namespace

requests_by_peer sorted_by_peer(const job& j, std::span<const channel_request> requests, const std::string& name) {
    requests_by_peer by_peer;
    std::map<std::uint32_t, std::size_t> keys;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const channel_request& r = requests[i];
        if (r.peer < 0 || r.peer >= j.ranks()) {
            throw input_error("'" + name + "': peer " + std::to_string(r.peer) + " of '" + r.label +
                              "' is not a rank of this job (0 to " + std::to_string(j.ranks() - 1) + ")");
        }
        const auto [first, fresh] = keys.emplace(r.key, i);
        if (!fresh) {
            throw input_error("'" + name + "': " + rank_text(j.rank()) + " uses key " + std::to_string(r.key) +
                              " for '" + requests[first->second].label + "' and for '" + r.label +
                              "'; each channel needs a key of its own");
        }
        if (const std::string obstacle = obstacle_to(j, r); !obstacle.empty()) {
            throw input_error("'" + name + "': a channel for '" + r.label + "' that " +
                              std::string(description_of(r.kind)) + " can't be made: to " + rank_text(r.peer) + " " +
                              obstacle);
        }
        by_peer[r.peer].push_back(i);
    }
    return by_peer;
}

void require_mutual(const job& j, std::span<const int> peers, const std::string& name) {
    requests_by_peer by_peer;
    for (const int p : peers) by_peer[p].push_back(0);
    check_symmetry(j, by_peer, name);
}

void check_symmetry(const job& j, const requests_by_peer& by_peer, const std::string& name) {
    const auto me = static_cast<std::uint64_t>(j.rank());
    std::uint64_t sum = 0;
    wire_writer list;
    for (const auto& [p, ends] : by_peer) {
        const auto peer = static_cast<std::uint64_t>(p);
        if (peer == me) continue;
        const std::uint64_t h = mixed(mixed(std::min(me, peer)) ^ mixed(~std::max(me, peer)) ^ (ends.size() << 32));
        sum += me < peer ? h : -h;
    }
    if (set_up_sum(j, sum) == 0) return;

    for (const auto& [p, ends] : by_peer) list.number(p).number<std::uint64_t>(ends.size());
    std::map<std::pair<int, int>, std::uint64_t> ends_of; // (rank, peer) -> number of ends
    const std::vector<std::string> lists = j.gather(list.take());
    for (int r = 0; r < j.ranks(); ++r) {
        for (wire_reader reader(lists[r]); !reader.empty();) {
            const int p = reader.number<int>();
            ends_of[{r, p}] = reader.number<std::uint64_t>();
        }
    }
    for (const auto& [pair, count] : ends_of) {
        const auto back = ends_of.find({pair.second, pair.first});
        const std::uint64_t other = back == ends_of.end() ? 0 : back->second;
        if (other != count) {
            throw input_error("'" + name + "': " + rank_text(pair.first) + " names " + rank_text(pair.second) + " in " +
                              std::to_string(count) + (count == 1 ? " request" : " requests") + ", which names it in " +
                              std::to_string(other) + "; each must name the other, equally often");
        }
    }
}

std::vector<std::string> exchange_ends(const job& j, const own_ends& ends, const std::vector<std::string>& cards) {
    std::vector<int> peers;
    std::vector<std::string> out;
    for (const auto& [peer, positions] : ends.by_peer) {
        set_card own{ends.plan_id, ends.options.name, ends.options.shape, j.members()[peer].transport, {}};
        for (const std::size_t i : positions) {
            const channel_request& r = ends.requests[i];
            own.ends.push_back({r.key, r.peer_key, r.send_bytes, r.receive_bytes, r.kind, r.label, {cards[i], r.note}});
        }
        peers.push_back(peer);
        out.push_back(to_wire(own));
    }
    return j.exchange(peers, out);
}

std::vector<end_told> matching_ends(const job& j, const own_ends& ends, const std::vector<std::string>& came) {
    const int me = j.rank();
    const std::string& name = ends.options.name;
    std::vector<end_told> told(ends.requests.size());
    auto message = came.begin();
    for (const auto& [peer, positions] : ends.by_peer) {
        const auto theirs = from_wire<set_card>(*message++);
        require_equal(name, "the name of the plan", me, name, peer, theirs.name, same_order);
        require_equal(name, "the number of the plan", me, ends.plan_id, peer, theirs.plan_id, same_order);
        require_equal(name, "the transport", me, j.members()[peer].transport, peer, theirs.transport,
                      "; name only transports that reach both ways ([comm] transports)");
        require_equal(name, "the shape", me, ends.options.shape, peer, theirs.shape,
                      "; both ranks must describe the same fields: their number, and their bytes per site");
        for (const std::size_t i : positions) told[i] = matching_end(name, me, ends.requests[i], theirs).told;
    }
    return told;
}

} // namespace halocline::comm
