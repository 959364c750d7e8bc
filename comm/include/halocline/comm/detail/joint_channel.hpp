// SPDX-License-Identifier: Apache-2.0
// A channel whose large messages both ends copy: the sender offers a message in pieces that a counter deals out, and a
// receiver that waits takes pieces, too, straight from the sender's field (docs/decisions/0049-joint-copies.md). This
// is help, not a duty: a sender that is given none copies everything.
//
// The epoch stays the only flag. A receiver copies the pieces that it took before it looks for the epoch again, so when
// the epoch has come, everything is there. A sender may change its field when the receiver has copied the pieces that
// it took: sent() waits for that.
//
// An offer of epoch k lies in the half of k's parity. It is overwritten by the offer of k + 2, which is made after the
// receiver has sent k + 1, and so is done with k: nobody takes a piece of another epoch than it means to.
//
// In the receiver's slab: the block of the channel without this, then a joint_copy.
#pragma once

#include <halocline/comm/detail/direct_channel.hpp>
#include <halocline/comm/detail/shared_copy.hpp>
#include <halocline/comm/detail/shm_channel.hpp>
#include <halocline/comm/status.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace halocline::comm {

/// Where the receiver finds what is sent: the fields of one message.
struct joint_source {
    static constexpr std::size_t most_fields = 13;
    std::uint32_t component_bytes = 0;
    std::uint32_t fields = 0;
    std::array<std::uint64_t, most_fields> places{}; ///< offsets in the sender's slab
};

/// What both ends of a joint copy share. Changes raise layout_number (src/job/layout_number.hpp).
struct joint_copy {
    struct alignas(128) offer {
        std::atomic<std::uint64_t> epoch{0}; ///< whose pieces are dealt out; stored last
        std::atomic<std::uint64_t> next{0};  ///< next piece to copy, by either end
        joint_source source{};
    };
    offer half[2];                                     ///< written by the sender
    alignas(128) std::atomic<std::uint64_t> copied{0}; ///< by the receiver: its pieces, in all epochs
};

/// Channel: shm_channel or shm_direct_channel.
template <class Channel>
class copied_by_both : public Channel {
  public:
    static constexpr const char* path_name = "joint";
    static constexpr channel_kind kind =
        is_direct(Channel::kind) ? channel_kind::joint_direct : channel_kind::joint_slots;
    static std::size_t block_bytes(std::size_t payload_bytes) { return copy_at(payload_bytes) + sizeof(joint_copy); }
    /// From the start of a block to its joint_copy.
    static std::size_t copy_at(std::size_t payload_bytes) { return Channel::block_bytes(payload_bytes); }

    /// memory: the peer's slab, as mapped here.
    copied_by_both(std::size_t index, int peer, std::uint32_t plan_id, std::size_t send_bytes,
                   std::size_t receive_bytes, std::byte* remote, std::byte* local, std::byte* memory) noexcept
        : Channel(without(index, peer, plan_id, send_bytes, receive_bytes, remote, local, memory)), memory_(memory),
          out_(reinterpret_cast<joint_copy*>(remote + copy_at(send_bytes))),
          in_(reinterpret_cast<joint_copy*>(local + copy_at(receive_bytes))) {}

    /// Sender: deals out the message of this epoch in pieces; copy_offered() and then send() must follow.
    void offer(std::uint64_t epoch, const joint_source& source) noexcept {
        joint_copy::offer& o = out_->half[epoch & 1];
        o.source = source;
        o.next.store(0, std::memory_order_relaxed);
        o.epoch.store(epoch, std::memory_order_release);
        offered_ = epoch;
    }
    [[nodiscard]] bool offers(std::uint64_t epoch) const noexcept { return offered_ == epoch; }
    /// Sender: copies the pieces that the receiver does not take, by copy(first, last) of the message's `sites`.
    template <class Copy>
    void copy_offered(std::uint64_t epoch, std::int64_t sites, Copy&& copy) noexcept {
        const std::uint64_t pieces = pieces_of(this->send_bytes());
        lent_ += pieces - take(out_->half[epoch & 1].next, pieces, sites, copy);
    }
    /// May this rank change what it sent?
    [[nodiscard]] bool sent(std::uint64_t epoch) const noexcept { return Channel::sent(epoch) && is_copied(); }
    /// Sender: has the receiver copied all pieces that it took?
    [[nodiscard]] bool is_copied() const noexcept { return out_->copied.load(std::memory_order_acquire) >= lent_; }

