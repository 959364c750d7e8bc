// SPDX-License-Identifier: Apache-2.0
// Storage positions in compressed form: neighbours form a run, equal runs at equal distances one entry. A face of a box
// in lexicographic order takes few entries, whatever its size; a list without any pattern takes one per position.
#pragma once

#include <halocline/lattice/site_order.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace halocline::halo {

/// `count` runs of `sites` neighbours, `stride` positions apart.
struct position_run {
    std::int64_t first = 0, stride = 0;
    std::int32_t sites = 0, count = 0;

    friend bool operator==(const position_run&, const position_run&) = default;
};

class position_list {
  public:
    position_list() = default;
    /// From positions listed one by one.
    position_list(std::span<const std::int64_t> positions);
    position_list(const std::vector<std::int64_t>& positions) : position_list(std::span(positions)) {}
    /// From runs, as runs() returns them.
    explicit position_list(std::vector<position_run> runs);
    /// 0, 1, 2, …: the sites of a message.
    static position_list counted(std::int64_t sites);
    /// From the positions that `walk(visit)` visits, in order.  Cost: a few ns per position.
    template <class Walk>
    static position_list of(Walk&& walk) {
        position_list list;
        std::int64_t first = 0, next = 0;
        walk([&](std::int64_t position) {
            if (position != next) {
                list.append(first, next);
                first = position;
            }
            next = position + 1;
        });
        list.append(first, next);
        return list;
    }

    [[nodiscard]] std::int64_t size() const { return size_; }
    /// No run continues the previous one.
    [[nodiscard]] std::span<const position_run> runs() const { return runs_; }
    [[nodiscard]] std::int64_t count_runs() const;
    /// Does it equal counted(size())?
    [[nodiscard]] bool is_counted() const {
        return runs_.empty() || (size_ == runs_.front().sites && runs_.front().first == 0);
    }
    /// Do both hold the same positions in the same order?  Pre: one made from runs has those that it would have one by one.
    friend bool operator==(const position_list&, const position_list&) = default;
    /// All positions, one by one.
    [[nodiscard]] std::vector<std::int64_t> expanded() const;
    /// A position in the middle of a longest run, where neither stores next to the list nor prefetchers disturb a
    /// measurement.  Pre: size() > 0.
    [[nodiscard]] std::int64_t probe_position() const;

  private:
    /// Appends a run of neighbours [first, last), which may be empty.
    void append(std::int64_t first, std::int64_t last);

    std::vector<position_run> runs_;
    std::int64_t size_ = 0;
};

/// Storage positions of these local lexicographic indices, in `order` (null: lexicographic).
[[nodiscard]] inline position_list stored_positions(std::span<const std::int32_t> sites,
                                                    const lattice::site_order* order) {
    return position_list::of([&](auto&& visit) {
        for (const std::int32_t site : sites) visit(order ? order->position(site) : site);
    });
}

} // namespace halocline::halo
