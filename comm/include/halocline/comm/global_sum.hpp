// SPDX-License-Identifier: Apache-2.0
// A persistent global sum of a few doubles over all ranks. Each rank gets all contributions and adds them in one fixed
// tree over rank numbers (halves, recursively), so every rank gets the same bits, in every run and over every
// transport.
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
    /// Collective.  `max_values`: the most doubles per sum, at most 1024.
    /// `rank_order`: the leaves of the tree, all ranks in the order in which their parts are added; empty: by number.
    /// With the rank order of a decomposition the bits depend on the rank grid, and not on which rank has which place
    /// in it.
    /// Err: input_error if that is no permutation of the ranks.
    explicit global_sum(const job& j, int max_values = 64, std::span<const int> rank_order = {});
    /// values <- sum over ranks, element by element. Neither allocates nor locks.
    /// Pre:  the same size on every rank, at most max_values.
    /// Err:  status::wrong_data, within milliseconds, if the sizes differ or are too large; pending() has both sizes.
    /// Cost: one message to each other rank, of 8 bytes per value (1 or 2 values travel inside the control line).
    [[nodiscard]] status operator()(std::span<double> values) noexcept;
    /// The same in two halves; finish() gets as many values as start() did.
    void start(std::span<const double> values) noexcept;
    [[nodiscard]] status finish(std::span<double> values) noexcept;
    /// values <- maximum over ranks, element by element.
    [[nodiscard]] status maximum(std::span<double> values) noexcept;

    /// What the last failed sum was waiting for.
    [[nodiscard]] std::string pending() const;
    [[nodiscard]] const job& owner() const { return job_; }
    [[nodiscard]] const sum_statistics& statistics() const { return statistics_; }
    void reset_statistics() { statistics_ = {}; }

  private:
    void publish(std::span<const double> values, std::uint64_t stamp) noexcept;
    /// All ranks' values, combined element by element. `begin`: of the time that counts.
    template <class Combine>
    status gather(std::span<double> values, std::uint64_t begin, Combine combine) noexcept;
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
    std::vector<double> scratch_;      // of the tree
    status status_ = status::ok;
    sum_statistics statistics_;
};

} // namespace halocline::comm
