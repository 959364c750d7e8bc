// SPDX-License-Identifier: Apache-2.0
// The threads that pack a plan's messages together: each packs a fixed share of every message, the thread that
// packs the last part of a message has it sent at once (over a network: member 0 sends it), and member 0 waits for the
// ghosts (docs/decisions/0007-no-openmp-barrier.md).
#pragma once

#include <halocline/halo/detail/rendezvous.hpp>
#include <halocline/lattice/geometry.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace halocline::halo {

/// A member's share of a message: sites [first, last).
struct packing_share {
    /// The fewest bytes for which another thread, or an announcement to the others, pays off.
    static constexpr std::size_t least_bytes = 4096;

    std::int64_t first = 0, last = 0;
    int sharers = 0; ///< number of members that pack a share of the message; 0 if this one packs none of it
};

/// Member t's share, which is equal to the others'. Messages too short to share are packed by one member each, in turn.
[[nodiscard]] inline packing_share share_of(std::size_t message, std::int64_t sites, std::size_t bytes,
                                            team t) noexcept {
    if (bytes >= packing_share::least_bytes * static_cast<std::size_t>(t.size))
        return {sites * t.index / t.size, sites * (t.index + 1) / t.size, t.size};
    if (static_cast<int>(message) % t.size == t.index) return {0, sites, 1};
    return {};
}

/// Which members of a team send what is packed.
enum class senders : std::uint8_t {
    any_member, ///< whoever announces a message while nobody is sending
    /// The one that also waits. A wait for another exchange calls the network's library, which must not happen while
    /// another thread is in it, and member 0 can only do one thing at a time.
    member_0
};

/// The team's progress in an exchange. Nothing is sent before all members are in start(), because until then they may
/// still read the ghosts of the last exchange. After that one member at a time sends what is packed. Each counter is
/// released by the thread that advances it and acquired by the one that reads it: a sender sees all packed parts of a
/// message, and member 0 sees the channels as the senders left them.
class packing_team {
  public:
    /// Messages [0, messages), at most one per face.  `patience`: of send_rest(), await_start() and finish().
    explicit packing_team(std::size_t messages, team_patience patience = {}, senders who = senders::any_member)
        : all_((std::uint32_t{1} << messages) - 1), patience_(patience), senders_(who) {}

    /// Has an exchange been started, other than the `finished` ones?
    [[nodiscard]] bool in_flight(std::uint64_t finished) const noexcept {
        return started_.load(std::memory_order_acquire) != finished;
    }
    /// All messages of this exchange have been sent.
    void note_started(std::uint64_t epoch) noexcept { started_.store(epoch, std::memory_order_release); }
    /// Member 0 of several is in start() of this exchange.
    void note_begun(team t, std::uint64_t epoch) noexcept {
        begun_.store(epoch, std::memory_order_relaxed);
        size_.store(t.size, std::memory_order_relaxed);
    }
    /// The exchange that was begun last, by one thread or by member 0 of several.
    [[nodiscard]] std::uint64_t begun() const noexcept {
        return std::max(started_.load(std::memory_order_acquire), begun_.load(std::memory_order_relaxed));
    }
    /// Has member 0 begun an exchange of which the others have not packed or sent all yet?  Pre: called by member 0.
    [[nodiscard]] bool is_starting(std::uint64_t finished) const noexcept {
        return begun_.load(std::memory_order_relaxed) == finished + 1 && !in_flight(finished);
    }
    /// Is no member packing or sending, and won't one before it has seen the plan's status?
    [[nodiscard]] bool is_quiet(std::uint64_t finished) const noexcept {
        return !leave_.is_disbanded() && !is_starting(finished) && entered_.now().count() == 0;
    }
    /// Polled by member 0 while is_starting(finished): a fault once that takes too long.
    [[nodiscard]] comm::team_fault late_starter(std::uint64_t finished) noexcept {
        if (std::exchange(polled_, finished + 1) != finished + 1) polled_for_ = {};
        if (!patience_.is_over(polled_for_) || in_flight(finished)) return {};
        return missing_in_start({0, size_.load(std::memory_order_relaxed)});
    }

    /// A member enters start(), before it packs. The last one to enter calls send(messages) for what others have
    /// packed. A fault if the member has entered already, or gives another size than one before.  `epoch`: for
    /// note_started(), if there are no messages.
    template <class Send>
    [[nodiscard]] comm::team_fault enter(team t, std::uint64_t epoch, Send&& send) noexcept {
        if (!agreed_.agrees(t)) return {t, another_size};
        const roll_call::roll before = entered_.add(t);
        if (before.has(t.index)) return {t, started_twice};
        const bool last = before.count() == t.size - 1; // to enter: sending begins
        if (last && senders_ == senders::any_member) send_ready(epoch, send);
        return {};
    }
    /// A member has packed its share of a message. True for the last one: the message is ready.
    [[nodiscard]] bool note_packed(std::size_t message, int sharers) noexcept {
        if (sharers == 1) return true;
        std::atomic<int>& packed = packed_[message].members;
        if (packed.fetch_add(1, std::memory_order_acq_rel) != sharers - 1) return false;
        packed.store(0, std::memory_order_relaxed);
        return true;
    }
    /// These messages (bits) are ready. Calls send(messages) for them and any others, unless another member is sending
    /// or not all have entered: then that member, or the last one to enter, calls it. If member 0 sends, it calls
    /// send_packed() instead.
    template <class Send>
    void announce(std::uint32_t messages, std::uint64_t epoch, Send&& send) noexcept {
        if ((ready_.fetch_or(messages | sending, std::memory_order_acq_rel) & sending) == 0) send_ready(epoch, send);
    }

