// SPDX-License-Identifier: Apache-2.0
#include "region_transfers.hpp"

#include <halocline/base/enumerators.hpp>
#include <halocline/base/error.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace halocline::halo {
namespace {

[[noreturn]] void throw_no_site(std::int32_t site, const lattice::site_order& order, const transfer& t,
                                const std::string& name) {
    throw input_error("'" + name + "': site " + std::to_string(site) + " is not in the field of " +
                      std::to_string(order.volume()) + " sites, in the transfer with " + rank_text(t.peer) + ", tag " +
                      std::to_string(t.tag));
}

bool is_in(std::int32_t site, const lattice::site_order& order) { return site >= 0 && site < order.volume(); }

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
    if (view.order->lane_width() > 1 && bytes != 2 && bytes != 4 && bytes != 8)
        throw input_error(where + "components of " + std::to_string(bytes) +
                          " bytes in a storage with lanes: must be of 2, 4 or 8");
}

bool alike(const field_view& a, const field_view& b) { return a.shape == b.shape && a.order->places_like(*b.order); }

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

void require_storage(const std::vector<binding>& bindings, const std::string& who) {
    if (bindings.empty() || bindings.front().source.empty()) throw input_error(who + "no field is bound");
    for (const binding& b : bindings)
        for (const std::vector<field_view>* views : {&b.source, &b.destination})
            for (const field_view& f : *views)
                if (!f.order || f.data == nullptr)
                    throw input_error(who + "a field is bound that has no storage: it was made without an order, or "
                                            "moved from");
}

void throw_no_binding(const std::string& who, int which, std::size_t bindings) {
    throw input_error(who + ": start(" + std::to_string(which) + "): the plan was made with " +
                      std::to_string(bindings) + (bindings == 1 ? " binding, 0" : " bindings, from 0 on"));
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
    require_storage(bindings, who);
    require_enumerator(who + "path", options.path);
    const binding& first = bindings.front();
    for (const binding& b : bindings) {
        if (b.source.size() != first.source.size() || b.destination.size() != first.source.size())
            throw input_error(who + "each binding needs as many sources and destinations as the first has sources, " +
                              std::to_string(first.source.size()));
        for (std::size_t f = 0; f < b.source.size(); ++f) {
            for (const field_view& v : {b.source[f], b.destination[f]}) check_shape(v, who, f);
            if (!alike(b.source[f], first.source[f]) || !alike(b.destination[f], first.destination[f]))
                throw input_error(who + "field " + std::to_string(f) +
                                  " differs between bindings: all must have the same components and site order");
            if (b.source[f].shape != b.destination[f].shape)
                throw input_error(who + "field " + std::to_string(f) + " has " + text_of(b.source[f].shape) +
                                  " per site as source and " + text_of(b.destination[f].shape) + " as destination");
            if (options.add && b.source[f].shape.kind == scalar::bits)
                throw input_error(who + "field " + std::to_string(f) +
                                  " is not of float or double: nothing can be added");
        }
    }
    const bool fills =
        std::any_of(receives.begin(), receives.end(), [](const transfer& t) { return !t.sites.empty(); });
    for (const binding& b : bindings)
        for (std::size_t f = 0; fills && !options.add && f < b.destination.size(); ++f)
            for (std::size_t g = 0; g < f; ++g)
                if (b.destination[f].data == b.destination[g].data)
                    throw input_error(who + "fields " + std::to_string(g) + " and " + std::to_string(f) +
                                      " of a binding have one destination: its sites would be received twice");
    for (std::size_t f = 0; f < first.source.size(); ++f) {
        const lattice::site_order &from = *first.source[f].order, &to = *first.destination[f].order;
        std::vector<char> received(static_cast<std::size_t>(to.volume())); // bytes, because bits take longer to set
        for (const transfer& t : receives)
            for (const std::int32_t site : t.sites) {
                if (!is_in(site, to)) throw_no_site(site, to, t, options.name);
                if (std::exchange(received[site], 1) != 0 && !options.add)
                    throw input_error(who + "site " + std::to_string(site) +
                                      " is received twice, last in the transfer with " + rank_text(t.peer) + ", tag " +
                                      std::to_string(t.tag));
            }
        // In place if any destination is this field: all bindings have the same sites.
        const bool in_place = std::any_of(bindings.begin(), bindings.end(), [&](const binding& b) {
            return std::any_of(b.destination.begin(), b.destination.end(), [&](const field_view& d) {
                return b.source[f].data == d.data && from.places_like(*d.order);
            });
        });
        for (const transfer& t : sends)
            for (const std::int32_t site : t.sites) {
                if (!is_in(site, from)) throw_no_site(site, from, t, options.name);
                if (in_place && received[site] != 0)
                    throw input_error(who + "site " + std::to_string(site) +
                                      " is both sent and received in one exchange");
            }
    }
}

sites_by_tag count_sites(const std::vector<transfer>& list, const by_tag& tags) {
    sites_by_tag sites;
    for (const auto& [tag, i] : tags) sites.emplace(tag, std::ssize(list[i].sites));
    return sites;
}

void compare_transfers(const sites_by_tag& sent, const sites_by_tag& expected, int from, int to,
                       const std::string& name) {
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
    return position_list::of([&](auto&& visit) {
        for (const auto& [tag, i] : tags)
            for (const std::int32_t site : list[i].sites) visit(order.position(site));
    });
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
