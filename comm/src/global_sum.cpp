// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/global_sum.hpp>

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace halocline::comm {
namespace {

constexpr int most_values = 1024;

channel_set all_to_all(const job& j, std::size_t values, std::string name) {
    std::vector<channel_request> requests;
    for (int peer = 0; peer < j.ranks(); ++peer) {
        if (peer == j.rank()) continue;
        const std::size_t bytes = values * sizeof(double);
        requests.push_back({peer, static_cast<std::uint32_t>(peer), static_cast<std::uint32_t>(j.rank()), bytes, bytes,
                            "part"});
    }
    return channel_set(j, requests, {std::move(name), ""});
}

/// The fixed tree: halves of the rank numbers, recursively.
template <class Combine>
double over_ranks(const double* const* parts, std::size_t first, std::size_t last, std::size_t element,
                  Combine combine) noexcept {
    if (last - first == 1) return parts[first][element];
    const std::size_t middle = first + (last - first) / 2;
    return combine(over_ranks(parts, first, middle, element, combine), over_ranks(parts, middle, last, element, combine));
}

} // namespace

global_sum::global_sum(const job& j, int max_values)
    : job_(j), max_values_(static_cast<std::size_t>(std::max(max_values, 0))), own_(max_values_ + 1),
      parts_(static_cast<std::size_t>(j.ranks()), nullptr) {
    j.agree("the largest global sum", std::to_string(max_values));
    if (max_values < 1 || max_values > most_values) {
        throw input_error("a global sum of up to " + std::to_string(max_values) + " values; 1 to " +
                          std::to_string(most_values) + " are possible");
    }
    small_ = all_to_all(j, std::min(max_values_, small_values), "global sum");
    // One more number than values: the count, so that sums of different sizes don't pass for each other.
    if (max_values_ > small_values) large_ = all_to_all(j, max_values_ + 1, "large global sum");
}

void global_sum::start(std::span<const double> values) noexcept {
    const std::uint64_t begin = ticks();
    if (values.size() > max_values_) status_ = status::wrong_data;
    if (status_ != status::ok) return;
    const bool small = values.size() <= small_values;
    const std::uint64_t epoch = small ? ++small_epoch_ : ++large_epoch_;
    own_[0] = static_cast<double>(values.size());
    std::copy(values.begin(), values.end(), own_.begin() + 1);
    const std::size_t from = small ? 1 : 0; // a small message has no room for the count
    const std::size_t bytes = (values.size() + 1 - from) * sizeof(double);
    set_of(values.size()).for_each([&](auto& c) {
        std::memcpy(c.target(epoch), own_.data() + from, bytes);
        c.send(epoch, begin);
    });
    statistics_.bytes += bytes * static_cast<std::uint64_t>(job_.ranks() - 1);
    statistics_.seconds += seconds(ticks() - begin);
}

template <class Combine>
status global_sum::finish_with(std::span<double> values, Combine combine) noexcept {
    const std::uint64_t begin = ticks();
    if (status_ != status::ok) return status_;
    const bool small = values.size() <= small_values;
    const std::uint64_t epoch = small ? small_epoch_ : large_epoch_;
    channel_set& set = set_of(values.size());
    status_ = set.wait(epoch);
    if (status_ != status::ok) return status_;
    parts_[job_.rank()] = own_.data() + 1;
    set.for_each([&](auto& c) {
        const auto* part = reinterpret_cast<const double*>(c.received(epoch));
        if (!small && part[0] != own_[0]) status_ = status::wrong_data;
        parts_[c.peer()] = small ? part : part + 1;
    });
    if (status_ != status::ok) return status_;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = over_ranks(parts_.data(), 0, parts_.size(), i, combine);
    ++statistics_.sums;
    statistics_.seconds += seconds(ticks() - begin);
    return status::ok;
}

status global_sum::finish(std::span<double> values) noexcept {
    return finish_with(values, [](double a, double b) { return a + b; });
}

status global_sum::operator()(std::span<double> values) noexcept {
    start(values);
    return finish(values);
}

status global_sum::maximum(std::span<double> values) noexcept {
    start(values);
    // A NaN anywhere is the answer: std::max would lose it.
    return finish_with(values, [](double a, double b) { return std::isnan(a) || a > b ? a : b; });
}

std::string global_sum::pending() const {
    return small_.state() != status::ok ? small_.pending(small_epoch_) : large_.pending(large_epoch_);
}

} // namespace halocline::comm
