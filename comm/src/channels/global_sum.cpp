// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/global_sum.hpp>

#include "job/job_core.hpp"
#include "sum_label.hpp"
#include "sum_tree.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/clock.hpp>
#include <halocline/comm/detail/claim_lines.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <sched.h>

// Ranks that sum different things. Each message states what its sender asks for (sum_label.hpp), so a rank that
// receives the messages of a step sees who disagrees with it: compare(). Two things could still keep ranks waiting:
// * Sums of one or two values have their own channels. A peer that sums more values than this rank has sent its part
//   through the others, so a waiting rank looks there too, now and then: look_for_mismatch().
// * A rank that saw a mismatch has no part for the ranks of later steps. Instead of it they are sent a refusal, which
//   says who asks for what, and they pass it on: refuse().
namespace halocline::comm {
namespace {

/// How often to look for a mismatch, in a wait and in a loop around test(). A poll may take 10 ms where ranks share
/// cores.
constexpr unsigned polls_per_mismatch_check = 64, tests_per_mismatch_check = 256;
constexpr auto plus = [](double a, double b) { return a + b; };

/// Ranks that exchange everything take one step instead of one per level. That pays while the messages of that step,
/// one to each other rank, cost less than further steps: docs/decisions/0038-global-sums.md has figures.
std::size_t usual_group(const job& j) {
    if (!j.core().all_share_memory) return 8;
    return j.core().all_have_own_cores ? 4 : 32; // where ranks share cores, a step is a turn of the scheduler
}

std::string in_words(std::span<const int> rank_order) {
    std::string text = rank_order.empty() ? ", by number" : ", ranks";
    for (const int rank : rank_order) text += " " + std::to_string(rank);
    return text;
}

/// Checks the arguments of global_sum(). Collective.  Err: input_error.
void check_options(const job& j, int max_values, std::span<const int> rank_order, int largest_group) {
    j.agree("the largest global sum", std::to_string(max_values));
    j.agree("the largest group and the rank order of a global sum",
            std::to_string(largest_group) + in_words(rank_order));
    if (max_values < 1 || max_values > most_values)
        throw input_error("a global sum of up to " + std::to_string(max_values) + " values; 1 to " +
                          std::to_string(most_values) + " are possible");
    if (largest_group < 0)
        throw input_error("a global sum in groups of " + std::to_string(largest_group) +
                          " ranks; 1 or more, or 0 for the usual");
}

channel_set channels_to(const job& j, std::span<const int> peers, std::size_t values, std::string name) {
    std::vector<channel_request> requests;
    for (const int peer : peers) {
        const std::size_t bytes = values * sizeof(double);
        requests.push_back(
            {peer, static_cast<std::uint32_t>(peer), static_cast<std::uint32_t>(j.rank()), bytes, bytes, "part"});
    }
    return channel_set(j, requests, {std::move(name), ""});
}

} // namespace

global_sum::global_sum(const comm::job& j, int max_values, std::span<const int> rank_order, int largest_group)
    : job_(j) {
    check_options(j, max_values, rank_order, largest_group);
    max_values_ = static_cast<std::size_t>(max_values);
    own_.resize(max_values_);
    sum_.resize(max_values_);
    // The tree is over leaves, channels are between ranks.
    leaf_of_ = leaf_of_each(rank_order, j.ranks());
    const std::size_t most = largest_group > 0 ? static_cast<std::size_t>(largest_group) : usual_group(j);
    std::vector<int> rank_at(leaf_of_.size());
    for (int r = 0; r < j.ranks(); ++r) rank_at[leaf_of_[r]] = r;
    const std::size_t leaf = leaf_of_[j.rank()];
    const leaf_steps mine = steps_of(leaf, leaf_of_.size(), most);
    for (const swap_step& swap : mine.steps) {
        std::vector<int> peers;
        for (const std::size_t l : swap.partners) peers.push_back(rank_at[l]);
        step& s = steps_.emplace_back();
        s.in_first_half = swap.left;
        s.peers = peers.size();
        s.small = channels_to(j, peers, small_values, "global sum");
        s.small.find_crossed_waits(this, [](const void* object) {
            const auto& sum = *static_cast<const global_sum*>(object);
            return sum.begun(sum.small_epoch_);
        });
        if (max_values_ <= small_values) continue;
        s.large = channels_to(j, peers, max_values_, "large global sum");
        s.large.find_crossed_waits(this, [](const void* object) {
            const auto& sum = *static_cast<const global_sum*>(object);
            return sum.begun(sum.large_epoch_);
        });
    }
    // Above the group some ranks have no partner in a step. The group's step stays, even for one rank: each sum begins
    // there.
    std::erase_if(steps_, [&](const step& s) { return &s != &steps_.front() && s.small.size() == 0; });
    first_leaf_ = mine.group.first;
    parts_.resize(mine.group.size());
    scratch_.resize(max_values_ * std::bit_width(parts_.size()));
    if (steps_.size() > 1) // a peer above the group may wait for this rank while it waits for something else
        steps_.front().small.work_in_every_wait(this, [](void* sum) { static_cast<global_sum*>(sum)->progress(); });
}

void global_sum::start(std::span<const double> values) noexcept {
    const std::uint64_t begin = ticks();
    begin_sum(values);
    started_ = status_ == status::ok;
    statistics_.seconds += seconds(ticks() - begin);
}

// Waits of several threads may call this, also while one is in finish(): either it finds started_ false after it has
// set advancing_, or finish() finds advancing_ set and waits. Sequentially consistent, because each stores one of the two and
// then loads the other.
void global_sum::progress() noexcept {
    if (!started_.load(std::memory_order_relaxed) || advancing_.exchange(true)) return;
    take_ready_steps();
    advancing_.store(false, std::memory_order_release);
}

void global_sum::take_ready_steps() noexcept {
    if (!started_.load()) return;
    const std::span<double> values(sum_.data(), own_count_);
    while (!complete() && steps_[due_].channels_for(own_count_).has_arrived(epoch()) && await_step() == status::ok)
        combine_step(values, plus);
}

bool global_sum::test() noexcept {
    if (!started_.load()) return true; // finish() would return at once
    if (advancing_.exchange(true)) return false;
    take_ready_steps();
    if (!complete()) {
        (void)steps_[due_]
            .channels_for(own_count_)
            .test(epoch()); // does the work of every wait, in which the message may come
        take_ready_steps();
    }
    if (!complete() && ++fruitless_tests_ % tests_per_mismatch_check == 0) {
        look_for_mismatch(steps_[due_]);
        if (disagreeing_rank_ >= 0) refuse(due_ + 1);
    }
    const bool done = complete();
    advancing_.store(false, std::memory_order_release);
    return done;
}

std::uint32_t global_sum::own_word() const noexcept { return sum_word(own_count_, maximum_).word(); }

void global_sum::begin_sum(std::span<const double> values, bool maximum) noexcept {
    if (started_) misused("a sum was begun before finish() of the last");
    if (status_ != status::ok) return;
    steps_.front().small.note_thread();
    own_count_ = values.size();
    maximum_ = maximum;
    due_ = 0;
    ++(own_count_ <= small_values ? small_epoch_ : large_epoch_);
    if (own_count_ > max_values_) {
        note_mismatch(job_.rank(), own_word());
        return refuse(0);
    }
    std::copy(values.begin(), values.end(), own_.begin());
    send(steps_.front(), values);
}

void global_sum::send(step& to, std::span<const double> values) noexcept {
    constexpr std::size_t line = 64;
    const std::uint64_t k = epoch();
    const sum_label label(ordinal(), sum_word(own_word()));
    const std::size_t bytes = values.size_bytes();
    channel_set& set = to.channels_for(own_count_);
    if (bytes > line) set.for_each([&](auto& c) { claim_lines(c.target(k), c.target(k) + bytes); });
    set.for_each([&](auto& c) {
        std::ranges::copy(std::as_bytes(values), c.target(k)); // memcpy must not get a null address, even for no values
        c.send(k, 0, label.field_index());
        ++statistics_.messages;
    });
    statistics_.bytes += bytes * to.peers;
}

void global_sum::note_mismatch(int rank, std::uint32_t what) noexcept {
    status_ = status::wrong_data;
    disagreeing_rank_ = rank;
    disagreeing_word_ = what;
}

template <class Channel>
void global_sum::compare(Channel& c, std::uint64_t its_epoch) noexcept {
    if (status_ != status::ok) return;
    const sum_label label(c.label(its_epoch).field_index);
    if (label == sum_label(ordinal(), sum_word(own_word()))) return;
    if (!label.is_refusal()) return note_mismatch(c.peer(), label.what().word());
    // A refusal names two ranks that disagree with each other, so at least one of them disagrees with this one.
    double said[2];
    std::memcpy(said, c.received(its_epoch), sizeof said);
    for (const double one : said)
        if (const summed s = summed::of(one); s.what.word() != own_word()) return note_mismatch(s.rank, s.what.word());
}

void global_sum::look_for_mismatch(step& in) noexcept {
    const bool small = own_count_ <= small_values;
    const std::uint64_t k = (small ? large_epoch_ : small_epoch_) + 1; // the next sum in that set of channels
    (small ? in.large : in.small).for_each([&](auto& c) {
        if (status_ != status::ok || !c.arrived(k) || c.check(k) != status::ok) return;
        // A peer that has finished this sum may legitimately be in the next one.
        if (sum_label(c.label(k).field_index).is_of_sum(ordinal())) compare(c, k);
    });
}

void global_sum::refuse(std::size_t first) noexcept {
    // Through both sets of channels, because the others may wait on either: on the one that this rank uses, as its part
    // of this sum; on the other, as its part of the next sum there.
    const bool small = own_count_ <= small_values;
    const sum_label label = sum_label::of_refusal(ordinal());
    const double said[]{summed{job_.rank(), sum_word(own_word())}.packed(),
                        summed{disagreeing_rank_, sum_word(disagreeing_word_)}.packed()};
    const auto say = [&](channel_set& set, std::uint64_t k) {
        set.for_each([&](auto& c) {
            std::memcpy(c.target(k), said, sizeof said);
            c.send(k, 0, label.field_index());
        });
    };
    for (std::size_t s = first; s < steps_.size(); ++s) {
        say(steps_[s].small, small_epoch_ + (small ? 0 : 1));
        say(steps_[s].large, large_epoch_ + (small ? 1 : 0));
    }
}

status global_sum::await_step() noexcept {
    const std::uint64_t k = epoch();
    step& from = steps_[due_];
    channel_set& set = from.channels_for(own_count_);
    unsigned polls = 0;
    // All at once, instead of each after the label before it.
    if (own_count_ > small_values) set.for_each([&](auto& c) { __builtin_prefetch(c.received(k)); });
    const status waited = set.arrives_soon(k) ? status::ok : set.wait(k, [&]() noexcept {
        if (++polls % polls_per_mismatch_check == 0) look_for_mismatch(from);
        return status_;
    });
    // A peer that saw the mismatch first may have ended the job already.
    if (waited == status::aborted && status_ == status::ok) look_for_mismatch(from);
    if (status_ == status::ok) status_ = waited;
    if (status_ == status::ok) set.for_each([&](auto& c) { compare(c, k); });
    if (disagreeing_rank_ >= 0) refuse(due_ + 1);
    return status_;
}

template <class Combine>
void global_sum::combine_step(std::span<double> values, Combine combine) noexcept {
    const std::size_t n = values.size();
    const std::uint64_t k = epoch();
    step& s = steps_[due_];
    const auto received = [&](auto& c) { return reinterpret_cast<const double*>(c.received(k)); };
    if (due_ == 0) {
        parts_[leaf_of_[job_.rank()] - first_leaf_] = own_.data();
        s.channels_for(n).for_each([&](auto& c) { parts_[leaf_of_[c.peer()] - first_leaf_] = received(c); });
        over_leaves(parts_.data(), {0, parts_.size()}, n, values.data(), scratch_.data(), combine);
    } else {
        const double* other = nullptr; // if two ranks send it, both send the same
        s.channels_for(n).for_each([&](auto& c) { other = received(c); });
        // The same operand comes first on both ranks, as of two NaNs that one is kept. Pointers, since of two expressions
        // with the operands exchanged a compiler makes one.
        const double* const first = s.in_first_half ? values.data() : other;
        const double* const second = s.in_first_half ? other : values.data();
        for (std::size_t i = 0; i < n; ++i) values[i] = combine(first[i], second[i]);
    }
    if (++due_ < steps_.size()) send(steps_[due_], values);
}

template <class Combine>
status global_sum::finish_steps(std::span<double> values, std::uint64_t begin, Combine combine) noexcept {
    while (!complete()) {
        if (await_step() == status::ok) combine_step(values, combine);
    }
    if (status_ != status::ok) return status_;
    // The peers have read what these lines hold: they have sent their parts of this sum. Longer messages are filled for
    // so long that a peer's polls would take the lines back.
    if (own_count_ <= small_values)
        for (step& s : steps_) s.small.prepare(small_epoch_ + 1);
    ++statistics_.sums;
    statistics_.seconds += seconds(ticks() - begin);
    return status::ok;
}

status global_sum::finish(std::span<double> values) noexcept {
    const std::uint64_t begin = ticks();
    if (!started_) misused("finish() without start()");
    started_ = false;                        // from now on progress() leaves the sum alone
    while (advancing_.load()) sched_yield(); // another thread of this rank, which may have lost its core
    if (values.size() != own_count_) misused("finish() of another number of values than start() had");
    if (status_ == status::ok && due_ > 0) std::copy_n(sum_.data(), own_count_, values.data());
    return finish_steps(values, begin, plus);
}

status global_sum::operator()(std::span<double> values) noexcept {
    begin_sum(values);
    return finish_steps(values, ticks(), plus); // the clock is read while the messages travel
}

void global_sum::or_throw(status s) const {
    if (s == status::wrong_data && own_count_ > max_values_) throw input_error(pending()); // this rank's own mistake
    if (s != status::ok) job_.fail(s, pending());
}
void global_sum::sum_or_throw(std::span<double> values) { or_throw((*this)(values)); }
void global_sum::finish_or_throw(std::span<double> values) { or_throw(finish(values)); }
void global_sum::maximum_or_throw(std::span<double> values) { or_throw(maximum(values)); }

status global_sum::maximum(std::span<double> values) noexcept {
    begin_sum(values, true);
    // A NaN anywhere makes the result NaN; std::max would lose it.
    return finish_steps(values, ticks(), [](double a, double b) { return std::isnan(a) || a > b ? a : b; });
}

std::string global_sum::pending() const {
    if (status_ == status::misused && wrong_call_) return "'global sum': " + wrong_call_.text();
    const auto values = [](std::size_t n) { return std::to_string(n) + (n == 1 ? " value" : " values"); };
    const auto does = [this](std::uint32_t word) {
        const sum_word what(word);
        return (what.is_maximum() ? " takes the maximum of " : " sums ") +
               (what.values() > max_values_ ? "more than " + std::to_string(max_values_)
                                            : std::to_string(what.values()));
    };
    if (own_count_ > max_values_) {
        return "'global sum' of " + values(own_count_) + ", made for up to " + std::to_string(max_values_);
    }
    if (disagreeing_rank_ >= 0) {
        return "'global sum': rank " + std::to_string(job_.rank()) + does(own_word()) +
               (own_count_ == 1 ? " value, rank " : " values, rank ") + std::to_string(disagreeing_rank_) +
               does(disagreeing_word_);
    }
    return steps_[std::min(due_, steps_.size() - 1)].channels_for(own_count_).pending(epoch());
}

} // namespace halocline::comm
