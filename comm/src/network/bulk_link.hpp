// SPDX-License-Identifier: Apache-2.0
// Large messages between this rank and one peer over a network, from the sender's memory straight into the receiver's:
// the receiver opens its memory and issues a ticket, with which the sender writes. How records and tickets are
// exchanged is not decided here (docs/decisions/0031-large-messages-by-rma.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace halocline::comm {

class job_core;

/// Where the bytes of one message are to go.
struct bulk_ticket {
    std::uint64_t address = 0, key = 0;
};

/// Memory of this rank that its peers may write at any time during the lifetime of this object.
struct exposed_memory {
    virtual ~exposed_memory() = default;
    bulk_ticket ticket; ///< of its first byte
    /// How the network's library identifies the memory when it is read locally: a key, or a descriptor.
    std::uintptr_t local = 0;
};

/// After set-up all members are noexcept and allocate nothing themselves; the network's library may.
class bulk_link {
  public:
    /// How many messages may be under way in each direction, unless a link is made for fewer. Each is identified by its
    /// record, a number that both ends know.
    static constexpr std::uint32_t records = 64;
    /// Longer messages go in pieces, so that both ends see progress, and a link that fails is noticed within a wait's
    /// deadline.
    static constexpr std::size_t piece_bytes = std::size_t{64} << 20;

    virtual ~bulk_link() = default;
    bulk_link() = default;
    bulk_link(const bulk_link&) = delete;
    bulk_link& operator=(const bulk_link&) = delete;

    /// What the peer's end needs to know about this one.
    [[nodiscard]] virtual std::string card() const = 0;
    virtual void connect(const std::string& peer_card) = 0;
    /// "RMA writes of tcp;ofi_rxm"
    [[nodiscard]] virtual std::string describe() const = 0;

    enum class opening {
        open,
        busy,   ///< the last message of that number is under way: try again later
        refused ///< the memory can't be registered: the message goes in frames
    };
    /// Receiver: the peer may write `into` from now on.  Pre: into is not empty.
    virtual opening receive(std::uint32_t record, std::span<std::byte> into, bulk_ticket& ticket) noexcept = 0;
    /// Has all of it arrived? Then the peer does not write there any more.
    [[nodiscard]] virtual bool received(std::uint32_t record) noexcept = 0;
    /// The peer will write no more, and has not written everything. Also of a record that no receive is open for, if its
    /// peer may have sent without an invitation.
    virtual void give_up(std::uint32_t record) noexcept = 0;

    /// Sender: writes. If refused, the receiver has to be informed.
    [[nodiscard]] virtual opening send(std::uint32_t record, std::span<const std::byte> data,
                                       const bulk_ticket& ticket) noexcept = 0;
    /// May the memory be reused?
    [[nodiscard]] virtual bool sent(std::uint32_t record) noexcept = 0;

    virtual void poll() noexcept = 0;
    /// The job has ended: when this returns, this link no longer reads or writes any memory of this rank.
    virtual void cut() noexcept = 0;
    [[nodiscard]] virtual bool failed() const noexcept = 0;
    [[nodiscard]] virtual std::string trouble() const = 0;

    /// Pieces that moved, either way, and among them the writes of this rank into its peer's memory, and those of the
    /// peer into this rank's, whether or not a receive is open for them.
    [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }
    [[nodiscard]] std::uint64_t writes() const noexcept { return writes_; }
    [[nodiscard]] std::uint64_t came() const noexcept { return came_; }

  protected:
    /// The peer has written a piece. `in`: this end's receives, by record.
    template <class Transfer>
    void count_arrival(std::vector<Transfer>& in, std::uint32_t record) noexcept {
        ++came_;
        if (record >= in.size() || in[record].data == nullptr) return; // given up, or into exposed memory
        ++in[record].done;
        ++moved_;
    }

    std::uint64_t moved_ = 0, writes_ = 0, came_ = 0;
};

/// One direction of one record: bytes on their way in pieces.
struct bulk_transfer {
    std::byte* data = nullptr; ///< nullptr: none under way; for a send only read
    std::size_t bytes = 0;
    std::uint32_t pieces = 0, next = 0, done = 0; ///< the last two: posted, complete

    /// `piece`: size of all pieces but the last.
    bulk_link::opening open(std::byte* start, std::size_t size, std::size_t piece) noexcept {
        if (data != nullptr) return bulk_link::opening::busy;
        data = start;
        bytes = size;
        pieces = static_cast<std::uint32_t>((size + piece - 1) / piece);
        next = done = 0;
        return bulk_link::opening::open;
    }
};

/// nullptr if that transport has none.  Err: job_error.
[[nodiscard]] std::unique_ptr<bulk_link> make_bulk_link(job_core& core, int peer,
                                                        std::uint32_t records = bulk_link::records);
/// Exposes memory to the peers that `transport` serves.  nullptr: it can't write there.  Err: job_error: registration
/// failed.
[[nodiscard]] std::shared_ptr<const exposed_memory> expose(job_core& core, const std::string& transport,
                                                           std::span<std::byte> memory);

} // namespace halocline::comm
