// SPDX-License-Identifier: Apache-2.0
// Large messages over a network, from memory to memory: the receiver opens its memory and invites the sender, which
// writes (network/bulk_link.hpp). frame_rendezvous handles announcements, and messages that go in frames instead.
#pragma once

#include "message_frames.hpp"
#include "messenger_core.hpp"
#include "network/bulk_link.hpp"
#include "operation_list.hpp"
#include "send_records.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace halocline::comm {

class rdma_rendezvous {
  public:
    rdma_rendezvous(messenger_core& core, message_frames& frames, send_records& records,
                    std::unique_ptr<bulk_link> bulk)
        : core_(core), frames_(frames), records_(records), bulk_(std::move(bulk)) {}

    // Receiver.
    enum class invitation {
        told,   ///< the sender will be informed; from now on the receive is handled here
        later,  ///< no frame has room, or the network is busy with that record: try again
        refused ///< the memory can't be registered; the message has to come in frames
    };
    /// Tells the sender where to write. `calling`: the list that the receive is in, and leaves if `told`.
    [[nodiscard]] invitation invite(message_operation& r, operation_list& calling) noexcept;
    /// The sender will not write. Returns and forgets the receive that had invited it; nullptr: none.
    [[nodiscard]] message_operation* declined(std::uint32_t record) noexcept;

    // Sender.
    /// The receiver has invited `bytes` of a send.
    void admit(message_operation& s, std::uint64_t bytes, const bulk_ticket& ticket) noexcept;
    /// Nothing will be written for this record; the receiver has yet to be informed.
    void decline(std::uint32_t record) noexcept { declines_.add(record); }
    /// The receiver learns of it in another way.
    void decline_no_more(std::uint32_t record) noexcept { declines_.remove(record); }
    /// True until the receiver has been informed: the record must not be reused before.
    [[nodiscard]] bool owes_decline(std::uint32_t record) const noexcept { return declines_.has(record); }

    /// Advances all sends and receives. Sends whose memory can't be registered are declined and appended to
    /// `called_for`: they go in pieces.
    void progress(operation_list& called_for) noexcept;
    /// Is the network just writing this send? Its last acknowledgement may come after the peer's farewell in frames.
    [[nodiscard]] bool still_settles(const message_operation& o) const noexcept {
        return o.state == operation_state::writing && !bulk_->failed();
    }
    /// When this returns, nobody reads or writes the operation's memory. It may have been declined in the meantime:
    /// then it goes in pieces and is no longer handled here.
    void withdraw(message_operation& o) noexcept;
    /// The messenger ends: all operations are withdrawn.
    void abandon() noexcept;
    [[nodiscard]] std::string describe() const;

  private:
    void tell_declines() noexcept;
    void look_for_received() noexcept;
    void write(message_operation& s, operation_list& called_for) noexcept;

    messenger_core& core_;
    message_frames& frames_;
    send_records& records_;
    std::unique_ptr<bulk_link> bulk_;
    operation_list invited_;                   ///< receives whose memory is open to the peer
    operation_list writing_;                   ///< sends to memory that is open to this rank: admitted, or under way
    bulk_ticket ticket_[bulk_link::records]{}; ///< of these, by number
    record_set declines_;                      ///< declined, until the peer is informed
    std::uint64_t moved_ = 0;                  ///< of bulk_'s, as far as core_.moved knows
    /// By which the network tells messages apart. Several records share one: it is busy until a message has arrived.
    [[nodiscard]] static std::uint32_t number_of(std::uint32_t record) noexcept { return record % bulk_link::records; }
};

} // namespace halocline::comm
