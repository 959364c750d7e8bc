// SPDX-License-Identifier: Apache-2.0
#include "support/rounds.hpp"

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

namespace halocline::bench {

void series::add(const turn& t) {
    ++slices;
    for (const machine_pace& pace : {t.before, t.after}) {
        flag_ns.push_back(pace.flag_ns);
        transfer_ns.push_back(pace.transfer_ns);
        core_ns.push_back(pace.core_ns);
    }
    us.resize(std::max(us.size(), t.us.size()));
    for (std::size_t m = 0; m < t.us.size(); ++m) us[m].insert(us[m].end(), t.us[m].begin(), t.us[m].end());
}

namespace {

/// Do two probes differ by at most 15 %?
bool alike(double before, double after) { return std::abs(before - after) <= 0.15 * std::max(before, after); }

/// Did the machine stay in its mode, undisturbed?
bool steady(const turn& t, bool crowded) {
    const auto& [us, before, after] = t;
    if (!alike(before.flag_ns, after.flag_ns)) return false;
    // If ranks share cores, probes wait for the scheduler and say nothing about the mode.
    return crowded || (before.fast() == after.fast() && alike(before.transfer_ns, after.transfer_ns) &&
                       std::max(before.flag_ns, after.flag_ns) < flag_probe::disturbed_ns);
}

/// Were the cores as quick as this, before and after, or slower by at most a quarter? Those that another guest uses, too,
/// or whose clock is lower, take 1.3 to 2 times as long.
bool as_quick(const turn& t, double core_ns) {
    const auto [quicker, slower] = std::minmax(t.before.core_ns, t.after.core_ns);
    return quicker >= core_ns && slower <= 1.25 * core_ns;
}

using turn_list = std::vector<const turn*>;

/// The cores that count: so quick that the most contenders have enough turns on them; of several, such that the one with
/// the fewest has most; of several, the quickest.
double common_core_ns(const std::vector<turn_list>& turns) {
    std::set<double> all;
    for (const turn_list& of_one : turns)
        for (const turn* t : of_one) all.insert(std::min(t->before.core_ns, t->after.core_ns));
    double common = 0;
    // How many contenders have enough turns, and how many turns the one of them with the fewest has.
    std::pair<int, std::ptrdiff_t> best{-1, 0};
    for (const double quick : all) {
        std::pair<int, std::ptrdiff_t> served{0, std::numeric_limits<std::ptrdiff_t>::max()};
        for (const turn_list& of_one : turns) {
            const auto count = std::ranges::count_if(of_one, [&](const turn* t) { return as_quick(*t, quick); });
            if (count < outcome::fewest_slices) continue;
            ++served.first;
            served.second = std::min(served.second, count);
        }
        if (served.first == 0) served.second = 0;
        if (served > best) {
            best = served;
            common = quick;
        }
    }
    return common;
}

/// The steady turns of one contender, by mode.
std::array<turn_list, 2> by_speed(const std::vector<turn>& turns, bool crowded) {
    std::array<turn_list, 2> sorted;
    for (const turn& t : turns)
        if (steady(t, crowded)) sorted[!crowded && t.after.fast() ? outcome::fast : outcome::slow].push_back(&t);
    return sorted;
}

bool enough(const turn_list& turns) { return turns.size() >= outcome::fewest_slices; }

} // namespace

std::vector<outcome> outcomes_of(std::span<const std::vector<turn>> turns, bool crowded, bool too_short) {
    std::array<std::vector<turn_list>, 2> sorted; // by mode and contender
    for (const std::vector<turn>& of_one : turns) {
        const std::array<turn_list, 2> mine = by_speed(of_one, crowded);
        for (const auto speed : {outcome::fast, outcome::slow}) sorted[speed].push_back(mine[speed]);
    }
    const std::array<double, 2> common{common_core_ns(sorted[outcome::fast]), common_core_ns(sorted[outcome::slow])};
    std::vector<outcome> result(turns.size());
    for (std::size_t c = 0; c < turns.size(); ++c) {
        outcome& o = result[c];
        std::array<turn_list, 2> counted;
        for (const auto speed : {outcome::fast, outcome::slow})
            for (const turn* t : sorted[speed][c])
                if (crowded || as_quick(*t, common[speed])) counted[speed].push_back(t);
        o.noisy = too_short || !std::ranges::any_of(counted, enough);
        if (o.noisy)
            for (const auto speed : {outcome::fast, outcome::slow})
                counted[speed] = !too_short && enough(sorted[speed][c]) ? sorted[speed][c] : turn_list();
        o.mixed = !crowded && !std::ranges::any_of(counted, enough);
        if (!std::ranges::any_of(counted, enough)) {
            counted = {};
            for (const turn& t : turns[c]) counted[outcome::slow].push_back(&t);
        }
        for (const auto speed : {outcome::fast, outcome::slow})
            for (const turn* t : counted[speed]) o.kept[speed].add(*t);
        for (const turn& t : turns[c])
            if (std::ranges::count(counted[0], &t) + std::ranges::count(counted[1], &t) == 0) o.dropped.add(t);
    }
    return result;
}

outcome::speed most_seen(std::span<const outcome> outcomes) {
    std::array<int, 2> slices{};
    for (const outcome& o : outcomes) {
        if (o.mixed) continue;
        for (const auto speed : {outcome::fast, outcome::slow}) slices[speed] += o.kept[speed].slices;
    }
    return slices[outcome::fast] > slices[outcome::slow] ? outcome::fast : outcome::slow;
}

std::vector<outcome> take_turns(const comm::job& j, flag_probe& probe, std::span<const contender> contenders,
                                const round_options& options) {
    std::vector<std::vector<turn>> turns(contenders.size());
    const double each = options.turn_seconds(contenders.size());
    const bool too_short = each < 0.999 * round_options::shortest_slice; // not by a rounding error
    const double slice = std::min(options.longest_slice, each), probe_seconds = std::min(5e-3, slice / 6);
    const std::uint64_t begin = comm::ticks();
    const auto outcomes = [&] { return outcomes_of(turns, probe.crowded(), too_short); };
    const auto all_kept = [&] {
        return std::ranges::all_of(outcomes(), [&](const outcome& o) {
            const bool kept = !o.noisy || too_short || options.rounds < outcome::fewest_slices;
            return kept && std::max(o.kept[0].slices, o.kept[1].slices) >= options.rounds;
        });
    };
    const auto enough = [&](int round) {
        if (round < options.rounds) return false;
        if (slowest(j, {comm::seconds(comm::ticks() - begin)})[0] > options.seconds) return true;
        return round % options.rounds == 0 && all_kept(); // which takes long if there are many slices
    };
    for (int round = 0; !enough(round); ++round)
        for (std::size_t c = 0; c < contenders.size(); ++c) {
            const machine_pace before = probe(probe_seconds);
            slice_times times = contenders[c].slice(slice);
            turns[c].push_back({std::move(times), before, probe(probe_seconds)});
        }
    return outcomes();
}

std::vector<double> slowest(const comm::job& j, const std::vector<double>& mine) {
    std::vector<double> result = mine;
    if (j.ranks() == 1) return result;
    const std::string bytes(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(double));
    for (const std::string& theirs : j.gather(bytes))
        for (std::size_t i = 0; i < result.size(); ++i) {
            double value = 0;
            std::memcpy(&value, theirs.data() + i * sizeof(double), sizeof(double));
            result[i] = std::max(result[i], value);
        }
    return result;
}

} // namespace halocline::bench
