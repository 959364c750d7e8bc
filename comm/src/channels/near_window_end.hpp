// SPDX-License-Identifier: Apache-2.0
// How the messages of a window that is not small (small_window_end.hpp) travel to a peer whose memory is mapped here,
// which may be this rank itself: through the slots of a shm_channel, or straight into the receiver's own buffer if that
// lies in its slab. A waiting receiver that can reach the sender's buffer copies pieces of a large message of the second
// kind itself (docs/decisions/0044-windows-copied-by-both.md).
#pragma once

#include "connection_core.hpp"
#include "control/wire.hpp"
#include "job/job_core.hpp"
#include "job/peer_memory.hpp"
#include "job/slab_block.hpp"
#include "node/peer_stores.hpp"
#include "window_way.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/detail/copy_bytes.hpp>
#include <halocline/comm/detail/shm_channel.hpp>
#include <halocline/comm/detail/streaming_watch.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace halocline::comm {

/// The shared state of a copy by both ends, in the receiver's slab. Changes raise layout_number
/// (job/layout_number.hpp).
struct helped_copy {
    struct alignas(128) {
        std::atomic<std::uint64_t> step{0}; ///< the step whose pieces are being dealt out; stored last
        std::uint64_t bytes = 0;
        std::atomic<bool> mended{false};                 ///< after a refusal: the sender has copied that message again
    } offered;                                           ///< written by the sender
    alignas(128) std::atomic<std::uint64_t> next{0};     ///< next piece to copy, by either end
    alignas(128) std::atomic<std::uint64_t> received{0}; ///< pieces taken and copied by the receiver, in all steps

    /// Bit of `received`: the system refused one of the last pieces. The sender must copy that message again, and no
    /// later one is copied by both.
    static constexpr std::uint64_t refused = std::uint64_t{1} << 63;
};

class near_window_end {
  public:
    /// Local: memory that the peer may write.  Lifetime: refers to the request. `never_connected`: the letter by which
    /// the peer's end takes its leave if it was never connected.
    near_window_end(job_core& core, const window_request& r, keyed_letters::name never_connected);
    /// Says farewell. The memory is parked until the peer has said farewell, too.
    ~near_window_end();
    near_window_end(const near_window_end&) = delete;
    near_window_end& operator=(const near_window_end&) = delete;

    // For all of these see window_way.
    void tell(wire_writer& card) const;
    void connect(wire_reader& card, int peer, std::uint32_t id);
    void refuse() noexcept { peer_never_connects_ = true; }
    [[nodiscard]] bool is_connected(status&) const noexcept { return true; }

    [[nodiscard]] bool sent(std::uint64_t) const noexcept { return true; }
    [[nodiscard]] status check(std::uint64_t step) const noexcept {
        return lacks_pieces() ? status::aborted : channel_->check_part(step);
    }

