// SPDX-License-Identifier: Apache-2.0
#include "failure_record.hpp"

#include <halocline/comm/clock.hpp>

#include <sched.h>

namespace halocline::comm {

namespace {

constexpr double longest_write = 0.1; // in seconds

}

const job_end* failure_record::end_soon() const noexcept {
    for (const std::uint64_t since = ticks(); state.load(std::memory_order_acquire) % 2 == 1; sched_yield())
        if (seconds(ticks() - since) > longest_write) break;
    return end();
}

bool failure_record::write(std::uint32_t before, const job_end& what) noexcept {
    const std::uint32_t at_work = before + 1 + before % 2;
    if (!state.compare_exchange_strong(before, at_work, std::memory_order_acq_rel)) return false;
    ends[(at_work + 1) / 2 % places] = what;
    std::uint32_t still = at_work; // unless it took so long that somebody else has
    return state.compare_exchange_strong(still, at_work + 1, std::memory_order_acq_rel);
}

const job_end& failure_record::settle(const job_end& what) noexcept {
    (void)write(0, what);
    std::uint32_t seen = state.load(std::memory_order_acquire);
    for (std::uint64_t since = ticks(); end() == nullptr; sched_yield()) {
        const std::uint32_t now = state.load(std::memory_order_acquire);
        if (now != seen) since = ticks(); // another writer
        seen = now;
        if (seconds(ticks() - since) > longest_write) (void)write(seen, what);
    }
    return *end();
}

} // namespace halocline::comm
