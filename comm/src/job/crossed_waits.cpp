// SPDX-License-Identifier: Apache-2.0
#include "crossed_waits.hpp"

#include "job_core.hpp"
#include "process_look.hpp"

#include <algorithm>
#include <chrono>

namespace halocline::comm {
namespace {

/// An epoch of a set in one word, as records hold it: plan ids count from 1, and no rank is 2^32 epochs ahead.
constexpr std::uint64_t nothing = 0;
std::uint64_t in_a_word(std::uint32_t plan_id, std::uint64_t epoch) noexcept {
    return std::uint64_t{plan_id} << 32 | static_cast<std::uint32_t>(epoch);
}
std::uint32_t set_in(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word >> 32); }

/// Clears both in this order, because a peer reads them in the other.
void clear(failure_record& own) noexcept {
    own.unbegun_epoch.store(nothing, std::memory_order_release);
    own.awaited_epoch.store(nothing, std::memory_order_release);
}

/// Does the process have threads besides those known to begin nothing behind the back of a rank that waits?
bool has_other_threads(const job_core& core) noexcept {
    try {
        const int own = core.known_threads + (core.own_watchdog ? 1 : 0), all = look_at("self").threads;
        return all == 0 || all > own;
    } catch (...) {
        return true;
    }
}

/// May a wait that began at `since` be ended? Only this rank knows whether another thread of its process may still begin
/// what the peer waits for: such a thread has nearly all the time that a wait may take.
bool is_late_enough(job_core& core, std::uint64_t since) noexcept {
    const double deadline = std::chrono::duration<double>(core.longest_wait()).count();
    return !has_other_threads(core) || core.stall_reports.waited(since) > 0.9 * deadline;
}

/// What one of two ranks waits for.
struct wait {
    int rank = 0;
    const std::string& name;
    std::uint32_t plan_id = 0;
    std::uint64_t epoch = 0;
};

/// Both ranks say it in the same words, since they often find out together.
std::string text_of_crossed(const wait& one, const wait& two) {
    const wait &first = one.rank < two.rank ? one : two, &second = one.rank < two.rank ? two : one;
    const auto rank_of = [](const wait& w) { return "rank " + std::to_string(w.rank); };
    const auto what = [&](const wait& w) {
        return "'" + w.name + "'" + (one.name == two.name ? " (number " + std::to_string(w.plan_id) + ")" : "") +
               " epoch " + std::to_string(w.epoch);
    };
    return rank_of(first) + " waits for " + what(first) + ", which " + rank_of(second) + " has not started, and " +
           rank_of(second) + " for " + what(second) + ", which " + rank_of(first) +
           " has not started: make the same calls on all ranks, in one order";
}

} // namespace

void crossed_waits::add(std::uint32_t plan_id, watched_set set) {
    note_thread();
    const std::scoped_lock lock(mutex_);
    sets_.insert_or_assign(plan_id, std::move(set));
}

void crossed_waits::remove(std::uint32_t plan_id) noexcept {
    const std::scoped_lock lock(mutex_);
    sets_.erase(plan_id);
}

void crossed_waits::note_other_thread() noexcept {
    if (several_.load(std::memory_order_relaxed)) return; // no lock in each start() of the other threads
    const void* none = nullptr;
    if (thread_.compare_exchange_strong(none, thread_mark(), std::memory_order_relaxed)) return;
    const std::scoped_lock lock(mutex_); // a look that has begun finds all sets as they were
    several_ = true;
}

const crossed_waits::watched_set* crossed_waits::find(std::uint32_t plan_id) const noexcept {
    const auto place = sets_.find(plan_id);
    return place == sets_.end() ? nullptr : &place->second;
}

status crossed_waits::look(job_core& core, std::uint32_t plan_id, std::uint64_t epoch, std::uint64_t since) noexcept {
    note_thread();
    const std::unique_lock lock(mutex_, std::try_to_lock); // waits wait for no lock
    if (!lock) return status::ok;                          // another thread makes, starts or ends something
    failure_record& own = core.memory->record();
    if (several_) {
        clear(own);
        return status::ok;
    }
    const watched_set* const here = find(plan_id);
    if (here == nullptr) return status::ok;
    const std::uint64_t awaited_here = in_a_word(plan_id, epoch);
    own.awaited_epoch.store(awaited_here, std::memory_order_release);
    for (const int peer : here->peers) {
        if (peer == core.rank || core.peer_base[peer] == nullptr) continue;
        const failure_record& its = core.record_of(peer);
        const std::uint64_t awaited = its.awaited_epoch.load(std::memory_order_acquire);
        const watched_set* const there = find(set_in(awaited));
        if (there == nullptr || there->owner == here->owner || !std::ranges::binary_search(there->peers, peer))
            continue;
        const std::uint64_t begun = there->begun(there->owner), next = begun + 1;
        if (begun == never || in_a_word(set_in(awaited), next) != awaited) continue;
        if (!is_late_enough(core, since)) continue; // before it says so, because the peer may act on it
        own.unbegun_epoch.store(awaited, std::memory_order_release);
        // Read after awaited_epoch: so it is of the peer's present wait, which can't end before this rank's.
        if (its.unbegun_epoch.load(std::memory_order_acquire) != awaited_here) continue;
        const int first = std::min(core.rank, peer); // both ranks may find out at once
        try {
            core.publish(
                status::aborted, first,
                text_of_crossed({core.rank, here->name, plan_id, epoch}, {peer, there->name, set_in(awaited), next}));
        } catch (...) { // no memory for the text
            core.publish(status::aborted, first, "ranks make different calls");
        }
        core.note_rank_knows();
        return core.failed();
    }
    return status::ok;
}

// Without the lock: only the thread that looked may have written there.
void crossed_waits::over(job_core& core) noexcept { clear(core.memory->record()); }

} // namespace halocline::comm
