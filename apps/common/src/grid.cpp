// SPDX-License-Identifier: Apache-2.0
#include <halocline_app/grid.hpp>
#include <halocline_app/strict_flag.hpp>

#include <halocline/base/error.hpp>
#include <halocline/lattice/rank_order.hpp>

#include <algorithm>
#include <limits>

namespace halocline::app {

using lattice::coordinate;

void job_flags::add_to(CLI::App& cli, const std::string& extents) {
    cli.add_option("--grid", grid, extents)->type_name("x.y.z.t")->capture_default_str();
    add_text_flag(cli, "--mpi", rank_grid, "x.y.z.t", "rank grid (default: the one with the smallest surface)");
    add_text_flag(cli, "--transport", transport, "LIST",
                  "in order of preference; for each peer the first that reaches it: shm, verbs, ofi, mpi");
    add_text_flag(cli, "--json", json, "FILE", "write the result as one JSON object to this file");
}

coordinate parse_extents(const char* flag, const std::string& text) { return read_flag(flag, text, read_coordinate); }

namespace {

/// "2 ranks"; in 64 bits the product of a mistyped grid could overflow.
std::string number_of_ranks(const coordinate& rank_grid) {
    double ranks = 1;
    for (const int n : rank_grid) ranks *= n;
    constexpr int most = std::numeric_limits<int>::max();
    if (ranks > most) return "more than " + std::to_string(most) + " ranks";
    return std::to_string(static_cast<int>(ranks)) + (ranks > 1 ? " ranks" : " rank");
}

lattice::decomposition cut_over(const coordinate& global, const std::string& rank_grid, int ranks) {
    if (rank_grid.empty()) return lattice::decomposition::chosen(global, ranks);
    const coordinate grid = parse_extents("--mpi", rank_grid);
    check_rank_grid("--mpi " + rank_grid, grid, global, {1, 1, 1, 1}, ranks);
    return lattice::decomposition::even(global, grid);
}

} // namespace

void check_rank_grid(const std::string& as_given, const coordinate& rank_grid, const coordinate& global,
                     const coordinate& granularity, int ranks) {
    const auto fitting = lattice::admissible_rank_grids(global, ranks, granularity);
    if (std::ranges::find(fitting, rank_grid) != fitting.end()) return;
    const std::string of_job = number_of_ranks({ranks, 1, 1, 1}), of_grid = number_of_ranks(rank_grid);
    const std::string units =
        granularity == coordinate{1, 1, 1, 1} ? "" : " in blocks of " + lattice::to_string(granularity);
    std::string list;
    for (const coordinate& grid : fitting) list += (list.empty() ? ": " : ", ") + lattice::to_string(grid);
    throw input_error(as_given +
                      (of_grid == of_job ? " does not fit" : " needs " + of_grid + ", but the job has " + of_job) +
                      (list.empty() ? "; no rank grid of " : "; rank grids of ") + of_job +
                      (list.empty() ? " fits " : " that fit ") + lattice::to_string(global) + units + list);
}

lattice::decomposition decompose(const coordinate& global, const std::string& rank_grid, const comm::job& j) {
    const lattice::decomposition cut = cut_over(global, rank_grid, j.ranks());
    return cut.with_rank_order(lattice::rank_order_by_nodes(cut, j.nodes()));
}

} // namespace halocline::app
