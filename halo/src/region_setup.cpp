// SPDX-License-Identifier: Apache-2.0
#include "region_message.hpp"

#include "position_runs.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/slab.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace halocline::halo {
namespace {

std::string rank_text(int r) { return "rank " + std::to_string(r); }

/// The transfers of one list with one peer, by tag: that is their order in the message.
using by_tag = std::map<std::uint32_t, std::size_t>;
using by_peer = std::map<int, by_tag>;

by_peer sorted(const std::vector<transfer>& list, const char* verb, int ranks, int me, const std::string& name) {
    by_peer result;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const transfer& t = list[i];
        if (t.peer < 0 || t.peer >= ranks)
            throw input_error("'" + name + "': " + rank_text(me) + " " + verb + " rank " + std::to_string(t.peer) +
                              ", which is not of this job (0 to " + std::to_string(ranks - 1) + ")");
        if (!result[t.peer].emplace(t.tag, i).second)
            throw input_error("'" + name + "': " + rank_text(me) + " " + verb + " " + rank_text(t.peer) + " tag " +
                              std::to_string(t.tag) + " twice");
    }
    return result;
}

/// Marks the sites of a list; a site that is not in the field, or that is marked already, is an error.
void mark(std::vector<bool>& marked, const std::vector<transfer>& list, const lattice::site_order& order, const char* used,
          bool once, const std::string& name) {
    for (const transfer& t : list)
        for (const std::int32_t site : t.sites) {
            if (site < 0 || site >= order.volume())
                throw input_error("'" + name + "': site " + std::to_string(site) + " is not in the field of " +
                                  std::to_string(order.volume()) + " sites, in the transfer with " + rank_text(t.peer) +
                                  ", tag " + std::to_string(t.tag));
            if (once && marked[static_cast<std::size_t>(site)])
                throw input_error("'" + name + "': site " + std::to_string(site) + " is " + used +
                                  ", last in the transfer with " + rank_text(t.peer) + ", tag " + std::to_string(t.tag));
            marked[static_cast<std::size_t>(site)] = true;
        }
}

bool alike(const field_view& a, const field_view& b) { return a.shape == b.shape && a.order->places_like(*b.order); }

void check(const std::vector<transfer>& sends, const std::vector<transfer>& receives, const std::vector<binding>& bindings,
           const region_plan_options& options) {
    const std::string who = "'" + options.name + "': ";
    if (bindings.empty() || bindings.front().source.empty()) throw input_error(who + "no field is bound");
    const binding& first = bindings.front();
    for (const binding& b : bindings) {
        if (b.source.size() != first.source.size() || b.destination.size() != first.source.size())
            throw input_error(who + "each binding needs as many sources and destinations as the first has sources, " +
                              std::to_string(first.source.size()));
        for (std::size_t f = 0; f < b.source.size(); ++f) {
            if (!alike(b.source[f], first.source[f]) || !alike(b.destination[f], first.destination[f]))
                throw input_error(who + "field " + std::to_string(f) + " differs between bindings: all must have the same " +
                                  "components and site order");
            if (b.source[f].shape != b.destination[f].shape)
                throw input_error(who + "field " + std::to_string(f) + " has " + std::to_string(b.source[f].shape.bytes()) +
                                  " bytes per site as source and " + std::to_string(b.destination[f].shape.bytes()) +
                                  " as destination, or components of another kind");
            if (options.add && b.source[f].shape.kind == scalar::bits)
                throw input_error(who + "field " + std::to_string(f) + " is not of float or double: nothing can be added");
        }
    }
    for (std::size_t f = 0; f < first.source.size(); ++f) {
        std::vector<bool> received(static_cast<std::size_t>(first.destination[f].order->volume()));
        mark(received, receives, *first.destination[f].order, "received twice", !options.add, options.name);
        const bool in_place = std::any_of(bindings.begin(), bindings.end(), [&](const binding& b) {
            return b.source[f].data == b.destination[f].data;
        });
        std::vector<bool> none(static_cast<std::size_t>(first.source[f].order->volume()));
        mark(none, sends, *first.source[f].order, "", false, options.name);
        if (!in_place) continue;
        for (std::size_t site = 0; site < none.size(); ++site)
            if (none[site] && received[site])
                throw input_error(who + "site " + std::to_string(site) + " is both sent and received in one exchange");
    }
}

/// Storage positions of all sites of a message, transfers by tag.
std::vector<std::int64_t> positions(const std::vector<transfer>& list, const by_tag& tags, const lattice::site_order& order) {
    std::vector<std::int64_t> result;
    for (const auto& [tag, i] : tags)
        for (const std::int32_t site : list[i].sites) result.push_back(order.position(site));
    return result;
}

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

