// SPDX-License-Identifier: Apache-2.0
#include "surface_map.hpp"

#include <algorithm>
#include <utility>

namespace halocline::dirac {

using lattice::coordinate;
using lattice::dimensions;
using lattice::face;
using lattice::side;

namespace {

/// Is a site of the global lattice in a block of this colour?
bool is_in(block_colour colour, const lattice::block_layout& b, const coordinate& global_site) {
    if (colour == block_colour::all) return true;
    coordinate block{};
    for (int mu = 0; mu < dimensions; ++mu) block[mu] = global_site[mu] / b.block[mu];
    const bool black = b.two_colours && lattice::parity(block) == 1;
    return black == (colour == block_colour::black);
}

/// One list, group by group: the outer indices at which some lane has an entry in `entries` ([site], -1: none).
template <class List>
List list_of(const lattice::site_order& order, const std::vector<std::int32_t>& entries) {
    List list;
    std::vector<std::int32_t> lanes(static_cast<std::size_t>(order.lane_width()));
    for (std::int64_t outer = 0; outer < order.outer_sites(); ++outer) {
        if (outer % order.blocks()->sites_per_group == 0)
            list.begin.push_back(static_cast<std::int32_t>(list.outer.size()));
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
            const std::int64_t site = order.site(outer * order.lane_width() + static_cast<std::int64_t>(lane));
            lanes[lane] = site < 0 ? -1 : entries[site];
        }
        if (std::ranges::all_of(lanes, [](std::int32_t e) { return e < 0; })) continue;
        list.outer.push_back(static_cast<std::int32_t>(outer));
        list.entry.insert(list.entry.end(), lanes.begin(), lanes.end());
    }
    list.begin.push_back(static_cast<std::int32_t>(list.outer.size()));
    return list;
}

} // namespace

surface_map::surface_map(const lattice::decomposition& cut, int rank, std::shared_ptr<const lattice::site_order> order)
    : order_(std::move(order)), origin_(cut.local_box(rank).origin), extents_(cut.local_box(rank).extents) {}

/// [site]: index in the message of what hops over face f need, -1: not in it.
std::vector<std::int32_t> surface_map::places_in_message(face f, const halo::plan& plan) const {
    std::vector<std::int32_t> places(static_cast<std::size_t>(order_->volume()), -1);
    // sources are at the opposite end of this rank's box
    if (const int m = plan.message_of(f.opposite()); m >= 0) {
        const auto& sites = plan.messages()[m].send_sites;
        for (std::size_t i = 0; i < sites.size(); ++i) places[sites[i]] = static_cast<std::int32_t>(i);
    }
    return places;
}

/// [site]: index of its source among the ghosts behind face f, -1: it has none there.
std::vector<std::int32_t> surface_map::places_among_ghosts(face f, const halo::plan& plan) const {
    std::vector<std::int32_t> places(static_cast<std::size_t>(order_->volume()), -1);
    std::int32_t ghosts = 0;
    for (coordinate x : plan.ghost_sites(f)) {
        for (int mu = 0; mu < dimensions; ++mu) x[mu] -= origin_[mu];
        x[f.mu] = f.end == side::high ? extents_[f.mu] - 1 : 0; // the site that hops there
        places[lattice::lexicographic_index(x, extents_)] = ghosts++;
    }
    return places;
}

surface_lists surface_map::lists(const halo::plan& plan) const {
    surface_lists s;
    for (int index = 0; index < lattice::faces; ++index) {
        const face f = lattice::face_of(index);
        s.to_message[index] = list_of<kernels::surface_sources>(*order_, places_in_message(f, plan));
        s.from_ghosts[index] = list_of<kernels::surface_targets>(*order_, places_among_ghosts(f, plan));
    }
    return s;
}

std::unique_ptr<surface_exchange> make_surface_exchange(const comm::job& j, const lattice::decomposition& cut,
                                                        const std::shared_ptr<const lattice::site_order>& order,
                                                        block_colour sources, std::size_t half_spinor_bytes) {
    halo::plan_options options;
    options.bytes_per_site = half_spinor_bytes;
    options.name = "surfaces";
    if (sources != block_colour::all) {
        options.name += sources == block_colour::red ? " of red blocks" : " of black blocks";
        options.select = [b = *order->blocks(), sources](const coordinate& x) { return is_in(sources, b, x); };
    }
    std::unique_ptr<surface_exchange> made(new surface_exchange{sources, {j, cut, options}, {}});
    j.collectively([&] { made->lists = surface_map(cut, j.rank(), order).lists(made->plan); });
    return made;
}

} // namespace halocline::dirac
