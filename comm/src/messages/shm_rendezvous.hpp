// SPDX-License-Identifier: Apache-2.0
// Large messages between this rank and a peer that shares its memory. Their announcement comes through the ring
// (shm_link.hpp). Then the receiver copies out of the sender's memory, or out of a copy there; or both copy pieces; or
// the sender copies alone (pushes), bypassing its cache or by moves; or both use a staging area. The two ends meet in the
// send's record, in the sender's slab (docs/decisions/0015-matched-messages.md).
#pragma once

#include "message_memory.hpp"
#include "messenger_core.hpp"
#include "operation_list.hpp"
#include "send_records.hpp"

#include "job/peer_memory.hpp"

#include <halocline/comm/detail/streaming_watch.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace halocline::comm {

/// Do messages bypass their sender's cache, or are they moved by string moves (decision 0050)? Each end decides what it
/// can measure.
struct message_streams {
    /// Smallest message that its sender may be asked to copy into the receiver's buffer, and smallest copy in the
    /// sender's slab, for which that pays.
    static constexpr std::size_t least_pushed = least_streamed, least_copied = 2048;
    /// Smallest message of which it pays to announce such a copy although the receiver can read the original.
    static constexpr std::size_t least_detour = 4096;
    /// Where copies are moved: above most_moved and below least_moved_again a send that waits for its receiver is
    /// sooner there if the receiver reads the original.
    static constexpr std::size_t most_moved = 2048, least_moved_again = 8192;
    /// Near, where copies are moved: the largest message that two of them take sooner than the kernel.
    static constexpr std::size_t most_staged_near = std::size_t{256} << 10;
    bool moved;             ///< pushed messages and copies are moved through the sender's cache
    streaming_watch pushed; ///< the receiver's choice
    /// The sender's choice: copies bypass its cache. If `moved`: messages are copied first, because the cores are far
    /// apart.
    streaming_watch copied;
    bool claims_pay; ///< copies that don't bypass the cache claim their lines first

    message_streams(path wish, const costs& c);
    /// Is a large message that the receiver can't map there sooner by way of the sender's slab than by the kernel?
    [[nodiscard]] bool staging_pays(std::size_t bytes) const noexcept {
        return bytes >= least_pushed && (pushed.streamed() || (moved && bytes <= most_staged_near));
    }
};

class shm_rendezvous {
  public:
    /// `own` and `theirs`: for each other, in the two ranks' slabs.
    shm_rendezvous(messenger_core& core, int peer, message_place own, message_place theirs, const peer_memory& memory,
                   const message_streams& streams);

    /// Sender: no further send can be announced now.
    [[nodiscard]] bool is_full() const noexcept { return free_.all_taken(); }
    /// Can the receiver read this memory without a system call?
    [[nodiscard]] bool is_mapped_there(const std::byte* data) const noexcept {
        return memory_.is_same_process() || core_.job.memory->contains(data);
    }
    /// Sender: should a copy be announced although the receiver can read the original: because it would bypass this
    /// rank's cache or be moved, which is quicker than the receiver's reading, or to find out whether it should?
    [[nodiscard]] bool copying_pays(const message_operation& send) const noexcept {
        const bool ever_pays = streams_.moved ? !send.is_waited_for || send.bytes <= message_streams::most_moved ||
                                                    send.bytes >= message_streams::least_moved_again
                                              : send.bytes >= message_streams::least_detour;
        return ever_pays && (streams_.copied.streamed() || streams_.copied.due(ticks()));
    }
    /// The announcement of a send.  Pre: !is_full().
    [[nodiscard]] announcement announce(message_operation& send) noexcept;
    /// Sender: a copy of the send in this rank's slab, to be announced in its place.  nullptr: all copies are still
    /// unread.  Pre: at most link_layout::copy_bytes.
    [[nodiscard]] message_operation* copy(const message_operation& send) noexcept;
    /// Receiver: takes `bytes` of an announced message, in whichever way reaches them.
    void receive(message_operation& r, std::uint64_t bytes, const announcement& a) noexcept;
    /// Receiver: the same without a receive under way.  False: the message is not one that this rank always copies
    /// alone, without a system call; nothing has happened.
    [[nodiscard]] bool try_receive_alone(std::byte* into, const announcement& a) noexcept;
    /// Takes the next steps of the announced sends, and of the receives in which their sender has a part.
    void progress() noexcept {
        if (!withdrawn_.empty()) take_back_withdrawn();
        if (!announced_.empty()) announced_.for_each([this](message_operation& s) { advance_send(s); });
        if (!receiving_.empty()) receiving_.for_each([this](message_operation& r) { advance_receive(r); });
    }
    /// Sender: ends an announced send whose receiver has copied it alone.  False: it has not, or not yet.
    [[nodiscard]] bool take_received(message_operation& s) noexcept {
        if (records_[s.record].phase_of(s.near.generation) != send_record::received) return false;
        announced_.remove(s);
        give_back(s.record);
        s.finish();
        return true;
    }
    /// Waits only while a sender is writing into the receive's buffer.
    void withdraw(message_operation& o) noexcept;
    /// Sender: does the receiver have to be informed that a send was withdrawn?
    [[nodiscard]] bool has_untold() const noexcept { return !untold_.empty(); }
    /// Identifies such a send for the receiver, which will now be informed.  Pre: has_untold().
    [[nodiscard]] announcement take_untold() noexcept;
    /// Receiver: has the send been withdrawn whose message no receive has met yet?
    [[nodiscard]] bool is_withdrawn(const announcement& a) const noexcept {
        return (their_records_[a.record].sender_pieces.load(std::memory_order_acquire) & send_record::withdrawn) != 0;
    }
    /// Receiver: no receive will meet that message; its record is the sender's again.
    void discard(const announcement& a) noexcept { their_records_[a.record].set(a.generation, send_record::received); }
    /// The messenger ends. Its peers may still read copies, but no more originals.
    void abandon() noexcept;
    [[nodiscard]] std::string describe() const;

