// SPDX-License-Identifier: Apache-2.0
// A persistent global sum of a few doubles over all ranks. Contributions are added in one fixed tree over ranks
// (recursive halving), so every rank gets the same bits, in every run and over every transport. In a small group each
// rank receives all contributions and adds them itself: one step. Larger jobs are halved into such groups; then the
// halves swap their partial sums, one step per level of the tree (docs/decisions/0038-global-sums.md).
#pragma once

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/comm/wrong_call.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace halocline::comm {

/// What the sums of one object have cost this rank.
struct sum_statistics {
    std::uint64_t sums = 0;     ///< finished ones, including maxima
    std::uint64_t messages = 0; ///< sent by this rank
    std::uint64_t bytes = 0;    ///< of values in these messages
    /// Time inside the calls, but for test(), and for the sending in operator() and maximum().
    double seconds = 0;
};

/// All ranks make the same calls in the same order, with the same number of values. After set-up no call allocates,
/// locks or throws. A bad status is permanent: later sums do nothing and return it.
class global_sum {
  public:
    /// Collective.  `max_values`: the most doubles per sum, 1 to 1024.
    /// `rank_order`: the leaves of the tree: all ranks, in the order in which their parts are added; empty: by number.
    /// With the rank order of a decomposition the bits depend on the rank grid, but not on which rank holds which place
    /// in it.
    /// `largest_group`: ranks that take one step; 0: where all ranks share memory, 4, but 32 if they also share cores or
    /// run under a quota of processor time (or are told so, by spin_polls); otherwise 8. It changes no bits.
    /// Err: on every rank: input_error (ranks that pass different arguments; max_values or largest_group out of range;
    /// a rank_order that is not a permutation of the ranks); slab_full; job_error.
    explicit global_sum(const comm::job& j, int max_values = 64, std::span<const int> rank_order = {},
                        int largest_group = 0);
    global_sum(const global_sum&) = delete; // other waits of this rank hold its address
    global_sum& operator=(const global_sum&) = delete;
    /// values <- sum over ranks, element by element, with the same bits on every rank.
    /// Shape: up to max_values doubles, the same number on every rank.
    /// Err:  status::wrong_data, within milliseconds, if the sizes differ or are too large, or if some ranks of a group
    /// ask for a sum and others for a maximum; pending() says what each asked for. misused between start() and
    /// finish(). peer_died, aborted or timed_out if a rank can no longer take part. aborted also, usually within 0.1 s,
    /// if two ranks of a node wait in different sums or exchanges, neither of which the other has begun; in a process
    /// with other threads at nine tenths of the deadline, because one of them might begin it.
    /// Cost: messages of 8 bytes per value (1 or 2 values travel inside the control line): to each other rank of the
    /// group, and to one, seldom two, per level above.
    [[nodiscard]] status operator()(std::span<double> values) noexcept;
    /// operator(), for code outside hot loops: a bad status becomes an exception.
    /// Err: input_error: more values than the sum was made for; rank_failure or job_error, naming the rank that failed
    ///      and what this one was waiting for.
    void sum_or_throw(std::span<double> values);
    /// operator() in two halves, like MPI_Iallreduce and MPI_Wait. start() reads `values`, which may change afterwards;
    /// finish() writes the sum into its argument. In between, every wait and test() of this rank, on whatever object and
    /// by whatever thread, advances the sum.
    /// Pre: one sum at a time; finish() gets the same number of values as start(). Otherwise finish() returns misused.
    /// Err: finish() returns what operator() would.
    void start(std::span<const double> values) noexcept;
    /// Between start() and finish(): true if finish() would return at once, which includes, after a while, a rank's
    /// death.
    [[nodiscard]] bool test() noexcept;
    [[nodiscard]] status finish(std::span<double> values) noexcept;
    void finish_or_throw(std::span<double> values); ///< Err: as sum_or_throw()
    /// values <- maximum over ranks, element by element; NaN where a rank has one. The minimum of x is minus the maximum
    /// of -x, exactly.
    /// Shape, Err, Cost: as operator().
    [[nodiscard]] status maximum(std::span<double> values) noexcept;
    void maximum_or_throw(std::span<double> values); ///< Err: as sum_or_throw()

    /// What the last failed sum was waiting for, or what was wrong with it.
    [[nodiscard]] std::string pending() const;
    [[nodiscard]] const comm::job& job() const { return job_; }
    /// The most doubles that a sum holds.
    [[nodiscard]] int max_values() const { return static_cast<int>(max_values_); }
    [[nodiscard]] const sum_statistics& statistics() const { return statistics_; }
    void reset_statistics() { statistics_ = {}; }

  private:
    /// The channels of one step of the tree: `small` for sums of one or two values, `large` for more.
    struct step {
        channel_set small, large;
        std::size_t peers = 0;      ///< of either
        bool in_first_half = false; ///< above the group: is this rank in the first of the two halves?
        [[nodiscard]] channel_set& channels_for(std::size_t values) { return values <= small_values ? small : large; }
        [[nodiscard]] const channel_set& channels_for(std::size_t values) const {
            return values <= small_values ? small : large;
        }
    };

    void or_throw(status s) const;
    // The stages of a sum: begin_sum(); then, for each step, await_step() and combine_step().
    /// Begins the next sum: sends this rank's values to its group.
    void begin_sum(std::span<const double> values, bool maximum = false) noexcept;
    void send(step& to, std::span<const double> values) noexcept;
    /// Waits for the messages of the step that is due, and checks that they belong to this sum.
    status await_step() noexcept;
    /// values <- values combined with the messages of the step that is due; sends the result to the ranks of the next
    /// step, if there is one.
    template <class Combine>
    void combine_step(std::span<double> values, Combine combine) noexcept;
    /// Takes all remaining steps: values <- all ranks' values, combined element by element. `begin`: when its time
    /// began, in ticks, for the statistics.
    template <class Combine>
    status finish_steps(std::span<double> values, std::uint64_t begin, Combine combine) noexcept;
    /// Advances a sum that start() began, as far as possible without waiting; nothing if another thread is doing so.
    void progress() noexcept;
    /// progress() by the thread that has set advancing_.
    void take_ready_steps() noexcept;
    [[nodiscard]] bool complete() const noexcept { return status_ != status::ok || due_ == steps_.size(); }
    /// The epoch of the sum under way, in the channels that it uses.
    [[nodiscard]] std::uint64_t epoch() const noexcept {
        return own_count_ <= small_values ? small_epoch_ : large_epoch_;
    }
    /// Number of sums so far, including the one under way.
    [[nodiscard]] std::uint64_t ordinal() const noexcept { return small_epoch_ + large_epoch_; }
    /// For channel_set::find_crossed_waits(): after a mismatch, which both ranks report, nothing is told of this sum.
    [[nodiscard]] std::uint64_t begun(std::uint64_t epoch) const noexcept {
        return disagreeing_rank_ >= 0 ? ~std::uint64_t{0} : epoch;
    }

    // Detection of ranks that sum different things: explained in global_sum.cpp.
    /// What this call asks for, as its messages encode it (sum_word): the number of values, and sum or maximum.
    [[nodiscard]] std::uint32_t own_word() const noexcept;
    /// Notes a mismatch if a peer's message, of epoch `its_epoch` of its channel, asks for something else.
    template <class Channel>
    void compare(Channel& c, std::uint64_t its_epoch) noexcept;
    /// Checks whether a peer of this step takes part in the sum through the channels that this rank does not use for
    /// it.
    void look_for_mismatch(step& in) noexcept;
    void note_mismatch(int rank, std::uint32_t what) noexcept;
    /// Reports to the ranks of the steps from `first` on, which wait for this one, why the sum fails.
    void refuse(std::size_t first) noexcept;
    void misused(const char* call) noexcept { wrong_call_.note_first(call, status_); }

    static constexpr std::size_t small_values = 2; // travel inside the control line

    comm::job job_;
    std::vector<step> steps_;            // the group's first, then upwards
    std::size_t due_ = 0;                // the step whose messages the sum under way waits for
    std::atomic<bool> started_{false};   // by start(): the result so far is in sum_
    std::atomic<bool> advancing_{false}; // by a thread of this rank: only it may look at what follows from started_
    unsigned fruitless_tests_ = 0;
    std::uint64_t small_epoch_ = 0, large_epoch_ = 0; // sums so far in each set of channels
    std::size_t max_values_ = 0, own_count_ = 0;      // values: the limit, and those of the sum under way
    bool maximum_ = false;                            // of the sum under way
    int disagreeing_rank_ = -1;                       // a rank that asks for something else; -1: none seen
    std::uint32_t disagreeing_word_ = 0;              // what it asks for, encoded as own_word()
    wrong_call wrong_call_;                           // why status_ is misused
    std::vector<double> own_;                         // this rank's part, as given to begin_sum()
    std::vector<double> sum_;                         // after start(): the result of the steps taken so far
    std::vector<std::size_t> leaf_of_;                // by rank
    std::size_t first_leaf_ = 0;                      // of this rank's group
    std::vector<const double*> parts_;                // the group's parts of the sum under way, by leaf
    std::vector<double> scratch_;                     // used by over_leaves()
    status status_ = status::ok;
    sum_statistics statistics_;
};

} // namespace halocline::comm
