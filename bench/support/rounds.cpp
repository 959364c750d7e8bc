// SPDX-License-Identifier: Apache-2.0
#include "support/rounds.hpp"

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace halocline::bench {

void series::add(const slice_times& times, const machine_pace& before, const machine_pace& after) {
    append({.slices = 1,
            .flag_ns = {before.flag_ns, after.flag_ns},
            .transfer_ns = {before.transfer_ns, after.transfer_ns},
            .us = times});
}

void series::append(const series& other) {
    slices += other.slices;
    flag_ns.insert(flag_ns.end(), other.flag_ns.begin(), other.flag_ns.end());
    transfer_ns.insert(transfer_ns.end(), other.transfer_ns.begin(), other.transfer_ns.end());
    us.resize(std::max(us.size(), other.us.size()));
    for (std::size_t m = 0; m < other.us.size(); ++m) us[m].insert(us[m].end(), other.us[m].begin(), other.us[m].end());
}

namespace {

/// Do two probes differ by at most 15 %?
bool alike(double before, double after) { return std::abs(before - after) <= 0.15 * std::max(before, after); }

} // namespace

outcome::speed most_seen(std::span<const outcome> outcomes) {
    std::array<int, 2> slices{};
    for (const outcome& o : outcomes)
        for (const auto speed : {outcome::fast, outcome::slow}) slices[speed] += o.kept[speed].slices;
    return slices[outcome::fast] > slices[outcome::slow] ? outcome::fast : outcome::slow;
}

std::vector<outcome> take_turns(const comm::job& j, flag_probe& probe, std::span<const contender> contenders,
                                const round_options& options) {
    std::vector<outcome> result(contenders.size());
    const double turn = options.turn_seconds(contenders.size());
    const bool too_short = turn < 0.999 * round_options::shortest_slice; // not by a rounding error
    const double slice = std::min(options.longest_slice, turn), probe_seconds = std::min(5e-3, slice / 6);
    const std::uint64_t begin = comm::ticks();
    const auto enough = [&](int round) {
        if (round < options.rounds) return false;
        const bool all_kept = std::all_of(result.begin(), result.end(), [&](const outcome& o) {
            return std::max(o.kept[0].slices, o.kept[1].slices) >= options.rounds;
        });
        return all_kept || slowest(j, {comm::seconds(comm::ticks() - begin)})[0] > options.seconds;
    };
    for (int round = 0; !enough(round); ++round)
        for (std::size_t c = 0; c < contenders.size(); ++c) {
            const machine_pace before = probe(probe_seconds);
            const slice_times times = contenders[c].slice(slice);
            const machine_pace after = probe(probe_seconds);
            // If ranks share cores, probes wait for the scheduler and say nothing about the mode.
            const bool undisturbed =
                probe.crowded() || (before.fast() == after.fast() && alike(before.transfer_ns, after.transfer_ns) &&
                                    std::max(before.flag_ns, after.flag_ns) < flag_probe::disturbed_ns);
            const bool steady = undisturbed && alike(before.flag_ns, after.flag_ns);
            const auto speed = !probe.crowded() && after.fast() ? outcome::fast : outcome::slow;
            (steady ? result[c].kept[speed] : result[c].dropped).add(times, before, after);
        }
    for (outcome& o : result) {
        o.noisy =
            too_short || std::max(o.kept[outcome::fast].slices, o.kept[outcome::slow].slices) < outcome::fewest_slices;
        if (!o.noisy) continue;
        o.kept[outcome::slow].append(o.kept[outcome::fast]);
        o.kept[outcome::slow].append(o.dropped);
        o.kept[outcome::fast] = o.dropped = {};
    }
    return result;
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
