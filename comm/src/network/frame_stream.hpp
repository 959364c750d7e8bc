// SPDX-License-Identifier: Apache-2.0
// Frames between this rank and one peer: where much that is small is to be said over a network, several items go in one
// message of a channel. What an item is, is up to the user (messages/message_frames.hpp, one_sided/far_link.hpp).
//
// Frames are numbered from 0 and go in the epochs of a few channels in turn, so that several are under way: frame n is
// epoch n / channels + 1 of channel n % channels, and items arrive in the order in which they were appended.
//
// Flow control: a channel may send epoch e when the peer's epoch e - 1 has come, which says that the slot for it is
// free. So frame n may go when the peer's frame n - channels is here, and whoever takes frames has to answer them, if
// need be with empty ones (owes_answer()), in every wait of its rank: else a peer that only sends would stop for ever.
#pragma once

#include <halocline/comm/channel_set.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace halocline::comm {

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
        return visit([&](auto& c) { return std::span(c.received(epoch), c.label(epoch).bytes); });
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

struct frame_stream {
    static constexpr std::uint64_t channels = 4;
    /// So many it has memory for: each channel one that is filled, and two that come.
    static constexpr std::size_t frames = 3 * channels;

    std::vector<frame_channel> channel{}; ///< `channels` of them, in the order of their requests
    std::size_t room = 0;                 ///< bytes of a frame
    std::size_t head = 0;                 ///< of these at its begin, for the user to fill before send()
    std::uint64_t sent = 0, taken = 0;    ///< frames
    std::byte* frame = nullptr;           ///< number `sent`, if it is being filled
    std::size_t used = 0;                 ///< bytes of it

    static constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }
    /// Does the rest of a frame hold a payload of so many bytes, as an item says that came over the wire? Any number
    /// may: padded, the largest would be 0.
    static constexpr bool holds(std::size_t rest, std::uint64_t bytes) {
        return bytes <= rest && padded(bytes) <= rest;
    }

    /// Begins frame `sent`, if it has not begun. False: not now.
    bool open() noexcept {
        if (frame != nullptr) return true;
        frame = channel[sent % channels].target(sent / channels + 1);
        used = head;
        return frame != nullptr;
    }
    [[nodiscard]] bool is_empty() const noexcept { return frame == nullptr || used == head; }
    /// Appends an item and its payload, padded to 8 bytes. False: no frame may be filled now, or this one has no room.
    template <class Item>
    bool append_item(const Item& what, const std::byte* payload, std::size_t bytes) noexcept {
        static_assert(sizeof what % 8 == 0);
        const std::size_t size = sizeof what + padded(bytes);
        if (!open() || used + size > room) return false;
        std::memcpy(frame + used, &what, sizeof what);
        if (bytes > 0) std::memcpy(frame + used + sizeof what, payload, bytes);
        used += size;
        return true;
    }
    /// May frame `sent`, empty or not, go now?
    [[nodiscard]] bool can_send() noexcept { return sent != taken + channels && open(); }
    /// Pre: can_send().
    void send() noexcept {
        channel[sent % channels].send(sent / channels + 1, used);
        ++sent;
        frame = nullptr;
    }
    /// Half of what the peer may have under way is unanswered: it may be unable to send.
    [[nodiscard]] bool owes_answer() const noexcept { return taken >= sent + channels / 2; }

    /// Is the peer's next frame here? Also true when it never will be: then check() says why. `ask`: the network, too;
    /// false: only what it told before.
    [[nodiscard]] bool arrived(bool ask = true) noexcept {
        return ask ? next().arrived(next_epoch()) : next().is_here(next_epoch());
    }
    /// Pre: arrived(), of this and the next two; when it has been read, ++taken.
    [[nodiscard]] status check() noexcept { return next().check(next_epoch()); }
    [[nodiscard]] std::span<const std::byte> received() noexcept { return next().received(next_epoch()); }
    /// What the transport said when check() gave status::peer_died.
    [[nodiscard]] std::string trouble() { return next().trouble(); }

  private:
    frame_channel& next() noexcept { return channel[taken % channels]; }
    [[nodiscard]] std::uint64_t next_epoch() const noexcept { return taken / channels + 1; }
};

/// Appends the requests for a stream's channels between this rank and a peer, in a set without others.
inline void request_frame_channels(std::vector<channel_request>& requests, int own, int peer, std::size_t room) {
    constexpr auto count = static_cast<std::uint32_t>(frame_stream::channels);
    const auto key = [](int rank, std::uint32_t n) { return count * static_cast<std::uint32_t>(rank) + n; };
    for (std::uint32_t n = 0; n < count; ++n)
        requests.push_back({peer, key(peer, n), key(own, n), room, room, "frames " + std::to_string(n)});
}

/// Calls connect(peer, frame_channel) for each channel of the set; those of a peer in the order of their requests.
template <class Connect>
void for_each_frame_channel(channel_set& set, Connect&& connect) {
    set.for_each([&]<class C>(C& c) {
        if constexpr (std::is_constructible_v<frame_channel, C&>) connect(c.peer(), frame_channel(c));
    });
}

} // namespace halocline::comm
