// SPDX-License-Identifier: Apache-2.0
#include "stall_watch.hpp"

#include "environment.hpp"
#include "job_core.hpp"
#include "process_look.hpp"
#include "say.hpp"

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

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

stall_watch::wait_in_progress& stall_watch::own() const noexcept {
    static thread_local wait_in_progress wait;
    if (wait.watch != this) wait = {.watch = this};
    return wait;
}

double stall_watch::waited(std::uint64_t since) noexcept {
    constexpr double least = 1e-4;   // seconds; anything shorter is a check in passing, not a wait
    constexpr double absence = 0.25; // looks are due a hundred times as often
    wait_in_progress& w = own();
    const std::uint64_t now = ticks();
    if (since != w.since) {
        if (seconds(now - since) < least) return seconds(now - since);
        end(w);
        w.since = w.last_look = since;
        w.absent = 0;
    }
    const std::uint64_t gap = now - std::exchange(w.last_look, now);
    if (seconds(gap) > absence) w.absent += gap;
    return seconds(now - since - w.absent);
}

void stall_watch::look(int peer, double waited) noexcept {
    if (stall_ <= 0 || waited < stall_ / 2) return;
    wait_in_progress& w = own();
    try {
        if (w.told != nobody && peer >= 0 && peer != w.told) end(w); // it has answered; this rank now waits for another
        if (w.told != nobody) return;
        if (peer >= 0) {
            if (!is_silent(peer, waited, w)) return;
        } else {
            if (waited < std::max(stall_, w.looked_at_all + stall_ / 4)) return;
            w.looked_at_all = waited;
            peer = stopped_one();
            if (peer < 0) return;
        }
        w.told = peer;
        w.teller = claim(peer);
        if (w.teller) tell(peer, waited);
    } catch (...) { // no memory for a text that nobody depends on
    }
}

bool stall_watch::near(int r) const noexcept { return core_.peer_base[r] != nullptr; }

bool stall_watch::is_silent(int peer, double waited, const wait_in_progress& w) noexcept {
    const std::uint64_t now = ticks();
    if (near(peer)) {
        if (waited < stall_) return false;
        const std::uint64_t awake = core_.record_of(peer).awake.load(std::memory_order_relaxed);
        return seconds(now - awake) >= stall_;
    }
    if (core_.alive) core_.alive->say_far(peer, far_word::are_you_awake, core_.rank);
    const std::uint64_t answered = answered_[peer].load(std::memory_order_relaxed);
    const double silence = answered <= w.since ? waited : std::min(waited, seconds(now - answered));
    return silence >= stall_ + far_patience_;
}

/// For a wait on nobody in particular: a rank whose process is stopped; -1 if none is seen.
int stall_watch::stopped_one() const {
    for (int r = 0; r < core_.ranks && core_.alive; ++r) {
        if (r == core_.rank || !near(r)) continue;
        const int pid = core_.alive->pid_here(r);
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
    const int pid = near(culprit) && core_.alive ? core_.alive->pid_here(culprit) : 0;
    switch (pid > 0 ? state_of(pid) : '?') {
    case 'T':
        return "its process is stopped, by a signal, a debugger or a batch system ('kill -CONT " + std::to_string(pid) +
               "' lets it go on)";
    case 'R':
        return "its process runs, or is ready to: it computes, is in a call of another library, or waits for a "
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
        in_seconds(std::chrono::duration<double>(core_.longest_wait()).count()) + " ends the job.");
    if (core_.alive) core_.alive->say_far(-1, far_word::told_of, culprit);
}

void stall_watch::over() noexcept { end(own()); }

void stall_watch::end(wait_in_progress& w) noexcept {
    w.looked_at_all = 0;
    const int culprit = std::exchange(w.told, nobody);
    if (culprit == nobody || !std::exchange(w.teller, false)) return; // as after nearly every wait
    claims_of(culprit).store(failure_record::nobody, std::memory_order_relaxed);
    if (core_.failed() != status::ok) return;
    if (core_.alive) core_.alive->say_far(-1, far_word::goes_on, culprit);
    try {
        say("halocline: " + core_.name_of(culprit) + " goes on, after " + in_seconds(seconds(ticks() - w.since)));
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
