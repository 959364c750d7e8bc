// SPDX-License-Identifier: Apache-2.0
// How the messages of a region_plan are made: each rank finds its ends, tells each peer what it has and which path it
// would take, and makes what both agree on.
#include "region_message.hpp"

#include "format_checks.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/transport_names.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

namespace halocline::halo {
namespace {

/// Messages number their sites with 32 bits.  Err: input_error, which begins with `who`, "rank 0 sends".
void check_size(const sites_by_tag& sites, const std::string& who, const char* towards, int peer) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    std::int64_t sum = 0;
    for (const auto& [tag, count] : sites) sum += count;
    if (sum > most)
        throw input_error(who + " " + std::to_string(sum) + " sites " + towards + " " + rank_text(peer) +
                          "; one message takes at most " + std::to_string(most));
}

/// Collective.  Err: input_error, on every rank: of two ranks one lists transfers with the other, which lists none.
void require_mutual(const comm::job& j, const std::vector<int>& peers, const std::string& name) {
    const std::string who = "'" + name + "': ";
    try {
        comm::require_mutual(j, peers, name);
    } catch (const input_error& e) { // speaks of channels, which whoever lists transfers need not know
        const std::string text = e.what();
        throw input_error(who + "one end lists a transfer that the other doesn't: " +
                          text.substr(text.starts_with(who) ? who.size() : 0));
    }
}

/// This rank's ends, by peer. Collective.
std::vector<region_end> find_ends(const comm::job& j, const std::vector<transfer>& sends,
                                  const std::vector<transfer>& receives, const std::vector<binding>& bindings,
                                  const region_plan_options& options) {
    std::vector<region_end> ends;
    std::vector<int> peers;
    j.collectively([&] {
        struct tags_of {
            by_tag sends, receives;
        };
        std::map<int, tags_of> tags_by_peer;
        for (auto& [peer, tags] : sorted_transfers(sends, "sends to", j, options.name))
            tags_by_peer[peer].sends = std::move(tags);
        for (auto& [peer, tags] : sorted_transfers(receives, "receives from", j, options.name))
            tags_by_peer[peer].receives = std::move(tags);
        check_transfers(sends, receives, bindings, options);
        const binding& fields = bindings.front();
        for (const auto& [peer, tags] : tags_by_peer) {
            const std::string& transport = j.members()[peer].transport;
            region_end& end = ends.emplace_back();
            end.peer = peer;
            end.transport = transport;
            end.over_network = !comm::is_in_memory(transport);
            end.sends = count_sites(sends, tags.sends);
            end.receives = count_sites(receives, tags.receives);
            const std::string who = "'" + options.name + "': " + rank_text(j.rank());
            check_size(end.sends, who + " sends", "to", peer);
            check_size(end.receives, who + " receives", "from", peer);
            for (const auto& [tag, i] : tags.receives) end.received.push_back(static_cast<int>(i));
            for (const field_view& f : fields.source) end.out.push_back(positions(sends, tags.sends, *f.order));
            for (const field_view& f : fields.destination)
                end.in.push_back(positions(receives, tags.receives, *f.order));
            peers.push_back(peer);
        }
    });
    require_mutual(j, peers, options.name);
    return ends;
}

region_outline outline_of(const comm::job& j, const region_end& end, const path_choice& choice,
                          const std::vector<binding>& bindings, const region_plan_options& options) {
    const binding& fields = bindings.front();
    region_outline o{.asked = options.path,
                     .adds = options.add,
                     .has_checksums = options.checksums,
                     .format = options.format,
                     .scale = static_cast<float>(options.scale),
                     .sends = end.sends,
                     .receives = end.receives,
                     .offers_direct = choice.found.choice == path::direct || choice.alternates,
                     .alternates = choice.alternates,
                     .in_the_way = choice.in_the_way};
    for (const field_view& f : fields.source) o.shapes.push_back(f.shape);
    if (!o.offers_direct) return o;
    for (const binding& b : bindings) {
        std::vector<std::size_t>& offsets = o.targets.emplace_back();
        for (const field_view& f : b.destination)
            offsets.push_back(static_cast<std::size_t>(f.data - j.memory().base()));
    }
    for (std::size_t f = 0; f < end.in.size(); ++f)
        o.filled.push_back({fields.destination[f].order->lane_width(), end.in[f]});
    for (std::size_t f = 0; end.joint && f < end.out.size(); ++f)
        o.sent.push_back({fields.source[f].order->lane_width(), end.out[f]});
    return o;
}

std::string text_of(const std::vector<site_shape>& shapes) {
    std::string text;
    for (const site_shape& s : shapes) text += (text.empty() ? "" : ", ") + text_of(s);
    return text;
}

std::string format_of(const region_outline& o) {
    return o.format == message_format::as_stored ? "as stored" : "as " + format_text(o.format, o.scale);
}

/// Err: input_error unless both ends have the same fields, options and transfers.
void require_match(const region_outline& mine, const region_outline& theirs, int rank, int peer,
                   const std::string& name) {
    const std::string who = "'" + name + "': " + rank_text(rank);
    if (const std::string here = text_of(mine.shapes), there = text_of(theirs.shapes); here != there)
        throw input_error(who + " sends fields of " + here + " per site, " + rank_text(peer) + " of " + there);
    if (mine.asked != theirs.asked)
        throw input_error(who + " asks for path " + std::string(to_string(mine.asked)) + ", " + rank_text(peer) +
                          " for " + std::string(to_string(theirs.asked)));
    if (mine.adds != theirs.adds)
        throw input_error(who + (mine.adds ? " adds" : " stores") + " what arrives, " + rank_text(peer) +
                          (theirs.adds ? " adds" : " stores") + " it; option add must be equal on both ranks");
    if (mine.has_checksums != theirs.has_checksums)
        throw input_error(who + " sends messages with" + (mine.has_checksums ? "" : "out") + " checksums, " +
                          rank_text(peer) + " with" + (theirs.has_checksums ? "" : "out") +
                          "; option checksums, or checks = comm, must be equal on both ranks");
    if (const std::string here = format_of(mine), there = format_of(theirs); here != there)
        throw input_error(who + " sends reals " + here + ", " + rank_text(peer) + " " + there +
                          "; options format and scale must be equal on both ranks");
    compare_transfers(mine.sends, theirs.receives, rank, peer, name);
    compare_transfers(theirs.sends, mine.receives, peer, rank, name);
}

/// The path that both ends offer, and the reason if it is not the preferred one.
verdict<path> agreed_path(const region_end& end, const path_choice& mine, const region_outline& theirs,
                          const region_paths& paths) {
    if (mine.found.choice != path::direct || theirs.offers_direct) return mine.found;
    if (theirs.in_the_way == obstacle::none)
        return {path::packed, rank_text(end.peer) + " chooses it by the cost model; its describe() says why"};
    return {path::packed, paths.reason(theirs.in_the_way, end, end.peer)};
}

region_message message_of(const region_end& end, const std::vector<transfer>& receives, const verdict<path>& agreed,
                          const binding& fields, message_format format) {
    region_message m;
    m.peer = end.peer;
    m.path = agreed.choice;
    m.why = agreed.why;
    m.send_sites = end.out.front().size();
    m.receive_sites = end.in.front().size();
    m.out_at = starts_of_parts(fields.source, format, m.send_sites);
    m.in_at = starts_of_parts(fields.destination, format, m.receive_sites);
    m.receives = end.received;
    std::int64_t first = 0;
    for (const int i : end.received) {
        const std::int64_t last = first + sites_in(receives[i]);
        if (receives[i].phase != 1.0) m.phased.push_back({first, last, receives[i].phase});
        first = last;
    }
    return m;
}

/// What both ends copy, on the path that they agreed on.
void make_copies(region_message& m, const region_end& end, const binding& fields, const region_outline& theirs,
                 bool alternates, const comm::costs& costs, region_paths& paths, const region_plan_options& options) {
    if (m.path != path::direct) return make_packed(m, end, fields, options);
    make_direct(m, end, fields, theirs);
    if (end.over_network) m.registered = paths.registered(end);
    if (alternates)
        make_slot_way(m, end, fields, costs);
    else if (end.joint)
        make_joint(m, end, fields, theirs);
    m.offered = m.joint && paths.is_offered(end);
}

} // namespace

