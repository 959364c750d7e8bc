// SPDX-License-Identifier: Apache-2.0
#include "region_paths.hpp"

#include "message_stores.hpp"
#include "run_walk.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/detail/claim_lines.hpp>
#include <halocline/comm/detail/line_pairs.hpp>
#include <halocline/comm/slab.hpp>

#include <algorithm>
#include <cstdint>

namespace halocline::halo {
namespace {

bool in_slab(const comm::job& j, const field_view& f) {
    return j.memory().contains(f.data) && j.memory().contains(f.data + std::max<std::size_t>(f.bytes(), 1) - 1);
}

/// Can their messages be direct? Over a network the sources count too, because its device reads them.
bool all_in_slab(const comm::job& j, const std::vector<binding>& bindings, bool sources) {
    for (const binding& b : bindings) {
        for (const field_view& f : b.destination)
            if (!in_slab(j, f)) return false;
        for (const field_view& f : b.source)
            if (sources && !in_slab(j, f)) return false;
    }
    return true;
}

/// Each run of bytes is a separate write of a network's device.
constexpr std::int64_t most_runs = 64;

constexpr std::int64_t line = 64;

/// Do the sites of these lists form few runs of bytes, in each field?
bool in_few_runs(const std::vector<position_list>& sites, const std::vector<field_view>& fields) {
    std::int64_t runs = 0;
    for (std::size_t f = 0; f < fields.size(); ++f) {
        if (fields[f].order->lane_width() > 1 && sites[f].size() > 0) return false;
        runs += sites[f].count_runs();
    }
    return runs <= most_runs;
}

/// The positions of field f from which sites are sent; none for storage with lanes.
position_set sent_sites(const std::vector<region_end>& ends, std::size_t f, const lattice::site_order& order) {
    position_set sent;
    if (order.lane_width() > 1) return sent;
    for (const region_end& end : ends) sent.add(end.out[f]);
    return sent;
}

/// Where its first byte lies in a line, and in a pair of lines.
std::int64_t start_in_lines(const field_view& field) {
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(field.data) % (2 * line));
}

/// Calls visit(begin, end, first, last) for each run of sites [first, last) in a field without lanes; it takes the bytes
/// [begin, end), counted from the start of a line, and of a pair of lines.
template <class Visit>
void for_each_stretch(const position_list& sites, const field_view& field, Visit visit) {
    const std::int64_t start = start_in_lines(field);
    const auto bytes = static_cast<std::int64_t>(field.shape.bytes());
    for (const position_run& r : sites.runs())
        for (std::int64_t i = 0; i < r.count; ++i) {
            const std::int64_t first = r.first + i * r.stride, last = first + r.sites;
            visit(start + first * bytes, start + last * bytes, first, last);
        }
}

/// The number of lines, or pairs of lines (`unit`: their bytes), that ghosts share with adjacent owned sites. Sites next to
/// ghosts are the ones that are sent.
double shared_lines(const position_list& ghosts, const field_view& field, const position_set& sent, std::int64_t unit) {
    std::int64_t lines = 0;
    for_each_stretch(ghosts, field, [&](std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t last) {
        const bool head = begin % unit != 0 && sent.contains(first - 1), tail = end % unit != 0 && sent.contains(last);
        lines += head + (tail && !(head && begin / unit == end / unit));
    });
    return static_cast<double>(lines);
}

} // namespace

region_paths::region_paths(const comm::job& j, const std::vector<binding>& bindings, const region_plan_options& options,
                           const comm::costs& costs, const std::vector<region_end>& ends)
    : j_(j), bindings_(bindings), options_(options), costs_(costs) {
    if (std::ranges::none_of(ends, [&](const region_end& end) { return may_share_lines(end); })) return;
    for (std::size_t f = 0; f < fields().source.size(); ++f)
        sent_.push_back(sent_sites(ends, f, *fields().source[f].order));
}

path_choice region_paths::choose(const region_end& end) {
    const obstacle seen = obstacle_of(end);
    const bool left_to_choose = seen == obstacle::none && options_.path == path::automatic;
    const message_outline message = left_to_choose ? seen_from_here(end) : message_outline{};
    const verdict<path> found = verdict_on(end, seen, message);
    const bool alternates = left_to_choose && wished() == path::automatic && shares_memory(j_, end.peer) &&
                            depends_on_distance(costs_, message);
    if (!end.over_network) return {seen, found, alternates};
    if (found.choice != path::direct || register_fields(end)) return {seen, found};
    return {obstacle::not_registered, verdict_on(end, obstacle::not_registered, message)};
}

std::size_t region_paths::bytes_of(const std::vector<position_list>& sites) const {
    std::size_t bytes = 0;
    for (std::size_t f = 0; f < sites.size(); ++f)
        bytes += static_cast<std::size_t>(sites[f].size()) * fields().source[f].shape.bytes();
    return bytes;
}

bool region_paths::may_be_joint(const region_end& end) const {
    return shares_memory(j_, end.peer) && !options_.add && fields().source.size() <= comm::joint_source::most_fields &&
           comm::joint_pays(wished(), costs_, std::max(bytes_of(end.out), bytes_of(end.in)));
}

bool region_paths::is_offered(const region_end& end) const {
    return may_be_joint(end) && comm::joint_pays(wished(), costs_, bytes_of(end.out)) &&
           all_in_slab(j_, bindings_, true);
}

