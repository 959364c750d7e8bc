// SPDX-License-Identifier: Apache-2.0
#include "region_message.hpp"

#include "path_model.hpp"
#include "run_walk.hpp"

#include <algorithm>
#include <utility>

namespace halocline::halo {
namespace {

/// Adds the device's writes to the peer for these sites of field f: runs that neither end interrupts.
void add_writes(std::vector<comm::direct_write>& writes, std::size_t f, const position_list& from,
                const position_list& to, std::size_t site_bytes) {
    for (run_walk source(from), target(to); !source.at_end();) {
        const std::int32_t sites = std::min(source.left(), target.left());
        writes.push_back({static_cast<std::uint32_t>(f), static_cast<std::size_t>(source.position()) * site_bytes,
                          static_cast<std::size_t>(target.position()) * site_bytes,
                          static_cast<std::size_t>(sites) * site_bytes});
        source.advance(sites);
        target.advance(sites);
    }
}

/// The lines that this rank writes for its message: in the peer's first fields, or in the slot.  Pre: they can be
/// streamed.
comm::written_lines lines_of(const region_message& m, const binding& fields) {
    comm::written_lines lines;
    for (std::size_t f = 0; f < m.out.size(); ++f) {
        const site_shape& shape = fields.source[f].shape;
        const std::size_t bytes = static_cast<std::size_t>(m.send_sites) * shape.bytes(),
                          offset = m.path == path::direct ? m.targets[0][f] : m.out_at[f];
        const comm::written_lines of_field =
            m.is_assembled(shape) ? comm::written_lines(bytes) : m.out[f].lines(offset, shape);
        lines.whole += of_field.whole;
        lines.part += of_field.part;
        lines.in_runs = lines.in_runs || (m.path == path::direct ? are_short(m.out[f].runs(), bytes)
                                                                 : fills_in_runs(m.out[f], shape.bytes()));
    }
    return lines;
}

} // namespace

std::vector<std::size_t> starts_of_parts(const std::vector<field_view>& fields, message_format format,
                                         std::int64_t sites) {
    std::vector<std::size_t> starts{0};
    for (const field_view& f : fields) {
        starts.back() = (starts.back() + 7) / 8 * 8;
        starts.push_back(starts.back() + static_cast<std::size_t>(sites) * real_format{format}.bytes(f.shape));
    }
    return starts;
}

void make_packed(region_message& m, const region_end& end, const binding& fields, const region_plan_options& options) {
    const bool converts = options.format != message_format::as_stored,
               in_parts = converts || options.add || !m.phased.empty(); // groups are for copies, not for sums
    const position_list sent = position_list::counted(m.send_sites), come = position_list::counted(m.receive_sites);
    for (std::size_t f = 0; f < fields.source.size(); ++f) {
        m.out.emplace_back(end.out[f], fields.source[f].order->lane_width(), sent, 1, converts);
        m.in.emplace_back(come, 1, end.in[f], fields.destination[f].order->lane_width(), in_parts);
    }
}

void make_direct(region_message& m, const region_end& end, const binding& fields, const region_outline& theirs) {
    m.targets = theirs.targets;
    const position_list come = position_list::counted(m.receive_sites);
    for (std::size_t f = 0; !m.phased.empty() && f < fields.destination.size(); ++f) {
        const int lanes = fields.destination[f].order->lane_width();
        m.in.emplace_back(come, 1, end.in[f], lanes, true);
        m.read_back.emplace_back(end.in[f], lanes, come, 1, true);
    }
    for (std::size_t f = 0; f < fields.source.size(); ++f) {
        const int lanes = theirs.filled[f].lanes;
        const position_list& filled = theirs.filled[f].positions;
        const field_view& source = fields.source[f];
        if (end.over_network) {
            add_writes(m.writes, f, end.out[f], filled, source.shape.bytes());
            continue;
        }
        if (m.out.empty() && filled.size() > 0) m.probed_byte = source.shape.offset(filled.probe_position(), lanes);
        m.out.emplace_back(end.out[f], source.order->lane_width(), filled, lanes);
    }
}

void make_slot_way(region_message& m, const region_end& end, const binding& fields, const comm::costs& costs) {
    slot_way way{.out = {}, .watch = {}, .costs = {}, .distance = path_watch::of_distance(costs)};
    const position_list sent = position_list::counted(m.send_sites), come = position_list::counted(m.receive_sites);
    std::size_t bytes = 0;
    bool assembled = true, in_runs = false;
    for (std::size_t f = 0; f < fields.source.size(); ++f) {
        const site_shape& shape = fields.source[f].shape;
        bytes += static_cast<std::size_t>(m.send_sites) * shape.bytes();
        assembled = assembled && shape.bytes() <= largest_assembled_site;
        way.out.emplace_back(end.out[f], fields.source[f].order->lane_width(), sent, 1, false);
        in_runs = in_runs || fills_in_runs(way.out[f], shape.bytes());
        if (m.phased.empty()) m.in.emplace_back(come, 1, end.in[f], fields.destination[f].order->lane_width(), false);
    }
    writing w = choose_writing(assembled ? path::automatic : path::direct, costs, {bytes, in_runs});
    way.watch = w.watch;
    if (assembled) way.costs = std::move(w.why);
    m.why += "; packed " + way.distance.describe_times();
    m.by_slot = std::move(way);
}

void make_joint(region_message& m, const region_end& end, const binding& fields, const region_outline& theirs) {
    m.joint = true;
    for (std::size_t f = 0; f < fields.destination.size(); ++f)
        m.from_peer.emplace_back(theirs.sent[f].positions, theirs.sent[f].lanes, end.in[f],
                                 fields.destination[f].order->lane_width());
}

void choose_stores(region_message& m, path wish, const comm::costs& costs, const binding& fields,
                   const region_plan_options& options) {
    if (options.format != message_format::as_stored) return; // a few lines at a time, through the cache
    std::size_t bytes = 0;
    bool can = m.send_sites > 0;
    for (std::size_t f = 0; f < m.out.size(); ++f) {
        const site_shape& shape = fields.source[f].shape;
        bytes += static_cast<std::size_t>(m.send_sites) * shape.bytes();
        can = can && (m.is_assembled(shape) || (m.out[f].streams() && !options.checksums)); // summed in the cache
    }
    if (m.path != path::direct) m.probed_byte = bytes / 2;
    if (options.path == path::streamed) {
        if (can) m.watch = path_watch::always_streamed();
        if (!can && m.send_sites > 0) m.why += "; sites too scattered to be streamed";
        return;
    }
    const bool asked = options.path == path::direct || options.path == path::joint;
    const writing w =
        asked || !can ? choose_writing(path::direct, costs, bytes) : choose_writing(wish, costs, lines_of(m, fields));
    m.watch = w.watch;
    if (m.path == path::direct && !(can && claiming_pays(lines_of(m, fields)))) m.watch.never_claim();
    if (asked || m.send_sites == 0) return;
    if (can)
        m.costs = w.why;
    else
        m.why += "; sites too scattered to be streamed";
}

void choose_gathering(region_message& m, const binding& fields) {
    const auto decide = [&](const std::vector<site_copy>& out, path_watch& watch) {
        for (std::size_t f = 0; f < out.size(); ++f)
            if (gathering_pays(out[f], fields.source[f].shape.bytes())) watch.gather();
    };
    if (m.path == path::packed) decide(m.out, m.watch);
    if (m.by_slot) decide(m.by_slot->out, m.by_slot->watch);
}

} // namespace halocline::halo
