// SPDX-License-Identifier: Apache-2.0
#include "region_transfers.hpp"

#include "format_checks.hpp"
#include "position_set.hpp"
#include "run_collector.hpp"
#include "site_conversion.hpp"

#include <halocline/base/enumerators.hpp>
#include <halocline/base/error.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace halocline::halo {
namespace {

/// Arrays and boxes number their sites with 32 bits.
constexpr std::int64_t most_sites = std::numeric_limits<std::int32_t>::max();

std::string in_transfer(const transfer& t) {
    return "in the transfer with " + rank_text(t.peer) + ", tag " + std::to_string(t.tag);
}

/// Calls use(site) for the first site of each row of a box.
template <class Use>
void for_each_row(const strided_box& box, Use&& use) {
    const auto& [nx, ny, nz, nt] = box.extents;
    if (box.sites() == 0) return;
    for (std::int64_t t = 0; t < nt; ++t)
        for (std::int64_t z = 0; z < nz; ++z)
            for (std::int64_t y = 0; y < ny; ++y)
                use(box.first + y * box.strides[1] + z * box.strides[2] + t * box.strides[3]);
}

/// Err: input_error unless the field has that site.
void check_site(std::int64_t site, const lattice::site_order& order, const transfer& t, const std::string& who) {
    if (site < 0 || site >= order.volume())
        throw input_error(who + "site " + std::to_string(site) + " is not in the field of " +
                          std::to_string(order.volume()) + " sites, " + in_transfer(t));
    if (order.position(site) < 0)
        throw input_error(who + "site " + std::to_string(site) +
                          " has no value in the field, whose site order holds one parity alone, " + in_transfer(t));
}

void check_box(const strided_box& box, const lattice::site_order& order, const transfer& t, const std::string& who) {
    const auto extents = [&] { return lattice::to_string(box.extents); };
    if (std::ranges::any_of(box.extents, [](int e) { return e < 0; }))
        throw input_error(who + "a box of " + extents() + ": extents must be 0 or more, " + in_transfer(t));
    const std::optional<std::int64_t> sites = lattice::volume_up_to(most_sites, box.extents);
    if (!sites)
        throw input_error(who + "a box of " + extents() + " has more than " + std::to_string(most_sites) + " sites, " +
                          in_transfer(t));
    if (*sites == 0) return;
    std::int64_t low = box.first, high = box.first;
    check_site(box.first, order, t, who);
    for (int mu = 0; mu < lattice::dimensions; ++mu) {
        if (box.extents[mu] == 1) continue;
        const std::int64_t stride = box.strides[mu], volume = order.volume();
        if (stride <= -volume || stride >= volume)
            throw input_error(who + "a box has stride " + std::to_string(stride) + " in " +
                              lattice::dimension_name[mu] + ", the field " + std::to_string(volume) + " sites, " +
                              in_transfer(t));
        const std::int64_t span = (box.extents[mu] - 1) * stride;
        check_site((span < 0 ? low : high) += span, order, t, who);
    }
    if (order.is_whole()) return;
    for_each_row(box, [&](std::int64_t row) {
        for (std::int64_t x = 0; x < box.extents[0]; ++x) check_site(row + x * box.strides[0], order, t, who);
    });
}

/// Err: input_error unless the field has all sites of these transfers.
void check_sites(const std::vector<transfer>& list, const lattice::site_order& order, const std::string& who) {
    for (const transfer& t : list) {
        for (const std::int32_t site : t.sites) check_site(site, order, t, who);
        for (const strided_box& box : t.boxes) check_box(box, order, t, who);
    }
}

/// Calls use(row, stride, rows) for rows of a box at equal distances, from the one whose first site is `row` on.
template <class Use>
void for_each_plane(const strided_box& box, Use&& use) {
    int mu = 1; // along which there are several rows
    while (mu + 1 < lattice::dimensions && box.extents[mu] == 1) ++mu;
    strided_box planes = box;
    const int rows = std::exchange(planes.extents[mu], 1);
    if (rows > 0) for_each_row(planes, [&](std::int64_t row) { use(row, box.strides[mu], rows); });
}

/// Adds the storage positions of a transfer's sites, in message order.
void collect_positions(const transfer& t, const lattice::site_order& order, run_collector& positions) {
    const auto collect_site = [&](std::int64_t site) {
        const std::int64_t position = order.position(site);
        positions.add(position, position + 1);
    };
    for (const std::int32_t site : t.sites) collect_site(site);
    for (const strided_box& box : t.boxes) {
        const int sites = box.extents[0];
        if (order.is_lexicographic() && box.strides[0] == 1)
            for_each_plane(box, [&](std::int64_t row, std::int64_t stride, int rows) {
                positions.add({row, stride, sites, rows});
            });
        else
            for_each_row(box, [&](std::int64_t row) {
                for (int x = 0; x < sites; ++x) collect_site(row + x * box.strides[0]);
            });
    }
}

position_list positions(const transfer& t, const lattice::site_order& order) {
    run_collector all;
    collect_positions(t, order, all);
    return position_list(all.take());
}

/// Do both orders put all sites of these transfers in the same places?
bool place_alike(const lattice::site_order& a, const lattice::site_order& b, const std::vector<transfer>& list) {
    if (&a == &b) return true;
    if (a.extents() != b.extents() || a.lane_width() != b.lane_width()) return false;
    if (a.is_lexicographic() && b.is_lexicographic()) return true;
    return std::ranges::all_of(list, [&](const transfer& t) { return positions(t, a) == positions(t, b); });
}

/// Err: input_error unless the fields can be multiplied by the phases of what they receive.
void check_phases(const std::vector<transfer>& sends, const std::vector<transfer>& receives,
                  const std::vector<field_view>& fields, const std::string& who) {
    for (const transfer& t : sends)
        if (t.phase != 1.0)
            throw input_error(who + phase_text(t.phase) + ": sends have none, it belongs to the receive, " +
                              in_transfer(t));
    for (const transfer& t : receives) {
        if (t.phase == 1.0) continue;
        check_phase_finite(who, t.phase, ' ' + in_transfer(t));
        for (std::size_t f = 0; f < fields.size(); ++f) {
            const site_shape& shape = fields[f].shape;
            const std::string field = who + "field " + std::to_string(f) + " ";
            if (shape.kind == scalar::bits)
                throw input_error(field + "is not of float or double: nothing can be multiplied by " +
                                  phase_text(t.phase) + ", " + in_transfer(t));
            if (t.phase.imag() != 0 && shape.components % 2 != 0)
                throw input_error(field + "has " + std::to_string(shape.components) +
                                  " components per site, which are no pairs (re, im) to multiply by " +
                                  phase_text(t.phase) + ", " + in_transfer(t));
            if (shape.bytes() > conversion_bytes)
                throw input_error(field + "has " + std::to_string(shape.bytes()) + " bytes per site, more than the " +
                                  std::to_string(conversion_bytes) + " that can be multiplied by " +
                                  phase_text(t.phase) + ", " + in_transfer(t));
        }
    }
}

/// Err: input_error unless the fields can be sent in the format of the plan.
void check_formats(const region_plan_options& options, const std::vector<field_view>& fields, const std::string& who) {
    check_format(who, options.format, options.scale);
    if (options.format == message_format::as_stored) return;
    for (std::size_t f = 0; f < fields.size(); ++f) {
        const site_shape& shape = fields[f].shape;
        const std::string field = who + "field " + std::to_string(f) + " ";
        if (shape.kind != scalar::float32)
            throw input_error(field + "has " + text_of(shape) + " per site: " + std::string(to_string(options.format)) +
                              " messages are made of floats");
        if (shape.bytes() > conversion_bytes)
            throw input_error(field + "has " + std::to_string(shape.bytes()) + " bytes per site, more than the " +
                              std::to_string(conversion_bytes) + " that a change of format takes");
    }
}

/// Err: input_error unless a site of this view can be copied, and added to.
void check_shape(const field_view& view, const std::string& who, std::size_t field) {
    const site_shape& shape = view.shape;
    const std::string where = who + "field " + std::to_string(field) + ": ";
    require_enumerator(where + "scalar", shape.kind);
    if (shape.components < 1)
        throw input_error(where + std::to_string(shape.components) + " components per site: must be 1 or more");
    const std::size_t bytes = shape.component_bytes;
    if (bytes == 0 || (shape.kind == scalar::float32 && bytes != 4) || (shape.kind == scalar::float64 && bytes != 8))
        throw input_error(where + "components of " + std::to_string(bytes) + " bytes, " +
                          std::string(to_string(shape.kind)) +
                          ": must be float32 of 4, float64 of 8, or bits of 1 or more");
    constexpr std::size_t most = std::size_t{1} << 47; // the address space of a process
    if (bytes > most / static_cast<std::size_t>(shape.components))
        throw input_error(where + std::to_string(shape.components) + " components of " + std::to_string(bytes) +
                          " bytes per site, more than any memory holds");
    if (view.order->lane_width() > 1 && bytes != 2 && bytes != 4 && bytes != 8)
        throw input_error(where + "components of " + std::to_string(bytes) +
                          " bytes in a storage with lanes: must be of 2, 4 or 8");
}

/// Err: input_error unless all bindings have fields of the same shapes and orders as the first.
void check_bindings(const std::vector<transfer>& sends, const std::vector<transfer>& receives,
                    const std::vector<binding>& bindings, bool add, const std::string& who) {
    const binding& first = bindings.front();
    for (const binding& b : bindings) {
        for (std::size_t f = 0; f < b.source.size(); ++f) {
            const field_view &from = b.source[f], &to = b.destination[f];
            for (const field_view& v : {from, to}) check_shape(v, who, f);
            if (from.shape != first.source[f].shape || to.shape != first.destination[f].shape ||
                !place_alike(*from.order, *first.source[f].order, sends) ||
                !place_alike(*to.order, *first.destination[f].order, receives))
                throw input_error(who + "field " + std::to_string(f) +
                                  " differs between bindings: all must have the same components and site order");
            if (from.shape != to.shape)
                throw input_error(who + "field " + std::to_string(f) + " has " + text_of(from.shape) +
                                  " per site as source and " + text_of(to.shape) + " as destination");
            if (add && from.shape.kind == scalar::bits)
                throw input_error(who + "field " + std::to_string(f) +
                                  " is not of float or double: nothing can be added");
        }
    }
}

/// Err: input_error if two fields of a binding have one destination, and anything is stored there.
void check_destinations(const std::vector<transfer>& receives, const std::vector<binding>& bindings, bool add,
                        const std::string& who) {
    if (add || std::ranges::all_of(receives, [](const transfer& t) { return sites_in(t) == 0; })) return;
    for (const binding& b : bindings)
        for (std::size_t f = 0; f < b.destination.size(); ++f)
            for (std::size_t g = 0; g < f; ++g)
                if (b.destination[f].data == b.destination[g].data)
                    throw input_error(who + "fields " + std::to_string(g) + " and " + std::to_string(f) +
                                      " of a binding have one destination: its sites would be received twice");
}

/// Err: input_error if a site is received twice and stored, or if one is both sent and received.
void check_overlaps(const std::vector<transfer>& sends, const std::vector<transfer>& receives,
                    const std::vector<binding>& bindings, bool add, const std::string& who) {
    std::map<const lattice::site_order*, position_set> received; // by the order that places the sites
    const auto received_in = [&](const lattice::site_order& order) -> const position_set& {
        const auto [place, fresh] = received.try_emplace(&order);
        for (std::size_t i = 0; fresh && i < receives.size(); ++i) {
            const std::int64_t again = place->second.add(positions(receives[i], order));
            if (again >= 0 && !add)
                throw input_error(who + "site " + std::to_string(order.site(again)) + " is received twice, last " +
                                  in_transfer(receives[i]));
        }
        return place->second;
    };
    for (const field_view& f : bindings.front().destination) received_in(*f.order);
    std::set<std::pair<const lattice::site_order*, const lattice::site_order*>> compared;
    for (const binding& b : bindings)
        for (const field_view& from : b.source)
            for (const field_view& to : b.destination) {
                if (from.data != to.data || from.order->lane_width() != to.order->lane_width()) continue;
                if (!compared.emplace(from.order.get(), to.order.get()).second) continue;
                for (const transfer& t : sends)
                    if (const std::int64_t both = received_in(*to.order).common(positions(t, *from.order)); both >= 0)
                        throw input_error(who + "site " + std::to_string(from.order->site(both)) +
                                          " is both sent and received in one exchange");
            }
}

} // namespace

