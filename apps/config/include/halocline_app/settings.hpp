// SPDX-License-Identifier: Apache-2.0
// The settings of coarse_solve: one table of keys serves the config file, the environment, the command line and
// halocline-info. Precedence: command line > HALOCLINE_<SECTION>_<KEY> > file > built-in default.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/path.hpp>
#include <halocline/dirac/wilson_parameters.hpp>
#include <halocline/lattice/geometry.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace halocline::app {

/// A bad key or value in a config file, the environment or the command line; the text says where, which, and what
/// would be right.
class config_error : public input_error {
  public:
    config_error(std::string key, const std::string& text) : input_error(text), key_(std::move(key)) {}
    [[nodiscard]] const std::string& key() const { return key_; }

  private:
    std::string key_;
};

/// What to solve for: made here, or a field that a spinor file holds.
enum class source : std::uint8_t { ones, unit, random, file };
struct right_hand_side {
    source kind = source::ones;
    std::string path{}; ///< of source::file
};

/// All that coarse_solve can be told. Dimensions in the order x, y, z, t.
struct settings {
    // [lattice]
    std::string gauge; ///< empty: the demo's own configuration
    std::optional<lattice::coordinate> grid;
    lattice::coordinate tile{1, 1, 1, 1};
    std::optional<lattice::coordinate> rank_grid;
    // [operator]
    dirac::wilson_parameters op;
    // [solver]
    right_hand_side rhs{};
    std::uint64_t seed = 1;
    double tolerance = 1e-10;
    int restart_length = 50;
    int max_restarts = 20;
    int max_iterations = 0; ///< 0: restart_length * max_restarts
    bool stagnation_stop = false;
    // [[level]], finest first
    std::optional<lattice::coordinate> blocks;
    int vectors = 28;
    int setup_iterations = 4;
    int sweeps = 2;
    int block_steps = 4;
    double coarse_tolerance = 5e-2;
    int coarse_restart_length = 100;
    int coarse_max_restarts = 5;
    // [comm]
    std::vector<std::string> transports = comm::default_transports();
    std::string ofi_provider{};
    comm::mpi_mode mpi = comm::mpi_mode::two_sided;
    std::string bootstrap{};
    bool order_by_nodes = true; ///< rank_order
    std::string network{};
    std::string verbs_device{};
    int verbs_port = 1;
    int verbs_gid_index = -1;
    int verbs_mtu = 0;
    int verbs_largest_write = 0;
    int verbs_inline_bytes = 256;
    double slab_gib = 64;
    int spin_polls = 0;
    comm::path path = comm::path::automatic;
    // [faults]
    std::chrono::milliseconds deadline{60'000};
    std::chrono::milliseconds link_timeout{5'000};
    bool checksums = false; ///< checksum
};

/// The part of [comm] and [faults] that a job is started with.
comm::job_options job_options_of(const settings& s);

/// The same of a program without a config file: from the environment, and its flag --transport ("": not given).
/// Err: config_error.
comm::job_options job_options_of_environment(const std::string& transport_flag);

/// One key: where it stands, what it means, how to read and show it.
struct setting_key {
    std::string section; ///< "lattice", "level.0", …
    std::string name;
    std::string description;
    std::function<void(settings&, const std::string&)> read; ///< Err: std::invalid_argument with what would be right
    std::function<std::string(const settings&)> show;
    bool of_host = false; ///< ranks may differ: which device or network a host has

    [[nodiscard]] std::string path() const { return section + "." + name; }
    /// HALOCLINE_LATTICE_GAUGE, HALOCLINE_LEVEL_0_BLOCKS, …
    [[nodiscard]] std::string environment() const;
};
const std::vector<setting_key>& setting_keys();

/// Settings under construction; remembers where each value came from.
class settings_reader {
  public:
    /// Err: config_error with file, line, column, key and the nearest known key. A file is capped at 1 MiB.
    void read_file(const std::string& path);
    void read_environment();
    /// `where` names the origin in messages, e.g. "--blocks".
    void set(const std::string& key_path, const std::string& text, const std::string& where);
    /// Checks that values fit together.  Err: config_error.
    void check() const;

    [[nodiscard]] const settings& values() const { return values_; }
    /// "default", "configs/demo.toml:12", "HALOCLINE_COMM_TRANSPORTS", "--blocks".
    [[nodiscard]] const std::string& origin(const std::string& key_path) const;
    /// The key and its value as whoever wrote them knows them, to begin an error with: "--blocks 3.4.4.4",
    /// "configs/demo.toml:12:1: [lattice] mpi = 3.1.1.1".
    [[nodiscard]] std::string as_given(const std::string& key_path) const;
    /// All keys and values but those of hosts, as text: equal texts mean equal jobs.
    [[nodiscard]] std::string effective() const;

  private:
    settings values_;
    std::vector<std::pair<std::string, std::string>> origins_;
};

} // namespace halocline::app
