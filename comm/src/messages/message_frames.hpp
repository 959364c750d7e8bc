// SPDX-License-Identifier: Apache-2.0
// The frames between this rank and one peer (network/frame_stream.hpp), as messages use them: their items, and the
// contents of their heads.
//
// Credit: each frame states how many messages its reader may have sent in total, so that everything that arrives finds
// room and frames are always taken whole. A message too long to be kept among the unexpected ones has its own place at
// the receiver, which a head gives back when a receive has the bytes; while all places are taken, messages are announced
// instead. Changes of heads and items raise layout_number (job/layout_number.hpp).
#pragma once

#include "matching.hpp"
#include "messenger_core.hpp"
#include "network/frame_stream.hpp"
#include "operation_list.hpp"
#include "send_records.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace halocline::comm {

constexpr std::size_t smallest_frame = 2048; ///< has room for an immediate message

struct frame_head {
    std::uint64_t credit = 0;     ///< messages that the reader may have sent, since set-up
    std::uint64_t given_back = 0; ///< places of the reader's whole messages that were received, one bit each
};

/// What follows the head, each followed by its payload.
struct frame_item {
    enum : std::uint32_t {
        message,   ///< sender: with its bytes if it is immediate; else its announcement, for which the peer may call
        whole,     ///< sender: a longer one with its bytes
        call,      ///< receiver: send the first `bytes` of the message with that send record, in pieces
        piece,     ///< sender: the next `bytes` of that message
        invite,    ///< receiver: write the first `bytes` of that message where the following ticket says
        decline,   ///< sender: nothing will be written there; the message comes in pieces
        withdrawn, ///< sender: the call was in vain; no (further) byte of the message will come
        recalled,  ///< sender: the announcement is withdrawn, and not called for yet; no byte of the message will come
    };
    std::uint32_t kind = message;
    std::uint32_t record = 0; ///< of the send, at its sender; `whole`: the message's place at the receiver
    std::int32_t tag = 0;
    std::uint32_t context = 0;
    std::uint64_t bytes = 0;
};
static_assert(sizeof(frame_head) % 8 == 0 && sizeof(frame_item) % 8 == 0);

class message_frames {
  public:
    static constexpr std::size_t frames = frame_stream::frames;
    message_frames(messenger_core& core, const matching& m, int peer, std::size_t frame_bytes);
    void connect(frame_channel c) { stream_.channel.push_back(c); }

    [[nodiscard]] int peer() const noexcept { return peer_; }
    [[nodiscard]] std::size_t frame_bytes() const noexcept { return stream_.frame_bytes; }
    /// Bytes of the largest message that fits into one frame.
    [[nodiscard]] std::size_t most_whole() const noexcept {
        return (stream_.frame_bytes - stream_.head_bytes - sizeof(frame_item)) / 8 * 8;
    }

    // Outgoing.
    [[nodiscard]] bool has_credit() const noexcept { return messages_sent_ != may_send_; }
    void use_credit() noexcept { ++messages_sent_; }
    /// False: no frame may be filled now, or this one has no room.
    bool append(const frame_item& what, const std::byte* payload = nullptr, std::size_t bytes = 0) noexcept {
        return stream_.append_item(what, payload, bytes);
    }
    /// Bytes of payload for which append() has room.
    [[nodiscard]] std::size_t payload_room() noexcept {
        return stream_.open() && stream_.used_bytes + sizeof(frame_item) < stream_.frame_bytes
                   ? (stream_.frame_bytes - stream_.used_bytes - sizeof(frame_item)) / 8 * 8
                   : 0;
    }
    /// The last bytes of a send were appended: it is done once their frame has been sent.
    void finish_with_frame(message_operation& s) noexcept {
        s.state = operation_state::framed;
        framed_.push(s);
    }
    void withdraw(message_operation& s) noexcept { framed_.remove(s); }
    /// The next head will give this place back to the peer.
    void give_back(std::uint32_t place) noexcept { give_back_.add(place); }
    /// Sends the frame if it holds anything or credit is due, and if the channel may send.  False: not sent.
    bool flush() noexcept { return send(false); }
    /// Sends the empty frames that the peer needs in order to continue.
    void answer() noexcept {
        while (stream_.owes_answer() && stream_.open()) send(true);
    }

    // Incoming.
    /// Calls read(frame), which returns a status, for each frame that has arrived, until one is bad or the peer has
    /// left.
    template <class Read>
    void take(Read&& read) noexcept {
        for (bool ask = true; !closed_; ask = false) { // polls once: what came with a frame is then known
            if (!(ask ? stream_.arrived() : stream_.is_here())) return;
            status s = stream_.check();
            if (s == status::ok) s = read(stream_.received());
            if (s == status::ok) {
                stream_.take();
                core_.moved.note(peer_);
            } else {
                stop(s);
            }
        }
    }
    /// Takes the credit of a head, and removes the head from the frame.  False: there is no head.
    [[nodiscard]] bool read_head(std::span<const std::byte>& frame, std::uint64_t& given_back) noexcept;
    /// A message for which the peer had credit has arrived.
    void take_message() noexcept { ++messages_came_; }

    /// Nothing is taken any more: the peer has said farewell, or the channel failed.
    [[nodiscard]] bool is_closed() const noexcept { return closed_; }
    /// The peer can't be reached.
    void lose(const std::string& why);
    /// The messenger ends.
    void abandon() noexcept { framed_.finish_all(); }

  private:
    bool send(bool also_empty) noexcept;
    /// Is the credit so much more than was told, or the peer without any, that it has to go now?
    [[nodiscard]] bool credit_is_due(std::uint64_t credit) const noexcept;
    void stop(status s) noexcept;

    messenger_core& core_;
    const matching& matching_;
    int peer_;
    frame_stream stream_;
    // Credit, in messages since set-up.
    std::uint64_t messages_sent_ = 0, may_send_;    ///< sent to the peer, and the number it allows
    std::uint64_t messages_came_ = 0, credit_told_; ///< received from the peer, and the number it was allowed
    place_set give_back_;   ///< the peer's places that receives have emptied, to be reported in the next head
    operation_list framed_; ///< sends whose last bytes are in the frame being filled
    bool closed_ = false;
};

} // namespace halocline::comm