obstacle region_paths::obstacle_of(const region_end& end) const {
    if (options_.add || options_.format != message_format::as_stored || options_.checksums) return obstacle::changed;
    if (!comm::direct_obstacle(j_, end.peer).empty()) return obstacle::transport;
    if (end.over_network && options_.path == path::streamed) return obstacle::streaming;
    if (!all_in_slab(j_, bindings_, end.over_network)) return obstacle::outside_slab;
    if (end.over_network && !(in_few_runs(end.out, fields().source) && in_few_runs(end.in, fields().destination)))
        return obstacle::scattered;
    return obstacle::none;
}

std::string region_paths::reason(obstacle o, const region_end& end, int rank) const {
    switch (o) {
    case obstacle::none: return {};
    case obstacle::changed:
        return options_.add         ? "what is added waits in slots"
               : options_.checksums ? "what carries a checksum waits in slots"
                                    : "what is sent in another format waits in slots";
    case obstacle::transport: return comm::direct_obstacle(j_, end.peer);
    case obstacle::streaming: return "over " + end.transport + " there are no stores that could bypass a cache";
    case obstacle::outside_slab: return "a field of " + rank_text(rank) + " is not in its slab";
    case obstacle::scattered:
        return "over " + end.transport + " only sites that lie in at most " + std::to_string(most_runs) +
               " runs can be written in place, those of " + rank_text(rank) + " do not";
    case obstacle::not_registered:
        return "a field of " + rank_text(rank) + " can't be registered" +
               (rank == j_.rank() ? ": " + why_not_registered_ : std::string());
    }
    return {};
}

verdict<path> region_paths::verdict_on(const region_end& end, obstacle in_the_way,
                                       const message_outline& message) const {
    if (in_the_way != obstacle::none) return {path::packed, reason(in_the_way, end, j_.rank())};
    if (options_.path == path::streamed || options_.path == path::joint) return {path::direct, "asked for"};
    if (options_.path != path::automatic) return {options_.path, "asked for"};
    if (j_.options().path == path::packed) return {path::packed, "the job asks for it"};
    return end.over_network ? choose_network_path(costs_, message.bytes, message.runs) : choose_path(costs_, message);
}

message_outline region_paths::seen_from_here(const region_end& end) const {
    // By the larger direction: an end that only receives would otherwise find that nothing is to be saved.
    const bool sends_more = bytes_of(end.out) >= bytes_of(end.in);
    const std::vector<position_list>& sites = sends_more ? end.out : end.in;
    message_outline seen{.bytes = bytes_of(sites)};
    for (std::size_t f = 0; f < sites.size(); ++f) {
        const field_view& field = sends_more ? fields().source[f] : fields().destination[f];
        const std::int64_t runs = field.order->lane_width() == 1 ? sites[f].count_runs() : sites[f].size();
        const std::size_t site_bytes = field.shape.bytes(),
                          bytes = static_cast<std::size_t>(sites[f].size()) * site_bytes;
        seen.runs += runs;
        seen.in_runs = seen.in_runs || fills_in_runs(runs, bytes, site_bytes);
    }
    if (end.over_network) return seen;
    if (may_share_lines(end)) seen.shared_lines = lines_shared_by(end);
    seen.filled = lines_filled_by(end);
    return seen;
}

bool region_paths::register_fields(const region_end& end) {
    const auto [place, fresh] = registered_.emplace(end.transport, nullptr);
    if (!fresh) return place->second != nullptr;
    std::vector<std::span<std::byte>> memory;
    for (const auto which : {&binding::destination, &binding::source})
        for (const binding& b : bindings_)
            for (const field_view& f : b.*which) memory.emplace_back(f.data, std::max<std::size_t>(f.bytes(), 1));
    try {
        place->second = comm::register_fields(j_, end.transport, memory);
    } catch (const job_error& e) {
        why_not_registered_ = e.what();
    }
    return place->second != nullptr;
}

std::shared_ptr<const comm::direct_memory> region_paths::registered(const region_end& end) const {
    const auto place = registered_.find(end.transport);
    return place == registered_.end() ? nullptr : place->second;
}

bool region_paths::may_share_lines(const region_end& end) const {
    const bool dear = costs_.scattered_line_seconds > costs_.cached.line_seconds;
    return dear && !end.over_network && end.peer != j_.rank(); // this core shares nothing with itself
}

double region_paths::lines_shared_by(const region_end& end) const {
    // Pairs count for small messages only (docs/decisions/0020-padded-ghosts.md): for those that outgrow the second-level
    // cache the second copy takes several times as long as the costs say.
    const bool by_pairs =
        comm::lines_come_in_pairs && bytes_of(end.in) + bytes_of(end.out) <= comm::largest_claimed() / 4;
    double lines = 0;
    for (std::size_t f = 0; f < end.in.size(); ++f) {
        const field_view& field = fields().destination[f];
        if (field.order->lane_width() > 1 || fields().source[f].data != field.data) continue; // no sites among ghosts
        lines += shared_lines(end.in[f], field, sent_.at(f), by_pairs ? 2 * line : line);
    }
    return lines;
}

comm::written_lines region_paths::lines_filled_by(const region_end& end) const {
    comm::written_lines all;
    for (std::size_t f = 0; f < end.in.size(); ++f) {
        const field_view& field = fields().destination[f];
        if (field.order->lane_width() > 1) return {};
        const auto site_bytes = static_cast<std::int64_t>(field.shape.bytes());
        for (const position_run& r : end.in[f].runs()) {
            const std::int64_t begin = start_in_lines(field) + r.first * site_bytes;
            add_lines(all, begin, begin + r.sites * site_bytes, r.stride * site_bytes, r.count);
        }
        const auto bytes = static_cast<std::size_t>(end.in[f].size() * site_bytes);
        all.in_runs = all.in_runs || are_short(end.in[f].count_runs(), bytes);
    }
    return all;
}

} // namespace halocline::halo
