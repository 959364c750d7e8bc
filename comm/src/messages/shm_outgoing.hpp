// SPDX-License-Identifier: Apache-2.0
// Large messages from this rank to a peer that shares its memory. Their announcement goes through the ring
// (shm_link.hpp); then the receiver (shm_incoming.hpp) decides who copies what (large_message_policy.hpp). The two ends
// meet in the send's record, in this rank's slab (docs/decisions/0015-matched-messages.md).
#pragma once

#include "large_message_policy.hpp"
#include "message_memory.hpp"
#include "messenger_core.hpp"
#include "operation_list.hpp"
#include "send_records.hpp"

#include "job/peer_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace halocline::comm {

class shm_outgoing {
  public:
    /// `own`: for that peer, in this rank's slab.
    shm_outgoing(messenger_core& core, int peer, message_place own, const peer_memory& memory,
                 const sending_policy& policy);

    /// No further send can be announced now.
    [[nodiscard]] bool is_full() const noexcept { return free_.all_taken(); }
    /// Is something announced that the peer has not finished with?
    [[nodiscard]] bool is_sending() const noexcept { return !announced_.empty(); }
    /// Can the receiver read this memory without a system call?
    [[nodiscard]] bool is_mapped_there(const std::byte* data) const noexcept {
        return memory_.maps_back(*core_.job.memory, data);
    }
    /// See sending_policy.
    [[nodiscard]] bool copying_pays(const message_operation& send) const noexcept {
        return policy_.copying_pays(send.bytes, send.is_waited_for);
    }
    /// The announcement of a send.  Pre: !is_full().
    [[nodiscard]] announcement announce(message_operation& send) noexcept;
    /// A copy of the send in this rank's slab, to be announced in its place.  nullptr: all copies are still unread.
    /// Pre: at most most_copied bytes.
    [[nodiscard]] message_operation* copy(const message_operation& send) noexcept;
    /// Takes the next steps of the announced sends.
    void progress() noexcept {
        if (!withdrawn_.empty()) take_back_withdrawn();
        if (!announced_.empty()) announced_.for_each([this](message_operation& s) { advance(s); });
    }
    void withdraw(message_operation& send) noexcept;
    /// Does the receiver have to be informed that a send was withdrawn?
    [[nodiscard]] bool has_untold() const noexcept { return untold_ > 0; }
    /// Identifies such a send for the receiver, which will now be informed.  Pre: has_untold().
    [[nodiscard]] announcement take_untold() noexcept;
    /// The messenger ends. Its peer may still read copies, but no more originals.
    void abandon() noexcept;
    [[nodiscard]] std::string describe() const { return policy_.describe(); }

  private:
    /// Ends an announced send whose receiver has copied it alone.  False: it has not, or not yet.
    [[nodiscard]] bool take_received(message_operation& s) noexcept;
    /// Measures how far away the receiver is, by the latest copy that it has read.
    void look_at_copies(std::uint64_t now) noexcept;
    /// Does what the receiver of an announced message has asked for.
    void advance(message_operation& s) noexcept;
    void help_copy(message_operation& s, send_record& record, bool pushed) noexcept;
    void stage(message_operation& s, send_record& record) noexcept;
    void mark_withdrawn(const message_operation& s) noexcept;
    /// Frees the records of withdrawn sends whose receivers have finished with them.
    void take_back_withdrawn() noexcept;
    /// For a record that the receiver has finished with: the next send may use it.
    void give_back(std::uint32_t record) noexcept {
        free_.give_back(record);
        if (staging_ == record) staging_ = no_record;
    }

    /// A send that is gone, until its receiver has finished with the record.
    struct withdrawn_send {
        std::uint32_t record;
        bool is_told; ///< the receiver is informed
    };

    messenger_core& core_;
    int peer_;
    peer_memory memory_;
    sending_policy policy_;
    outbox* outbox_;
    send_records free_;
    std::uint32_t records_used_ = 0; ///< ever
    std::uint64_t generation_ = 0;   ///< of the latest announcement
    operation_list announced_;
    std::vector<withdrawn_send> withdrawn_;
    std::size_t untold_ = 0; ///< of these
    static constexpr std::uint32_t no_record = ~std::uint32_t{0};
    std::uint32_t staging_ = no_record;     ///< the record whose pieces lie in the staging area
    std::uint64_t whole_pieces_staged_ = 0; ///< since the beginning, or as many as there is room for
    std::size_t next_copy_ = 0;
    static constexpr std::size_t second_place = ~std::size_t{0};
    /// `bytes`: of the last message there; 0: none, or looked at; second_place: it is in the place before, too.
    message_operation copies_[link_layout::copies];
};

} // namespace halocline::comm
