// SPDX-License-Identifier: Apache-2.0
// Large messages from a peer that shares its memory (shm_outgoing.hpp) to this rank, which decides who copies what.
#pragma once

#include "large_message_policy.hpp"
#include "message_memory.hpp"
#include "messenger_core.hpp"
#include "operation_list.hpp"

#include "job/peer_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace halocline::comm {

class shm_incoming {
  public:
    /// `theirs`: for this rank, in the peer's slab.
    shm_incoming(messenger_core& core, int peer, message_place theirs, const peer_memory& memory,
                 const receiving_policy& policy);

    /// Takes `bytes` of an announced message, in whichever way reaches them. `sends_too`: this rank is sending to the
    /// peer as well.
    void receive(message_operation& r, std::uint64_t bytes, const announcement& a, bool sends_too) noexcept;
    /// Does so without a receive under way.  False: the message is not one that this rank always copies alone, without
    /// a system call; nothing has happened.
    [[nodiscard]] bool try_receive_alone(std::byte* into, const announcement& a) noexcept;
    /// Takes the next steps of the receives in which their sender has a part.
    void progress() noexcept {
        if (!receiving_.empty()) receiving_.for_each([this](message_operation& r) { advance(r); });
    }
    /// The send ends as if the message had been received. Waits only while its sender is writing into the receive's
    /// buffer.
    void withdraw(message_operation& r) noexcept;
    /// Has the send been withdrawn whose message no receive has met yet?
    [[nodiscard]] bool is_withdrawn(const announcement& a) const noexcept {
        return (outbox_->record[a.record].sender_pieces.load(std::memory_order_acquire) & send_record::withdrawn) != 0;
    }
    /// Can't its send be withdrawn, because the message is a copy?
    [[nodiscard]] bool is_copy(const announcement& a) const noexcept {
        const std::byte* const place = memory_.at(a.place).mapped();
        return place >= outbox_->copy[0] && place < outbox_->copy[link_layout::copies];
    }
    /// No receive will meet that message; its record is the sender's again.
    void discard(const announcement& a) noexcept { outbox_->record[a.record].set(a.generation, send_record::received); }
    /// The messenger ends.
    void abandon() noexcept;
    [[nodiscard]] std::string describe() const { return memory_.describe() + policy_.describe(); }

  private:
    [[nodiscard]] send_record& record_of(const message_operation& r) const noexcept {
        return outbox_->record[r.record];
    }
    /// Measures how far away the sender is, if that is due.
    void look_for_sender(send_record& record, std::uint64_t bytes) noexcept;
    /// False: the system refuses.
    [[nodiscard]] bool copy_alone(message_operation& r, const peer_buffer& source, std::uint64_t bytes) noexcept;
    void ask_for_copy(message_operation& r, send_record::phase how) noexcept;
    void copy_pieces_of(message_operation& r, const peer_buffer& source, std::uint64_t bytes) noexcept;
    void ask_for_staging(message_operation& r) noexcept;
    enum class outcome { under_way, complete, withdrawn };
    /// Takes the next step of a receive in which its sender has a part.
    void advance(message_operation& r) noexcept;
    [[nodiscard]] outcome copied_by_both(message_operation& r, std::uint64_t bytes) noexcept;
    [[nodiscard]] outcome copied_from_staging(message_operation& r, std::uint64_t bytes) noexcept;
    /// The sender's buffer, for a receive that could copy alone and whose sender hasn't begun although there was time: it
    /// is computing, or waits elsewhere. Only once.
    [[nodiscard]] std::optional<peer_buffer> source_of_idle_sender(message_operation& r) noexcept;
    /// Takes the remaining pieces, so that the sender copies none of them, and waits for those that it has begun.
    void stop_sender(const message_operation& r) noexcept;

    messenger_core& core_;
    outbox* outbox_;           ///< the peer's; only its records are written
    operation_list receiving_; ///< receives in which their sender has a part
    int peer_;
    peer_memory memory_;
    receiving_policy policy_;
};

} // namespace halocline::comm
