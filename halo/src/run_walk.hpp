// SPDX-License-Identifier: Apache-2.0
// A walk along a position list, by runs of neighbours or by parts of them: two walks together find the runs that two
// lists have in common.
#pragma once

#include <halocline/comm/costs.hpp>
#include <halocline/halo/detail/position_list.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace halocline::halo {

/// Adds the cache lines that a run of bytes [begin, end) fills, whole or in part; bytes count from the start of a line.
inline void add_lines(comm::written_lines& lines, std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t line = 64;
    const std::int64_t whole = std::max(end / line - (begin + line - 1) / line, std::int64_t{0});
    lines.whole += static_cast<double>(whole);
    lines.part += static_cast<double>((end + line - 1) / line - begin / line - whole);
}

/// Adds the lines of `count` such runs, each `step` bytes behind the one before.  Cost: at most 64 steps.
inline void add_lines(comm::written_lines& lines, std::int64_t begin, std::int64_t end, std::int64_t step,
                      std::int64_t count) {
    constexpr std::int64_t line = 64;
    const std::int64_t period = line / std::gcd(line, step); // runs so far apart lie in their lines alike
    for (std::int64_t i = 0; i < std::min(count, period); ++i) {
        comm::written_lines one;
        add_lines(one, begin + i * step, end + i * step);
        const auto alike = static_cast<double>((count - i + period - 1) / period);
        lines.whole += alike * one.whole;
        lines.part += alike * one.part;
    }
}

/// Lifetime: refers to the list.
class run_walk {
  public:
    explicit run_walk(const position_list& list)
        : entry_(list.runs().data()), end_(list.runs().data() + list.runs().size()) {}

    [[nodiscard]] bool at_end() const { return entry_ == end_; }
    // Pre of what follows: !at_end().
    [[nodiscard]] std::int64_t position() const { return entry_->first + run_ * entry_->stride + site_; }
    /// Sites from here to the end of the run.
    [[nodiscard]] std::int32_t left() const { return entry_->sites - site_; }
    /// Parts of so many sites at equal distances: `count` of them, the first of which begins here.
    struct parts {
        std::int32_t count;
        std::int64_t stride; ///< if there are several
    };
    /// Pre: sites <= left().
    [[nodiscard]] parts parts_of(std::int32_t sites) const {
        return is_run(sites) ? parts{entry_->count - run_, entry_->stride} : parts{left() / sites, sites};
    }
    /// Walks over `count` of these parts.
    void advance(std::int32_t sites, std::int32_t count = 1) {
        if (is_run(sites)) {
            run_ += count;
        } else {
            site_ += sites * count;
            if (site_ < entry_->sites) return;
            site_ = 0;
            ++run_;
        }
        if (run_ < entry_->count) return;
        run_ = 0;
        ++entry_;
    }

  private:
    /// Are the next so many sites a whole run?
    [[nodiscard]] bool is_run(std::int32_t sites) const { return site_ == 0 && sites == entry_->sites; }

    const position_run* entry_;
    const position_run* end_;
    std::int32_t run_ = 0, site_ = 0;
};

} // namespace halocline::halo
