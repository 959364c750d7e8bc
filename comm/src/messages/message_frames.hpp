// SPDX-License-Identifier: Apache-2.0
// Messages over a network. To each such peer go frames, numbered from 0, in the epochs of a few channels in turn. A
// frame holds records: messages, calls for the bytes of large ones, pieces of these
// (docs/decisions/0025-messages-over-networks.md).
//
// Frame n may go when the peer's frame n - channels is here: who takes frames answers them, if need be with empty ones.
// Each says how many messages its reader may send in all, so that a message that comes always finds room: a longer one
// that comes whole in the place of its send record, which is given back when a receive has its bytes.
#pragma once

#include "message_layout.hpp"
#include "network/bulk_link.hpp"
#include "request_list.hpp"

#include <halocline/comm/channel.hpp>
#include <halocline/comm/mpi_channel.hpp>
#include <halocline/comm/ofi_channel.hpp>
#include <halocline/comm/verbs_channel.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace halocline::comm {

constexpr std::size_t smallest_frame = 2048; ///< has room for an immediate message

struct frame_head {
    std::uint64_t credit = 0;     ///< messages that the reader may have sent, since set-up
    std::uint64_t given_back = 0; ///< records of whole messages of the reader that were received, a bit each
};

/// What follows the head; its payload behind it, padded to 8 bytes.
struct frame_record {
    enum : std::uint32_t {
        message, ///< with its bytes if it is immediate; else the peer may call for them
        whole,   ///< a longer one with its bytes
        call,    ///< for the first `bytes` of the message with that send record
        piece,   ///< the next `bytes` of that message
        invite,  ///< to write the first `bytes` of that message where the ticket says, which follows
        decline, ///< nothing will be written where the peer invited to: the message was withdrawn, or comes in pieces
    };
    std::uint32_t kind = message;
    std::uint32_t record = 0;
    std::int32_t tag = 0;
    std::uint32_t context = 0;
    std::uint64_t bytes = 0;
};
static_assert(sizeof(frame_head) % 8 == 0 && sizeof(frame_record) % 8 == 0);

/// A channel of whichever network serves the peer, as far as frames need it.
class frame_channel {
    template <class Work>
    auto visit(Work&& work) {
        return std::visit([&](auto* c) { return work(*c); }, channel_);
    }

  public:
    explicit frame_channel(verbs_channel& c) : channel_(&c) {}
    explicit frame_channel(ofi_channel& c) : channel_(&c) {}
    explicit frame_channel(mpi_channel& c) : channel_(&c) {}

    [[nodiscard]] bool arrived(std::uint64_t epoch) noexcept {
        return visit([&](auto& c) { return c.arrived(epoch); });
    }
    [[nodiscard]] bool is_here(std::uint64_t epoch) noexcept {
        return visit([&](auto& c) { return c.is_here(epoch); });
    }
    [[nodiscard]] status check(std::uint64_t epoch) noexcept {
        return visit([&](auto& c) { return c.check_part(epoch); });
    }
    [[nodiscard]] std::span<const std::byte> received(std::uint64_t epoch) noexcept {
        return visit([&](auto& c) { return std::span(c.received(epoch), c.header(epoch).bytes); });
    }
    /// Where the frame of that epoch is to be written; nullptr: the one before has not gone.
    [[nodiscard]] std::byte* target(std::uint64_t epoch) noexcept {
        return visit([&](auto& c) { return c.sent(epoch - 1) ? c.target(epoch) : nullptr; });
    }
    void send(std::uint64_t epoch, std::size_t bytes) noexcept {
        visit([&](auto& c) { c.send_part(epoch, 0, bytes); });
    }
    [[nodiscard]] std::string trouble() {
        return visit([](auto& c) { return c.trouble(); });
    }

  private:
    std::variant<verbs_channel*, ofi_channel*, mpi_channel*> channel_;
};

/// The frames between this rank and one peer.
struct frame_link {
    static constexpr std::uint64_t channels = 4;
    static constexpr std::size_t frames =
        3 * channels; ///< for which it has memory: one to fill and two that come, each

    std::vector<frame_channel> channel; ///< `channels` of them
    std::uint64_t sent = 0, taken = 0;  ///< frames
    std::byte* frame = nullptr;         ///< number `sent`, if it is being filled
    std::size_t used = 0, room = 0;     ///< bytes of it

    std::uint64_t messages_sent = 0, may_send = 0;      ///< of the peer's credit
    std::uint64_t messages_came = 0, credit_told = 0;   ///< of this rank's
    request_list framed;                                ///< sends that are whole in `frame`
    request_list streaming;                             ///< sends whose receiver has called
    message_request* announced[link_layout::records]{}; ///< sends, by record
    message_request* receiving[link_layout::records]{}; ///< receives that have called, by the sender's record
    std::unique_ptr<bulk_link> bulk;                    ///< nullptr: all goes in frames
    request_list invited;                               ///< receives whose memory is open to the peer
    request_list writing;                               ///< sends to memory that is open here
    bulk_ticket ticket[link_layout::records]{};         ///< of these, by record
    std::uint64_t declines = 0;                         ///< records of which the peer has to be told so, a bit each
    std::uint64_t sent_whole = 0, give_back = 0; ///< records of whole messages: in use here; the peer's, received
    std::unique_ptr<std::byte[]> kept;           ///< whole messages without receive, by the sender's record
    static_assert(link_layout::records == 64);
    bool closed = false;

    /// Bytes of a message that fits into one frame.
    [[nodiscard]] std::size_t most_whole() const noexcept {
        return (room - sizeof(frame_head) - sizeof(frame_record)) / 8 * 8;
    }
    /// Copies a message's bytes out of the frame that they came in, if they did.
    void keep(announcement& a, std::uint64_t bytes) noexcept {
        if (a.address == 0) return;
        std::byte* const place = kept.get() + a.record * most_whole();
        std::memcpy(place, reinterpret_cast<const std::byte*>(a.address), bytes);
        a.address = reinterpret_cast<std::uint64_t>(place);
    }
    /// Appends to the frame that is being filled. False: no frame may be filled now, or this one has no room.
    bool append(const frame_record& what, const std::byte* payload, std::size_t bytes) noexcept {
        const std::size_t size = sizeof what + padded(bytes);
        if (!open() || used + size > room) return false;
        std::memcpy(frame + used, &what, sizeof what);
        if (bytes > 0) std::memcpy(frame + used + sizeof what, payload, bytes);
        used += size;
        return true;
    }
    /// Bytes of payload for which append() has room.
    [[nodiscard]] std::size_t payload_room() noexcept {
        return open() && used + sizeof(frame_record) < room ? (room - used - sizeof(frame_record)) / 8 * 8 : 0;
    }
    bool open() noexcept {
        if (frame != nullptr) return true;
        frame = channel[sent % channels].target(sent / channels + 1);
        used = sizeof(frame_head);
        return frame != nullptr;
    }
    [[nodiscard]] bool is_empty() const noexcept { return frame == nullptr || used == sizeof(frame_head); }
    static constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }
};

} // namespace halocline::comm
