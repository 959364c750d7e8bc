// SPDX-License-Identifier: Apache-2.0
#include "problem.hpp"

#include "blocks_for_ranks.hpp"
#include "memory.hpp"

#include <halocline/amg/options.hpp>
#include <halocline/dirac/gauge_configuration.hpp>
#include <halocline/dirac/spinor_field.hpp>
#include <halocline/lattice/random.hpp>
#include <halocline/lattice/rank_order.hpp>
#include <halocline_app/demo_configuration.hpp>
#include <halocline_app/grid.hpp>
#include <halocline_app/output_file.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace halocline::app {
namespace {

using lattice::coordinate;
using lattice::to_string;

/// Extents of `file` repeated as requested.  Err: input_error if the resulting lattice is impossible.
coordinate repeated(const coordinate& file, const settings_reader& given) {
    const coordinate& tile = given.values().tile;
    coordinate c{};
    for (int mu = 0; mu < lattice::dimensions; ++mu) {
        const std::int64_t extent = std::int64_t{file[mu]} * tile[mu];
        if (extent > std::numeric_limits<int>::max())
            throw input_error(given.as_given("lattice.tile") + " makes an extent of " + std::to_string(extent) +
                              "; the largest is " + std::to_string(std::numeric_limits<int>::max()));
        c[mu] = static_cast<int>(extent);
    }
    return c;
}

/// Global extents: those of the file, repeated as requested.
coordinate global_extents(const coordinate& file, const settings_reader& given) {
    const settings& s = given.values();
    if (!s.gauge.empty()) {
        const coordinate global = repeated(file, given);
        if (s.grid && *s.grid != global)
            throw input_error(
                given.as_given("lattice.grid") + " disagrees with '" + s.gauge + "', which holds " + to_string(file) +
                (global == file ? "" : " and repeated " + to_string(s.tile) + " times gives " + to_string(global)) +
                "; leave the extents out or give " + to_string(global));
        return global;
    }
    if (!s.grid) return file;
    for (int mu = 0; mu < lattice::dimensions; ++mu)
        if ((*s.grid)[mu] % file[mu] != 0)
            throw input_error(given.as_given("lattice.grid") + ": without --gauge the demo configuration of " +
                              to_string(file) + " is repeated, so each extent must be a multiple of 8");
    return *s.grid;
}

/// Err: input_error: blocks that don't divide the lattice, or have no room for the test vectors.
coordinate choose_blocks(const coordinate& global, const settings_reader& given) {
    const settings& s = given.values();
    const coordinate by_default = amg::default_blocks(global), blocks = s.solver.blocks.value_or(by_default);
    for (int mu = 0; mu < lattice::dimensions; ++mu)
        if (global[mu] % blocks[mu] != 0)
            throw input_error(given.as_given("level.0.blocks") + " does not divide the lattice " + to_string(global) +
                              "; the default would be " + to_string(by_default));
    const auto given_or = [&](const std::string& key, const std::string& otherwise) {
        return given.origin(key) == "default" ? otherwise : given.as_given(key);
    };
    const std::int64_t most = amg::most_vectors(blocks);
    if (s.solver.vectors > most)
        throw input_error(
            given_or("level.0.vectors", "--vectors " + std::to_string(s.solver.vectors) + ", the default") +
            ": too many for " + given_or("level.0.blocks", "--blocks " + to_string(blocks) + ", the default here") +
            "; such a block has room for " + std::to_string(most) + ": take at most as many, or larger blocks");
    return blocks;
}

/// Err: input_error with blocks that would do, if the job's ranks can't own whole ones.
void check_blocks(const coordinate& global, const coordinate& blocks, int ranks, int vectors) {
    if (!lattice::admissible_rank_grids(global, ranks, blocks).empty()) return;
    const auto others = blocks_for_ranks(global, ranks, vectors);
    if (!others) return; // choose_rank_grid() names a number of ranks that would do
    throw input_error("lattice " + to_string(global) + " in blocks of " + to_string(blocks) + " can't be cut over " +
                      std::to_string(ranks) + " ranks; --blocks " + to_string(*others) + " allows it");
}

lattice::decomposition cut_lattice(const coordinate& global, const coordinate& blocks, int ranks,
                                   const settings_reader& given, std::string& why) {
    const settings& s = given.values();
    check_blocks(global, blocks, ranks, s.solver.vectors);
    const auto choice = lattice::choose_rank_grid(global, ranks, blocks);
    if (s.rank_grid) check_rank_grid(given.as_given("lattice.mpi"), *s.rank_grid, global, blocks, ranks);
    why = s.rank_grid ? "given by " + given.origin("lattice.mpi") : choice.why;
    return lattice::decomposition::even(global, s.rank_grid.value_or(choice.rank_grid), blocks);
}

std::optional<lattice::spinor_file> open_source(const comm::job& j, const settings_reader& given,
                                                const right_hand_side& rhs, const coordinate& global) {
    if (rhs.kind != source::file) return std::nullopt;
    lattice::spinor_file file;
    try {
        file = dirac::open_spinors(j, rhs.path);
    } catch (const input_error& e) { // the same on every rank
        throw input_error(as_given(given, rhs) + ": " + e.what());
    }
    j.collectively([&] { // hosts may have files of their own
        if (file.extents != global)
            throw input_error(as_given(given, rhs) + " holds a field on " + to_string(file.extents) +
                              " sites, but the lattice is " + to_string(global));
    });
    return file;
}

/// Err: input_error: a point outside the lattice.
void check_point(const settings_reader& given, const right_hand_side& rhs, const coordinate& global) {
    for (int mu = 0; mu < lattice::dimensions; ++mu)
        if (rhs.site[mu] >= global[mu])
            throw input_error(as_given(given, rhs) + ": no site of the lattice, which is " + to_string(global) +
                              "; coordinates count from 0");
}

/// 1 in the real part of one component of one site, 0 elsewhere.
lattice::field<double> make_unit(const comm::job& j, const problem& p, const coordinate& site, int spin, int colour) {
    auto b = make_spinors(j, p);
    const lattice::box local = p.cut.local_box(j.rank());
    if (local.contains(site)) b.at(local.index(site), 2 * (colours * spin + colour)) = 1;
    return b;
}

lattice::field<double> make_random(const comm::job& j, const problem& p, std::uint64_t seed, std::uint32_t stream) {
    auto b = make_spinors(j, p);
    const lattice::box local = p.cut.local_box(j.rank());
    for (std::int64_t site = 0; site < local.volume(); ++site) {
        const std::int64_t global_site = lattice::lexicographic_index(local.site(site), p.cut.global());
        lattice::site_random random(seed, stream, static_cast<std::uint64_t>(global_site));
        for (int c = 0; c < lattice::spinor_components; ++c) b.at(site, c) = random.normal();
    }
    return b;
}

} // namespace

