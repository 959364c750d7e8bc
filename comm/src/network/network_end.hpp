// SPDX-License-Identifier: Apache-2.0
// What a network's channel and its world share about one end, and how ends wait for their peers' farewells.
#pragma once

#include "bulk_link.hpp"
#include "control/wire_format.hpp"
#include "direct_memory.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/detail/message_slots.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <sched.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace halocline::comm {

/// The card of a channel's end.
struct channel_card {
    std::string of_world;             ///< what the world tells
    std::uint32_t writes = 0;         ///< that make a message
    std::vector<bulk_ticket> tickets; ///< of the fields that the peer may write

    template <class Self, class Pass>
    static void fields(Self& c, Pass& pass) {
        pass(c.of_world, c.writes, counted<std::uint32_t>(c.tickets));
    }
};

/// What an end of a direct channel writes besides its labels.
struct direct_values {
    std::vector<direct_write> writes; ///< of one message, none longer than the network's largest write
    std::vector<direct_memory::field> own;
    std::vector<bulk_ticket> theirs;             ///< of the peer's fields
    std::uint32_t own_field = 0, peer_field = 0; ///< of the message under way: the fields from which its writes count
    std::uint32_t writes_in = 0;                 ///< in a message of the peer
    bool is_part = false;                        ///< shorter than planned, so its writes are counted separately
    std::uint64_t given = 0;                     ///< epoch of the last message whose values were given to the library

    /// `whole` split into pieces, none longer than `largest`.
    static std::vector<direct_write> split(std::span<const direct_write> whole, std::size_t largest) {
        std::vector<direct_write> parts;
        for (const direct_write& w : whole)
            for (std::size_t start = 0; start < w.bytes; start += largest)
                parts.push_back({w.field, w.from + start, w.to + start, std::min(largest, w.bytes - start)});
        return parts;
    }
    /// The world's card, and how many writes make a message, and where the peer may write.
    [[nodiscard]] std::string card(const std::string& of_world) const {
        channel_card card{of_world, static_cast<std::uint32_t>(writes.size()), {}};
        for (const direct_memory::field& f : own) card.tickets.push_back(f.registered->ticket);
        return to_wire(card);
    }
    /// Takes from the peer's card() what concerns these.  Returns the rest: the world's.
    [[nodiscard]] std::string take_card(const std::string& peer_card) {
        auto card = from_wire<channel_card>(peer_card);
        writes_in = card.writes;
        theirs = std::move(card.tickets);
        return std::move(card.of_world);
    }
    [[nodiscard]] const direct_memory::field& source(const direct_write& w) const { return own[own_field + w.field]; }
    [[nodiscard]] const bulk_ticket& target(const direct_write& w) const { return theirs[peer_field + w.field]; }
};

/// Its block: two slots for what the peer sends, one for what this end sends; a transport's own data before and after.
///
/// The life of an end: the world opens it; it is `joined` when its channel takes the peer's card, and messages may go
/// once this end's greeting is said and the peer's is here (MPI needs none); farewells follow, this end's when its
/// channel closes; the channel's destructor releases it. The world frees a released end when nobody writes there any
/// more: after both farewells, or if no peer ever could (it was refused, or over verbs never joined). After an error
/// nothing is said or sent any more.
struct network_end {
    std::pmr::memory_resource* memory = nullptr;
    std::byte* block = nullptr;
    std::size_t block_bytes = 0, before = 0;
    std::size_t receive_stride = 0, send_stride = 0; // of a slot; the peer's slots have the size of what this end sends
    std::size_t send_message = 0, receive_message = 0; // label and payload, at most
    int peer = -1;
    std::shared_ptr<const void> kept; ///< other memory that the peer may write until its farewell

    std::uint64_t started = 0; ///< epoch of the last message given to the library
    std::uint64_t writes = 0;  ///< accepted by the library
    direct_values values;
    // They become true in this order; `said`: by this end.
    bool joined = false, greeting_said = false, greeted = false, farewell_said = false, farewell_came = false;
    bool released = false;           ///< the channel is gone
    bool refused = false;            ///< neither end ever connects to the other, so nobody writes here
    int error = 0;                   ///< the library's code for the first failure
    status lost = status::peer_died; ///< the status that this means for a wait

    /// Err: what `from` throws.
    void allocate(std::pmr::memory_resource& from, std::size_t send_bytes, std::size_t receive_bytes,
                  std::size_t before_slots = 0, std::size_t behind = 0) {
        memory = &from;
        before = before_slots;
        receive_stride = message_slots::slot_bytes(receive_bytes);
        send_stride = message_slots::slot_bytes(send_bytes);
        send_message = message_slots::message_bytes(send_bytes);
        receive_message = message_slots::message_bytes(receive_bytes);
        block_bytes = before + 2 * receive_stride + send_stride + behind;
        block = static_cast<std::byte*>(memory->allocate(block_bytes, 64));
    }
    void deallocate() noexcept {
        if (block != nullptr) memory->deallocate(block, block_bytes, 64);
        block = nullptr;
    }

    [[nodiscard]] std::byte* slot(std::size_t n) const { return block + before + n * receive_stride; }
    [[nodiscard]] std::byte* send_slot() const { return slot(2); }
    /// The part of the message in send_slot() that travels.
    [[nodiscard]] const std::byte* outgoing() const { return send_slot() + message_slots::label_at; }
    /// Where such a message starts in the peer's block.
    [[nodiscard]] std::size_t place_at_peer(std::size_t n) const {
        return before + n * send_stride + message_slots::label_at;
    }
};

/// Calls `done` until it returns true, `give_up` does, or 2 seconds have passed.
template <class Done>
void await_farewells(Done done, const std::function<bool()>& give_up) {
    constexpr double most = 2; // seconds
    for (const std::uint64_t since = ticks(); !done() && seconds(ticks() - since) < most && !give_up();) sched_yield();
}

} // namespace halocline::comm