/// Both ends name the same transfers, with the same number of sites each.
void compare(const std::vector<transfer>& list, const by_tag& mine, const std::map<std::uint32_t, std::int64_t>& theirs, int from,
             int to, bool sending, const std::string& name) {
    const auto text = [&](std::uint32_t tag, std::int64_t sent, std::int64_t expected) {
        const auto sites = [](std::int64_t n) { return n < 0 ? std::string("nothing") : std::to_string(n) + " sites"; };
        return "'" + name + "': " + rank_text(from) + " sends " + sites(sent) + " as tag " + std::to_string(tag) + " to " +
               rank_text(to) + ", which expects " + sites(expected);
    };
    for (const auto& [tag, i] : mine) {
        const auto it = theirs.find(tag);
        const std::int64_t here = static_cast<std::int64_t>(list[i].sites.size()), there = it == theirs.end() ? -1 : it->second;
        if (here != there) throw input_error(sending ? text(tag, here, there) : text(tag, there, here));
    }
    for (const auto& [tag, there] : theirs)
        if (!mine.contains(tag)) throw input_error(sending ? text(tag, -1, there) : text(tag, there, -1));
}

} // namespace

std::vector<std::int32_t> sites_of(const lattice::box& part, const lattice::coordinate& extents) {
    std::vector<std::int32_t> sites;
    sites.reserve(static_cast<std::size_t>(part.volume()));
    lattice::coordinate x = part.origin;
    const auto last = [&](int mu) { return part.origin[mu] + part.extents[mu]; };
    for (x[3] = part.origin[3]; x[3] < last(3); ++x[3])
        for (x[2] = part.origin[2]; x[2] < last(2); ++x[2])
            for (x[1] = part.origin[1]; x[1] < last(1); ++x[1])
                for (x[0] = part.origin[0]; x[0] < last(0); ++x[0])
                    sites.push_back(static_cast<std::int32_t>(lattice::lexicographic_index(x, extents)));
    return sites;
}

std::vector<region_message> make_messages(const comm::job& j, const std::vector<transfer>& sends,
                                          const std::vector<transfer>& receives, const std::vector<binding>& bindings,
                                          const region_plan_options& options) {
    by_peer out, in;
    std::vector<int> peers;
    j.collectively([&] {
        out = sorted(sends, "sends to", j.ranks(), j.rank(), options.name);
        in = sorted(receives, "receives from", j.ranks(), j.rank(), options.name);
        check(sends, receives, bindings, options);
        for (const auto& [peer, tags] : out) peers.push_back(peer);
        for (const auto& [peer, tags] : in)
            if (!out.contains(peer)) peers.push_back(peer);
        std::sort(peers.begin(), peers.end());
    });

    std::vector<std::string> mine;
    for (const int peer : peers) mine.push_back(outline().sizes(sends, out[peer]).sizes(receives, in[peer]).text());
    const std::vector<std::string> theirs = j.exchange(peers, mine);

    std::vector<region_message> messages;
    j.collectively([&] {
        const binding& fields = bindings.front();
        for (std::size_t p = 0; p < peers.size(); ++p) {
            const int peer = peers[p];
            outline_reader reader(theirs[p]);
            const auto their_sends = reader.sizes(), their_receives = reader.sizes();
            compare(sends, out[peer], their_receives, j.rank(), peer, true, options.name);
            compare(receives, in[peer], their_sends, peer, j.rank(), false, options.name);

            region_message& m = messages.emplace_back();
            m.peer = peer;
            for (const auto& [tag, i] : out[peer]) m.send_sites += static_cast<std::int64_t>(sends[i].sites.size());
            for (const auto& [tag, i] : in[peer]) {
                m.receive_sites += static_cast<std::int64_t>(receives[i].sites.size());
                m.receives.push_back(static_cast<int>(i));
            }
            std::vector<std::int64_t> in_message(static_cast<std::size_t>(std::max(m.send_sites, m.receive_sites)));
            for (std::size_t i = 0; i < in_message.size(); ++i) in_message[i] = static_cast<std::int64_t>(i);
            const auto count = [&](std::int64_t n) { return std::span(in_message).first(static_cast<std::size_t>(n)); };
            for (std::size_t f = 0; f < fields.source.size(); ++f) {
                const lattice::site_order &from = *fields.source[f].order, &to = *fields.destination[f].order;
                m.out.emplace_back(positions(sends, out[peer], from), from.lane_width(), count(m.send_sites), 1);
                m.in.emplace_back(count(m.receive_sites), 1, positions(receives, in[peer], to), to.lane_width());
            }
        }
    });
    return messages;
}

} // namespace halocline::halo
