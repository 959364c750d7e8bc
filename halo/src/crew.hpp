// SPDX-License-Identifier: Apache-2.0
// How the threads of a team share the copies of an exchange: member 0 drives it, the others take pieces of what it
// copies. Counters of the plan's own: an OpenMP barrier costs a futex call.
#pragma once

#include <halocline/halo/team.hpp>

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>

namespace halocline::halo {

/// Waits for other threads of the own team: they are computing, so the core is soon given away.
template <class Condition>
void await_team(Condition&& met) {
    for (int polls = 0; !met(); ++polls)
        if (polls >= 64) std::this_thread::yield();
}

/// Who counts releases what it wrote, who goes on acquires it: come_ and waiting_, what members wrote before the call, by
/// member 0; started_ and finished_, all that the call did, by the members; ticket_, what there is to copy, by whoever
/// takes a piece (a taker that comes late finds no piece, or one of the next work, never an old one); done_, the pieces,
/// by member 0.
class crew {
  public:
    /// start() of a team: member 0 calls lead() when every member has come. The others help if there is something to
    /// share, else they leave.
    template <class Lead>
    void start(team t, bool helped, Lead&& lead) noexcept {
        if (t.size == 1) { // nobody to meet: a locked instruction would wait until the flags have left this core
            size_ = 1;
            return lead();
        }
        if (t.index == 0) {
            await_team([&] { return come_.load(std::memory_order_acquire) == t.size - 1; });
            come_.store(0, std::memory_order_relaxed);
            size_ = t.size;
            lead();
            started_.fetch_add(1, std::memory_order_release);
            return;
        }
        const std::uint64_t before = started_.load(std::memory_order_relaxed); // noted before member 0 can change it
        come_.fetch_add(1, std::memory_order_acq_rel);
        if (helped) help_until([&] { return started_.load(std::memory_order_acquire) != before; });
    }
    /// finish() of a team: member 0 calls lead() at once; everybody leaves when that is done and all have come.
    template <class Lead>
    void finish(team t, Lead&& lead) noexcept {
        if (t.size == 1) {
            size_ = 1;
            return lead();
        }
        if (t.index == 0) {
            size_ = t.size;
            lead();
            await_team([&] { return waiting_.load(std::memory_order_acquire) == t.size - 1; });
            waiting_.store(0, std::memory_order_relaxed);
            finished_.fetch_add(1, std::memory_order_release);
            return;
        }
        const std::uint64_t before = finished_.load(std::memory_order_relaxed);
        waiting_.fetch_add(1, std::memory_order_acq_rel);
        help_until([&] { return finished_.load(std::memory_order_acquire) != before; });
    }

    /// Members of the team that drives the exchange now.
    [[nodiscard]] int size() const { return size_; }
    /// Member 0: work(piece, pieces) for every piece; returns when all are done. It never depends on the others' help.
    template <class Work>
    void share(int pieces, Work&& work) noexcept {
        if (pieces <= 1) return work(0, 1);
        work_ = &work;
        call_ = [](void* w, int piece, int of) { (*static_cast<std::remove_reference_t<Work>*>(w))(piece, of); };
        done_.store(0, std::memory_order_relaxed);
        ticket_.store(static_cast<std::uint32_t>(pieces) << 16, std::memory_order_release);
        help();
        await_team([&] { return done_.load(std::memory_order_acquire) == pieces; });
    }

  private:
    /// Takes pieces as long as there are some.
    void help() noexcept {
        std::uint32_t ticket = ticket_.load(std::memory_order_acquire);
        for (std::uint32_t pieces = ticket >> 16, next = ticket & 0xffff; next < pieces;
             pieces = ticket >> 16, next = ticket & 0xffff) {
            if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acquire)) continue;
            // What the piece is of stays until it is done.
            call_(work_, static_cast<int>(next), static_cast<int>(pieces));
            done_.fetch_add(1, std::memory_order_release);
            ticket = ticket_.load(std::memory_order_acquire);
        }
    }
    template <class Condition>
    void help_until(Condition&& met) noexcept {
        await_team([&] {
            help();
            return met();
        });
    }

    int size_ = 1;
    void* work_ = nullptr;
    void (*call_)(void* work, int piece, int pieces) = nullptr;
    alignas(64) std::atomic<std::uint32_t> ticket_{0}; // pieces of the shared work, and the next one to take
    alignas(64) std::atomic<int> done_{0};
    alignas(64) std::atomic<int> come_{0}, waiting_{0}; // members in start() and finish(), without member 0
    alignas(64) std::atomic<std::uint64_t> started_{0}, finished_{0}; // rounds
};

} // namespace halocline::halo