  private:
    // Receiver's part.
    void look_for_sender(send_record& record, std::uint64_t bytes) noexcept;
    /// True if the sender of `bytes` should write them.
    [[nodiscard]] bool wants_push(std::uint64_t bytes) const noexcept;
    /// The sender hasn't begun to copy, although there was time: it is computing, or waits elsewhere.
    [[nodiscard]] bool is_idle(message_operation& r, const send_record& record) const noexcept;
    /// Lets the sender copy a part, or all.  False: that would not pay off, or the source can't be reached.
    bool share_copy(message_operation& r, send_record& record, const peer_buffer& source, std::uint64_t bytes) noexcept;
    void copy_shared(message_operation& r, send_record& record, const peer_buffer& source,
                     std::uint64_t bytes) noexcept;
    void ask_for_staging(message_operation& r, send_record& record) noexcept;
    /// Takes the next step of a receive in which its sender has a part.
    void advance_receive(message_operation& r) noexcept;
    enum class outcome { under_way, complete, withdrawn };
    outcome copied_by_both(message_operation& r, send_record& record, std::uint64_t bytes) noexcept;
    outcome copied_from_staging(message_operation& r, send_record& record, std::uint64_t bytes) noexcept;
    void withdraw_receive(message_operation& r) noexcept;
    /// Takes the remaining pieces, so that the sender copies none of them, and waits for those that it has begun.
    void stop_sender(const message_operation& r, send_record& record) noexcept;
    // Sender's part.
    /// Copies to this rank's slab what the receiver reads there. True if it bypassed the cache.
    bool fill(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
    /// Measures how far away the receiver is, by the latest copy that it has read.
    void look_at_copies(std::uint64_t now) noexcept;
    /// Does what the receiver of an announced message has asked for.
    void advance_send(message_operation& s) noexcept;
    void help_copy(message_operation& s, send_record& record, bool pushed) noexcept;
    void stage(message_operation& s, send_record& record) noexcept;
    void withdraw_send(message_operation& s) noexcept;
    void mark_withdrawn(const message_operation& s) noexcept;
    /// Frees the records of withdrawn sends whose receivers have finished with them.
    void take_back_withdrawn() noexcept;
    /// For a record that the receiver has finished with: the next send may use it.
    void give_back(std::uint32_t record) noexcept {
        free_.give_back(record);
        if (staging_ == record) staging_ = no_record;
    }

    messenger_core& core_;
    int peer_;
    peer_memory memory_;
    // Outgoing messages.
    send_record* records_; ///< in this rank's slab
    send_records free_;
    std::uint64_t generation_ = 0; ///< of the latest announcement
    operation_list announced_;
    record_set withdrawn_; ///< sends that are gone, until their receivers have finished with the records
    std::uint64_t withdrawn_generation_[send_records::records]{}; ///< of these
    record_set untold_;                                           ///< of these, until the receiver is informed
    static constexpr std::uint32_t no_record = send_records::records;
    std::uint32_t staging_ = no_record;     ///< the record whose pieces lie in the staging area
    std::uint64_t whole_pieces_staged_ = 0; ///< since the beginning, or as many as there is room for
    outbox* outbox_;
    message_operation copies_[link_layout::copies]; ///< `bytes`: of the last message there; 0: none, or looked at
    std::size_t next_copy_ = 0;
    // Incoming messages.
    send_record* their_records_;
    outbox* their_outbox_;     ///< only read
    operation_list receiving_; ///< receives in which their sender has a part
    message_streams streams_;
    std::uint64_t least_shared_; ///< smallest message of which its sender might copy a part
};

} // namespace halocline::comm
