// SPDX-License-Identifier: Apache-2.0
#include "region_message.hpp"

#include "position_runs.hpp"
#include "region_transfers.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/halo/path_model.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

namespace halocline::halo {
namespace {

/// What one end says of itself to the other, as numbers in a row.
class outline {
  public:
    outline& number(std::int64_t n) {
        numbers_.push_back(n);
        return *this;
    }
    outline& sizes(const std::vector<transfer>& list, const by_tag& tags) {
        number(static_cast<std::int64_t>(tags.size()));
        for (const auto& [tag, i] : tags) number(tag).number(static_cast<std::int64_t>(list[i].sites.size()));
        return *this;
    }
    outline& list(const std::vector<position_run>& runs) {
        number(static_cast<std::int64_t>(runs.size()));
        for (const position_run& r : runs) number(r.first).number(r.stride).number(r.sites).number(r.count);
        return *this;
    }
    [[nodiscard]] std::string text() const {
        return {reinterpret_cast<const char*>(numbers_.data()), numbers_.size() * sizeof(std::int64_t)};
    }

  private:
    std::vector<std::int64_t> numbers_;
};

class outline_reader {
  public:
    explicit outline_reader(const std::string& text) : numbers_(text.size() / sizeof(std::int64_t)) {
        std::memcpy(numbers_.data(), text.data(), numbers_.size() * sizeof(std::int64_t));
    }
    std::int64_t number() { return numbers_.at(next_++); }
    std::map<std::uint32_t, std::int64_t> sizes() {
        std::map<std::uint32_t, std::int64_t> result;
        for (std::int64_t n = number(); n > 0; --n) {
            const auto tag = static_cast<std::uint32_t>(number());
            result[tag] = number();
        }
        return result;
    }
    std::vector<position_run> list() {
        std::vector<position_run> runs(static_cast<std::size_t>(number()));
        for (position_run& r : runs) {
            r.first = number();
            r.stride = number();
            r.sites = static_cast<std::int32_t>(number());
            r.count = static_cast<std::int32_t>(number());
        }
        return runs;
    }

