// SPDX-License-Identifier: Apache-2.0
// One end's buffers of a channel over a network: one message to send, and two slots in which the peer's arrive in turn.
// A message is its label, followed by its payload from the next line of 64 bytes on.
#pragma once

#include <halocline/comm/detail/control_line.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>

namespace halocline::comm {

class message_slots {
  public:
    /// Offsets from a slot's start; message_bytes(payload) bytes travel, starting at `label_at`.
    static constexpr std::size_t payload_at = 64, label_at = payload_at - sizeof(message_label);
    static constexpr std::size_t message_bytes(std::size_t payload) { return sizeof(message_label) + payload; }
    /// Bytes of a slot for such a payload, rounded up to whole lines.
    static constexpr std::size_t slot_bytes(std::size_t payload) { return (payload_at + payload + 63) / 64 * 64; }

    message_slots() = default;
    /// Slots `send` and, by the parity of their epochs, `receive`.
    message_slots(std::byte* send, std::array<std::byte*, 2> receive, std::size_t index, int peer,
                  std::uint32_t plan_id, std::size_t send_bytes, std::size_t receive_bytes) noexcept
        : send_(send), receive_(receive), index_(index), send_bytes_(send_bytes), receive_bytes_(receive_bytes),
          peer_(peer), plan_id_(plan_id) {
        for (std::byte* slot : {send, receive[0], receive[1]}) new (slot + label_at) message_label;
    }

    [[nodiscard]] std::size_t index() const noexcept { return index_; }
    [[nodiscard]] int peer() const noexcept { return peer_; }

    /// Where the payload of `epoch` is to be written.  Pre: sent(epoch - 1).
    [[nodiscard]] std::byte* target(std::uint64_t) noexcept { return send_ + payload_at; }
    /// The peer's payload, 64-byte aligned; valid until send(epoch + 1).  Pre: arrived(epoch).
    [[nodiscard]] const std::byte* received(std::uint64_t epoch) const noexcept {
        return receive_[epoch & 1] + payload_at;
    }
    /// The label of that payload.  Pre: arrived(epoch).
    [[nodiscard]] const message_label& label(std::uint64_t epoch) const noexcept {
        return *std::launder(reinterpret_cast<const message_label*>(receive_[epoch & 1] + label_at));
    }

  protected:
    void write_label(std::uint64_t epoch, std::uint64_t start_stamp, std::size_t bytes,
                     std::uint32_t field_index) noexcept {
        auto& label = *std::launder(reinterpret_cast<message_label*>(send_ + label_at));
        label.fill(plan_id_, field_index, bytes, start_stamp);
        label.epoch.store(epoch, std::memory_order_relaxed);
    }
    /// True if what arrived belongs to this plan and that epoch, and is no longer than planned.
    [[nodiscard]] bool fits(std::uint64_t epoch) const noexcept {
        return label(epoch).is(plan_id_, epoch, label(epoch).bytes) && label(epoch).bytes <= receive_bytes_;
    }
    [[nodiscard]] bool whole(std::uint64_t epoch) const noexcept { return label(epoch).bytes == receive_bytes_; }

    std::byte* send_ = nullptr;
    std::array<std::byte*, 2> receive_{};
    std::size_t index_ = 0, send_bytes_ = 0, receive_bytes_ = 0;
    int peer_ = 0;
    std::uint32_t plan_id_ = 0;
};

} // namespace halocline::comm
