// SPDX-License-Identifier: Apache-2.0
// What the JSON lines of one run of benches say about the targets that were set as figures (docs/status.md).
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace halocline::bench {

using run_lines = std::vector<nlohmann::json>;
/// Some of the lines: those of one bench, or all contenders at one point.
using line_list = std::vector<const nlohmann::json*>;

enum class wanted { at_most, at_least };

struct figure {
    std::string target; ///< a ratio or a time, such as "exchange / one-copy limit"
    std::string of;     ///< which exchanges, messages or plans
    std::string point;  ///< such as "8^4" or "512 B"
    double size = 0;    ///< the point's, which orders the points of a row
    std::string speed;  ///< the machine's, "fast" or "slow"; "": not distinguished
    double value = 0, bound = 0;
    wanted side = wanted::at_most;
    bool noisy = false;
    double limit = 0;            ///< what the one-copy limit reaches in place of ours; 0: not considered
    bool limit_suffices = false; ///< if the limit itself misses the bound, is being no slower than the limit enough?
};

/// `value` as it is printed, which is what counts: two decimals below 10, one below 100, otherwise none.
std::string printed(double value);
/// Is the printed value on the right side of its bound?
bool met(double value, double bound, wanted side);

/// All figures. Only lines of one run are related to each other, because the machine changes between runs.
std::vector<figure> figures_of(const run_lines& lines);

// The parts of figures_of(), a file each; each adds its findings to `all`.
void add_exchange_figures(const run_lines& lines, std::vector<figure>& all);
void add_message_figures(const run_lines& lines, std::vector<figure>& all);
void add_setup_figures(const run_lines& lines, std::vector<figure>& all);

/// A point of an exchange at which ours was seen, in one mode of the machine, and what it is compared with there.
struct compared_point {
    std::string of, point, speed;            ///< as in figures
    double size = 0;                         ///< as in figures
    bool has_limit = false, has_mpi = false; ///< in the same run and mode; the MPI as installed
};
/// All points of one run, of exchanges between ranks.
std::vector<compared_point> compared_points(const run_lines& lines);

/// The lines of one bench.
line_list lines_of(const run_lines& lines, std::string_view bench);

/// The quickest of some contenders.
struct quickest {
    const nlohmann::json* line = nullptr;
    double us = 0;
    explicit operator bool() const { return line != nullptr; }
    /// Pre: there is one (converts to true).
    [[nodiscard]] bool noisy() const { return line->value("noisy", false); }
};

/// Among the lines that satisfy `which`, the one with the smallest `key`.
template <class Which>
quickest quickest_of(const line_list& lines, const char* key, Which which) {
    quickest best;
    for (const nlohmann::json* line : lines) {
        if (!line->contains(key) || !which(*line)) continue;
        const double us = line->at(key).get<double>();
        if (!best || us < best.us) best = {line, us};
    }
    return best;
}

} // namespace halocline::bench