std::vector<region_message> make_messages(const comm::job& j, const std::vector<transfer>& sends,
                                          const std::vector<transfer>& receives, const std::vector<binding>& bindings,
                                          const region_plan_options& options) {
    std::vector<region_end> ends = find_ends(j, sends, receives, bindings, options);
    const comm::costs& costs = comm::measured_costs(j); // collective, so called whatever the options say here
    region_paths paths(j, bindings, options, costs, ends);

    std::vector<path_choice> choices;
    std::vector<region_outline> outlines;
    std::vector<int> peers;
    std::vector<std::string> told;
    for (region_end& end : ends) {
        end.joint = paths.may_be_joint(end);
        choices.push_back(paths.choose(end));
        outlines.push_back(outline_of(j, end, choices.back(), bindings, options));
        peers.push_back(end.peer);
        told.push_back(encoded(outlines.back()));
    }
    const std::vector<std::string> heard = j.exchange(peers, told);

    const binding& fields = bindings.front(); // all bindings have its shapes and orders
    std::vector<region_message> messages;
    j.collectively([&] {
        for (std::size_t i = 0; i < ends.size(); ++i) {
            const region_end& end = ends[i];
            const region_outline theirs = decoded(heard[i]);
            require_match(outlines[i], theirs, j.rank(), end.peer, options.name);
            const bool alternates =
                outlines[i].offers_direct && theirs.offers_direct && (outlines[i].alternates || theirs.alternates);
            const verdict<path> agreed = alternates ? verdict<path>{path::direct, choices[i].found.why}
                                                    : agreed_path(end, choices[i], theirs, paths);
            if (agreed.choice != path::direct && options.path != path::automatic && options.path != path::packed)
                throw input_error("'" + options.name + "': " + rank_text(j.rank()) + " can't have path " +
                                  std::string(to_string(options.path)) + " with " + rank_text(end.peer) + ": " +
                                  agreed.why);
            region_message m = message_of(end, receives, agreed, fields, options.format);
            make_copies(m, end, fields, theirs, alternates, costs, paths, options);
            if (shares_memory(j, end.peer)) {
                choose_stores(m, j.options().path, costs, fields, options);
                choose_gathering(m, fields);
            }
            m.why_joint = why_joint(paths.wished(), costs, static_cast<int>(fields.source.size()), m.offered);
            messages.push_back(std::move(m));
        }
    });
    return messages;
}

} // namespace halocline::halo
