// SPDX-License-Identifier: Apache-2.0
// Where the threads of a team wait for each other. The plan has its own counters because an OpenMP barrier costs a
// futex call (docs/decisions/0007-no-openmp-barrier.md).
#pragma once

#include <halocline/comm/clock.hpp>
#include <halocline/comm/wrong_call.hpp>
#include <halocline/halo/team.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <thread>

namespace halocline::halo {

/// Waits for other threads of the same team. They are computing, so it soon yields the core.
template <class Condition>
void await_team(Condition&& met) {
    for (int polls = 0; !met(); ++polls)
        if (polls >= 64) std::this_thread::yield();
}

/// How long members of a team wait for each other.
class team_patience {
  public:
    /// No limit.
    team_patience() = default;
    explicit team_patience(std::chrono::duration<double> limit)
        : limit_(static_cast<std::uint64_t>(limit.count() / comm::seconds_per_tick())) {}

    /// The time that a member has waited so far.
    struct waited {
        std::uint64_t ticks = 0, last = 0; // until `last`; 0: has not begun
    };
    /// Adds the time since the last call, or begins. True if it is longer than the limit now.
    [[nodiscard]] bool is_over(waited& w) const noexcept {
        const std::uint64_t now = comm::ticks();
        // After a longer pause the whole process was stopped: nobody else ran either.
        if (w.last != 0) w.ticks += std::min(now - w.last, limit_ / 16);
        w.last = now;
        return limit_ != 0 && w.ticks >= limit_;
    }
    /// Waits until met(); false if that took longer than the limit. The time starts again whenever excused() is true.
    template <class Condition, class Excused>
    [[nodiscard]] bool await(Condition&& met, Excused&& excused) const noexcept {
        waited so_far;
        for (int polls = 0; !met(); ++polls) {
            if (polls < 64) continue;
            std::this_thread::yield();
            if (excused()) so_far = {};
            if (is_over(so_far)) return met();
        }
        return true;
    }
    template <class Condition>
    [[nodiscard]] bool await(Condition&& met) const noexcept {
        return await(met, [] { return false; });
    }

  private:
    std::uint64_t limit_ = 0; // ticks; 0: none
};

/// The members of a team that have arrived at a point, in one word: their number, and which of the first 48.
class roll_call {
  public:
    /// The members that had arrived before.
    class roll {
      public:
        explicit roll(std::uint64_t word) : word_(word) {}
        [[nodiscard]] int count() const noexcept { return static_cast<int>(word_ & (one_mark - 1)); }
        [[nodiscard]] bool has(int index) const noexcept {
            return index < told_apart && (word_ & one_mark << index) != 0;
        }
        /// The lowest member of a team of `size`, from `first` on, that has not arrived; -1 if it is not one of the
        /// first 48, or if all of these have arrived.
        [[nodiscard]] int missing(int first, int size) const noexcept {
            const int lowest = first + std::countr_one(word_ / one_mark >> first);
            return lowest < std::min(told_apart, size) ? lowest : -1;
        }

      private:
        std::uint64_t word_;
    };
    /// A member has arrived; whoever sees that also sees what the member wrote before.
    roll add(team t) noexcept {
        const std::uint64_t mark = t.index < told_apart ? one_mark << t.index : 0;
        return roll(word_.fetch_add(1 + mark, std::memory_order_acq_rel));
    }
    [[nodiscard]] roll now() const noexcept { return roll(word_.load(std::memory_order_acquire)); }
    void clear() noexcept { word_.store(0, std::memory_order_relaxed); }

  private:
    static constexpr int told_apart = 48;
    static constexpr std::uint64_t one_mark = std::uint64_t{1} << 16; // the bits below it: their number
    std::atomic<std::uint64_t> word_{0};
};

/// The size of a team, which all its members must give. For one start at a time.
class agreed_size {
  public:
    /// False if another member has given another size.
    [[nodiscard]] bool agrees(team t) noexcept {
        int none = 0;
        return size_.compare_exchange_strong(none, t.size, std::memory_order_relaxed) || none == t.size;
    }
    /// All members have come.
    void forget() noexcept { size_.store(0, std::memory_order_relaxed); }