std::string rank_text(int rank) { return "rank " + std::to_string(rank); }

std::string text_of(const site_shape& shape) {
    const std::string n = std::to_string(shape.components), s = shape.components == 1 ? "" : "s";
    switch (shape.kind) {
    case scalar::float32: return n + " float" + s;
    case scalar::float64: return n + " double" + s;
    case scalar::bits: break;
    }
    return n + " word" + s + " of " + std::to_string(shape.component_bytes) + " bytes";
}

void require_fields(const std::vector<binding>& bindings, const std::string& who) {
    if (bindings.empty() || bindings.front().source.empty()) throw input_error(who + "no field is bound");
    const std::size_t fields = bindings.front().source.size();
    for (const binding& b : bindings)
        if (b.source.size() != fields || b.destination.size() != fields)
            throw input_error(who + "each binding needs as many sources and destinations as the first has sources, " +
                              std::to_string(fields));
    for (const binding& b : bindings)
        for (const std::vector<field_view>* views : {&b.source, &b.destination})
            for (const field_view& f : *views)
                if (!f.order || f.data == nullptr)
                    throw input_error(who +
                                      "a field is bound that has no storage: it was made without an order or moved "
                                      "from, or is a view of a null address");
}

std::string no_binding(const std::string& who, const std::string& call, int which, std::size_t bindings) {
    return who + ": " + call + "(" + std::to_string(which) + "): the plan was made with " + std::to_string(bindings) +
           (bindings == 1 ? " binding, 0" : " bindings, from 0 on");
}