    /// Every member calls it when it has packed a message: member 0 sends what is ready, if only it may.
    template <class Send>
    void send_packed(team t, std::uint64_t epoch, Send&& send) noexcept {
        if (t.index == 0 && senders_ == senders::member_0) (void)send_as_member_0(t, epoch, send);
    }
    /// Every member calls it at the end of start(): member 0 sends what the others still pack, if only it may, until
    /// all is sent or refused() is true. If it left earlier, the rest would leave at its next call: after its share of
    /// the interior.
    template <class Send, class Refused>
    [[nodiscard]] comm::team_fault send_rest(team t, std::uint64_t epoch, Send&& send, Refused&& refused) noexcept {
        if (t.index != 0 || senders_ != senders::member_0) return {};
        leave_.lead();
        const bool done =
            patience_.await([&] { return send_as_member_0(t, epoch, send) || leave_.is_disbanded() || refused(); });
        leave_.stop_leading();
        return done ? comm::team_fault{} : missing_in_start(t);
    }

    /// Member 0 may reach finish() before the others have packed: waits until all is sent, or refused() is true.
    template <class Refused>
    [[nodiscard]] comm::team_fault await_start(team t, std::uint64_t finished, Refused&& refused) const noexcept {
        if (patience_.await([&] { return in_flight(finished) || leave_.is_disbanded() || refused(); })) return {};
        return missing_in_start(t);
    }
    /// finish(): member 0 calls wait() at once; all members leave when that is done and all have called.
    /// Pre: t.size > 1.
    template <class Wait>
    [[nodiscard]] comm::team_fault finish(team t, Wait&& wait) noexcept {
        return leave_.finish(
            t, patience_, wait, [] {}, [] { return false; });
    }
    /// After a call by a thread that is not a member, or a fault: nobody waits for the missing member any more.
    void disband() noexcept { leave_.disband(); }

  private:
    static constexpr std::uint32_t sending = std::uint32_t{1} << 31; // in ready_
    static_assert(lattice::faces < 31);

    /// Pre: this member has set `sending`, or is the last to enter.
    template <class Send>
    void send_ready(std::uint64_t epoch, Send& send) noexcept {
        for (;;) {
            const std::uint32_t messages = take_ready(send);
            if (sent_ == all_) break;
            std::uint32_t none = sending;
            if (messages == 0 && ready_.compare_exchange_strong(none, 0, std::memory_order_acq_rel)) return;
        }
        end_start(epoch);
    }
    /// `sending` stays set, so nobody else sends. True if all of this exchange has been sent.
    template <class Send>
    bool send_as_member_0(team t, std::uint64_t epoch, Send& send) noexcept {
        if (in_flight(epoch - 1)) return true;
        if (entered_.now().count() < t.size) return false;
        take_ready(send);
        if (sent_ != all_) return false;
        end_start(epoch);
        return true;
    }
    template <class Send>
    std::uint32_t take_ready(Send& send) noexcept {
        const std::uint32_t messages = ready_.exchange(sending, std::memory_order_acq_rel) & ~sending;
        if (messages != 0) send(messages);
        sent_ |= messages;
        return messages;
    }
    /// All is sent: resets the state for the next exchange.
    void end_start(std::uint64_t epoch) noexcept {
        sent_ = 0;
        agreed_.forget();
        entered_.clear();
        note_started(epoch);
    }
    [[nodiscard]] comm::team_fault missing_in_start(team t) const noexcept {
        const roll_call::roll here = entered_.now();
        if (here.count() == t.size) return {{-1, t.size}, "was not done with start() before the job's deadline"};
        return {{here.missing(0, t.size), t.size}, never_started};
    }

    struct alignas(64) packed_count {
        std::atomic<int> members{0}; // number that are done with their share of a message
    };
    std::uint32_t all_ = 0;
    team_patience patience_;
    senders senders_ = senders::any_member;
    std::array<packed_count, lattice::faces> packed_;
    alignas(64) roll_call entered_; // members in start()
    agreed_size agreed_;
    alignas(64) std::atomic<std::uint32_t> ready_{sending}; // packed messages; `sending`: others must not send
    std::uint32_t sent_ = 0;                                // messages of this exchange; only for the member that sends
    alignas(64) std::atomic<std::uint64_t> started_{0};     // the exchange that was sent last
    // For member 0 alone; atomic because two threads may call as member 0 by mistake.
    alignas(64) std::atomic<std::uint64_t> begun_{0}; // the exchange that it started last, if it was not alone
    std::atomic<int> size_{1};
    std::uint64_t polled_ = 0; // the exchange whose start it has waited for this long
    team_patience::waited polled_for_;
    rendezvous leave_;
};

} // namespace halocline::halo
