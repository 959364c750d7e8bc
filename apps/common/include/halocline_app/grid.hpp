// SPDX-License-Identifier: Apache-2.0
// The flags that programs without a config file share, --grid and --mpi among them.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/lattice/decomposition.hpp>

#include <string>

namespace CLI {
class App;
}

namespace halocline::app {

/// The flags that programs without a config file share, as text.
struct job_flags {
    std::string grid;        ///< extents; its default, unless the flag is given
    std::string rank_grid{}; ///< --mpi; "": not given
    std::string transport{}; ///< "": not given
    std::string json{};      ///< "": no file

    /// Adds --grid, of which --help says `extents`, --mpi, --transport and --json. They must outlive the parsing.
    void add_to(CLI::App& cli, const std::string& extents);
};

/// What --help of such a program says of the settings that every program reads.
inline constexpr const char* help_on_settings =
    "Keys [comm] and [faults] of configs/demo.toml are read from the file $HALOCLINE_CONFIG and from the environment:\n"
    "HALOCLINE_<SECTION>_<KEY>.\n";

/// "8.8.8.16" as extents.  Err: input_error naming the flag and the text.
lattice::coordinate parse_extents(const char* flag, const std::string& text);

/// Err: input_error unless `rank_grid` has the job's number of ranks and cuts `global` on multiples of `granularity`;
/// it begins with `as_given`, "--mpi 2.1.1.1" for instance, and names the rank grids that do.
void check_rank_grid(const std::string& as_given, const lattice::coordinate& rank_grid,
                     const lattice::coordinate& global, const lattice::coordinate& granularity, int ranks);

/// `global` cut over a rank grid given as text; empty: over the one with the smallest surface. Ranks are placed so that
/// few bytes travel between nodes.
/// Err: input_error, as check_rank_grid().
lattice::decomposition decompose(const lattice::coordinate& global, const std::string& rank_grid, const comm::job& j);

} // namespace halocline::app
