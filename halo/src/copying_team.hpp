// SPDX-License-Identifier: Apache-2.0
// The threads that drive a plan over fields together: member 0 makes every decision and touches every channel; the
// others help to copy, in pieces that go to whichever member is free (docs/decisions/0028-teams.md).
#pragma once

#include <halocline/halo/detail/rendezvous.hpp>
#include <halocline/halo/detail/sticky_status.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace halocline::halo {

/// Memory order: ticket_ publishes what there is to copy, acquired by whoever takes a piece (a late taker finds no
/// piece, or one of the next work, never an old one); done_ publishes the copied pieces, acquired by member 0.
class copying_team {
  public:
    /// `patience`: how long members wait for each other.
    explicit copying_team(team_patience patience = {}) : patience_(patience) {}

    // The caller must note faults and then call disband().

    /// start() of a team: member 0 calls lead() when every member has come. The others help if there is something to
    /// share, and otherwise leave.
    template <class Lead>
    [[nodiscard]] comm::team_fault start(team t, bool helped, Lead&& lead) noexcept {
        if (t.index == 0) size_.store(t.size, std::memory_order_relaxed);
        if (t.size == 1) { // without the counters: a locked instruction would wait for the flags just stored
            lead();
            return {};
        }
        if (start_.is_disbanded()) return {t, "goes on, but its team was given up"};
        if (!agreed_.agrees(t)) return {t, another_size};
        if (t.index == 0) {
            if (!start_.lead()) return {t, started_twice};
            if (const int missing = start_.await_others(t, patience_); missing != 0)
                return {{missing, t.size}, never_started};
            agreed_.forget();
            lead();
            start_.release();
            return {};
        }
        std::uint64_t round = 0;
        if (start_.come(t, round).has(t.index)) return {t, started_twice};
        if (!helped || start_.await_release(
                           round, patience_, [&] { help(); }, nothing))
            return {};
        return {{0, t.size}, never_started};
    }
    /// finish() of a team: member 0 calls lead() at once; all leave when that is done and all have called.
    template <class Lead>
    [[nodiscard]] comm::team_fault finish(team t, Lead&& lead) noexcept {
        if (t.index == 0) size_.store(t.size, std::memory_order_relaxed);
        if (t.size == 1) {
            lead();
            return {};
        }
        return finish_.finish(
            t, patience_, lead, [&] { help(); }, [&] { return start_.is_led(); });
    }
    /// After a call by a thread that is not a member, or a fault: nobody waits for the missing member any more.
    void disband() noexcept {
        start_.disband();
        finish_.disband();
    }

    /// Number of members of the team that drives the exchange now.  Pre: called by member 0.
    [[nodiscard]] int size() const { return size_.load(std::memory_order_relaxed); }
    /// Member 0: calls work(piece, pieces) for every piece; returns when all are done. Never depends on the others'
    /// help.
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
    static constexpr auto nothing = [] { return false; }; // excuses member 0
    /// Takes pieces while there are any.
    void help() noexcept {
        std::uint32_t ticket = ticket_.load(std::memory_order_acquire);
        for (std::uint32_t pieces = ticket >> 16, next = ticket & 0xffff; next < pieces;
             pieces = ticket >> 16, next = ticket & 0xffff) {
            if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acquire)) continue;
            // The description of the piece's work stays valid until it is done.
            call_(work_, static_cast<int>(next), static_cast<int>(pieces));
            done_.fetch_add(1, std::memory_order_release);
            ticket = ticket_.load(std::memory_order_acquire);
        }
    }

    team_patience patience_;
    std::atomic<int> size_{1}; // atomic because two threads may call as member 0 by mistake
    void* work_ = nullptr;
    void (*call_)(void* work, int piece, int pieces) = nullptr;
    alignas(64) std::atomic<std::uint32_t> ticket_{0}; // number of pieces of the shared work, and the next one to take
    alignas(64) std::atomic<int> done_{0};
    rendezvous start_, finish_;
    agreed_size agreed_; // in start()
};

/// The calls of a plan that a team shares: who may make them, and what becomes of one that may not.
struct team_calls {
    explicit team_calls(team_patience patience) : threads(std::make_shared<copying_team>(patience)) {}

    /// Refuses a call by a thread that is not a member, or a member's fault; nobody waits for the missing member.
    void refuse_thread(const comm::wrong_call& call) noexcept {
        status.misuse(call);
        threads->disband();
    }
    /// Member 0 calls lead(); the others help if `helped`.
    template <class Lead>
    void start(team t, bool helped, Lead&& lead) noexcept {
        if (!t.is_member()) return refuse_thread(t);
        if (const comm::team_fault fault = threads->start(t, helped, lead)) refuse_thread(fault);
    }
    /// Member 0 calls lead(); all leave when that is done.
    template <class Lead>
    comm::status finish(team t, Lead&& lead) noexcept {
        if (!t.is_member())
            refuse_thread(t);
        else if (const comm::team_fault fault = threads->finish(t, lead))
            refuse_thread(fault);
        return status.tell();
    }

    std::shared_ptr<copying_team> threads; // shared by the phases of a shell_plan
    sticky_status status; // any member may make it bad; misused without a wrong call: because of the binding
};

} // namespace halocline::halo
