// SPDX-License-Identifier: Apache-2.0
// Contenders take turns in short slices, so that all see the same machine. Each slice is bracketed by probes; a slice
// whose flags or whose cache lines differ by more than 15 % saw the machine change its mode and is dropped, and so is
// one whose flags took longer than 500 ns, because something else was running on these cores. The rest is sorted by
// mode (fast: a cache line's round trip takes less than 8 ns). Of a mode those slices count before and after which cores
// were equally quick, within a quarter: as quick as most contenders saw them often enough. So a ratio is between slices of
// the same mode, on cores that nobody else used, or that others used as much. If ranks outnumber cores, probes wait for
// the scheduler and show nothing of this: all slices are "slow", and only flags must be steady.
#pragma once

#include "support/flag_probe.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace halocline::bench {

/// Microseconds per step of several batches, for each measure that a bench takes.
using slice_times = std::vector<std::vector<double>>;

struct contender {
    std::string who, mode, transport;
    /// Collective: works for about `seconds`. Every rank gets the same times: those of the slowest rank.
    std::function<slice_times(double seconds)> slice;
};

/// A slice between two probes.
struct turn {
    slice_times us;
    machine_pace before, after;
};

/// What was kept of a contender in one mode of the machine.
struct series {
    int slices = 0;
    std::vector<double> flag_ns{}, transfer_ns{}, core_ns{};
    slice_times us{}; ///< by measure: the batches of all slices
    void add(const turn& t);
};
/// All results of one contender.
struct outcome {
    enum speed : std::size_t { fast, slow };
    std::array<series, 2> kept{}; ///< by speed
    series dropped{};             ///< what does not count
    /// With fewer slices than this a mode gets no figure.
    static constexpr int fewest_slices = 3;
    /// No mode has so many slices that count, and no claim may rest on what was kept: the steady slices of each mode that
    /// has enough of them, however quick the cores were; or, if none has, or slices were shorter than
    /// round_options::shortest_slice, all slices, as slow ones.
    bool noisy = false;
    bool mixed = false; ///< kept as slow ones: all slices, of whatever mode
    /// Were there slices enough for a figure in this mode? Noisy ones have one, marked.
    [[nodiscard]] bool has_figure(speed mode) const { return kept[mode].slices >= (noisy ? 1 : fewest_slices); }
};

/// What counts of the turns of each contender. crowded: ranks outnumber cores; too_short: say nothing.
std::vector<outcome> outcomes_of(std::span<const std::vector<turn>> turns, bool crowded, bool too_short);

/// The mode of the machine that most slices of a point saw, over all contenders; "slow" if no slice shows a mode.
outcome::speed most_seen(std::span<const outcome> outcomes);

struct round_options {
    double seconds = 10; ///< for all rounds together
    int rounds = 5;      ///< at least; more, within the time, to replace dropped slices
    double longest_slice = 0.3;
    /// In a shorter one hardly more than the first steps fit: whatever it shows is noise.
    static constexpr double shortest_slice = 5e-3;
    /// A third of the time is for rounds that replace dropped slices, and for probes.
    static constexpr double with_replacements = 1.5;
    /// One turn of one of so many contenders.
    [[nodiscard]] double turn_seconds(std::size_t contenders) const {
        return seconds / (with_replacements * rounds * static_cast<double>(std::max<std::size_t>(contenders, 1)));
    }
    /// `seconds` with which no slice is shorter than shortest_slice.
    [[nodiscard]] double least_seconds(std::size_t contenders) const {
        return shortest_slice * with_replacements * rounds * static_cast<double>(contenders);
    }
};

/// Collective: rounds of all contenders in turn.
std::vector<outcome> take_turns(const comm::job& j, flag_probe& probe, std::span<const contender> contenders,
                                const round_options& options);

/// Numbers of all ranks, element-wise maximum. Collective.
std::vector<double> slowest(const comm::job& j, const std::vector<double>& mine);

} // namespace halocline::bench
