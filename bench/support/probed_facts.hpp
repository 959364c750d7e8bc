// SPDX-License-Identifier: Apache-2.0
// The facts about a job with which lines of JSON end, for benches that take no turns: also how fast flags and cores are.
#pragma once

#include "support/flag_probe.hpp"
#include "support/run_facts.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace halocline::bench {

/// The facts as they are now: call it when ranks are bound. Collective.
inline run_facts facts_of(const comm::job& j) {
    const std::vector<int> mine = comm::usable_processors();
    run_facts facts{.host = j.members()[j.rank()].host, .pinned = true};
    std::set<std::string> taken;
    for (const std::string& place : j.gather(mine.size() == 1 ? facts.host + ' ' + std::to_string(mine[0]) : ""))
        facts.pinned = facts.pinned && !place.empty() && taken.insert(place).second;
    return facts;
}

class probed_facts {
  public:
    /// Collective.
    explicit probed_facts(const comm::job& j) : facts_(facts_of(j)) {
        const auto& all = j.members();
        const bool one_node = std::ranges::all_of(all, [&](const auto& m) { return m.node == all[0].node; });
        if (j.ranks() == 1 || !one_node) return;
        try {
            probe_.emplace(j);
        } catch (const error&) { // on every rank: no memory that all map, so no flags
        }
    }
    /// Collective: 5 ms between ranks of one node; for the lines that follow.
    void probe() {
        if (probe_) pace_ = (*probe_)(5e-3);
    }
    /// "flag_ns", "transfer_ns", "core_ns" if they were probed; then those of run_facts.
    [[nodiscard]] json_line line() const {
        json_line facts;
        if (pace_)
            facts.add("flag_ns", pace_->flag_ns).add("transfer_ns", pace_->transfer_ns).add("core_ns", pace_->core_ns);
        return facts.add(facts_.line());
    }
    /// What is measured, if somebody said so on the command line.
    void measured(std::string git) { facts_.git = std::move(git); }

  private:
    run_facts facts_;
    std::optional<flag_probe> probe_;
    std::optional<machine_pace> pace_;
};

} // namespace halocline::bench
