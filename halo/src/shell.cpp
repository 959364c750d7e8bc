// SPDX-License-Identifier: Apache-2.0
#include "box_layers.hpp"
#include "shell_regions.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>

namespace halocline::halo {

using lattice::coordinate;
using lattice::dimensions;

std::string_view to_string(shell s) {
    switch (s) {
    case shell::faces: return "faces";
    case shell::box: return "box";
    }
    return "?";
}

std::string_view to_string(ghost_layout l) {
    switch (l) {
    case ghost_layout::padded: return "padded";
    case ghost_layout::appended: return "appended";
    }
    return "?";
}

std::string_view to_string(corner_route r) {
    switch (r) {
    case corner_route::automatic: return "automatic";
    case corner_route::at_once: return "at once";
    case corner_route::by_dimension: return "by dimension";
    }
    return "?";
}

lattice::box grown(const lattice::box& local, const ghost_widths& widths) {
    check_grown("", local.extents, widths);
    for (const coordinate& side : {widths.low, widths.high})
        for (const int width : side)
            if (width < 0) throw input_error("ghost width " + std::to_string(width) + ": must be 0 or more");
    lattice::box b = local;
    for (int mu = 0; mu < dimensions; ++mu) {
        b.origin[mu] -= widths.low[mu];
        b.extents[mu] += widths.low[mu] + widths.high[mu];
    }
    return b;
}

appended_sites::appended_sites(const lattice::decomposition& cut, int rank, const shell_options& options)
    : local_(cut.local_box(rank)), volume_(local_.volume()) {
    region_along_.fill(-1);
    for (int n = 1; n <= (options.shape == shell::box ? dimensions : 1); ++n)
        for (int i = 0; i < directions; ++i) {
            const coordinate d = direction_of(i);
            if (distance(d) != n || !is_filled(cut, rank, options, d)) continue;
            region_along_[i] = static_cast<std::int8_t>(regions_.size());
            regions_.push_back({d, ghosts_along(cut, rank, options, d), volume_});
            volume_ += regions_.back().sites.volume();
        }
}

const appended_sites::region* appended_sites::ghosts(const coordinate& direction) const {
    if (std::ranges::any_of(direction, [](int step) { return step < -1 || step > 1; })) return nullptr;
    const int found = region_along_[index_of(direction)];
    return found < 0 ? nullptr : &regions_[found];
}

coordinate appended_sites::direction_to(const coordinate& site) const {
    coordinate d{};
    for (int mu = 0; mu < dimensions; ++mu)
        d[mu] = site[mu] < local_.origin[mu] ? -1 : site[mu] >= local_.origin[mu] + local_.extents[mu] ? 1 : 0;
    return d;
}

std::int64_t appended_sites::number(const coordinate& site) const {
    const region own{{}, local_, 0};
    const coordinate d = direction_to(site);
    const region* const r = d == coordinate{} ? &own : ghosts(d);
    if (r == nullptr || !r->sites.contains(site)) return -1;
    coordinate x = site;
    for (int mu = 0; mu < dimensions; ++mu) x[mu] -= r->sites.origin[mu];
    return r->first + lattice::lexicographic_index(x, r->sites.extents);
}

std::vector<std::int32_t> appended_sites::numbers(const lattice::box& part) const {
    std::vector<std::int32_t> list;
    list.reserve(static_cast<std::size_t>(part.volume()));
    const int begin = local_.origin[0], end = begin + local_.extents[0];
    for (std::int64_t row = 0; row < part.volume(); row += part.extents[0]) {
        coordinate x = part.site(row);
        // Within a row a region's sites are numbered consecutively.
        std::int64_t n = number(x);
        for (int i = 0; i < part.extents[0]; ++i, ++x[0], ++n) {
            if (i > 0 && (x[0] == begin || x[0] == end)) n = number(x);
            list.push_back(static_cast<std::int32_t>(n));
        }
    }
    return list;
}

std::shared_ptr<const lattice::site_order> appended_sites::order(const lattice::site_order& own) const {
    if (own.extents() != local_.extents)
        throw input_error("appended ghosts: the site order is of a box of " + lattice::to_string(own.extents()) +
                          ", the local box is " + lattice::to_string(local_.extents));
    return own.followed_by(volume_ - local_.volume());
}

} // namespace halocline::halo
