// SPDX-License-Identifier: Apache-2.0
#include "agreed_costs.hpp"

#include <algorithm>

namespace halocline::comm {
namespace {

/// The lower quartile of the positive values; 0 if there are none.
double lower_quartile(std::vector<double> values) {
    std::erase_if(values, [](double v) { return !(v > 0); });
    if (values.empty()) return 0;
    const auto quarter = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
    std::nth_element(values.begin(), quarter, values.end());
    return *quarter;
}

/// c.cached: without claims; from now on in the faster of the two ways.
void choose_claims(costs& c, const write_cost& claimed) {
    if (c.cached.line_seconds > 0) c.claimed_ratio = claimed.line_seconds / c.cached.line_seconds;
    if (c.claimed_ratio > 0 && c.claims_pay()) c.cached = claimed;
}

/// Everything between two cores consists of taking lines. Taking a line is the measurement that is hardest to disturb:
/// it lasts a tenth of a microsecond and needs nobody else at that time. So it bounds the others.
void bound_by_lines(costs& c) {
    // From the other socket of a loaded machine.
    constexpr double longest_take = 5e-7;
    c.take_seconds = std::min(c.take_seconds, longest_take);
    const double take = c.take_seconds > 0 ? c.take_seconds : longest_take; // not timed if all ranks share a core
    for (write_cost* const w : {&c.cached, &c.streamed}) {
        w->line_seconds = std::min(w->line_seconds, 2 * take);       // there and back; neighbouring lines overlap
        w->message_seconds = std::min(w->message_seconds, 8 * take); // two flags, the lines before them, a fence
    }
    for (double* const line : {&c.run_line_seconds, &c.pulled_line_seconds}) *line = std::min(*line, 2 * take);
    c.scattered_line_seconds = std::min(c.scattered_line_seconds, 4 * take);
    // Further messages travel along with the first: their payloads and control lines overlap with other lines.
    const double lines = c.cached.line_seconds > 0 ? 3 * c.cached.line_seconds : take;
    c.message_seconds = std::min({c.message_seconds, take, lines});
}

/// Between two cores a line is taken by the writer, then by the reader. Where ranks share cores, a rank that waits for
/// a flag lets others work meanwhile; what the flag costs is a context switch, however long the wait took.
double flag_of(const costs& c, bool own_cores) {
    constexpr double change_of_process = 2e-6, between_cores = 5e-7;
    if (!own_cores) return change_of_process;
    return std::min(c.flag_seconds, c.take_seconds > 0 ? 2 * c.take_seconds : between_cores);
}

} // namespace

costs agreed(const std::vector<measurement>& all) {
    const auto quartile_of = [&](auto&& of) {
        std::vector<double> values;
        for (const measurement& m : all) values.push_back(of(m));
        return lower_quartile(std::move(values));
    };
    const auto quartile = [&](auto&& of) { return quartile_of([&](const measurement& m) { return of(m.seen); }); };
    const auto write = [&](write_cost costs::*how) {
        return write_cost{quartile([&](const costs& c) { return (c.*how).message_seconds; }),
                          quartile([&](const costs& c) { return (c.*how).line_seconds; })};
    };
    const write_cost claimed{quartile_of([](const measurement& m) { return m.claimed.message_seconds; }),
                             quartile_of([](const measurement& m) { return m.claimed.line_seconds; })};
    const auto of = [&](double costs::*what) { return quartile([&](const costs& c) { return c.*what; }); };
    costs c{.flag_seconds = of(&costs::flag_seconds),
            .message_seconds = of(&costs::message_seconds),
            .copy_seconds_per_byte = of(&costs::copy_seconds_per_byte),
            .run_seconds = of(&costs::run_seconds),
            .cached = write(&costs::cached),
            .streamed = write(&costs::streamed),
            .run_line_seconds = of(&costs::run_line_seconds),
            .moves_skip_waits =
                std::all_of(all.begin(), all.end(), [](const measurement& m) { return m.seen.moves_skip_waits; }),
            .pulled_line_seconds = of(&costs::pulled_line_seconds),
            .scattered_line_seconds = of(&costs::scattered_line_seconds),
            .take_seconds = of(&costs::take_seconds),
            .keep_seconds = of(&costs::keep_seconds),
            .alone_seconds = of(&costs::alone_seconds),
            .joint_seconds = of(&costs::joint_seconds),
            .network_flag_seconds = of(&costs::network_flag_seconds)};
    choose_claims(c, claimed);
    constexpr double slowest_copy = 1e-9, longest_run = 1e-7, slowest_network = 1e-4;
    c.copy_seconds_per_byte = std::min(c.copy_seconds_per_byte, slowest_copy);
    c.run_seconds = std::min(c.run_seconds, longest_run);
    c.network_flag_seconds = std::min(c.network_flag_seconds, slowest_network);
    if (std::none_of(all.begin(), all.end(), [](const measurement& m) { return m.shares_memory; })) return c;
    bound_by_lines(c);
    const bool own_cores = std::all_of(all.begin(), all.end(), [](const measurement& m) { return m.own_core; });
    c.flag_seconds = flag_of(c, own_cores);
    return c;
}

} // namespace halocline::comm
