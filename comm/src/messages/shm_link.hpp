// SPDX-License-Identifier: Apache-2.0
// Messages between this rank and a peer that shares its memory: immediate ones go through a ring of cells and a few
// slots (message_ring.hpp), as do the announcements of large ones (shm_outgoing.hpp).
#pragma once

#include "matching.hpp"
#include "message_ring.hpp"
#include "messenger_core.hpp"
#include "shm_incoming.hpp"
#include "shm_outgoing.hpp"

#include <halocline/comm/detail/control_line.hpp>
#include <halocline/comm/detail/pause.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace halocline::comm {

class shm_link {
  public:
    /// `own` and `theirs`: for each other, in the two ranks' slabs.
    shm_link(messenger_core& core, matching& m, int peer, message_place own, message_place theirs,
             const peer_memory& memory, const receiving_policy& receiving, const sending_policy& sending);

    // Defined in the class so that they are inlined: an immediate message takes nothing else.
    /// Sends an immediate message.  False: no room yet.
    bool try_send_immediate(std::span<const std::byte> data, int tag, std::uint32_t context) noexcept {
        return out_.send(data, label_for(tag, context));
    }
    /// Receives the peer's next message if it comes within `patience` polls, matches, fits and needs nothing more of its
    /// sender.
    /// Pre: matching::nothing_waits().
    [[gnu::always_inline]] bool try_receive(std::span<std::byte> into, int tag, std::uint32_t context, int patience,
                                            message_info& info) noexcept {
        const ring_reader::awaited next = in_.await();
        for (int polls = 0; polls < patience; ++polls) {
            if (polls > 0) pause();
            // Two branches, each with a copy of what follows. An address that depends on what was polled would keep the
            // core from speculating, and so from fetching the payload before the number has arrived.
            switch (next.look()) {
            case ring_reader::arrival::in_cell:
                in_.look_ahead(next.cell(), polls == 0);
                return take_if_wanted(next.cell(), into, tag, context, info);
            case ring_reader::arrival::in_slot:
                in_.look_ahead(next.slot(), polls == 0);
                return take_if_wanted(next.slot(), into, tag, context, info);
            case ring_reader::arrival::none: break;
            }
        }
        return false;
    }

    /// Sends a message, or announces it.  False: no room yet; the peer is informed.
    [[nodiscard]] bool try_send(message_operation& s) noexcept {
        if (try_send_without_bell(s)) return true;
        bell_->ring();
        return false;
    }
    /// Takes in what has arrived, and advances large messages.
    void progress() noexcept {
        while (take_next()) {
        }
        outgoing_.progress();
        incoming_.progress();
        if (outgoing_.has_untold()) tell_withdrawn();
    }
    /// A receive meets a message that arrived before it.
    void receive_kept(message_operation& r, unexpected_message& m) noexcept;
    /// Has the sender withdrawn an unexpected message? Then it is discarded.
    bool discard_if_withdrawn(unexpected_message& m) noexcept {
        if (!is_announced(m) || !incoming_.is_withdrawn(announcement_in(m.payload()))) return false;
        discard(m);
        return true;
    }
    void withdraw(message_operation& o) noexcept {
        if (o.state == operation_state::announced)
            outgoing_.withdraw(o);
        else
            incoming_.withdraw(o);
        tell_withdrawn();
    }
    /// The messenger ends.
    void abandon() noexcept {
        outgoing_.abandon();
        incoming_.abandon();
    }
    /// The last call: says farewell. Returns the line on which the peer's farewell will arrive.
    const control_line* close() noexcept {
        their_line_->say_farewell(1);
        return own_line_;
    }
    [[nodiscard]] bool peer_has_left() const noexcept { return own_line_->closed(); }
    [[nodiscard]] std::string describe() const { return incoming_.describe() + outgoing_.describe(); }

