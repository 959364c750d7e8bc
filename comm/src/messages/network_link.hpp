// SPDX-License-Identifier: Apache-2.0
// Messages between this rank and a peer over a network (docs/decisions/0025-messages-over-networks.md). One that fits
// into a frame goes at once (message_frames.hpp). If it is longer than an immediate one it has a place at its receiver,
// where it is kept if it is unexpected. frame_rendezvous handles larger ones, and those for which there is no place.
#pragma once

#include "frame_rendezvous.hpp"
#include "matching.hpp"
#include "message_frames.hpp"
#include "messenger_core.hpp"
#include "send_records.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

namespace halocline::comm {

class network_link {
  public:
    /// `frame_bytes`: size of a frame.
    network_link(messenger_core& core, matching& m, int peer, std::size_t frame_bytes);
    network_link(const network_link&) = delete; // its parts refer to each other
    network_link& operator=(const network_link&) = delete;
    /// Adds one of the channels for frames, in the order of their use.
    void connect(frame_channel c) { frames_.connect(c); }
    void connect(std::unique_ptr<bulk_link> bulk) { large_.connect(std::move(bulk)); }

    [[nodiscard]] std::size_t frame_bytes() const noexcept { return frames_.frame_bytes(); }
    /// Sends a message, or announces it.  False: no room yet.
    [[nodiscard]] bool try_send(message_operation& s) noexcept;
    /// Takes in what has arrived, and sends what is due.
    void progress() noexcept;
    /// A receive meets a message that arrived before it.
    void receive_kept(message_operation& r, unexpected_message& m) noexcept;
    void withdraw(message_operation& o) noexcept;
    /// The messenger ends.
    void abandon() noexcept;
    [[nodiscard]] bool peer_has_left() const noexcept { return frames_.is_closed(); }
    /// Is the network just writing this send, which the peer need not be there for?
    [[nodiscard]] bool still_settles(const message_operation& o) const noexcept { return large_.still_settles(o); }
    /// The sender of an unexpected message has left, and most of the message with it: it is discarded.  False: it is here.
    bool discard_if_lost(unexpected_message& m) noexcept;
    [[nodiscard]] std::string describe() const;

  private:
    /// What is kept of an unexpected message that is not immediate.
    struct kept_message {
        std::uint32_t record = 0;
        bool whole = false; ///< the message lies in whole_message_at(record), which is its place
    };
    [[nodiscard]] static kept_message kept_in(unexpected_message& m) noexcept {
        kept_message k;
        std::memcpy(&k, m.payload(), sizeof k);
        return k;
    }

    status read_frame(std::span<const std::byte> frame) noexcept;
    /// Takes back places at the peer.  False: not all of them are the peer's to give.
    [[nodiscard]] bool take_back(place_set given_back) noexcept;
    /// False: the item is impossible.
    bool read_item(const frame_item& i, const std::byte* payload) noexcept;
    bool read_message(const frame_item& i, const std::byte* payload) noexcept;
    /// The peer has withdrawn a send: the message is discarded, or the receive that has met it takes another one.
    void read_recall(std::uint32_t record) noexcept;
    void receive_whole(message_operation& r, const envelope& m, std::uint32_t place, const std::byte* payload) noexcept;
    [[nodiscard]] std::byte* whole_message_at(std::uint32_t place) noexcept {
        return whole_.get() + place * frames_.most_whole();
    }

    messenger_core& core_;
    matching& matching_;
    message_frames frames_;
    send_records records_{messenger_options::most_large};
    send_records places_{whole_places}; ///< of whole messages, at the peer
    place_set sent_whole_;              ///< hold some, until the peer gives them back
    /// Unexpected whole messages: most_whole() bytes for each place.
    std::unique_ptr<std::byte[]> whole_;
    frame_rendezvous large_;
    bool knows_peer_left_ = false;
};

} // namespace halocline::comm
