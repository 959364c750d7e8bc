// SPDX-License-Identifier: Apache-2.0
// Frames between this rank and one peer: they pack several small items into one message of a channel over a network.
// The users define the items (messages/message_frames.hpp, one_sided/far_link.hpp).
//
// Frames are numbered from 0 and take turns on the epochs of a few channels, so that several are under way: frame n is
// epoch n / channels + 1 of channel n % channels, and items arrive in the order in which they were appended.
//
// Flow control: a channel may send epoch e once the peer's epoch e - 1 has arrived, which says that the slot for it is
// free. So frame n may go when the peer's frame n - channels is here. Whoever takes frames therefore has to answer
// them, if necessary with empty ones (owes_answer()), in every wait of its rank: otherwise a peer that only sends would
// stop.
#pragma once

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/detail/copy_bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace halocline::comm {

/// A channel of whichever network serves the peer, reduced to what frames need.
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
    /// Where the frame of that epoch is to be written; nullptr: the previous one has not left yet.
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
    /// Number of frames it has memory for: per channel one being filled, and two that arrive.
    static constexpr std::size_t frames = 3 * channels;

    std::vector<frame_channel> channel{}; ///< `channels` of them, in the order of their requests
    std::size_t frame_bytes = 0;          ///< size of a frame
    std::size_t head_bytes = 0;           ///< at its start, for the user to fill before send()
    std::uint64_t sent = 0, taken = 0;    ///< numbers of frames
    std::byte* frame = nullptr;           ///< number `sent`, if it is being filled
    std::size_t used_bytes = 0;           ///< in it

    static constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }
    /// Does the rest of a frame hold a payload of `bytes`? These come from the wire, so they may have any value:
    /// padded, the largest would become 0.
    static constexpr bool holds(std::size_t rest, std::uint64_t bytes) {
        return bytes <= rest && padded(bytes) <= rest;
    }

    /// Begins frame `sent`, if it has not begun. False: not possible now.
    bool open() noexcept {
        if (frame != nullptr) return true;
        frame = channel[sent % channels].target(sent / channels + 1);
        used_bytes = head_bytes;
        return frame != nullptr;
    }
    [[nodiscard]] bool is_empty() const noexcept { return frame == nullptr || used_bytes == head_bytes; }
    /// Appends an item and its payload, padded to 8 bytes. False: no frame may be filled now, or this one has no room.
    template <class Item>
    bool append_item(const Item& what, const std::byte* payload, std::size_t bytes) noexcept {
        static_assert(sizeof what % 8 == 0);
        const std::size_t size = sizeof what + padded(bytes);
        if (!open() || used_bytes + size > frame_bytes) return false;
        std::memcpy(frame + used_bytes, &what, sizeof what);
        copy_bytes(frame + used_bytes + sizeof what, payload, bytes);
        used_bytes += size;
        return true;
    }
    /// May frame `sent`, empty or not, be sent now?
    [[nodiscard]] bool can_send() noexcept { return sent != taken + channels && open(); }
    /// Pre: can_send().
    void send() noexcept {
        channel[sent % channels].send(sent / channels + 1, used_bytes);
        ++sent;
        frame = nullptr;
    }
    /// Half of what the peer may have under way is unanswered: it may be unable to send.
    [[nodiscard]] bool owes_answer() const noexcept { return taken >= sent + channels / 2; }

    /// Is the peer's next frame here? Also true if it never will be: then check() says why. Polls the network, unlike
    /// is_here().
    [[nodiscard]] bool arrived() noexcept { return next().arrived(next_epoch()); }
    [[nodiscard]] bool is_here() noexcept { return next().is_here(next_epoch()); }
    /// Pre: arrived(), for this and the next three.
    [[nodiscard]] status check() noexcept { return next().check(next_epoch()); }
    [[nodiscard]] std::span<const std::byte> received() noexcept { return next().received(next_epoch()); }
    /// The frame has been read.
    void take() noexcept { ++taken; }
    /// The transport's error message after check() returned status::peer_died.
    [[nodiscard]] std::string trouble() { return next().trouble(); }

  private:
    frame_channel& next() noexcept { return channel[taken % channels]; }
    [[nodiscard]] std::uint64_t next_epoch() const noexcept { return taken / channels + 1; }
};

/// Appends the requests for the channels of a stream between this rank and a peer, in a set without other channels.
inline void request_frame_channels(std::vector<channel_request>& requests, int own, int peer, std::size_t frame_bytes) {
    constexpr auto count = static_cast<std::uint32_t>(frame_stream::channels);
    const auto key = [](int rank, std::uint32_t n) { return count * static_cast<std::uint32_t>(rank) + n; };
    for (std::uint32_t n = 0; n < count; ++n)
        requests.push_back({peer, key(peer, n), key(own, n), frame_bytes, frame_bytes, "frames " + std::to_string(n)});
}

/// Calls connect(peer, frame_channel) for each channel of the set; those of a peer in the order of their requests.
template <class Connect>
void for_each_frame_channel(channel_set& set, Connect&& connect) {
    set.for_each([&]<class C>(C& c) {
        if constexpr (std::is_constructible_v<frame_channel, C&>) connect(c.peer(), frame_channel(c));
    });
}

} // namespace halocline::comm