  private:
    [[gnu::always_inline]] bool take_if_wanted(ring_reader::place p, std::span<std::byte> into, int tag,
                                               std::uint32_t context, message_info& info) noexcept {
        if (!matches(tag, context, p.cell->tag, p.cell->context)) return false;
        const std::uint32_t bytes = p.cell->bytes;
        if (bytes >= message_cell::withdrawn) return take_announced_alone(p, into, info);
        if (bytes > into.size()) return false;
        in_.copy(into.data(), p, bytes);
        info = {peer_, p.cell->tag, bytes};
        take(p);
        ++core_.counts.arrived;
        ++core_.counts.immediate;
        return true;
    }
    [[nodiscard]] bool try_send_without_bell(message_operation& s) noexcept;
    [[nodiscard]] ring_writer::label label_for(int tag, std::uint32_t context) const noexcept {
        return {tag, context, in_.slots_taken()};
    }
    /// Frees a place of the ring: its message has been copied.
    void take(ring_reader::place p) noexcept {
        out_.credit(p.cell->slots_taken);
        in_.take(p);
    }
    /// False: nothing has arrived, or it stays where it is.
    bool take_next() noexcept {
        const ring_reader::awaited next = in_.await();
        switch (next.look()) { // as in try_receive()
        case ring_reader::arrival::in_cell: return arrive(next.cell());
        case ring_reader::arrival::in_slot: return arrive(next.slot());
        case ring_reader::arrival::none: break;
        }
        return false;
    }
    /// Gives a message to the receive that waits for it, or keeps it.  False: no room; it stays where it is.
    bool arrive(ring_reader::place p) noexcept;
    /// Would the caller of this send wait for the receiver's answer as it did for the previous one, with nothing
    /// arriving in between? Then a stream of messages goes one way, which is faster if its sender continues at once.
    [[nodiscard]] bool is_in_stream(const message_operation& s) const noexcept {
        return s.is_waited_for && in_.taken() == taken_at_announcement_;
    }
    /// What to announce for a send: the send itself, or its copy.  nullptr: no room for now.
    [[nodiscard]] message_operation* copied_if_quicker(message_operation& s) noexcept;
    void receive_announced(message_operation& r, const envelope& m, const std::byte* payload) noexcept;
    /// The rest of take_if_wanted() for an announced message.  Pre: p matches, and is announced or withdrawn.
    bool take_announced_alone(ring_reader::place p, std::span<std::byte> into, message_info& info) noexcept;
    /// Informs the peer of withdrawn sends, as far as there is room.
    void tell_withdrawn() noexcept;
    /// The peer has withdrawn a send: if no receive has met the message, it is discarded.
    void take_withdrawal(const announcement& a) noexcept;
    /// Discards all unexpected messages whose sends are withdrawn, without a notice.  False: there are none.
    bool discard_withdrawn() noexcept;
    /// Is the announced message at p, which comes next, withdrawn? Looks only if the sender has done something since,
    /// and not for copies, because that takes a line of its memory.
    [[nodiscard]] bool is_withdrawn(ring_reader::place p) const noexcept {
        const announcement a = announcement_in(p.cell->payload);
        return !incoming_.is_copy(a) && (in_.has_another_behind(p) || peer_has_left()) && incoming_.is_withdrawn(a);
    }
    [[nodiscard]] static announcement announcement_in(const std::byte* payload) noexcept {
        announcement a;
        std::memcpy(&a, payload, sizeof a);
        return a;
    }
    [[nodiscard]] bool is_announced(const unexpected_message& m) const noexcept { return !core_.is_immediate(m.bytes); }
    void discard(unexpected_message& m) noexcept;

    ring_reader in_;
    ring_writer out_;
    messenger_core& core_;
    matching& matching_;
    int peer_;
    message_bell* bell_;                                      ///< the peer's
    control_line *own_line_, *their_line_;                    ///< for farewells, and nothing else
    std::uint64_t taken_at_announcement_ = ~std::uint64_t{0}; ///< in_.taken() at the last announcement
    // Large messages. Outgoing ones last, because they take 2 KiB.
    shm_incoming incoming_;
    shm_outgoing outgoing_;
};

} // namespace halocline::comm
