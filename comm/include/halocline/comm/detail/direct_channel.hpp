// SPDX-License-Identifier: Apache-2.0
// The channel for memory of which there is only one copy: sites of the peer's own field, in a slab that this rank maps.
// The peer announces when they may be written ("free k"); the sender then writes them in place and publishes (send(k)).
// Without the free flag a fast rank would overwrite ghosts that a slow one is still reading.
//
// In the receiver's slab: control line for arrivals, one label for the peer's free flags. No slots.
#pragma once

#include <halocline/comm/detail/control_line.hpp>
#include <halocline/comm/detail/shm_channel.hpp>
#include <halocline/comm/status.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace halocline::comm {

/// Epochs count 1, 2, 3, … Call free(k, i) when field i may be written; once freed(k), write to the peer's field
/// peer_field() at memory() + its offset, then send(k). What the peer wrote here is complete once arrived(k).
// clang-format off
template <class C>
concept direct_channel = std::movable<C> && requires(C& c, const C& view, std::uint64_t epoch, std::uint32_t field) {
    { view.index() } noexcept -> std::same_as<std::size_t>;        ///< position of its request in the set
    { view.peer() } noexcept -> std::same_as<int>;                 ///< rank at the other end
    { view.memory() } noexcept -> std::same_as<std::byte*>;        ///< the peer's slab, as mapped here
    { c.free(epoch, field) } noexcept;                             ///< the peer may now write this rank's field
    { view.freed(epoch) } noexcept -> std::same_as<bool>;          ///< may the peer's field be written?
    { view.peer_field() } noexcept -> std::same_as<std::uint32_t>; ///< which one.  Pre: freed(epoch)
    { c.send(epoch, std::uint64_t{}) } noexcept;                   ///< publish: all of this epoch is in place
    { view.given(epoch) } noexcept -> std::same_as<bool>;          ///< sent, or never will be: the peer is gone
    { view.sent(epoch) } noexcept -> std::same_as<bool>;           ///< may what was sent be changed?
    { view.arrived(epoch) } noexcept -> std::same_as<bool>;        ///< has the peer's epoch arrived, or its farewell?
    { view.check(epoch) } noexcept -> std::same_as<status>; ///< is it what the plan says?  Pre: arrived(epoch)
    { view.label(epoch) } noexcept -> std::same_as<const line_label&>;
};
// clang-format on

class shm_direct_channel : public shm_channel {
  public:
    static constexpr channel_kind kind = channel_kind::direct;
    static constexpr std::size_t block_bytes(std::size_t) { return sizeof(control_line) + sizeof(line_label); }

    shm_direct_channel(std::size_t index, int peer, std::uint32_t plan_id, std::size_t send_bytes,
                       std::size_t receive_bytes, std::byte* remote, std::byte* local, std::byte* memory) noexcept
        : shm_channel(index, peer, plan_id, send_bytes, receive_bytes, remote, local), memory_(memory),
          remote_free_(free_at(remote)), local_free_(free_at(local)) {}

    std::byte* target(std::uint64_t) = delete; // there are no slots
    const std::byte* received(std::uint64_t) = delete;
    std::byte* slot(std::uint64_t) = delete;

    [[nodiscard]] std::byte* memory() const noexcept { return memory_; }
    /// Pre: arrived(epoch - 1). The peer sent that after reading the previous field number, so it no longer needs it.
    void free(std::uint64_t epoch, std::uint32_t field) noexcept {
        remote_free_->field_index = field;
        remote_free_->epoch.store(epoch, std::memory_order_release);
    }
    [[nodiscard]] bool freed(std::uint64_t epoch) const noexcept {
        const std::uint64_t free = local_free_->epoch.load(std::memory_order_acquire);
        return free >= epoch && free != farewell;
    }
    [[nodiscard]] std::uint32_t peer_field() const noexcept { return local_free_->field_index; }
    [[nodiscard]] bool given(std::uint64_t epoch) const noexcept { return last_ >= epoch || line()->closed(); }
    [[nodiscard]] bool sent(std::uint64_t epoch) const noexcept { return given(epoch); }

    /// See shm_channel. A peer that is copying at this moment writes into memory that is kept until its farewell.
    void close() noexcept {
        remote_free_->epoch.store(farewell, std::memory_order_release);
        shm_channel::close();
    }

  private:
    static line_label* free_at(std::byte* block) { return reinterpret_cast<line_label*>(block + sizeof(control_line)); }

    std::byte* memory_;
    line_label *remote_free_, *local_free_;
};
static_assert(direct_channel<shm_direct_channel> && !channel<shm_direct_channel>);

/// A direct channel with two slots, in one of which a message may lie instead. Its sender decides that for each message,
/// and need not wait until the peer's field is free: as with shm_channel, a slot is free once the peer's last message is
/// here. The label says where a message lies.
///
/// The receiver's slab holds the block of a shm_direct_channel, then the slots.
class shm_slotted_channel : public shm_direct_channel {
  public:
    static constexpr channel_kind kind = channel_kind::slotted_direct;
    /// From the start of a block to its slots.
    static constexpr std::size_t slots_at = (shm_direct_channel::block_bytes(0) + 127) / 128 * 128;
    static constexpr std::size_t block_bytes(std::size_t payload_bytes) {
        return slots_at + 2 * slot_stride(payload_bytes);
    }

    shm_slotted_channel(std::size_t index, int peer, std::uint32_t plan_id, std::size_t send_bytes,
                        std::size_t receive_bytes, std::byte* remote, std::byte* local, std::byte* memory) noexcept
        : shm_direct_channel(index, peer, plan_id, send_bytes, receive_bytes, remote, local, memory),
          out_(remote + slots_at), in_(local + slots_at) {}

    /// Where a message for a slot is written.  Pre: arrived(epoch - 1).
    [[nodiscard]] std::byte* slot_target(std::uint64_t epoch) noexcept {
        return out_ + (epoch & 1) * slot_stride(send_bytes());
    }
    /// send() of a message that lies in its slot.
    void send_by_slot(std::uint64_t epoch, std::uint64_t start_stamp) noexcept { send(epoch, start_stamp, in_slot); }
    /// Pre: arrived(epoch).
    [[nodiscard]] bool came_by_slot(std::uint64_t epoch) const noexcept { return label(epoch).field_index == in_slot; }
    [[nodiscard]] const std::byte* slot_received(std::uint64_t epoch) const noexcept {
        return in_ + (epoch & 1) * slot_stride(receive_bytes());
    }

  private:
    static constexpr std::uint32_t in_slot = 1; // as a field_index

    std::byte *out_, *in_;
};

template <class C>
concept slotted_channel = direct_channel<C> && requires(C& c, const C& view, std::uint64_t epoch) {
    c.send_by_slot(epoch, std::uint64_t{});
    { view.came_by_slot(epoch) } -> std::same_as<bool>;
};
static_assert(slotted_channel<shm_slotted_channel> && !channel<shm_slotted_channel>);

/// The direct channel of a rank with itself.
class self_direct_channel : public shm_direct_channel {
  public:
    static constexpr const char* transport = "self";
    using shm_direct_channel::shm_direct_channel;
};

} // namespace halocline::comm
