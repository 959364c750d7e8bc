// SPDX-License-Identifier: Apache-2.0
// A channel whose sender writes label and payload into the peer's slot through a network's own library. That library's
// world (verbs_world, ofi_world) moves the bytes; everything else about a channel is here, once.
#pragma once

#include <halocline/comm/detail/channel_kind.hpp>
#include <halocline/comm/detail/message_slots.hpp>
#include <halocline/comm/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <string>

namespace halocline::comm {

/// World and End: private to comm, which instantiates this for each of its networks.
template <class World, class End>
class network_channel : public message_slots {
  public:
    static constexpr const char* path_name = "packed";
    static constexpr channel_kind kind = channel_kind::slots;
    static constexpr bool in_peer_memory = false;
    using world_type = World;

    /// Makes this end: buffers from `memory`, registered for the peer's writes. Local; then card() goes to the peer.
    /// `memory` and the world must outlive the channel.  Err: job_error.
    network_channel(World& world, std::pmr::memory_resource& memory, std::size_t index, int peer, std::uint32_t plan_id,
                    std::size_t send_bytes, std::size_t receive_bytes);
    /// What the peer's end needs for connect().
    [[nodiscard]] std::string card() const;
    /// Takes the peer's card. Local.  Pre: the peer has made its end.  Err: job_error; error if that is not a card.
    void connect(const std::string& peer_card);
    /// The first call sends a greeting. True once it has been sent and the peer's has arrived, or if that will never
    /// happen: then trouble() says why.  Pre: the peer has connected; otherwise the greeting may have to be
    /// retransmitted.
    [[nodiscard]] bool connected() noexcept;

    /// Pre: arrived(epoch - 1) and sent(epoch - 1).
    void send(std::uint64_t epoch, std::uint64_t start_stamp, std::uint32_t field_index = 0) noexcept {
        send_part(epoch, start_stamp, send_bytes_, field_index);
    }
    /// A message of fewer bytes than planned; the other end asks check_part() and label().bytes.
    void send_part(std::uint64_t epoch, std::uint64_t start_stamp, std::size_t bytes,
                   std::uint32_t field_index = 0) noexcept;
    /// Has the peer's message of `epoch` arrived? Also true if it never will: then check(epoch) says why.
    [[nodiscard]] bool arrived(std::uint64_t epoch) noexcept;
    /// arrived(), as far as is known without polling the network.
    [[nodiscard]] bool is_here(std::uint64_t epoch) const noexcept;
    [[nodiscard]] bool sent(std::uint64_t epoch) noexcept;
    [[nodiscard]] status check(std::uint64_t epoch) const noexcept;
    /// check() for a message that may be shorter than planned.
    [[nodiscard]] status check_part(std::uint64_t epoch) const noexcept;
    /// The library's error message if the library failed; else empty.
    [[nodiscard]] std::string trouble() const;
    /// Writes that the library accepted from this end, including greetings and farewells.
    [[nodiscard]] std::uint64_t writes() const noexcept;

    /// Keeps `memory`, which the peer may write, until the peer's farewell has arrived, even if this channel is
    /// destroyed first.
    void keep(std::shared_ptr<const void> memory) noexcept;
    /// Both ends refuse each other: the peer never connects to this one, so its memory need not be kept for the peer.
    /// Pre: this end never connects, either.
    void refuse() noexcept;
    /// Sends a farewell in place of the next epoch: a peer that waits for it gets status::aborted.
    void close() noexcept;

  protected:
    /// Says farewell without waiting for the peer's: the world keeps the memory until that has arrived.
    struct leave {
        World* world;
        void say_farewell(End& end) const noexcept;
        void operator()(End* end) const noexcept;
    };
    [[nodiscard]] World& world() const noexcept { return *end_.get_deleter().world; }

    std::unique_ptr<End, leave> end_; // owned by the world: stays in place while writes are under way
};

} // namespace halocline::comm
