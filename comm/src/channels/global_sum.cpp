// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/global_sum.hpp>

#include <halocline/base/error.hpp>
#include <halocline/comm/claim_lines.hpp>
#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

namespace halocline::comm {
namespace {

constexpr int most_values = 1024;
constexpr auto plus = [](double a, double b) { return a + b; };

/// What the header of a part says, so that no rank takes the part of another sum for its own: how many values, and
/// which sum of this object (modulo 2^21).
std::uint32_t name_of(std::uint64_t ordinal, std::size_t values) {
    return static_cast<std::uint32_t>(ordinal << 11) | static_cast<std::uint32_t>(values);
}
static_assert(most_values < 1 << 11);
std::size_t values_of(std::uint32_t name) { return name & 0x7ff; }
bool is_of_sum(std::uint32_t name, std::uint64_t ordinal) {
    return name >> 11 == static_cast<std::uint32_t>(ordinal << 11) >> 11;
}

channel_set all_to_all(const job& j, std::size_t values, std::string name) {
    std::vector<channel_request> requests;
    for (int peer = 0; peer < j.ranks(); ++peer) {
        if (peer == j.rank()) continue;
        const std::size_t bytes = values * sizeof(double);
        requests.push_back(
            {peer, static_cast<std::uint32_t>(peer), static_cast<std::uint32_t>(j.rank()), bytes, bytes, "part"});
    }
    return channel_set(j, requests, {std::move(name), ""});
}

/// The fixed tree over parts [first, last), halves recursively, for n elements.  `scratch`: room for n doubles per level.
template <class Combine>
void over_ranks(const double* const* parts, std::size_t first, std::size_t last, std::size_t n, double* result,
                double* scratch, Combine combine) noexcept {
    if (last - first == 1) {
        std::copy_n(parts[first], n, result);
        return;
    }
    const std::size_t middle = first + (last - first) / 2;
    const double *left = parts[first], *right = parts[middle];
    if (middle - first > 1) {
        over_ranks(parts, first, middle, n, result, scratch, combine);
        left = result;
    }
    if (last - middle > 1) {
        over_ranks(parts, middle, last, n, scratch, scratch + n, combine);
        right = scratch;
    }
    for (std::size_t i = 0; i < n; ++i) result[i] = combine(left[i], right[i]);
}

/// Leaf of each rank.  Err: input_error.
std::vector<std::size_t> leaves(std::span<const int> rank_order, int ranks) {
    constexpr auto none = static_cast<std::size_t>(-1);
    std::vector<std::size_t> leaf_of(static_cast<std::size_t>(ranks), none);
    if (rank_order.empty()) std::iota(leaf_of.begin(), leaf_of.end(), std::size_t{0});
    for (std::size_t leaf = 0; leaf < rank_order.size(); ++leaf) {
        const int rank = rank_order[leaf];
        if (rank < 0 || rank >= ranks || leaf_of[static_cast<std::size_t>(rank)] != none)
            throw input_error("rank order of a global sum: rank " + std::to_string(rank) + " is none of 0 to " +
                              std::to_string(ranks - 1) + " or is named twice");
        leaf_of[static_cast<std::size_t>(rank)] = leaf;
    }
    if (std::ranges::find(leaf_of, none) != leaf_of.end())
        throw input_error("rank order of a global sum: it names " + std::to_string(rank_order.size()) + " of " +
                          std::to_string(ranks) + " ranks; it must name all");
    return leaf_of;
}

} // namespace

global_sum::global_sum(const job& j, int max_values, std::span<const int> rank_order)
    : job_(j), max_values_(static_cast<std::size_t>(std::max(max_values, 0))), own_(max_values_),
      leaf_of_(leaves(rank_order, j.ranks())), parts_(leaf_of_.size(), nullptr),
      scratch_(max_values_ * std::bit_width(parts_.size())) {
    j.agree("the largest global sum", std::to_string(max_values));
    if (max_values < 1 || max_values > most_values) {
        throw input_error("a global sum of up to " + std::to_string(max_values) + " values; 1 to " +
                          std::to_string(most_values) + " are possible");
    }
    small_ = all_to_all(j, std::min(max_values_, small_values), "global sum");
    if (max_values_ > small_values) large_ = all_to_all(j, max_values_, "large global sum");
}

void global_sum::start(std::span<const double> values) noexcept {
    const std::uint64_t begin = ticks();
    publish(values, begin);
    statistics_.seconds += seconds(ticks() - begin);
}

void global_sum::publish(std::span<const double> values, std::uint64_t stamp) noexcept {
    if (values.size() > max_values_) {
        status_ = status::wrong_data;
        own_count_ = values.size();
    }
    if (status_ != status::ok) return;
    const bool small = values.size() <= small_values;
    const std::uint64_t epoch = small ? ++small_epoch_ : ++large_epoch_;
    own_count_ = values.size();
    const std::uint32_t name = name_of(small_epoch_ + large_epoch_, own_count_);
    std::copy(values.begin(), values.end(), own_.begin());
    const std::size_t bytes = values.size_bytes();
    channel_set& set = set_of(values.size());
    if (bytes > 64) set.for_each([&](auto& c) { claim_lines(c.target(epoch), c.target(epoch) + bytes); });
    set.for_each([&](auto& c) {
        std::memcpy(c.target(epoch), own_.data(), bytes);
        c.send(epoch, stamp, name);
    });
    statistics_.bytes += bytes * static_cast<std::uint64_t>(job_.ranks() - 1);
}

void global_sum::note_other(int peer, std::size_t values) noexcept {
    status_ = status::wrong_data;
    other_ = peer;
    other_count_ = values;
}

void global_sum::look_for_another_sum() noexcept {
    const bool small = own_count_ <= small_values;
    channel_set& other = small ? large_ : small_;
    const std::uint64_t epoch = (small ? large_epoch_ : small_epoch_) + 1;
    other.for_each([&](auto& c) {
        if (status_ != status::ok || !c.arrived(epoch) || c.check(epoch) != status::ok) return;
        // A peer that has finished this sum may be in the next, which is no mistake.
        const std::uint32_t name = c.header(epoch).field_index;
        if (is_of_sum(name, small_epoch_ + large_epoch_)) note_other(c.peer(), values_of(name));
    });
}

template <class Combine>
status global_sum::gather(std::span<double> values, std::uint64_t begin, Combine combine) noexcept {
    if (status_ != status::ok) return status_;
    const bool small = values.size() <= small_values;
    const std::uint64_t epoch = small ? small_epoch_ : large_epoch_;
    channel_set& set = set_of(values.size());
    unsigned polls = 0;
    const status waited = set.soon(epoch) ? status::ok : set.wait(epoch, [&]() noexcept {
        if (++polls % 4096 == 0) look_for_another_sum();
        return status_;
    });
    if (waited == status::aborted && status_ == status::ok) look_for_another_sum(); // a peer saw it first
    if (status_ == status::ok) status_ = waited;
    if (status_ != status::ok) return status_;
    parts_[leaf_of_[job_.rank()]] = own_.data();
    const std::uint32_t name = name_of(small_epoch_ + large_epoch_, own_count_);
    set.for_each([&](auto& c) {
        const std::uint32_t theirs = c.header(epoch).field_index;
        if (theirs != name && status_ == status::ok) note_other(c.peer(), values_of(theirs));
        parts_[leaf_of_[c.peer()]] = reinterpret_cast<const double*>(c.received(epoch));
    });
    if (status_ != status::ok) return status_;
    over_ranks(parts_.data(), 0, parts_.size(), values.size(), values.data(), scratch_.data(), combine);
    ++statistics_.sums;
    statistics_.seconds += seconds(ticks() - begin);
    return status::ok;
}

status global_sum::finish(std::span<double> values) noexcept { return gather(values, ticks(), plus); }

status global_sum::operator()(std::span<double> values) noexcept {
    const std::uint64_t begin = ticks();
    publish(values, begin);
    return gather(values, begin, plus);
}

status global_sum::maximum(std::span<double> values) noexcept {
    const std::uint64_t begin = ticks();
    publish(values, begin);
    // A NaN anywhere is the answer: std::max would lose it.
    return gather(values, begin, [](double a, double b) { return std::isnan(a) || a > b ? a : b; });
}

std::string global_sum::pending() const {
    const auto values = [](std::size_t n) { return std::to_string(n) + (n == 1 ? " value" : " values"); };
    if (own_count_ > max_values_) {
        return "'global sum' of " + values(own_count_) + ", made for up to " + std::to_string(max_values_);
    }
    if (other_ >= 0) {
        return "'global sum': rank " + std::to_string(job_.rank()) + " sums " + values(own_count_) + ", rank " +
               std::to_string(other_) + " sums " + std::to_string(other_count_);
    }
    return own_count_ <= small_values ? small_.pending(small_epoch_) : large_.pending(large_epoch_);
}

} // namespace halocline::comm