  private:
    std::atomic<int> size_{0}; // 0: none has come
};

inline constexpr const char* another_size = "gave another size of its team than another member";
inline constexpr const char* started_twice =
    "called start() twice: two threads have its index, or it did not call finish()";
inline constexpr const char* finished_twice = "called finish() twice: two threads have its index";
inline constexpr const char* needs_thread_level =
    "member 0 of a team sends over transport mpi, but another thread initialised MPI, with less than "
    "MPI_THREAD_SERIALIZED; initialise it by MPI_Init_thread with that level, or by the thread that is member 0";
inline constexpr const char* never_started = "did not call start() before the job's deadline";
inline constexpr const char* never_finished = "did not call finish() before the job's deadline";

/// Member 0 waits until all others have arrived, and lets them go, round after round. What they wrote before come() is
/// visible to it after await_others(); what it wrote before release() is visible to them after await_release(). Once a
/// thread has called with an index outside the team, or a member is too late, nobody waits any more, permanently.
class rendezvous {
  public:
    /// A member other than 0 has arrived; it calls await_release() next. Returns those that had arrived before.
    roll_call::roll come(team t, std::uint64_t& round) noexcept {
        round = round_.load(std::memory_order_relaxed); // read before member 0 can end the round
        return come_.add(t);
    }
    /// Calls meanwhile() repeatedly until member 0 has ended the round; false if member 0 is too late. Its time counts
    /// only until it arrives, and starts again whenever excused() is true.
    template <class Meanwhile, class Excused>
    [[nodiscard]] bool await_release(std::uint64_t round, const team_patience& patience, Meanwhile&& meanwhile,
                                     Excused&& excused) const noexcept {
        return patience.await(
            [&] {
                meanwhile();
                const std::uint64_t now = round_.load(std::memory_order_acquire);
                return now != round || now >= disbanded;
            },
            [&] { return is_led() || excused(); });
    }
    /// Member 0 has arrived: from now on the deadlines of what it waits for apply. False if it had already.
    bool lead() noexcept { return !led_.exchange(true, std::memory_order_relaxed); }
    /// Member 0 leaves without ending the round: its time counts again.
    void stop_leading() noexcept { led_.store(false, std::memory_order_relaxed); }
    [[nodiscard]] bool is_led() const noexcept { return led_.load(std::memory_order_relaxed); }
    /// Called by member 0. The index of a member that is too late (-1: beyond the first 48, or it came just after the
    /// deadline); 0 if all have arrived.
    [[nodiscard]] int await_others(team t, const team_patience& patience) noexcept {
        const bool all = patience.await([&] { return come_.now().count() == t.size - 1 || is_disbanded(); });
        const int missing = all ? 0 : come_.now().missing(1, t.size);
        come_.clear();
        return missing;
    }
    void release() noexcept {
        led_.store(false, std::memory_order_relaxed);
        round_.fetch_add(1, std::memory_order_release);
    }
    /// Nobody waits any more.
    void disband() noexcept { round_.fetch_or(disbanded, std::memory_order_release); }
    [[nodiscard]] bool is_disbanded() const noexcept { return round_.load(std::memory_order_acquire) >= disbanded; }

    /// finish() of a team: member 0 calls wait() at once, the others call meanwhile() repeatedly; all leave when wait()
    /// is done and all have arrived. The caller must note a fault and then call disband().
    /// Pre: t.size > 1.
    template <class Wait, class Meanwhile, class Excused>
    [[nodiscard]] comm::team_fault finish(team t, const team_patience& patience, Wait&& wait, Meanwhile&& meanwhile,
                                          Excused&& excused) noexcept {
        if (t.index != 0) {
            std::uint64_t round = 0;
            if (come(t, round).has(t.index)) return {t, finished_twice};
            if (await_release(round, patience, meanwhile, excused)) return {};
            return {{0, t.size}, never_finished};
        }
        lead();
        wait();
        if (const int missing = await_others(t, patience); missing != 0) return {{missing, t.size}, never_finished};
        release();
        return {};
    }

  private:
    static constexpr std::uint64_t disbanded = std::uint64_t{1} << 63;
    alignas(64) roll_call come_; // members in this round, not counting member 0
    alignas(64) std::atomic<std::uint64_t> round_{0};
    alignas(64) std::atomic<bool> led_{false}; // not in a line that members poll from the start
};

} // namespace halocline::halo