problem define_problem(const comm::job& j, const settings_reader& given, bool dry_run,
                       const std::vector<std::string>& solutions, const std::function<void(std::string_view)>& tell) {
    const settings& s = given.values();
    lattice::gauge_file file;
    const auto open = [&](const std::string& path) {
        file = dirac::open_configuration(j, path);
        file.rounded_to_32_bits = s.reunitarise;
    };
    if (!s.gauge.empty()) open(s.gauge);
    const coordinate global = global_extents(s.gauge.empty() ? demo_extents : file.extents, given);
    const coordinate blocks = choose_blocks(global, given);
    std::string why;
    auto cut = cut_lattice(global, blocks, j.ranks(), given, why);
    if (s.order_by_nodes) cut = cut.with_rank_order(lattice::rank_order_by_nodes(cut, j.nodes()));
    std::vector<std::optional<lattice::spinor_file>> sources;
    for (const right_hand_side& rhs : s.rhs) {
        check_point(given, rhs, global);
        sources.push_back(open_source(j, given, rhs, global));
    }
    const auto check_host = [&](const std::function<void()>& check) {
        try {
            check();
        } catch (const input_error& e) { // the same on every rank
            if (!dry_run) throw;
            tell(std::string("note: here it would be refused: ") + e.what()); // it may be meant for another machine
        }
    };
    check_host([&] { check_memory(j, s, cut, blocks); });
    constexpr std::int64_t spinor_bytes = lattice::spinor_components * sizeof(double);
    check_host(
        [&] { check_room(j, "--solution", solutions.front(), lattice::volume(global) * spinor_bytes, solutions); });
    // Last, because making the demo configuration takes seconds, and bad input should be reported at once.
    if (s.gauge.empty() && !dry_run) {
        const std::string path = demo_configuration(j, tell);
        with_remedy_of_demo(s, [&] { open(path); });
    }
    return {std::move(file), blocks, std::move(cut), std::move(why), std::move(sources)};
}

void with_remedy_of_demo(const settings& s, const std::function<void()>& read) {
    if (!s.gauge.empty()) return read();
    try {
        read();
    } catch (const input_error& e) {
        throw input_error(std::string(e.what()) +
                          "; it is the demo configuration: remove it, and it is made anew. Several hosts need a folder "
                          "that all of them see: HALOCLINE_DATA_DIR");
    }
}

std::string as_given(const settings_reader& given, const right_hand_side& one) {
    const std::string key = "solver.rhs", &where = given.origin(key);
    return where + (where.starts_with("--") ? " " : ": " + config::name_in_file(key) + " = ") + show(one);
}

lattice::field<double> make_spinors(const comm::job& j, const problem& p) {
    return {p.cut.local_box(j.rank()).extents, lattice::spinor_components};
}

lattice::field<double> make_ones(const comm::job& j, const problem& p) {
    auto b = make_spinors(j, p);
    for (std::size_t k = 0; k < b.values().size(); k += 2) b.values()[k] = 1;
    return b;
}

lattice::field<double> make_right_hand_side(const comm::job& j, const problem& p, const settings& s, std::size_t i) {
    const right_hand_side& rhs = s.rhs[i];
    switch (rhs.kind) {
    case source::file: return dirac::read_spinors(j, p.cut, *p.sources[i]);
    case source::ones: return make_ones(j, p);
    case source::unit: return make_unit(j, p, {}, 0, 0);
    case source::point: {
        auto b = make_unit(j, p, rhs.site, rhs.spin, rhs.colour);
        dirac::change_spin_basis(b); // a point in the basis of files, so that its solution in a file is a column there
        return b;
    }
    case source::random: break;
    }
    constexpr std::uint32_t random_stream = 0x72687300; // distinct from the streams of the test vectors
    return make_random(j, p, s.solver.seed, random_stream + rhs.number);
}

} // namespace halocline::app