    [[nodiscard]] std::uint64_t token_to_fill(std::uint64_t step) const noexcept {
        return into_receivers_buffer_ ? step : step - 1;
    }
    [[nodiscard]] std::uint64_t token_to_send(std::uint64_t step) const noexcept { return token_to_fill(step); }
    [[nodiscard]] bool has_token(std::uint64_t token) const noexcept { return channel_->arrived(token); }
    [[nodiscard]] std::byte* target(std::uint64_t step) noexcept {
        return into_receivers_buffer_ ? remote_ : channel_->target(step);
    }
    /// Streamed or not, as is best now.
    void write(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
    void copy(std::uint64_t step, const std::byte* from, std::size_t bytes) noexcept;
    /// If the receiver could not copy its pieces, copies all.
    [[nodiscard]] bool is_copied(std::uint64_t step, std::size_t bytes) noexcept {
        if (copied_by_peer_ == 0) return true;
        const std::uint64_t received = helped_->received.load(std::memory_order_acquire);
        if ((received & ~helped_copy::refused) < copied_by_peer_) return false;
        if ((received & helped_copy::refused) != 0) mend(step, bytes);
        return true;
    }
    void send_message(std::uint64_t step, std::size_t bytes) noexcept { channel_->send_part(step, no_stamp, bytes); }
    /// The token that post() checks next should have come by now. The lines of a small slot have been read by the
    /// receiver. (If that were done as soon as the step before has ended, some would go back to a receiver that already
    /// polls.)
    void step_begins(std::uint64_t step) noexcept {
        if (streaming_.watches()) stamp_ = ticks(); // for look_for_peer()
        if (into_receivers_buffer_) return prefetch_token(step);
        if (request_.bytes() > largest_in_slot) return; // write() claims or bypasses its lines
        if (streaming_.due(stamp_)) return;             // a look would find lines that are here already
        for (std::size_t i = 0; i < request_.bytes(); i += 64) prefetch_for_writing(target(step) + i);
        channel_->prepare(step);
    }
    void step_ended(std::uint64_t step) const noexcept {
        if (!into_receivers_buffer_) prefetch_token(step);
    }
    /// Only now and then (docs/decisions/0032-paths-follow-the-machine.md).
    void look_for_peer(std::uint64_t step, std::byte* to, std::size_t bytes) noexcept;

    void send_token(std::uint64_t step) noexcept { channel_->send(step, no_stamp); }
    [[nodiscard]] bool arrived(std::uint64_t step) const noexcept {
        return channel_->arrived(step) && (!lacks_pieces() || channel_->line()->closed());
    }
    void help(std::uint64_t step) noexcept {
        if (helped_ != nullptr && step != last_helped_ && helped_->offered.step.load(std::memory_order_acquire) == step)
            copy_offered(step);
    }
    [[nodiscard]] const std::byte* received(std::uint64_t step) const noexcept { return channel_->received(step); }
    [[nodiscard]] std::size_t bytes(std::uint64_t step) const noexcept { return channel_->label(step).bytes; }
    void take(std::uint64_t step, std::size_t bytes) const noexcept {
        if (!into_receivers_buffer_) copy_bytes(request_.buffer, received(step), bytes);
    }

    [[nodiscard]] std::string describe() const;

  private:
    /// Through slots nobody waits for this step's token; up to this size that saves more than the receiver's copy costs
    /// (docs/decisions/0011-windows.md).
    static constexpr std::size_t largest_in_slot = 1024;
    void prefetch_token(std::uint64_t token) const noexcept { __builtin_prefetch(&channel_->label(token)); }
    void reach_source(const peer_memory& memory, buffer_place source);
    void copy_offered(std::uint64_t step) noexcept;
    /// Sender: copies all of a message of which the receiver could not copy a piece, and leaves no pieces to it.
    void mend(std::uint64_t step, std::size_t bytes) noexcept;
    /// Receiver: must the sender still copy a message of which the system refused a piece?
    [[nodiscard]] bool lacks_pieces() const noexcept {
        return refused_ && !helped_->offered.mended.load(std::memory_order_acquire);
    }

    job_core& core_;
    const window_request& request_;
    keyed_letters::name never_connected_;
    bool peer_accesses_buffer_; // the user's buffer lies in this rank's slab, and the peer reads or writes it there
    bool peer_never_connects_ = false;
    memory_probe probe_;                 // lets the peer find out whether it can read this process
    bool into_receivers_buffer_ = false; // messages go into the receiver's own buffer
    // In this rank's slab: control line; then slots or, for a receiver whose buffer its peer may write, a helped_copy.
    slab_block block_;
    std::byte* remote_ = nullptr;                     // sender: the peer's buffer, if direct
    peer_buffer source_;                              // receiver: the peer's buffer, if direct
    std::optional<shm_channel> channel_;              // once connected
    streaming_watch streaming_;                       // sender
    std::uint64_t stamp_ = 0;                         // sender: when the step began
    peer_stores unstreamed_ = peer_stores::cached;    // sender: how it writes while it does not stream
    helped_copy* helped_ = nullptr;                   // set if the receiver may copy pieces
    std::size_t helped_from_ = 0;                     // message size from which on it does
    bool refused_ = false;                            // receiver: one of its pieces was refused
    std::uint64_t copied_by_peer_ = 0;                // sender: pieces, in all steps
    std::uint64_t last_helped_ = 0, copied_here_ = 0; // receiver: the step; pieces, in all steps
};

} // namespace halocline::comm
