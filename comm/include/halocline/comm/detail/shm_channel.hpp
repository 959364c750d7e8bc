// SPDX-License-Identifier: Apache-2.0
// The channel between two ranks that map each other's slabs: the sender writes straight into the receiver's slot, then
// publishes the epoch in the receiver's control line. A message costs one release store, one acquire load and its
// payload.
//
// In the receiver's slab: control line, perhaps a gap, slot 0, slot 1. Payloads up to 16 bytes travel in the line.
#pragma once

#include <halocline/comm/detail/channel.hpp>
#include <halocline/comm/detail/control_line.hpp>
#include <halocline/comm/detail/line_pairs.hpp>
#include <halocline/comm/detail/prefetch.hpp>
#include <halocline/comm/status.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace halocline::comm {

class shm_channel {
  public:
    static constexpr const char* transport = "shm";
    static constexpr const char* path_name = "direct";
    static constexpr channel_kind kind = channel_kind::slots;
    static constexpr bool in_peer_memory = true;
    /// Where the bytes of one direction lie, as one rank maps them.
    struct block {
        control_line* line = nullptr;
        std::byte* slots = nullptr;
        std::size_t stride = 0; ///< from slot 0 to slot 1
    };
    /// Bytes between the control line and slots for payloads of that size. Intel's cores, which fetch lines in pairs,
    /// also prefetch lines behind one that they poll, which the peer is about to write: small messages begin further
    /// away there (docs/decisions/0002-control-line.md).
    static constexpr std::size_t gap_before_slots(std::size_t payload_bytes, bool lines_in_pairs) {
        constexpr std::size_t gap = 512, small = 2048;
        return lines_in_pairs && payload_bytes <= small ? gap : 0;
    }
    /// Bytes of slab that one receiving direction needs; alignment 128.
    static std::size_t block_bytes(std::size_t payload_bytes) {
        return in_line(payload_bytes) ? sizeof(control_line) : slots_at(payload_bytes) + 2 * slot_stride(payload_bytes);
    }
    /// The block that starts at `start`.
    static block block_at(std::byte* start, std::size_t payload_bytes) noexcept {
        auto* line = reinterpret_cast<control_line*>(start);
        if (in_line(payload_bytes)) {
            return {line, reinterpret_cast<std::byte*>(line->half[0].immediate), sizeof(line_label)};
        }
        return {line, start + slots_at(payload_bytes), slot_stride(payload_bytes)};
    }

    shm_channel(std::size_t index, int peer, std::uint32_t plan_id, std::size_t send_bytes, std::size_t receive_bytes,
                std::byte* remote, std::byte* local) noexcept
        : remote_(block_at(remote, send_bytes)), local_(block_at(local, receive_bytes)), index_(index),
          send_bytes_(send_bytes), receive_bytes_(receive_bytes), peer_(peer), plan_id_(plan_id) {}

    [[nodiscard]] std::size_t index() const noexcept { return index_; }
    [[nodiscard]] int peer() const noexcept { return peer_; }

    [[nodiscard]] std::byte* target(std::uint64_t epoch) noexcept {
        return remote_.slots + (epoch & 1) * remote_.stride;
    }
    /// Prefetches the label that send(epoch) writes: it has been in the peer's cache since the peer polled it two
    /// epochs ago.
    void prepare(std::uint64_t epoch) noexcept { prefetch_for_writing(&remote_.line->half[epoch & 1]); }
    /// The byte to take for measuring how far away the peer is, in the line that send(epoch) writes.  Pre: not after
    /// prepare(epoch).
    [[nodiscard]] std::byte* looked_at(std::uint64_t epoch) noexcept {
        return &remote_.line->half[epoch & 1].looked_at;
    }
    /// field_index: for the receiver's label(epoch).
    void send(std::uint64_t epoch, std::uint64_t start_stamp, std::uint32_t field_index = 0) noexcept {
        send_part(epoch, start_stamp, send_bytes_, field_index);
    }
    /// A message of fewer bytes than planned; the other end asks check_part() and label().bytes.
    void send_part(std::uint64_t epoch, std::uint64_t start_stamp, std::size_t bytes,
                   std::uint32_t field_index = 0) noexcept {
        line_label& label = remote_.line->half[epoch & 1];
        label.fill(plan_id_, field_index, bytes, start_stamp);
        label.epoch.store(epoch, std::memory_order_release);
        last_ = epoch;
    }
    [[nodiscard]] bool sent(std::uint64_t) const noexcept { return true; }
    [[nodiscard]] bool arrived(std::uint64_t epoch) const noexcept {
        const line_label& label = here(epoch);
        return label.epoch.load(std::memory_order_acquire) >= epoch || ended(label, epoch);
    }
    [[nodiscard]] status check(std::uint64_t epoch) const noexcept {
        const line_label& label = here(epoch);
        if (label.epoch.load(std::memory_order_acquire) == epoch && label.is(plan_id_, epoch, receive_bytes_))
            return status::ok;
        const status s = check_part(epoch);
        return s == status::ok && label.bytes != receive_bytes_ ? status::wrong_data : s;
    }
    /// check() without the size.
    [[nodiscard]] status check_part(std::uint64_t epoch) const noexcept {
        const line_label& label = here(epoch);
        const bool over = ended(label, epoch); // read first: anything sent before the farewell is then visible
        if (label.epoch.load(std::memory_order_acquire) != epoch && over) return status::aborted;
        return label.is(plan_id_, epoch, label.bytes) ? status::ok : status::wrong_data;
    }
    [[nodiscard]] const std::byte* received(std::uint64_t epoch) const noexcept {
        return local_.slots + (epoch & 1) * local_.stride;
    }
    /// Where received(epoch) points, for a receiver that copies parts of the message itself (joint_channel.hpp).
    [[nodiscard]] std::byte* slot(std::uint64_t epoch) noexcept { return local_.slots + (epoch & 1) * local_.stride; }
    [[nodiscard]] const line_label& label(std::uint64_t epoch) const noexcept { return here(epoch); }
    /// Where the peer's labels arrive.
    [[nodiscard]] const control_line* line() const noexcept { return local_.line; }
    [[nodiscard]] std::size_t send_bytes() const noexcept { return send_bytes_; }
    [[nodiscard]] std::size_t receive_bytes() const noexcept { return receive_bytes_; }

    /// Says farewell: a peer that waits for the next epoch gets status::aborted.
    void close() noexcept { remote_.line->say_farewell(last_ + 1); }

  protected:
    static constexpr std::uint64_t farewell = std::numeric_limits<std::uint64_t>::max(); // as an epoch: never comes
    std::uint64_t last_ = 0;                                                             // epoch of the last send

    static constexpr std::size_t slot_stride(std::size_t bytes) { return (bytes + 127) / 128 * 128; }

  private:
    static std::size_t slots_at(std::size_t payload_bytes) {
        return sizeof(control_line) + gap_before_slots(payload_bytes, lines_come_in_pairs);
    }
    static constexpr bool in_line(std::size_t bytes) { return bytes <= sizeof(line_label::immediate); }
    static bool ended(const line_label& label, std::uint64_t epoch) noexcept {
        const std::uint64_t end = label.end.load(std::memory_order_acquire);
        return end != 0 && end <= epoch;
    }
    [[nodiscard]] const line_label& here(std::uint64_t epoch) const noexcept { return local_.line->half[epoch & 1]; }

    block remote_, local_;
    std::size_t index_, send_bytes_, receive_bytes_;
    int peer_;
    std::uint32_t plan_id_;
};
static_assert(channel<shm_channel>);

} // namespace halocline::comm
