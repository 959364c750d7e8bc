// SPDX-License-Identifier: Apache-2.0
// A persistent global sum of a few doubles over all ranks. The contributions are gathered and added in one fixed tree
// over rank numbers (halves, recursively), so every rank gets the same bits, from run to run and over every transport.
#pragma once

#include <halocline/comm/channel_set.hpp>

#include <span>
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
    explicit global_sum(const job& j, int max_values = 64);
    /// values <- sum over ranks, element-wise.  Pre: same size on every rank, <= max_values.
    /// noexcept, no allocation, no lock.
    [[nodiscard]] status operator()(std::span<double> values) noexcept;
    /// Split form; values must stay untouched in between.
    void start(std::span<const double> values) noexcept;
    [[nodiscard]] status finish(std::span<double> values) noexcept;
    /// values <- maximum over ranks.
    [[nodiscard]] status maximum(std::span<double> values) noexcept;

    [[nodiscard]] const job& owner() const { return job_; }
    [[nodiscard]] const sum_statistics& statistics() const { return statistics_; }
    void reset_statistics() { statistics_ = {}; }

  private:
    job job_;
    channel_set channels_;
    int max_values_ = 0;
    std::uint64_t epoch_ = 0;
    std::vector<const double*> parts_; // by rank
    std::vector<double> own_;
    sum_statistics statistics_;
};

} // namespace halocline::comm
