// SPDX-License-Identifier: Apache-2.0
// How long a rank that waits keeps its core (docs/decisions/0029-waiting.md). With a core to itself it polls for 50 µs by
// the clock, for a poll of memory takes 25 ns and one of a network microseconds, and then offers the core between polls.
// A process that then keeps it for milliseconds waits for nobody: it is of another job, and is offered nothing for a
// while; it has the half that the scheduler gives it. Where ranks can use up a quota of processor time, to offer is not
// enough, for a processor that nobody wants comes back at once: a wait that has used 50 µs sleeps.
#pragma once

#include <halocline/comm/processor_quota.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace halocline::comm {

struct job_options;

class spinning {
  public:
    static constexpr int polls_per_look = 32; // at the clock

    /// Of a rank that has a processor for itself, or shares what it may use; and that, with others, can use up a quota.
    spinning(const job_options& options, bool own_processor, const std::optional<exceeded_quota>& quota = {});

    /// Polls of a wait before it asks keeps().
    [[nodiscard]] int polls() const noexcept { return polls_; }
    /// Else ranks share cores: who waits gives its own away soon, and short times are the scheduler's.
    [[nodiscard]] bool has_own_core() const noexcept { return own_core_; }
    /// May a rank whose wait first looked at the clock at `begin` go on polling at `now`? In ticks.
    [[nodiscard]] bool keeps(std::uint64_t begin, std::uint64_t now) const noexcept {
        return now - begin < budget_ || now < kept_until_;
    }
    /// Its core was others' from one time to the other, for it had offered it.  Pre: has_own_core().
    void note_yield(std::uint64_t from, std::uint64_t to) noexcept;
    /// Is processor time short, so that waits sleep?
    [[nodiscard]] bool rationed() const noexcept { return quota_.has_value(); }
    /// Then a wait may use as much of a processor before it sleeps,
    static constexpr long ration_nanoseconds = 50'000;
    /// for a time that grows with that which it has lasted.
    [[nodiscard]] static long nap_nanoseconds(double seconds_waited) noexcept;
    /// "polls for 50 us, then offers its processor"
    [[nodiscard]] std::string describe() const;

  private:
    int polls_;
    bool own_core_, told_;
    std::optional<exceeded_quota> quota_;
    std::uint64_t budget_, slice_, shortest_, longest_, refusal_; // ticks
    std::uint64_t kept_until_ = 0;
};

} // namespace halocline::comm
