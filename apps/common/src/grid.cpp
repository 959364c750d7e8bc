// SPDX-License-Identifier: Apache-2.0
#include <halocline_app/grid.hpp>
#include <halocline_app/number_flag.hpp>

#include <halocline/base/error.hpp>
#include <halocline/lattice/rank_order.hpp>

namespace halocline::app {

using lattice::coordinate;

coordinate parse_extents(const char* flag, const std::string& text) { return read_flag(flag, text, read_coordinate); }

namespace {

lattice::decomposition cut_over(const coordinate& global, const std::string& rank_grid, int ranks) {
    if (rank_grid.empty())
        return lattice::decomposition::even(global, lattice::choose_rank_grid(global, ranks).rank_grid);
    const coordinate grid = parse_extents("--mpi", rank_grid);
    if (lattice::volume(grid) != ranks) {
        std::string fitting;
        for (const coordinate& other : lattice::admissible_rank_grids(global, ranks, {1, 1, 1, 1}))
            fitting += (fitting.empty() ? "" : ", ") + lattice::to_string(other);
        throw input_error("--mpi " + lattice::to_string(grid) + " has " + std::to_string(lattice::volume(grid)) +
                          " ranks, the job has " + std::to_string(ranks) +
                          (fitting.empty() ? "; no rank grid fits " : "; rank grids that fit ") +
                          lattice::to_string(global) + (fitting.empty() ? "" : ": " + fitting));
    }
    return lattice::decomposition::even(global, grid);
}

} // namespace

lattice::decomposition decompose(const coordinate& global, const std::string& rank_grid, const comm::job& j) {
    const lattice::decomposition cut = cut_over(global, rank_grid, j.ranks());
    return cut.with_rank_order(lattice::rank_order_by_nodes(cut, j.nodes()));
}

} // namespace halocline::app
