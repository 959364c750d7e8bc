// SPDX-License-Identifier: Apache-2.0
#include "surface_map.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace halocline::dirac {

using lattice::coordinate;
using lattice::dimensions;
using lattice::face;
using lattice::side;

namespace {

/// Colour of the block that holds a site of the global lattice.
int colour_of(const lattice::block_layout& b, const coordinate& global_site) {
    if (!b.two_colours) return 0;
    coordinate block{};
    for (int mu = 0; mu < dimensions; ++mu) block[mu] = global_site[mu] / b.block[mu];
    return lattice::parity(block);
}

/// Begins the next group of each list.
void begin_group(surface_lists& s, int face) {
    const auto begin = [](auto& list) { list.begin.push_back(static_cast<std::int32_t>(list.outer.size())); };
    begin(s.to_local[face]), begin(s.to_message[face]);
    begin(s.from_local[face]), begin(s.from_ghosts[face]);
}

/// Appends the entries of the lanes of one outer index, unless all are `none`.
template <class List>
void append(List& list, std::int64_t outer, std::span<const std::int32_t> entries, std::int32_t none) {
    if (std::ranges::all_of(entries, [&](std::int32_t e) { return e == none; })) return;
    list.outer.push_back(static_cast<std::int32_t>(outer));
    list.entry.insert(list.entry.end(), entries.begin(), entries.end());
}

} // namespace

bool in_source_set(const lattice::block_layout& b, int set, const coordinate& global) {
    return set == 0 || source_set(colour_of(b, global)) == set;
}

surface_map::surface_map(const lattice::decomposition& cut, int rank, std::shared_ptr<const lattice::site_order> order)
    : cut_(cut), order_(std::move(order)), origin_(cut.local_box(rank).origin), extents_(cut.local_box(rank).extents) {
    for (int index = 0; index < lattice::faces; ++index) number_local_entries(lattice::face_of(index));
}

bool surface_map::selected(int set, const coordinate& local) const {
    coordinate global = local;
    for (int mu = 0; mu < dimensions; ++mu)
        global[mu] = (local[mu] + origin_[mu] + cut_.global()[mu]) % cut_.global()[mu];
    return in_source_set(blocks(), set, global);
}

/// True if the hop from this local site over face f leaves its block.
bool surface_map::leaves_block(const coordinate& x, face f) const {
    const int extent = blocks().block[f.mu];
    return x[f.mu] % extent == (f.end == side::high ? extent - 1 : 0);
}

/// The site behind face f of local site x, if this rank owns it.
std::optional<coordinate> surface_map::local_neighbour(coordinate x, face f) const {
    x[f.mu] += f.end == side::high ? 1 : -1;
    if (x[f.mu] >= 0 && x[f.mu] < extents_[f.mu]) return x;
    if (cut_.rank_grid()[f.mu] > 1) return std::nullopt;
    x[f.mu] = (x[f.mu] + extents_[f.mu]) % extents_[f.mu];
    return x;
}

/// Places in the local table, in storage order of the sources.
void surface_map::number_local_entries(face f) {
    std::vector<std::int32_t>& entries = local_entry_[f.index()];
    entries.assign(static_cast<std::size_t>(order_->volume()), 0);
    std::int32_t next = 1;
    for (std::int64_t position = 0; position < order_->outer_sites() * order_->lane_width(); ++position) {
        const std::int64_t site = order_->site(position);
        if (site < 0) continue;
        const coordinate source = lattice::lexicographic_coordinate(site, extents_);
        // the hop leaves the source's block over the opposite face
        if (leaves_block(source, f.opposite()) && local_neighbour(source, f.opposite()))
            entries[static_cast<std::size_t>(site)] = next++;
    }
    local_entries_[f.index()] = static_cast<std::size_t>(next);
}

surface_map::face_entries surface_map::entries_of(int set, face f, const halo::plan& plan) const {
    face_entries entries;
    // sources sit at the opposite end of this rank's box
    entries.message.assign(static_cast<std::size_t>(order_->volume()), -1);
    if (const int m = plan.message_of(f.opposite()); m >= 0) {
        const auto& sites = plan.messages()[m].send_sites;
        for (std::size_t i = 0; i < sites.size(); ++i)
            entries.message[static_cast<std::size_t>(sites[i])] = static_cast<std::int32_t>(i);
    }
    // ghosts come in the same order as in the message
    coordinate face_extents = extents_;
    face_extents[f.mu] = 1;
    std::int32_t ghosts = 0;
    for (std::int64_t i = 0; i < lattice::volume(face_extents); ++i) {
        coordinate ghost = lattice::lexicographic_coordinate(i, face_extents);
        ghost[f.mu] = f.end == side::high ? extents_[f.mu] : -1;
        entries.ghost.push_back(selected(set, ghost) ? ghosts++ : -1);
    }
    return entries;
}

/// Entry of surface_targets for destination x: 2 * place + table, 0: nothing to take.
std::int32_t surface_map::target_entry(int set, face f, const coordinate& x, const face_entries& entries) const {
    if (const std::optional<coordinate> source = local_neighbour(x, f))
        return selected(set, *source) ? 2 * local_entry_[f.index()][lattice::lexicographic_index(*source, extents_)]
                                      : 0;
    coordinate face_extents = extents_, in_face = x;
    face_extents[f.mu] = 1;
    in_face[f.mu] = 0;
    const std::int32_t ghost = entries.ghost[lattice::lexicographic_index(in_face, face_extents)];
    return ghost >= 0 ? 2 * ghost + 1 : 0;
}

surface_lists surface_map::lists(int set, const halo::plan& plan) const {
    surface_lists s;
    const int lanes = order_->lane_width();
    for (int index = 0; index < lattice::faces; ++index) {
        const face f = lattice::face_of(index);
        const face_entries entries = entries_of(set, f, plan);
        for (std::int64_t outer = 0; outer < order_->outer_sites(); ++outer) {
            if (outer % blocks().sites_per_group == 0) begin_group(s, index);
            std::vector<std::int32_t> to_local(lanes, -1), to_message(lanes, -1), from(lanes, 0);
            for (int lane = 0; lane < lanes; ++lane) {
                const std::int64_t site = order_->site(outer * lanes + lane);
                if (site < 0) continue;
                const coordinate x = lattice::lexicographic_coordinate(site, extents_);
                if (leaves_block(x, f.opposite()) && selected(set, x)) {
                    if (const std::int32_t entry = local_entry_[index][static_cast<std::size_t>(site)]; entry > 0)
                        to_local[lane] = entry;
                    else
                        to_message[lane] = entries.message[static_cast<std::size_t>(site)];
                }
                if (leaves_block(x, f)) from[lane] = target_entry(set, f, x, entries);
            }
            append(s.to_local[index], outer, to_local, -1);
            append(s.to_message[index], outer, to_message, -1);
            const bool ghosts_needed = std::ranges::any_of(from, [](std::int32_t e) { return (e & 1) != 0; });
            append(ghosts_needed ? s.from_ghosts[index] : s.from_local[index], outer, from, 0);
        }
        begin_group(s, index); // the end of the last one
    }
    return s;
}

} // namespace halocline::dirac
