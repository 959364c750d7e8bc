// SPDX-License-Identifier: Apache-2.0
// What the JSON lines of one run of benches say about the targets that were set as figures (docs/status.md). Targets are
// listed in exchanges.cpp, messages.cpp and setup.cpp: whose number is related to whose, the bound, and the points at
// which `scripts/bench.sh targets` measures both. A point without a figure is reported, too: what was not measured is
// not met.
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace halocline::bench {

using run_lines = std::vector<nlohmann::json>;
/// Some of the lines: those of one bench, or all contenders at one point.
using line_list = std::vector<const nlohmann::json*>;

enum class wanted { at_most, at_least };

/// What contenders are compared at in one run: a box, a size of messages or a plan, in one mode of the machine.
struct place {
    std::string point;      ///< such as "8^4" or "512 B"
    double size = 0;        ///< sites, bytes or ranks, which order the points of a row
    std::string speed{};    ///< the machine's, "fast" or "slow"; "": not distinguished
    int longest = 0;        ///< of a box: its longest extent
    int run_bytes = 0;      ///< of a box: the fewest bytes of a face that lie together; 0: not known
    line_list lines{};      ///< of all contenders
    std::string left_out{}; ///< what the bench lacked to measure it, such as "time"; "": nothing
};

/// The number of one line, or of several.
struct reading {
    const nlohmann::json* line = nullptr; ///< the one that has it, or the first of several
    double value = 0;
    explicit operator bool() const { return line != nullptr; }
    /// Pre: there is one (converts to true).
    [[nodiscard]] bool noisy() const { return line->value("noisy", false); }
};

/// Whose number counts: of the lines that satisfy `is` the least `key`, or the median of all.
struct term {
    std::string who; ///< as readers are told that it is missing: "raw slot"
    std::string key;
    std::function<bool(const nlohmann::json&)> is;
    bool median = false;
    [[nodiscard]] reading in(const line_list& lines) const;
};
/// The `who` of what is judged, in each target.
inline const std::string ours_name = "ours";

/// One row of the tables: whose numbers are related, and on which side of a bound the result should be.
struct target {
    enum relation {
        number,     ///< above
        difference, ///< above - below
        ratio,      ///< above / below
        paired      ///< the median of such ratios, each of a line of `below` and the line of `above` before it
    };
    std::string name; ///< such as "ours / one-copy limit"
    std::string of;   ///< which exchanges, messages or plans
    wanted side = wanted::at_most;
    /// The bound at a place; `ours`: its line that is judged, if there is one.
    std::function<double(const place&, const nlohmann::json* ours)> bound;
    relation form = ratio;
    double scale = 1; ///< by which a number or a difference is multiplied
    term above, below{};
    std::vector<place> points{}; ///< those that `scripts/bench.sh targets` measures, without lines
    /// Is it judged at this place? Without a function: at each.
    std::function<bool(const place&)> applies{};
    term limit{};                ///< what takes the place of ours to show what is possible; may be empty
    bool limit_suffices = false; ///< if the limit itself misses the bound, is being no slower than the limit enough?
    /// The row of the short table that a place belongs to, such as "exchange, 2 ranks, 8^4"; "": none. Without a
    /// function: none. Of ratios to others only.
    std::function<std::string(const place&)> in_short{};
};

/// The bound of a target that has only one.
inline auto always(double bound) {
    return [bound](const place&, const nlohmann::json*) { return bound; };
}

/// What a figure lacks if nobody has a number.
inline const std::string no_line = "line";

/// A target at one place.
struct figure {
    std::string target, of, point; ///< of the target and the place, like the next two
    double size = 0;
    std::string speed;
    wanted side = wanted::at_most;
    double bound = 0;
    std::string lacks{}; ///< what it would take to have a value: "raw slot", "time", no_line; "": nothing
    double value = 0;
    bool noisy = false;
    double limit = 0; ///< what the limit reaches in place of ours; 0: not considered
    bool limit_suffices = false;
    std::string in_short{}; ///< its row of the short table; "": none
};

/// `value` as it is printed, which is what counts: two decimals below 10, one below 100, otherwise none.
std::string printed(double value);
/// Is the printed value on the right side of its bound?
bool met(double value, double bound, wanted side);

/// All figures, and what is lacking of them. Only lines of one run are related to each other, because the machine
/// changes between runs.
std::vector<figure> figures_of(const run_lines& lines);

// The parts of figures_of(), a file each; each adds its findings to `all`.
void add_exchange_figures(const run_lines& lines, std::vector<figure>& all);
void add_message_figures(const run_lines& lines, std::vector<figure>& all);
void add_setup_figures(const run_lines& lines, std::vector<figure>& all);

/// Adds the figures of a target at all places where it applies, and those that its other points lack.
void judge(const target& t, const std::vector<place>& places, std::vector<figure>& all);

/// The lines of one bench.
line_list lines_of(const run_lines& lines, std::string_view bench);

/// Was ours, or what took turns with it, measured within one host? Targets of shared memory say nothing about networks.
bool is_within_host(const nlohmann::json& line);

} // namespace halocline::bench
