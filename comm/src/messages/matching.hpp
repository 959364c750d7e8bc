// SPDX-License-Identifier: Apache-2.0
// Which message meets which receive: MPI's rule, implemented by plain lists in order of posting and of arrival. Knows
// nothing of how bytes move: what is stored with an unexpected message is up to the link that it came through.
#pragma once

#include "messenger_core.hpp"
#include "operation_list.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace halocline::comm {

[[nodiscard]] inline bool matches(int tag, std::uint32_t context, int message_tag,
                                  std::uint32_t message_context) noexcept {
    return context == message_context && (tag == any_tag || tag == message_tag);
}

/// The header of an unexpected message (one without a receive), followed by what its link keeps of it. Without
/// initialisers, so that making a queue does not touch its memory.
struct unexpected_message {
    std::int32_t source, tag;
    std::uint32_t context;
    std::uint64_t bytes;
    std::uint64_t arrival; ///< its number among all unexpected ones: orders those of several peers
    unexpected_message *next, *before;
    [[nodiscard]] std::byte* payload() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
    [[nodiscard]] envelope what() const noexcept { return {source, tag, context, bytes}; }
};

/// The messages of one peer that wait for a receive, oldest first: a fixed number, whose memory is touched only when
/// first used.
class unexpected_queue {
  public:
    unexpected_queue(std::size_t room, std::size_t largest_payload)
        : room_(room), stride_((sizeof(unexpected_message) + largest_payload + 63) / 64 * 64),
          all_(new std::byte[room * stride_]) {}
    /// nullptr if there is no room.
    unexpected_message* push() noexcept;
    void remove(unexpected_message& m) noexcept;
    [[nodiscard]] unexpected_message* first() const noexcept { return first_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

  private:
    std::size_t room_, stride_, used_ = 0, size_ = 0;
    std::unique_ptr<std::byte[]> all_;
    unexpected_message *first_ = nullptr, *last_ = nullptr, *free_ = nullptr;
};

class matching {
  public:
    explicit matching(message_counts& counts) : counts_(counts) {}
    /// To be called once, before all others. `room`: unexpected messages per peer; `largest_payload`: what a link keeps
    /// of one.
    void reserve(int ranks, std::size_t room, std::size_t largest_payload);

    // Calls for receives.
    /// The oldest unexpected message that such a receive would get; it stays until it is removed. nullptr: none.
    [[nodiscard]] unexpected_message* find(int from, int tag, std::uint32_t context) const noexcept;
    void remove(unexpected_message& m) noexcept { of(m.source).unexpected.remove(m); }
    /// A receive begins: its place in the order of all is set, whether it is posted or meets its message at once.
    void number(message_operation& receive) noexcept {
        receive.posted_as = ++posted_;
        receive.from_any = receive.peer == any_source;
    }
    /// Pre: it is numbered last; there is no message for it yet.
    void post(message_operation& receive) noexcept;
    /// Posts a receive in its place among those begun earlier and later: the message that it met was withdrawn.
    /// Pre: there is no message for it.
    void post_again(message_operation& receive) noexcept;
    void withdraw(message_operation& receive) noexcept { posted_for(receive).remove(receive); }
    /// The messenger ends, and all posted receives with it.
    void abandon() noexcept;
    /// Will the next message from that rank meet the next receive from it? Then matching need not be asked.
    [[nodiscard]] bool nothing_waits(int source) const noexcept {
        const peer& p = of(source);
        return p.posted.empty() && posted_any_.empty() && p.unexpected.first() == nullptr;
    }

    /// Will the next message from that receive's peer meet it, if it matches?  Pre: it is posted, for one rank.
    [[nodiscard]] bool is_next(const message_operation& receive) const noexcept {
        return of(receive.peer).posted.first == &receive && posted_any_.empty();
    }

    // Calls for arriving messages: match(), and if that finds nothing, keep().
    /// The oldest posted receive that matches, which is then no longer posted. nullptr: the message is unexpected.
    [[nodiscard]] message_operation* match(const envelope& m) noexcept;
    /// Keeps an unexpected message; its link fills payload(). nullptr: no room; try again later.
    [[nodiscard]] unexpected_message* keep(const envelope& m) noexcept;

    [[nodiscard]] std::size_t kept(int source) const noexcept { return of(source).unexpected.size(); }
    /// The oldest message kept from a rank for which wanted(message) is true. nullptr: none.
    template <class Wanted>
    [[nodiscard]] unexpected_message* find_kept(int source, Wanted&& wanted) const noexcept {
        unexpected_message* m = first_kept(source);
        while (m != nullptr && !wanted(*m)) m = m->next;
        return m;
    }
    /// The oldest message kept from a rank; others follow.
    [[nodiscard]] unexpected_message* first_kept(int source) const noexcept { return of(source).unexpected.first(); }

  private:
    struct peer {
        operation_list posted; ///< receives from this peer alone
        unexpected_queue unexpected;
    };
    [[nodiscard]] const peer& of(int rank) const noexcept { return peers_[rank]; }
    [[nodiscard]] peer& of(int rank) noexcept { return peers_[rank]; }
    [[nodiscard]] operation_list& posted_for(const message_operation& receive) noexcept {
        return receive.peer == any_source ? posted_any_ : of(receive.peer).posted;
    }

    std::vector<peer> peers_;
    operation_list posted_any_;               ///< receives from any rank
    std::uint64_t posted_ = 0, arrivals_ = 0; ///< so far; they give an order across several lists
    message_counts& counts_;
};

} // namespace halocline::comm
