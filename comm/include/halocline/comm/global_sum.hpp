// SPDX-License-Identifier: Apache-2.0
// A persistent global sum of a few doubles over all ranks. The contributions are gathered and added in one fixed tree
// over rank numbers (halves, recursively), so every rank gets the same bits, from run to run and over every transport.
#pragma once

#include <halocline/comm/channel_set.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace halocline::comm {

struct sum_statistics {
    std::uint64_t sums = 0;
    std::uint64_t bytes = 0;
    double seconds = 0; ///< time inside the calls
};

class global_sum {
  public:
    /// Collective.  `max_values` <= 1024 doubles per sum.
    /// `rank_order`: the leaves of the tree, all ranks in the order in which their parts are added; empty: by number.
    /// With the rank order of a decomposition, bits depend on the rank grid and not on who has which place of it.
    /// Err: input_error when that is no permutation of the ranks.
    explicit global_sum(const job& j, int max_values = 64, std::span<const int> rank_order = {});
    /// values <- sum over ranks, element-wise.  Pre: same size on every rank, <= max_values.
    /// noexcept, no allocation, no lock.  Cost: one message to each other rank, 8 bytes per value (1 or 2 values: none
    /// beside the control line).  A size that differs between ranks or is too large:
    /// status::wrong_data, within milliseconds; pending() has both sizes.
    [[nodiscard]] status operator()(std::span<double> values) noexcept;
    /// Split form; values must stay untouched in between.
    void start(std::span<const double> values) noexcept;
    [[nodiscard]] status finish(std::span<double> values) noexcept;
    /// values <- maximum over ranks.
    [[nodiscard]] status maximum(std::span<double> values) noexcept;

    /// What the last failed sum was waiting for.
    [[nodiscard]] std::string pending() const;
    [[nodiscard]] const job& owner() const { return job_; }
    [[nodiscard]] const sum_statistics& statistics() const { return statistics_; }
    void reset_statistics() { statistics_ = {}; }

  private:
    /// Publishes values; finish_with(combine) gathers all ranks' and combines them element by element.
    template <class Combine>
    status finish_with(std::span<double> values, Combine combine) noexcept;
    /// Does a peer, in this sum, sum more or fewer values, by the other set?
    void look_for_another_sum() noexcept;
    void note_other(int peer, std::size_t values) noexcept;
    channel_set& set_of(std::size_t count) noexcept { return count <= small_values ? small_ : large_; }

    static constexpr std::size_t small_values = 2; // travel inside the control line
    job job_;
    channel_set small_, large_;
    std::uint64_t small_epoch_ = 0, large_epoch_ = 0;
    std::size_t max_values_ = 0, own_count_ = 0; // values: most, and of the sum under way
    int other_ = -1;                             // who sums another number of values, and how many
    std::size_t other_count_ = 0;
    std::vector<double> own_;
    std::vector<std::size_t> leaf_of_; // by rank
    std::vector<const double*> parts_; // by leaf, of the sum under way
    status status_ = status::ok;
    sum_statistics statistics_;
};

} // namespace halocline::comm
