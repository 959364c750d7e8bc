// SPDX-License-Identifier: Apache-2.0
// What bench_halo asks of an MPI program: one exchange, by one mode, in a line of text.
#pragma once

#include "halo/box_faces.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <sstream>
#include <string>

namespace halocline::bench {

/// Ranks along each dimension; for a single rank 1 where it exchanges with itself, else 0.
inline coordinate cut_of(const point& p, int ranks) {
    coordinate cut = p.grid;
    if (ranks == 1)
        for (int mu = 0; mu < lattice::dimensions; ++mu) cut[mu] = p.cut(mu) ? 1 : 0;
    return cut;
}

struct exchange_order {
    std::string mode;
    point where;
    double seconds = 0;

    /// "mode layout Lx Ly Lz Lt bytes gx gy gz gt seconds", with cut_of() for g.
    [[nodiscard]] std::string text(int ranks) const {
        std::stringstream out;
        out << mode << ' ' << where.layout();
        for (const int e : where.extents) out << ' ' << e;
        out << ' ' << where.bytes_per_site;
        for (const int g : cut_of(where, ranks)) out << ' ' << g;
        out << ' ' << seconds;
        return out.str();
    }
    /// Nothing if the line is no such text, if it has extents below 2 or a site that is not made of words of 8 bytes,
    /// which are what is verified, or if no face of it is exchanged by so many ranks.
    [[nodiscard]] static std::optional<exchange_order> parse(const std::string& line, int ranks) {
        exchange_order o;
        std::string layout;
        coordinate cut{};
        std::stringstream in(line);
        in >> o.mode >> layout;
        for (int& e : o.where.extents) in >> e;
        in >> o.where.bytes_per_site;
        for (int& g : cut) in >> g;
        in >> o.seconds;
        if (!in || (layout != "padded" && layout != "appended")) return {};
        if (*std::ranges::min_element(o.where.extents) < 2 || *std::ranges::min_element(cut) < 0) return {};
        if (o.where.bytes_per_site < 8 || o.where.bytes_per_site % 8 != 0 || !(o.seconds > 0)) return {};
        o.where.padded = layout == "padded";
        bool any = false;
        for (std::size_t mu = 0; mu < lattice::dimensions; ++mu) {
            o.where.self[mu] = ranks == 1 && cut[mu] == 1;
            o.where.grid[mu] = ranks == 1 ? 1 : cut[mu];
            any = any || o.where.cut(static_cast<int>(mu));
        }
        if (!any || (ranks == 1 && *std::ranges::max_element(cut) > 1) || lattice::volume(o.where.grid) != ranks)
            return {};
        return o;
    }
};

} // namespace halocline::bench
