// SPDX-License-Identifier: Apache-2.0
#include "problem.hpp"

#include <halocline/amg/options.hpp>
#include <halocline/lattice/random.hpp>
#include <halocline_app/demo_configuration.hpp>

#include <algorithm>

namespace halocline::app {
namespace {

using lattice::coordinate;
using lattice::to_string;

coordinate times(const coordinate& a, const coordinate& b) {
    coordinate c{};
    for (int mu = 0; mu < lattice::dimensions; ++mu) c[mu] = a[mu] * b[mu];
    return c;
}

/// Global extents: the file's, repeated as asked for.
coordinate global_extents(const lattice::gauge_file& file, const settings& s) {
    if (!s.gauge.empty()) {
        const coordinate global = times(file.extents, s.tile);
        if (s.grid && *s.grid != global)
            throw input_error("--grid " + to_string(*s.grid) + " disagrees with '" + s.gauge + "', which holds " +
                              to_string(file.extents) +
                              (global == file.extents ? "" : " and repeated by --tile gives " + to_string(global)) +
                              "; leave --grid out or give " + to_string(global));
        return global;
    }
    if (!s.grid) return file.extents;
    for (int mu = 0; mu < lattice::dimensions; ++mu)
        if ((*s.grid)[mu] % file.extents[mu] != 0)
            throw input_error("--grid " + to_string(*s.grid) + ": without --gauge the demo configuration of " +
                              to_string(file.extents) + " is repeated, so each extent must be a multiple of 8");
    return *s.grid;
}

std::string list(const std::vector<coordinate>& grids) {
    std::string text;
    for (const auto& g : grids) text += (text.empty() ? "" : ", ") + to_string(g);
    return text;
}

lattice::decomposition cut_lattice(const coordinate& global, const coordinate& blocks, int ranks, const settings& s,
                                   std::string& why) {
    const auto admissible = lattice::admissible_rank_grids(global, ranks, blocks);
    if (s.rank_grid) {
        const coordinate& g = *s.rank_grid;
        const std::string admits = admissible.empty() ? "none with this many ranks" : list(admissible);
        if (lattice::volume(g) != ranks)
            throw input_error("--mpi " + to_string(g) + " needs " + std::to_string(lattice::volume(g)) +
                              " ranks, but the job has " + std::to_string(ranks) + "; admissible: " + admits);
        if (std::ranges::find(admissible, g) == admissible.end())
            throw input_error("--mpi " + to_string(g) + " does not cut " + to_string(global) + " on boundaries of " +
                              to_string(blocks) + " blocks; admissible: " + admits);
        why = "given by --mpi";
        return lattice::decomposition::even(global, g, blocks);
    }
    const auto choice = lattice::choose_rank_grid(global, ranks, {.granularity = blocks});
    why = choice.why;
    return lattice::decomposition::even(global, choice.rank_grid, blocks);
}

} // namespace

problem define_problem(const comm::job& j, const settings& s, const std::function<void(std::string_view)>& tell) {
    const std::string path = s.gauge.empty() ? demo_configuration(j, tell) : s.gauge;
    lattice::gauge_file file;
    j.collectively([&] { file = lattice::open_gauge_file(path); });
    const coordinate global = global_extents(file, s);
    const coordinate blocks = s.blocks.value_or(amg::default_blocks(global));
    for (int mu = 0; mu < lattice::dimensions; ++mu)
        if (global[mu] % blocks[mu] != 0)
            throw input_error("--blocks " + to_string(blocks) + " does not divide the lattice " + to_string(global) +
                              "; the default would be " + to_string(amg::default_blocks(global)));
    std::string why;
    auto cut = cut_lattice(global, blocks, j.ranks(), s, why);
    return {std::move(file), blocks, std::move(cut), std::move(why)};
}

lattice::field<double> make_right_hand_side(const comm::job& j, const problem& p, const settings& s) {
    const lattice::box local = p.cut.local_box(j.rank());
    lattice::field<double> b(lattice::site_order::lexicographic(local.extents), lattice::spinor_components);
    constexpr std::uint32_t random_stream = 0x72687300; // apart from the streams of the test vectors
    for (std::int64_t site = 0; site < local.volume(); ++site) {
        lattice::coordinate x = lattice::lexicographic_coordinate(site, local.extents);
        for (int mu = 0; mu < lattice::dimensions; ++mu) x[mu] += local.origin[mu];
        const std::int64_t global_site = lattice::lexicographic_index(x, p.cut.global());
        lattice::site_random random(s.seed, random_stream, static_cast<std::uint64_t>(global_site));
        for (int c = 0; c < lattice::spinor_components; ++c) {
            const bool real = c % 2 == 0;
            switch (s.rhs) {
            case right_hand_side::ones: b.at(site, c) = real ? 1 : 0; break;
            case right_hand_side::unit: b.at(site, c) = global_site == 0 && c == 0 ? 1 : 0; break;
            case right_hand_side::random: b.at(site, c) = random.normal(); break;
            }
        }
    }
    return b;
}

} // namespace halocline::app
