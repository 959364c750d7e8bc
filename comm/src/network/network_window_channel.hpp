// SPDX-License-Identifier: Apache-2.0
// The channel of a large window over a network whose device reads and writes memory by itself: a message is a set of
// writes from the sender's memory into the receiver's, which the receiver counts. If it is shorter than the window, a
// note gives its length: a message of the underlying channel, whose other direction carries the window's tokens.
#pragma once

#include "network_end.hpp"

#include <halocline/comm/detail/network_channel.hpp>
#include <halocline/comm/detail/ofi_channel.hpp>
#include <halocline/comm/detail/verbs_channel.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <string>

namespace halocline::comm {

/// World and End: as for network_channel.
template <class World, class End>
class network_window_channel : public network_channel<World, End> {
    using base = network_channel<World, End>;

  public:
    /// Local.  `places`: what messages of at most `bytes` are written from (one place), or to (one place, or two that
    /// alternate with the parity of the epoch).  Pre: bytes > 0.  Err: job_error.
    network_window_channel(World& world, std::pmr::memory_resource& memory, int peer, std::uint32_t id, bool sends,
                           std::size_t bytes, std::shared_ptr<const direct_memory> places);
    /// Sender: do all messages go to the same place?  Pre: connect().
    [[nodiscard]] bool has_one_target() const noexcept { return this->end_->values.theirs.size() == 1; }

    std::byte* target(std::uint64_t) = delete; // there are no slots for messages
    const std::byte* received(std::uint64_t) = delete;

    /// Pre: sent(epoch - 1); the peer's place for this epoch may be written.
    void send_part(std::uint64_t epoch, std::uint64_t start_stamp, std::size_t bytes) noexcept;
    /// Has all of it left this rank's memory, or will it never?
    [[nodiscard]] bool sent(std::uint64_t epoch) noexcept;
    /// Receiver: has all of that message arrived, or will it never?  Pre: called for every epoch, in order.
    [[nodiscard]] bool message_arrived(std::uint64_t epoch) noexcept;
    /// Receiver: is what came what was agreed?  Pre: message_arrived(epoch).
    [[nodiscard]] status check_message(std::uint64_t epoch) const noexcept;
    /// Size of the peer's last message.  Pre: check_message(epoch) is ok.
    [[nodiscard]] std::size_t bytes(std::uint64_t) const noexcept { return last_bytes_; }

  private:
    struct note {
        std::uint64_t epoch, bytes, writes;
    };
    [[nodiscard]] note next_note() const noexcept;
    /// Could this channel's peer have sent the next note?
    [[nodiscard]] bool is_next_note_good() const noexcept;
    [[nodiscard]] bool is_in_place(std::uint64_t epoch) noexcept;

    std::size_t bytes_;                     // of a message, at most
    std::uint64_t notes_ = 0;               // sent, or taken
    std::uint64_t last_ = 0;                // epoch of the last message that was sent, or has arrived
    std::size_t piece_ = 0, cut_ = 0;       // sender: of a write, at most; of the message that the writes are cut for
    std::size_t last_bytes_ = 0;            // receiver: of the last message
    std::uint64_t whole_[2]{}, parts_[2]{}; // receiver: what past messages added to the end's counts, by the parity of
                                            // epochs: writes of the next message may overtake those of this one
};

class ofi_window_channel : public network_window_channel<ofi_world, ofi_end> {
  public:
    static constexpr const char* transport = "ofi";
    using network_window_channel::network_window_channel;
};

class verbs_window_channel : public network_window_channel<verbs_world, verbs_end> {
  public:
    static constexpr const char* transport = "verbs";
    using network_window_channel::network_window_channel;
};

} // namespace halocline::comm