    /// Receiver: copies pieces of a message that is on its way, by copy(first, last, source, memory): `source` as the
    /// sender offered it, in `memory`, the sender's slab.
    template <class Copy>
    void help(std::uint64_t epoch, std::int64_t sites, Copy&& copy) noexcept {
        joint_copy::offer& o = in_->half[epoch & 1];
        const std::uint64_t pieces = pieces_of(this->receive_bytes());
        if (o.epoch.load(std::memory_order_acquire) != epoch || o.next.load(std::memory_order_relaxed) >= pieces)
            return;
        const std::uint64_t taken = take(o.next, pieces, sites, [&](std::int64_t first, std::int64_t last) noexcept {
            copy(first, last, std::as_const(o.source), static_cast<const std::byte*>(memory_));
        });
        if (taken == 0) return;
        // A sender that waited for these pieces can't have left yet. One that has may have freed its field meanwhile.
        // The fence: look only after the copies, as with a sequence lock.
        std::atomic_thread_fence(std::memory_order_acquire);
        if (this->line()->closed()) spoilt_ = true;
        helped_ += taken;
        in_->copied.store(helped_, std::memory_order_release);
    }
    [[nodiscard]] status check(std::uint64_t epoch) const noexcept {
        return spoilt_ ? status::aborted : Channel::check(epoch);
    }
    /// Pieces that this rank has copied as a receiver, in all epochs.
    [[nodiscard]] std::uint64_t pieces_helped() const noexcept { return helped_; }

  private:
    static Channel without(std::size_t index, int peer, std::uint32_t plan_id, std::size_t send_bytes,
                           std::size_t receive_bytes, std::byte* remote, std::byte* local, std::byte* memory) noexcept {
        if constexpr (direct_channel<Channel>)
            return {index, peer, plan_id, send_bytes, receive_bytes, remote, local, memory};
        else
            return {index, peer, plan_id, send_bytes, receive_bytes, remote, local};
    }
    /// Copies the pieces that nobody has taken yet; returns how many these were.
    template <class Copy>
    static std::uint64_t take(std::atomic<std::uint64_t>& next, std::uint64_t pieces, std::int64_t sites,
                              Copy&& copy) noexcept {
        return take_pieces(next, pieces, [&](std::uint64_t i) {
            const auto piece = static_cast<std::int64_t>(i), all = static_cast<std::int64_t>(pieces);
            copy(sites * piece / all, sites * (piece + 1) / all);
        });
    }

    std::byte* memory_;
    joint_copy *out_, *in_;     // at the peer, and here
    std::uint64_t offered_ = 0; // the last epoch
    std::uint64_t lent_ = 0;    // sender: pieces taken by the receiver, in all epochs
    std::uint64_t helped_ = 0;  // receiver: pieces copied, in all epochs
    bool spoilt_ = false;       // receiver: what it copied may not have been the message
};

using shm_joint_channel = copied_by_both<shm_channel>;
using shm_joint_direct_channel = copied_by_both<shm_direct_channel>;

/// A channel whose messages may be offered.
template <class C>
concept joint_channel = requires(C& c, std::uint64_t epoch, const joint_source& source) {
    c.offer(epoch, source);
};

static_assert(channel<shm_joint_channel> && direct_channel<shm_joint_direct_channel>);
static_assert(joint_channel<shm_joint_channel> && joint_channel<shm_joint_direct_channel>);

} // namespace halocline::comm
