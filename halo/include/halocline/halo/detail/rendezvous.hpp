// SPDX-License-Identifier: Apache-2.0
// Where the threads of a team wait for each other. Counters of a plan's own: an OpenMP barrier costs a futex call
// (docs/decisions/0007-no-openmp-barrier.md).
#pragma once

#include <halocline/halo/team.hpp>

#include <atomic>
#include <cstdint>
#include <thread>

namespace halocline::halo {

/// Waits for other threads of the own team: they are computing, so the core is soon given away.
template <class Condition>
void await_team(Condition&& met) {
    for (int polls = 0; !met(); ++polls)
        if (polls >= 64) std::this_thread::yield();
}

/// Member 0 waits until all others have come, and lets them go, round after round. What they wrote before come(), it
/// sees behind await_others(); what it wrote before release(), they see behind await_release(). Once a thread has called
/// as a member that the team does not have, another member is missing: nobody waits any longer, for good.
class rendezvous {
  public:
    /// Another member is here. Returns the round, for await_release().
    [[nodiscard]] std::uint64_t come() noexcept {
        const std::uint64_t round = round_.load(std::memory_order_relaxed); // noted before member 0 can end it
        come_.fetch_add(1, std::memory_order_acq_rel);
        return round;
    }
    /// Calls meanwhile() again and again until member 0 has ended the round.
    template <class Meanwhile>
    void await_release(std::uint64_t round, Meanwhile&& meanwhile) const noexcept {
        await_team([&] {
            meanwhile();
            const std::uint64_t now = round_.load(std::memory_order_acquire);
            return now != round || now >= disbanded;
        });
    }
    /// Member 0.
    void await_others(team t) noexcept {
        await_team([&] { return come_.load(std::memory_order_acquire) == t.size - 1 || is_disbanded(); });
        come_.store(0, std::memory_order_relaxed);
    }
    void release() noexcept { round_.fetch_add(1, std::memory_order_release); }
    /// A thread that is no member.
    void disband() noexcept { round_.fetch_or(disbanded, std::memory_order_release); }
    [[nodiscard]] bool is_disbanded() const noexcept { return round_.load(std::memory_order_acquire) >= disbanded; }

    /// finish() of a team: member 0 calls lead() at once, the others meanwhile() again and again; everybody leaves when
    /// lead() is done and all have come.  Pre: t.size > 1.
    template <class Lead, class Meanwhile>
    void finish(team t, Lead&& lead, Meanwhile&& meanwhile) noexcept {
        if (t.index != 0) return await_release(come(), meanwhile);
        lead();
        await_others(t);
        release();
    }

  private:
    static constexpr std::uint64_t disbanded = std::uint64_t{1} << 63;
    alignas(64) std::atomic<int> come_{0}; // members of this round, without member 0
    alignas(64) std::atomic<std::uint64_t> round_{0};
};

} // namespace halocline::halo
