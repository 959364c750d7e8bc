// SPDX-License-Identifier: Apache-2.0
// How long a waiting rank keeps its core (docs/decisions/0029-waiting.md). With a core of its own it polls for 50 µs by
// the clock (a poll takes 25 ns in memory, microseconds over a network), then yields between polls. If a yield takes
// milliseconds, another job has the core: then the rank stops yielding for a while, and the scheduler divides the core.
// Where a quota of processor time can run out, yields save nothing, because an unwanted core comes back at once: a wait
// that has used 50 µs sleeps.
#pragma once

#include <halocline/comm/processor_quota.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace halocline::comm {

struct job_options;

class spinning {
  public:
    static constexpr int polls_per_clock_reading = 32; // at the clock

    /// own_processor: no other rank uses it. quota: one that this rank and others together can use up.
    spinning(const job_options& options, bool own_processor, const std::optional<exceeded_quota>& quota = {});

    /// Polls of a wait before it yields, if keeps() does not say otherwise.
    [[nodiscard]] int polls() const noexcept { return polls_; }
    /// Polls before it looks at the clock for the first time, and so for deaths every millisecond: fewer, because
    /// whoever wants many polls wants no yields, but the deaths.
    [[nodiscard]] int unwatched_polls() const noexcept { return unwatched_polls_; }
    /// From now on all polls(): for tests that allow no system call.
    void look_after_all_polls() noexcept { unwatched_polls_ = polls_; }
    /// False if ranks share cores; then a wait yields after a few polls.
    [[nodiscard]] bool has_own_core() const noexcept { return own_core_; }
    /// May a rank whose wait first checked the clock at `begin` continue polling at `now`? In ticks.
    [[nodiscard]] bool keeps(std::uint64_t begin, std::uint64_t now) const noexcept {
        return now - begin < budget_ || now < std::atomic_ref(kept_until_).load(std::memory_order_relaxed);
    }
    /// Notes a yield that lasted from `from` to `to` (ticks).  Pre: has_own_core().
    void note_yield(std::uint64_t from, std::uint64_t to) noexcept;
    /// Is processor time short, so that waits sleep?
    [[nodiscard]] bool rationed() const noexcept { return quota_.has_value(); }
    /// Processor time that a rationed wait may use before it sleeps.
    static constexpr long ration_nanoseconds = 50'000;
    /// How long it then sleeps: longer, the longer it has waited.
    [[nodiscard]] static long nap_nanoseconds(double seconds_waited) noexcept;
    /// "polls for 50 us, then offers its processor between polls"
    [[nodiscard]] std::string describe() const;

  private:
    int polls_, unwatched_polls_;
    bool own_core_, told_;
    std::optional<exceeded_quota> quota_;
    std::uint64_t budget_, slice_, shortest_, longest_; // ticks
    // All threads that wait share these. Mutable because std::atomic_ref needs that, even to read.
    std::uint64_t refusal_; // ticks
    mutable std::uint64_t kept_until_ = 0;
};

} // namespace halocline::comm
