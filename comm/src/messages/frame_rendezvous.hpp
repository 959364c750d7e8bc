// SPDX-License-Identifier: Apache-2.0
// Messages between this rank and a peer over a network that don't fit into a frame. Only the announcement of such a
// message goes at once. The receive that it meets either calls for the bytes, which then come in frames, piece by
// piece, or invites the sender to write them straight into its memory (rdma_rendezvous.hpp).
#pragma once

#include "message_frames.hpp"
#include "messenger_core.hpp"
#include "operation_list.hpp"
#include "rdma_rendezvous.hpp"
#include "send_records.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace halocline::comm {

class frame_rendezvous {
  public:
    frame_rendezvous(messenger_core& core, message_frames& frames, send_records& records)
        : core_(core), frames_(frames), records_(records) {}
    /// The network can write straight into memory; without this call everything goes in frames.
    void connect(std::unique_ptr<bulk_link> bulk) { rdma_.emplace(core_, frames_, records_, std::move(bulk)); }

    /// Sender: the announcement of a send is in a frame, under this record.
    void announced(message_operation& s, std::uint32_t record) noexcept;
    /// Receiver: wants `bytes` of an announced message.
    void receive(message_operation& r, std::uint32_t record, std::uint64_t bytes) noexcept;
    /// Sends notices that are due, and pieces.
    void progress() noexcept;
    /// The peer has said farewell, and everything that it sent before was taken: what it still owes won't come. Its
    /// receives without all of their bytes were withdrawn, so the sends that they called for are done; and receives that
    /// it has sent a part of, or nothing yet, take another message. (Not those that wait for writes, which may come.)
    void peer_left() noexcept;

    // What the peer sent.  False: that can't be.
    [[nodiscard]] bool take_call(std::uint32_t record, std::uint64_t bytes) noexcept;
    [[nodiscard]] bool take_piece(std::uint32_t record, const std::byte* payload, std::uint64_t bytes) noexcept;
    [[nodiscard]] bool take_invitation(std::uint32_t record, std::uint64_t bytes, const std::byte* ticket) noexcept;
    [[nodiscard]] bool take_decline(std::uint32_t record) noexcept;
    void take_withdrawn(std::uint32_t record) noexcept;
    void take_recall(std::uint32_t record) noexcept;
    /// Receiver: no receive wants the message of that record; its sender waits for a call.
    void call_in_vain(std::uint32_t record) noexcept { not_wanted_.add(record); }

    [[nodiscard]] bool still_settles(const message_operation& o) const noexcept {
        return rdma_ && rdma_->still_settles(o);
    }
    void withdraw(message_operation& o) noexcept;
    void abandon() noexcept;
    [[nodiscard]] std::string describe() const { return rdma_ ? rdma_->describe() : ""; }

  private:
    /// Passes the announced send of that record to work(send). One that was withdrawn is refused. False: there is no
    /// such send, or the peer wants more bytes than it has.
    template <class Work>
    [[nodiscard]] bool with_announced(std::uint32_t record, std::uint64_t bytes, Work&& work) noexcept;
    void call(message_operation& r) noexcept;
    void send_pieces(message_operation& s) noexcept;
    /// The receive has called: its bytes come in pieces.
    void expect_pieces(message_operation& r) noexcept;
    /// The receiver has called for a send that was withdrawn: it must be informed before the record is reused.
    void refuse(std::uint32_t record) noexcept { refused_.add(record); }
    void tell_refused() noexcept;
    /// Informs the receiver of sends that were withdrawn before its call came: it may never call, or this rank never
    /// take a call.
    void recall_withdrawn() noexcept;
    /// Calls for no bytes of messages that nobody wants.
    void call_for_not_wanted() noexcept;

    messenger_core& core_;
    message_frames& frames_;
    send_records& records_;
    message_operation* announced_[messenger_options::most_large]{}; ///< sends, by record
    operation_list called_for_;                                     ///< sends whose receiver has called
    operation_list calling_;                                        ///< receives that still have to call
    message_operation*
        receiving_[messenger_options::most_large]{}; ///< receives that have called, by the sender's record
    record_set withdrawn_;  ///< announced sends that were withdrawn, until the peer calls for them
    record_set untold_;     ///< of these, until the peer is informed
    record_set refused_;    ///< called for in vain, until the peer is informed
    record_set not_wanted_; ///< the peer's, for which nobody has called, nor will
    std::optional<rdma_rendezvous> rdma_;
};

} // namespace halocline::comm