  private:
    std::vector<std::int64_t> numbers_;
    std::size_t next_ = 0;
};

/// Can peers write all destinations in place?
bool in_slab(const comm::job& j, const std::vector<binding>& bindings) {
    for (const binding& b : bindings)
        for (const field_view& f : b.destination)
            if (!j.memory().contains(f.data) || !j.memory().contains(f.data + std::max<std::size_t>(f.bytes(), 1) - 1))
                return false;
    return true;
}

/// What this rank tells a peer, so that it can write the destinations here: where they lie and in which order.
void describe_destinations(outline& o, const comm::job& j, const std::vector<transfer>& receives, const by_tag& tags,
                           const std::vector<binding>& bindings) {
    o.number(static_cast<std::int64_t>(bindings.size()));
    for (const binding& b : bindings)
        for (const field_view& f : b.destination) o.number(f.data - j.memory().base());
    for (const field_view& f : bindings.front().destination)
        o.number(f.order->lane_width()).list(runs_of(positions(receives, tags, *f.order)));
}

/// 0, 1, 2, …: the sites of a message.
std::vector<std::int64_t> in_message(std::int64_t sites) {
    std::vector<std::int64_t> result(static_cast<std::size_t>(sites));
    std::iota(result.begin(), result.end(), std::int64_t{0});
    return result;
}

void make_packed(region_message& m, const std::vector<transfer>& sends, const by_tag& out,
                 const std::vector<transfer>& receives, const by_tag& in, const binding& fields) {
    for (std::size_t f = 0; f < fields.source.size(); ++f) {
        const lattice::site_order &from = *fields.source[f].order, &to = *fields.destination[f].order;
        m.out.emplace_back(positions(sends, out, from), from.lane_width(), in_message(m.send_sites), 1);
        m.in.emplace_back(in_message(m.receive_sites), 1, positions(receives, in, to), to.lane_width());
    }
}

void make_direct(region_message& m, const std::vector<transfer>& sends, const by_tag& out, const binding& fields,
                 outline_reader& reader) {
    m.targets.resize(static_cast<std::size_t>(reader.number()));
    for (std::vector<std::size_t>& offsets : m.targets)
        for (std::size_t f = 0; f < fields.source.size(); ++f)
            offsets.push_back(static_cast<std::size_t>(reader.number()));
    for (const field_view& f : fields.source) {
        const int lanes = static_cast<int>(reader.number());
        const std::vector<std::int64_t> places = positions_of(reader.list());
        if (m.out.empty() && !places.empty()) {
            const std::int64_t place = places[places.size() / 2];
            m.middle = static_cast<std::size_t>(place / lanes * lanes) * f.shape.bytes() +
                       static_cast<std::size_t>(place % lanes) * f.shape.component_bytes;
        }
        m.out.emplace_back(positions(sends, out, *f.order), f.order->lane_width(), places, lanes);
    }
}

/// Through the cache, or past it? Lines that a run fills in part go through the cache anyway.
void choose_stores(region_message& m, comm::streaming wish, const comm::costs& costs, const binding& fields,
                   const region_plan_options& options) {
    constexpr std::size_t least_run_bytes = 512;
    std::size_t bytes = 0;
    bool can = m.send_sites > 0, pays = true;
    for (std::size_t f = 0; f < m.out.size(); ++f) {
        const std::size_t of_field = static_cast<std::size_t>(m.send_sites) * fields.source[f].shape.bytes();
        bytes += of_field;
        can = can && m.out[f].streams();
        pays = pays && of_field >= least_run_bytes * static_cast<std::size_t>(m.out[f].runs());
    }
    if (m.way != path::direct) m.middle = bytes / 2;
    if (options.way == path::streamed) {
        m.streamed = can;
        if (!can) m.why += "; sites too scattered to be streamed";
        return;
    }
    if (m.send_sites > 0) m.watch = path_watch::claims_only(costs);
    if (options.way == path::direct) return;
    if (!can || !pays) {
        m.why += "; short runs";
        return;
    }
    const verdict<path> v = choose_writing(wish, costs, bytes);
    m.streamed = v.choice == path::streamed;
    m.why += (m.streamed ? "; streamed: " : "; not streamed: ") + v.why;
    if (wish == comm::streaming::always) m.watch = path_watch();
    if (wish != comm::streaming::automatic) return;
    m.watch = path_watch(costs, bytes, m.streamed);
    if (const std::string when = m.watch.describe(); !when.empty()) m.why += "; " + when;
}

} // namespace

std::vector<region_message> make_messages(const comm::job& j, const std::vector<transfer>& sends,
                                          const std::vector<transfer>& receives, const std::vector<binding>& bindings,
                                          const region_plan_options& options) {
    by_peer out, in;
    std::vector<int> peers;
    j.collectively([&] {
        out = sorted_transfers(sends, "sends to", j, options.name);
        in = sorted_transfers(receives, "receives from", j, options.name);
        check_transfers(sends, receives, bindings, options);
        for (const auto& [peer, tags] : out) peers.push_back(peer);
        for (const auto& [peer, tags] : in)
            if (!out.contains(peer)) peers.push_back(peer);
        std::sort(peers.begin(), peers.end());
    });
    comm::require_mutual(j, peers, options.name);

    // Why this rank's end can't be direct; empty if it can.
    const auto obstacle = [&](int peer) -> std::string {
        if (options.add) return "what is added waits in slots";
        const std::string& transport = j.members()[peer].transport;
        if (transport != "shm" && transport != "self") return "over " + transport + " no field can be written in place";
        if (!in_slab(j, bindings)) return "a field of " + rank_text(j.rank()) + " is not in its slab";
        return {};
    };
    const binding& fields = bindings.front();
    // This rank's verdict on each peer; both ends must find that direct pays.
    const comm::costs& costs = comm::measured_costs(j); // collective: whatever the options say here
    const auto verdict_on = [&](int peer) -> verdict<path> {
        std::string why = obstacle(peer);
        if (!why.empty()) return {path::packed, why};
        if (options.way == path::streamed) return {path::direct, "asked for"};
        if (options.way != path::automatic) return {options.way, "asked for"};
        std::size_t bytes = 0;
        const std::int64_t sites = sites_in(sends, out[peer]);
        std::int64_t runs = 0;
        for (const field_view& f : fields.source) {
            bytes += static_cast<std::size_t>(sites) * f.shape.bytes();
            runs +=
                site_copy(positions(sends, out[peer], *f.order), f.order->lane_width(), in_message(sites), 1).runs();
        }
        return choose_path(costs, bytes, runs);
    };
    std::vector<verdict<path>> verdicts;
    std::vector<std::string> mine;
    for (const int peer : peers) {
        outline o;
        o.number(static_cast<std::int64_t>(fields.source.size()));
        for (const field_view& f : fields.source) o.number(static_cast<std::int64_t>(f.shape.bytes()));
        o.number(static_cast<int>(options.way)).sizes(sends, out[peer]).sizes(receives, in[peer]);
        verdicts.push_back(verdict_on(peer));
        const bool offered = verdicts.back().choice == path::direct;
        o.number(offered).number(obstacle(peer).empty());
        if (offered) describe_destinations(o, j, receives, in[peer], bindings);
        mine.push_back(o.text());
    }
    const std::vector<std::string> theirs = j.exchange(peers, mine);

    std::vector<region_message> messages;
    j.collectively([&] {
        for (std::size_t p = 0; p < peers.size(); ++p) {
            const int peer = peers[p];
            const std::string who = "'" + options.name + "': " + rank_text(j.rank());
            outline_reader reader(theirs[p]);
            std::string here, there;
            for (const field_view& f : fields.source) here += " " + std::to_string(f.shape.bytes());
            for (std::int64_t n = reader.number(); n > 0; --n) there += " " + std::to_string(reader.number());
            if (here != there)
                throw input_error(who + " sends fields of" + here + " bytes per site, " + rank_text(peer) + " of" +
                                  there);
            if (const auto way = static_cast<path>(reader.number()); way != options.way)
                throw input_error(who + " asks for path " + std::string(to_string(options.way)) + ", " +
                                  rank_text(peer) + " for " + std::string(to_string(way)));
            const auto their_sends = reader.sizes(), their_receives = reader.sizes();
            compare_transfers(sends, out[peer], their_receives, j.rank(), peer, true, options.name);
            compare_transfers(receives, in[peer], their_sends, peer, j.rank(), false, options.name);
            const bool offered = reader.number() != 0, able = reader.number() != 0;

            region_message& m = messages.emplace_back();
            m.peer = peer;
            m.send_sites = sites_in(sends, out[peer]);
            m.receive_sites = sites_in(receives, in[peer]);
            for (const auto& [tag, i] : in[peer]) m.receives.push_back(static_cast<int>(i));
            m.way = offered ? verdicts[p].choice : path::packed;
            m.why = verdicts[p].why;
            if (verdicts[p].choice == path::direct && !offered)
                m.why = able ? rank_text(peer) + " sends too little for it"
                             : "a field of " + rank_text(peer) + " is not in its slab";
            if (m.way == path::direct) {
                make_direct(m, sends, out[peer], fields, reader);
            } else if (options.way == path::direct || options.way == path::streamed) {
                throw input_error(who + " can't have path " + std::string(to_string(options.way)) + " with " +
                                  rank_text(peer) + ": " + m.why);
            } else {
                make_packed(m, sends, out[peer], receives, in[peer], fields);
            }
            if (j.members()[peer].transport == "shm") choose_stores(m, j.options().streaming, costs, fields, options);
        }
    });
    return messages;
}

} // namespace halocline::halo
