// SPDX-License-Identifier: Apache-2.0
// The settings of coarse_solve: one table of keys serves the config file, the environment, the command line and
// halocline-info. Precedence: command line > HALOCLINE_<SECTION>_<KEY> > the file named as an argument > that of
// $HALOCLINE_CONFIG > built-in default.
#pragma once

#include <halocline/amg/options.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/config/reader.hpp>
#include <halocline/dirac/wilson_parameters.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline_app/right_hand_side.hpp>

#include <optional>
#include <string>
#include <vector>

namespace halocline::app {

/// All settings of coarse_solve. Dimensions in the order x, y, z, t.
struct settings {
    // [lattice]
    std::string gauge; ///< empty: the demo's own configuration
    std::optional<lattice::coordinate> grid;
    lattice::coordinate tile{1, 1, 1, 1};
    bool reunitarise = false;
    std::optional<lattice::coordinate> rank_grid;
    bool order_by_nodes = true; ///< rank_order
    // [operator]
    dirac::wilson_parameters op;
    // [solver] and [[level]]; the seed is also that of random right-hand sides
    std::vector<right_hand_side> rhs{{}}; ///< at least one
    amg::solver_options solver{};
    // [comm], [faults]
    comm::job_options job{};
};

/// The requested job options, which nothing overrides any more.
comm::job_options job_options_of(const settings& s);

/// What those look for who give a mass by another name.
inline constexpr const char* mass_convention = "the mass is m0 = 1 / (2 kappa) - 4, --m0 or [operator] m0";

using setting_key = config::key<settings>;
const std::vector<setting_key>& setting_keys();
/// The key with this path, such as "solver.tolerance".  Pre: it exists.
const setting_key& key_of(const std::string& path);
/// The text of a setting, as shown by --help and halocline-info.  Pre: the key exists.
std::string value_of(const std::string& path, const settings& s);

/// Settings under construction; remembers where each value came from.
class settings_reader : public config::reader<settings> {
  public:
    settings_reader() : config::reader<settings>(setting_keys()) {}
    /// Reads $HALOCLINE_CONFIG, `config` (a file named as an argument, "" if there is none), and the variables.
    /// others: sections of other programs in `config`.
    /// Err: config_error.
    void read_surroundings(const std::string& config, config::other_sections others);
    /// Checks that values fit together.  Err: config_error.
    void check() const;
};

} // namespace halocline::app
