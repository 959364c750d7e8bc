// SPDX-License-Identifier: Apache-2.0
#include "stall_watch.hpp"

#include "environment.hpp"
#include "job_core.hpp"
#include "process_look.hpp"
#include "say.hpp"

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <cstdio>

namespace halocline::comm {
namespace {

std::string in_seconds(double s) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", s);
    return text;
}

} // namespace

stall_watch::stall_watch(const job_core& core, int ranks)
    : core_(core), stall_(std::chrono::duration<double>(time_of_environment()).count()),
      far_patience_(0.1 + 0.02 * (core.rank % 8)), // so that two ranks seldom time out together
      answered_(static_cast<std::size_t>(ranks)) {}

std::chrono::milliseconds stall_watch::time_of_environment() {
    return environment_time("HALOCLINE_STALL_MS", std::chrono::seconds(10));
}

double stall_watch::waited(std::uint64_t since) noexcept {
    constexpr double wait = 1e-4;    // seconds; anything shorter is a check in passing, not a wait
    constexpr double absence = 0.25; // looks are due a hundred times as often
    const std::uint64_t now = ticks();
    const std::unique_lock turn(one_wait_, std::try_to_lock);
    if (!turn) return seconds(now - since);
    const std::uint64_t before = std::exchange(last_look_, now);
    if (since != since_) {
        if (seconds(now - since) < wait) return seconds(now - since);
        end_wait();
        since_ = since;
        absent_ = 0;
    }
    const std::uint64_t gap = now - std::max(since, before);
    if (seconds(gap) > absence) absent_ += gap;
    return seconds(now - since - absent_);
}

void stall_watch::look(int peer, double waited) noexcept {
    if (stall_ <= 0 || waited < stall_ / 2) return;
    const std::unique_lock turn(one_wait_, std::try_to_lock);
    if (!turn) return;
    try {
        if (told_ != nobody && peer >= 0 && peer != told_)
            end_wait(); // it has answered; this rank now waits for another
        if (told_ != nobody) return;
        if (peer >= 0) {
            if (!is_silent(peer, waited)) return;
        } else {
            if (waited < std::max(stall_, looked_at_all_ + stall_ / 4)) return;
            looked_at_all_ = waited;
            peer = stopped_one();
            if (peer < 0) return;
        }
        told_ = peer;
        teller_ = claim(peer);
        if (teller_) tell(peer, waited);
    } catch (...) { // no memory for a text that nobody depends on
    }
}

bool stall_watch::near(int r) const noexcept { return core_.peer_base[r] != nullptr; }

bool stall_watch::is_silent(int peer, double waited) noexcept {
    const std::uint64_t now = ticks();
    if (near(peer)) {
        if (waited < stall_) return false;
        const std::uint64_t awake = core_.record_of(peer).awake.load(std::memory_order_relaxed);
        return seconds(now - awake) >= stall_;
    }
    if (core_.watch) core_.watch->say_far(peer, far_word::are_you_awake, core_.rank);
    const std::uint64_t answered = answered_[peer].load(std::memory_order_relaxed);
    const double silence = answered <= since_ ? waited : std::min(waited, seconds(now - answered));
    return silence >= stall_ + far_patience_;
}

/// For a wait on nobody in particular: a rank whose process is stopped; -1 if none is seen.
int stall_watch::stopped_one() const {
    for (int r = 0; r < core_.ranks && core_.watch; ++r) {
        if (r == core_.rank || !near(r)) continue;
        const int pid = core_.watch->pid_here(r);
        if (pid > 0 && state_of(pid) == 'T') return r;
    }
    return nobody;
}

std::atomic<std::int32_t>& stall_watch::claims_of(int culprit) const noexcept {
    if (near(culprit)) return core_.record_of(culprit).reported_by;
    int first = 0; // rank of this node
    while (!near(first)) ++first;
    return core_.record_of(first).reports_far;
}

bool stall_watch::claim(int culprit) noexcept {
    if (told_elsewhere_.load(std::memory_order_relaxed) == culprit) return false;
    std::int32_t none = failure_record::nobody;
    return claims_of(culprit).compare_exchange_strong(none, core_.rank, std::memory_order_relaxed);
}

std::string stall_watch::condition(int culprit) const {
    const int pid = near(culprit) && core_.watch ? core_.watch->pid_here(culprit) : 0;
    switch (pid > 0 ? state_of(pid) : '?') {
    case 'T':
        return "its process is stopped, by a signal, a debugger or a batch system ('kill -CONT " + std::to_string(pid) +
               "' lets it go on)";
    case 'R':
        return "its process runs, or is ready to: it computes, is in a call of another library, or wants for a "
               "processor";
    case 'D': return "its process waits in the kernel, for a disk or for memory that was swapped out";
    case 'S':
    case 'I': return "its process sleeps, outside of halocline: it waits for something else";
    default:
        return "nothing says that its process has ended: it computes, is in a call of another library, or is stopped";
    }
}

void stall_watch::tell(int culprit, double waited) {
    say("halocline: " + core_.name_of(culprit) + " is unresponsive, but alive: " + core_.name_of(core_.rank) +
        " has waited for " + (core_.memory->record().awaited.load(std::memory_order_relaxed) < 0 ? "anybody" : "it") +
        " for " + in_seconds(waited) + " and has not seen it look for messages since; " + condition(culprit) +
        ". The job goes on when it does; a wait of " +
        in_seconds(std::chrono::duration<double>(core_.options.deadline).count()) + " ends the job.");
    if (core_.watch) core_.watch->say_far(-1, far_word::told_of, culprit);
}

void stall_watch::over() noexcept {
    if (const std::unique_lock turn(one_wait_, std::try_to_lock); turn) end_wait();
}

void stall_watch::end_wait() noexcept {
    looked_at_all_ = 0;
    const int culprit = std::exchange(told_, nobody);
    if (culprit == nobody || !std::exchange(teller_, false)) return; // as after nearly every wait
    claims_of(culprit).store(failure_record::nobody, std::memory_order_relaxed);
    if (core_.failed() != status::ok) return;
    if (core_.watch) core_.watch->say_far(-1, far_word::goes_on, culprit);
    try {
        say("halocline: " + core_.name_of(culprit) + " goes on, after " + in_seconds(seconds(ticks() - since_)));
    } catch (...) {
    }
}

void stall_watch::heard(int from, far_word word, int about) noexcept {
    switch (word) {
    case far_word::are_you_awake: break; // the control plane answers
    case far_word::awake: answered_[from].store(ticks(), std::memory_order_relaxed); break;
    case far_word::told_of: told_elsewhere_.store(about, std::memory_order_relaxed); break;
    case far_word::goes_on:
        if (told_elsewhere_.load(std::memory_order_relaxed) == about)
            told_elsewhere_.store(nobody, std::memory_order_relaxed);
        break;
    }
}

} // namespace halocline::comm
