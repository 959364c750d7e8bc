// SPDX-License-Identifier: Apache-2.0
// Messages over a network, in frames (network/frame_stream.hpp; docs/decisions/0025-messages-over-networks.md).
//
// A message that fits into a frame goes at once. For a longer one only its announcement goes; the receive that it meets
// calls for the bytes, which then come in pieces, or invites the sender to write them straight into its memory.
//
// Credit: each frame says how many messages its reader may have sent in all, so that whatever comes finds room and frames
// are always taken whole. One that is too long to be kept among the unexpected ones has a place of its own at the
// receiver, that of its send record; the record is given back when a receive has its bytes.
#pragma once

#include "message_layout.hpp"
#include "network/bulk_link.hpp"
#include "network/frame_stream.hpp"
#include "request_list.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

namespace halocline::comm {

constexpr std::size_t smallest_frame = 2048; ///< has room for an immediate message

struct frame_head {
    std::uint64_t credit = 0;     ///< messages that the reader may have sent, since set-up
    std::uint64_t given_back = 0; ///< records of whole messages of the reader that were received, a bit each
};

/// What follows the head, with its payload behind it.
struct frame_item {
    enum : std::uint32_t {
        message, ///< sender: with its bytes if it is immediate; else its announcement, for which the peer may call
        whole,   ///< sender: a longer one with its bytes
        call,    ///< receiver: send the first `bytes` of the message with that send record, in pieces
        piece,   ///< sender: the next `bytes` of that message
        invite,  ///< receiver: write the first `bytes` of that message where the ticket says, which follows
        decline, ///< sender: nothing will be written there: the message was withdrawn, or comes in pieces
    };
    std::uint32_t kind = message;
    std::uint32_t record = 0; ///< of the send, at its sender
    std::int32_t tag = 0;
    std::uint32_t context = 0;
    std::uint64_t bytes = 0;
};
static_assert(sizeof(frame_head) % 8 == 0 && sizeof(frame_item) % 8 == 0);

/// The frames between this rank and one peer, and the messages that go through them.
struct frame_link : frame_stream {
    frame_link() { head = sizeof(frame_head); }

    // Credit, in messages since set-up.
    std::uint64_t messages_sent = 0, may_send = 0;    ///< to the peer, and as many as it allows
    std::uint64_t messages_came = 0, credit_told = 0; ///< from the peer, and as many as it was allowed
    // Sends and receives by how far they are (message_request::state).
    request_list framed;                                ///< sends that are whole in `frame`: done when that goes
    message_request* announced[link_layout::records]{}; ///< sends, by record
    request_list streaming;                             ///< sends whose receiver has called
    message_request* receiving[link_layout::records]{}; ///< receives that have called, by the sender's record
    // Whole messages: a bit for each record.
    std::uint64_t sent_whole = 0;      ///< records of this end's that hold one, until the peer gives them back
    std::uint64_t give_back = 0;       ///< the peer's that a receive has emptied: to be told in the next head
    std::unique_ptr<std::byte[]> kept; ///< those without receive: most_whole() bytes for each of the peer's records
    // Large messages, straight into the receiver's memory (message_bulk.cpp).
    std::unique_ptr<bulk_link> bulk;            ///< nullptr: all goes in frames
    request_list invited;                       ///< receives whose memory is open to the peer
    request_list writing;                       ///< sends to memory that is open here
    bulk_ticket ticket[link_layout::records]{}; ///< of these, by record
    std::uint64_t declines = 0; ///< invited records that will not be written: a bit each, until the peer is told
    static_assert(link_layout::records == 64);
    bool closed = false; ///< nothing is taken any more: the peer has said farewell, or the channel failed

    /// Bytes of a message that fits into one frame.
    [[nodiscard]] std::size_t most_whole() const noexcept { return (room - head - sizeof(frame_item)) / 8 * 8; }
    /// Copies a message's bytes out of the frame that they came in, if they did.
    void keep(announcement& a, std::uint64_t bytes) noexcept {
        if (a.address == 0) return;
        std::byte* const place = kept.get() + a.record * most_whole();
        std::memcpy(place, reinterpret_cast<const std::byte*>(a.address), bytes);
        a.address = reinterpret_cast<std::uint64_t>(place);
    }
    bool append(const frame_item& what, const std::byte* payload, std::size_t bytes) noexcept {
        return append_item(what, payload, bytes);
    }
    /// Bytes of payload for which append() has room.
    [[nodiscard]] std::size_t payload_room() noexcept {
        return open() && used + sizeof(frame_item) < room ? (room - used - sizeof(frame_item)) / 8 * 8 : 0;
    }
};

} // namespace halocline::comm
