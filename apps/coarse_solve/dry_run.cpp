// SPDX-License-Identifier: Apache-2.0
#include "dry_run.hpp"

#include "memory.hpp"

#include <halocline/lattice/rank_order.hpp>
#include <halocline_app/main.hpp>

#include <algorithm>
#include <cstdio>

namespace halocline::app {
namespace {

using lattice::dimensions;

constexpr int fine_bytes_per_site = 96; // a half-spinor in fp64

/// Messages that one rank sends per exchange of one layer, and sites in them.
struct surface {
    int messages = 0;
    std::int64_t sites = 0;
};

/// The surface of a rank's box of these extents; of the two faces in dimension mu, sent_faces[mu] are sent.
surface surface_of(const lattice::decomposition& cut, const lattice::coordinate& extents,
                   const lattice::coordinate& sent_faces) {
    surface s;
    for (int mu = 0; mu < dimensions; ++mu) {
        if (cut.rank_grid()[mu] == 1) continue;
        s.messages += sent_faces[mu];
        s.sites += sent_faces[mu] * (lattice::volume(extents) / extents[mu]);
    }
    return s;
}

double mebibytes(double bytes) { return bytes / (1024.0 * 1024.0); }

std::string describe_rank_order(const std::vector<int>& nodes, const lattice::decomposition& cut) {
    const std::string order = cut.rank_order().empty() ? "lexicographic over the rank grid, x fastest" : "by nodes";
    const int count = std::ranges::max(nodes) + 1;
    if (count == 1) return order + "; one node";
    const auto kibibytes = [&](const lattice::decomposition& d) {
        char text[40];
        std::snprintf(text, sizeof text, "%.1f",
                      static_cast<double>(lattice::off_node_sites(d, nodes)) * fine_bytes_per_site / 1024);
        return std::string(text);
    };
    return order + "; of a fine exchange " + kibibytes(cut) + " KiB travel between the " + std::to_string(count) +
           " nodes (lexicographic order: " + kibibytes(cut.with_rank_order({})) +
           ", by nodes: " + kibibytes(cut.with_rank_order(lattice::rank_order_by_nodes(cut, nodes))) + ")";
}

} // namespace

std::string describe_dry_run(const comm::job& j, const problem& p, const settings& s) {
    const int ranks = j.ranks();
    std::string out;
    const std::string format = lattice::to_string(p.file.format) + (lattice::as_openqcd(p.file) ? " or openQCD" : "");
    const std::string links = s.gauge.empty() ? "the demo configuration" : format + " '" + p.file.path + "'";
    append_line(out, "lattice        %s (%lld sites), %s", lattice::to_string(p.cut.global()).c_str(),
                static_cast<long long>(lattice::volume(p.cut.global())), links.c_str());
    append_line(out, "blocks         %s", lattice::to_string(p.blocks).c_str());
    append_line(out, "rank grid      %s: %s", lattice::to_string(p.cut.rank_grid()).c_str(), p.why_cut.c_str());
    for (int mu = 0; mu < dimensions; ++mu) {
        std::string parts;
        const auto& cuts = p.cut.cuts(mu);
        for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
            parts += (i ? " + " : "") + std::to_string(cuts[i + 1] - cuts[i]);
        append_line(out, "  %c            %s", lattice::dimension_name[mu], parts.c_str());
    }
    append_line(out, "rank order     %s", describe_rank_order(j.nodes(), p.cut).c_str());

    // Where the coarse lattice is two sites wide, both neighbours of a site are one, whose links were added up.
    lattice::coordinate coarse_faces{};
    for (int mu = 0; mu < dimensions; ++mu) coarse_faces[mu] = p.cut.global()[mu] / p.blocks[mu] == 2 ? 1 : 2;
    const double coarse_components = 2.0 * s.solver.vectors;
    append_line(out, "%s", "");
    append_line(out, "%4s %-12s %-14s %10s %10s %12s %12s", "rank", "position", "local box", "memory MiB", "messages",
                "fine KiB", "coarse KiB");
    for (int r = 0; r < ranks; ++r) {
        const lattice::box local = p.cut.local_box(r);
        lattice::coordinate coarse_box{};
        for (int mu = 0; mu < dimensions; ++mu) coarse_box[mu] = local.extents[mu] / p.blocks[mu];
        const surface fine = surface_of(p.cut, local.extents, {2, 2, 2, 2}),
                      coarse = surface_of(p.cut, coarse_box, coarse_faces);
        append_line(out, "%4d %-12s %-14s %10.1f %10d %12.1f %12.1f", r,
                    lattice::to_string(p.cut.grid_position(r)).c_str(), lattice::to_string(local.extents).c_str(),
                    mebibytes(bytes_of_rank(s, p.cut, p.blocks, r)), fine.messages,
                    static_cast<double>(fine.sites) * fine_bytes_per_site / 1024,
                    static_cast<double>(coarse.sites) * coarse_components * 8 / 1024);
    }
    append_line(out, "%s", "");
    append_line(
        out, "fine exchange: half-spinors, %d B per site in fp64 (%d B in the fp32 smoother); coarse: %.0f B per site",
        fine_bytes_per_site, fine_bytes_per_site / 2, coarse_components * 8);
    return out;
}

} // namespace halocline::app
