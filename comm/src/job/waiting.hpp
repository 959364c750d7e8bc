// SPDX-License-Identifier: Apache-2.0
// How a rank waits: it spins, then yields, or sleeps where processor time is short. Every millisecond of waiting it
// checks for deaths, for ranks that gave up, and the clock; every 10 us it polls networks that serve a peer and make
// progress only when polled.
#pragma once

#include "job_core.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/detail/pause.hpp>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <sched.h>
#include <utility>

namespace halocline::comm {

class waiter {
  public:
    explicit waiter(job_core& core) noexcept : core_(core), look_at_(core.spin.unwatched_polls()) {}
    ~waiter() {
        if (since_ != 0) core_.awaits(failure_record::nobody);
    }
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;

    /// Call after a fruitless poll; ok means poll again.
    [[nodiscard]] status again(int peer) noexcept {
        if (++polls_ <= look_at_) {
            core_.background.run();
            pause();
            return status::ok;
        }
        return slow(peer);
    }
    /// Was the last again() one of those that check (once a millisecond)? Then the caller checks what it doesn't poll.
    [[nodiscard]] bool checked_job() const noexcept { return checked_; }
    /// The awaited rank has been heard of: the wait begins anew, but looks for deaths as often as before.
    void restart_deadline() noexcept {
        if (since_ == 0) return;
        since_ = ticks();
        nap_ns_ = first_nap;
        used_before_ = -1;
        yielded_ = false;
        heard_ = true;
    }
    /// When again() first looked at the clock, in ticks; 0: it has not yet.
    [[nodiscard]] std::uint64_t since() const noexcept { return since_; }
    [[nodiscard]] bool yielded() const noexcept { return yielded_; }

  private:
    [[gnu::noinline]] status slow(int peer) noexcept {
        if (yielded_)
            core_.background.run_all();
        else
            core_.background.run();
        const std::uint64_t now = ticks();
        if (since_ == 0) {
            since_ = last_look_ = last_move_ = now;
            look_every_ = static_cast<std::uint64_t>(1e-3 / seconds_per_tick());
        }
        // The peer may wait for something of this rank's on a network that this wait is not for.
        if (core_.networks.move_when_asked && now - last_move_ >= look_every_ / moves_per_look) {
            last_move_ = now;
            core_.make_progress();
        }
        checked_ = now - last_look_ >= look_every_;
        if (checked_) {
            last_look_ = now;
            core_.awaits(peer);
            const status s = core_.check_wait(peer, since_, peer >= 0 && peer == had_left_);
            if (s != status::ok) return s;
            const bool left = peer >= 0 && core_.alive && core_.alive->left(peer);
            had_left_ = left ? peer : -1; // its last message may be here: the caller polls once more
            if (core_.options.may_sleep && !std::exchange(heard_, false)) {
                const timespec nap{0, nap_ns_};
                nanosleep(&nap, nullptr);
                nap_ns_ = std::min(2 * nap_ns_, 1'000'000L);
            }
        }
        if (polls_ < core_.spin.polls() || core_.spin.keeps(since_, now)) {
            if (!checked_) look_at_ = polls_ + spinning::polls_per_clock_reading;
        } else {
            yielded_ = true;
            if (napped(now)) return status::ok;
            sched_yield();
            if (core_.spin.has_own_core()) core_.spin.note_yield(now, ticks());
        }
        return status::ok;
    }

    /// Where processor time is rationed: sleeps if this wait has used up its share. Yields in which others ran don't
    /// count.
    [[nodiscard]] bool napped(std::uint64_t now) noexcept {
        if (!core_.spin.rationed()) return false;
        if (!core_.spin.has_own_core()) { // otherwise it has polled for that long already
            const long used = used_nanoseconds();
            if (used_before_ < 0) used_before_ = used;
            if (used - used_before_ < spinning::ration_nanoseconds) return false;
        }
        const long most = core_.networks.move_when_asked ? longest_nap_with_networks : 1'000'000;
        const timespec nap{0, std::min(spinning::nap_nanoseconds(seconds(now - since_)), most)};
        nanosleep(&nap, nullptr);
        return true;
    }

    /// Processor time used by this thread.
    [[nodiscard]] static long used_nanoseconds() noexcept {
        timespec used{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
        return used.tv_sec * 1'000'000'000 + used.tv_nsec;
    }

    static constexpr std::uint64_t moves_per_look = 100;
    static constexpr long first_nap = 50'000;                  // ns
    static constexpr long longest_nap_with_networks = 100'000; // ns: they make progress only when polled

    job_core& core_;
    std::int64_t polls_ = 0, look_at_; // more than 2^31 in a wait of half an hour
    int had_left_ = -1;                // the peer, if it had left at the last check
    std::uint64_t since_ = 0, last_look_ = 0, last_move_ = 0, look_every_ = 0; // ticks
    long used_before_ = -1; // used_nanoseconds() when this wait first yielded
    long nap_ns_ = first_nap;
    bool checked_ = false, yielded_ = false;
    bool heard_ = false; // of the awaited rank, since the last look
};

inline constexpr std::uint64_t tests_per_death_check = 4096; ///< of fruitless tests

/// To be called after a fruitless test. Does the work of every wait, because peers may answer only then, and yields now
/// and then where ranks share cores. True every tests_per_death_check-th time: the caller should check for deaths.
[[nodiscard]] inline bool serve_and_yield(job_core& core, std::uint64_t& calls) noexcept {
    constexpr std::uint64_t calls_per_yield = 8;
    ++calls;
    core.background.run_all();
    if (!core.spin.has_own_core() && calls % calls_per_yield == 0) sched_yield();
    return calls % tests_per_death_check == 0;
}

/// serve_and_yield() for tests that can't report a death: the rank's watchdog does.
inline void give_way(job_core& core, std::uint64_t& calls) noexcept {
    if (serve_and_yield(core, calls)) (void)core.find_failure(-1, ticks(), false);
}

/// serve_and_yield() for tests that can report a death, so that loops around them end. The deadline is the caller's
/// business.
[[nodiscard]] inline status after_fruitless_test(job_core& core, std::uint64_t& calls, int peer) noexcept {
    return serve_and_yield(core, calls) ? core.check_wait(peer, ticks(), false) : status::ok;
}

} // namespace halocline::comm
