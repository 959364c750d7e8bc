// SPDX-License-Identifier: Apache-2.0
#include "spinning.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/job.hpp>

#include <algorithm>

namespace halocline::comm {

spinning::spinning(const job_options& options, bool own_processor, const std::optional<exceeded_quota>& quota)
    : told_(options.spin_polls > 0), quota_(quota) {
    const auto in_ticks = [](double seconds) { return static_cast<std::uint64_t>(seconds / seconds_per_tick()); };
    constexpr int polls_of_own_core = 1000; // a rank configured to poll this often need not be thrifty
    own_core_ = told_ ? options.spin_polls >= polls_of_own_core : own_processor;
    polls_ = told_ ? options.spin_polls : own_core_ ? polls_per_clock_reading : 4;
    unwatched_polls_ = std::min(polls_, polls_of_own_core);
    budget_ = own_core_ && !told_ ? in_ticks(50e-6) : 0;
    slice_ = in_ticks(2e-3);
    refusal_ = shortest_ = in_ticks(4e-3);
    longest_ = in_ticks(128e-3);
}

void spinning::note_yield(std::uint64_t from, std::uint64_t to) noexcept {
    const std::atomic_ref refusal(refusal_);
    const std::uint64_t now = refusal.load(std::memory_order_relaxed);
    if (to - from >= slice_) {
        std::atomic_ref(kept_until_).store(to + now, std::memory_order_relaxed);
        refusal.store(std::min(2 * now, longest_), std::memory_order_relaxed);
    } else { // not forgotten at once: the end of a slice is short, too
        refusal.store(std::max(now / 2, shortest_), std::memory_order_relaxed);
    }
}

long spinning::nap_nanoseconds(double seconds_waited) noexcept {
    constexpr double shortest = 50e3, longest = 1e6; // as often as a wait checks for deaths
    return static_cast<long>(std::clamp(seconds_waited * 1e9 / 4, shortest, longest));
}

std::string spinning::describe() const {
    std::string text = own_core_ && !told_ ? "polls for 50 us" : "polls " + std::to_string(polls_) + " times";
    text += told_ ? " as spin_polls says" : own_core_ ? "" : " because ranks share processors";
    text += ", then offers its processor between polls";
    if (quota_)
        text += "; sleeps after 50 us of its own, because the " + std::to_string(quota_->ranks) +
                (quota_->ranks == 1 ? " rank" : " ranks") + " of a quota of " + in_processors(quota_->processors) +
                " can keep " + std::to_string(quota_->wanted) + " busy";
    return text;
}

} // namespace halocline::comm