by_peer sorted_transfers(const std::vector<transfer>& list, const char* verb, const comm::job& j,
                         const std::string& name) {
    const int ranks = j.ranks(), me = j.rank();
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

void check_transfers(const std::vector<transfer>& sends, const std::vector<transfer>& receives,
                     const std::vector<binding>& bindings, const region_plan_options& options) {
    const std::string who = "'" + options.name + "': ";
    require_fields(bindings, who);
    require_enumerator(who + "path", options.path);
    const binding& first = bindings.front();
    for (const field_view& f : first.destination) check_sites(receives, *f.order, who);
    for (const field_view& f : first.source) check_sites(sends, *f.order, who);
    check_bindings(sends, receives, bindings, options.add, who);
    check_phases(sends, receives, first.destination, who);
    check_formats(options, first.source, who);
    check_destinations(receives, bindings, options.add, who);
    check_overlaps(sends, receives, bindings, options.add, who);
}

std::int64_t sites_in(const transfer& t) {
    std::int64_t sites = std::ssize(t.sites);
    for (const strided_box& box : t.boxes) sites += box.sites();
    return sites;
}

void append_sites(const transfer& t, std::vector<std::int32_t>& sites) {
    sites.insert(sites.end(), t.sites.begin(), t.sites.end());
    for (const strided_box& box : t.boxes)
        for_each_row(box, [&](std::int64_t row) {
            for (int x = 0; x < box.extents[0]; ++x)
                sites.push_back(static_cast<std::int32_t>(row + x * box.strides[0]));
        });
}

sites_by_tag count_sites(const std::vector<transfer>& list, const by_tag& tags) {
    sites_by_tag sites;
    for (const auto& [tag, i] : tags) sites.emplace(tag, sites_in(list[i]));
    return sites;
}

void compare_transfers(const sites_by_tag& sent, const sites_by_tag& expected, int from, int to,
                       const std::string& name) {
    if (sent == expected) return;
    const auto text = [](const sites_by_tag& all, std::uint32_t tag) {
        const auto place = all.find(tag);
        return place == all.end() ? "nothing" : std::to_string(place->second) + " sites";
    };
    sites_by_tag either = sent;
    either.insert(expected.begin(), expected.end());
    for (const auto& [tag, sites] : either) {
        const std::string here = text(sent, tag), there = text(expected, tag);
        if (here != there)
            throw input_error("'" + name + "': " + rank_text(from) + " sends " + here + " as tag " +
                              std::to_string(tag) + " to " + rank_text(to) + ", which expects " + there +
                              "; list the transfer on both ranks, with the same tag and number of sites");
    }
}

position_list positions(const std::vector<transfer>& list, const by_tag& tags, const lattice::site_order& order) {
    run_collector all;
    for (const auto& [tag, i] : tags) collect_positions(list[i], order, all);
    return position_list(all.take());
}

strided_box box_in(const lattice::box& part, const lattice::coordinate& array, const lattice::coordinate& every,
                   std::int64_t first) {
    strided_box box{.first = first};
    std::int64_t distance = 1;
    for (int mu = 0; mu < lattice::dimensions; ++mu) {
        const std::int64_t origin = part.origin[mu], sites = part.extents[mu];
        if (origin < 0 || sites < 0 || origin + sites > array[mu])
            throw input_error("box_in: the box of " + lattice::to_string(part.extents) + " at " +
                              lattice::to_string(part.origin) + " does not lie in an array of " +
                              lattice::to_string(array));
        if (every[mu] < 1)
            throw input_error("box_in: every " + lattice::to_string(every) + ": must be 1 or more in each dimension");
        box.first += origin * distance;
        box.extents[mu] = static_cast<int>((sites + every[mu] - 1) / every[mu]);
        box.strides[mu] = every[mu] * distance;
        distance *= array[mu]; // below 2^62
        if (distance > most_sites)
            throw input_error("box_in: an array of " + lattice::to_string(array) + " has more than " +
                              std::to_string(most_sites) + " sites");
    }
    return box;
}

std::vector<std::int32_t> sites_of(const lattice::box& part, const lattice::coordinate& extents) {
    std::vector<std::int32_t> sites(static_cast<std::size_t>(part.volume()));
    lattice::coordinate x = part.origin;
    const auto last = [&](int mu) { return part.origin[mu] + part.extents[mu]; };
    auto row = sites.begin();
    for (x[3] = part.origin[3]; x[3] < last(3); ++x[3])
        for (x[2] = part.origin[2]; x[2] < last(2); ++x[2])
            for (x[1] = part.origin[1]; x[1] < last(1); ++x[1], row += part.extents[0])
                std::iota(row, row + part.extents[0],
                          static_cast<std::int32_t>(lattice::lexicographic_index(x, extents)));
    return sites;
}

} // namespace halocline::halo
