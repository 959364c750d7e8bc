// SPDX-License-Identifier: Apache-2.0
#include "spinning.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/job.hpp>

#include <algorithm>

namespace halocline::comm {

spinning::spinning(const job_options& options, bool own_processor) {
    const auto in_ticks = [](double seconds) { return static_cast<std::uint64_t>(seconds / seconds_per_tick()); };
    constexpr int polls_of_own_core = 1000; // who is told to poll so often need not be thrifty
    const bool told = options.spin_polls > 0;
    own_core_ = told ? options.spin_polls >= polls_of_own_core : own_processor;
    polls_ = told ? options.spin_polls : own_core_ ? polls_per_look : 4;
    budget_ = own_core_ && !told ? in_ticks(50e-6) : 0;
    slice_ = in_ticks(2e-3);
    refusal_ = shortest_ = in_ticks(4e-3);
    longest_ = in_ticks(128e-3);
}

void spinning::gave_way(std::uint64_t from, std::uint64_t to) noexcept {
    if (to - from >= slice_) {
        kept_until_ = to + refusal_;
        refusal_ = std::min(2 * refusal_, longest_);
    } else {
        refusal_ = std::max(refusal_ / 2, shortest_); // not forgotten at once: the end of a slice is short, too
    }
}

} // namespace halocline::comm
