// SPDX-License-Identifier: Apache-2.0
// Collects storage positions run by run, runs at equal distances at one stroke. The entries are those of a position_list
// made of the same positions one by one.
#pragma once

#include <halocline/halo/detail/position_list.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace halocline::halo {

/// Appends a run of neighbours [first, last), which does not continue the one before, to the last entry if it fits
/// there.
inline void append_run(std::vector<position_run>& entries, std::int64_t first, std::int64_t last) {
    if (first == last) return;
    const auto sites = static_cast<std::int32_t>(last - first);
    if (!entries.empty() && entries.back().sites == sites) {
        position_run& e = entries.back();
        if (e.count == 1) e.stride = first - e.first;
        if (first == e.first + e.count * e.stride) {
            ++e.count;
            return;
        }
    }
    entries.push_back({first, 0, sites, 1});
}

class run_collector {
  public:
    /// Adds the neighbours [first, last).
    void add(std::int64_t first, std::int64_t last) {
        if (first != last_) {
            append_run(entries_, first_, last_);
            first_ = first;
        }
        last_ = last;
    }
    /// Adds all runs of an entry.  Pre: it has some.  Cost: O(1).
    void add(const position_run& r) {
        if (r.stride == r.sites) return add(r.first, r.first + std::int64_t{r.sites} * r.count);
        std::int32_t added = 0;
        const auto add_next = [&] {
            const std::int64_t first = r.first + added++ * r.stride;
            add(first, first + r.sites);
        };
        while (added < r.count && !(added > 1 && last_entry_repeats(r))) add_next();
        if (added == r.count) return;
        // The next ones follow those in the last entry; the last one may be continued by what is added later.
        entries_.back().count += r.count - added;
        added = r.count - 1;
        last_ = first_; // that run is in the entry already
        add_next();
    }
    [[nodiscard]] std::vector<position_run> take() {
        append_run(entries_, first_, last_);
        first_ = last_ = 0;
        return std::exchange(entries_, {});
    }

  private:
    [[nodiscard]] bool last_entry_repeats(const position_run& r) const {
        const position_run& e = entries_.back();
        return e.count > 1 && e.sites == r.sites && e.stride == r.stride;
    }

    std::vector<position_run> entries_;
    std::int64_t first_ = 0, last_ = 0; // the run that may still be continued
};

} // namespace halocline::halo
