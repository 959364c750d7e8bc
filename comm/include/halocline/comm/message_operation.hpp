// SPDX-License-Identifier: Apache-2.0
// The state of a send or receive inside a message_request, used by the parts of the messenger (comm/src/messages).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace halocline::comm {

/// A receive or probe that names these takes messages from every rank, of every tag.
inline constexpr int any_source = -1, any_tag = -1;

/// What a receive got: the source, tag and size of its message.
struct message_info {
    int source = any_source;
    int tag = any_tag;
    std::size_t bytes = 0;
};

class message_engine; // private: comm/src/messages/message_engine.hpp

/// A number that one thread at a time changes, while others may read it.
class watched_count {
  public:
    void operator++() noexcept { n_.store(*this + 1, std::memory_order_relaxed); }
    void operator--() noexcept { n_.store(*this - 1, std::memory_order_relaxed); }
    operator std::size_t() const noexcept { return n_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::size_t> n_{0};
};

/// The messenger of operations that are under way.
struct message_owner {
    message_engine* engine = nullptr;
    watched_count under_way{}; ///< what this rank may have to do something for: operations, and notices
};

/// The progress of a send or receive, and in brackets the list that holds it meanwhile. Internal to the library, like
/// message_operation.
enum class operation_state : std::uint8_t {
    done,      ///< in no list
    queued,    ///< a send for which there was no room yet (message_link::queued)
    announced, ///< a send whose receiver will copy it or call for it (announced_ of the link's or its rendezvous)
    posted,    ///< a receive that no message has matched (matching: of its peer, or of any source)
    framed,    ///< a send whose last bytes are in a frame not yet handed to the network (message_frames::framed_)
    // Large messages within a node (shm_incoming::receiving_):
    synergistic, ///< a receive that both ends copy, or its sender alone (pushed)
    staged,      ///< a receive that goes through copies in the sender's slab
    // Large messages over a network (frame_rendezvous):
    calling,    ///< a receive that still has to call for its message (calling_)
    called_for, ///< a send whose receiver has called for it: it goes in pieces, in frames (called_for_)
    in_pieces,  ///< a receive that has called for its message, which comes in pieces (receiving_, by record)
    // The same, written straight into the receiver's memory (rdma_rendezvous):
    invited,  ///< a receive that has sent its sender the address to write to (invited_)
    admitted, ///< a send that has received that address (writing_)
    writing,  ///< a send that the network is writing there (writing_)
};

/// One send or receive.
struct message_operation {
    operation_state state = operation_state::done;
    bool is_waited_for = false;     ///< a send whose caller does nothing else until it is done
    bool piece_was_refused = false; ///< a large message within a node: the system did not let this end copy a piece
    bool is_withdrawn = false;      ///< its request is being destroyed
    int peer = any_source, tag = any_tag;
    std::uint32_t context = 0;
    std::uint32_t record = 0; ///< a large message: its record at the sender
    /// A receive whose sender should copy: polls before that began. A send that should be copied: polls without room.
    std::uint16_t fruitless_polls = 0;
    bool from_any = false;       ///< a receive from any rank; `peer` may name that of the message it has met
    bool source_in_slab = false; ///< a receive's near.source is in the sender's slab
    std::byte* data = nullptr;   ///< for a send: only read
    std::size_t bytes = 0;       ///< a send's size; a receive's room
    std::uint64_t posted_as = 0; ///< a receive's number among this rank's
    message_operation *next = nullptr, *before = nullptr;
    message_owner* owner = nullptr; ///< null unless under way
    message_info info;
    /// Large messages within a node.
    struct {
        std::uint64_t generation = 0;  ///< of the message's record
        std::uint64_t pieces_done = 0; ///< copied by this end
        /// A receive that could copy alone if its sender doesn't begin: where the sender's buffer lies, in its slab or
        /// its address space (buffer_place); else 0.
        std::uint64_t source = 0;
    } near;
    /// Large messages over a network.
    struct {
        std::uint64_t asked_bytes = 0; ///< wanted by the receiver
        std::uint64_t moved_bytes = 0; ///< those of them that have moved, in frames
    } far;

    [[nodiscard]] bool done() const noexcept { return state == operation_state::done; }
    void finish() noexcept {
        state = operation_state::done;
        if (owner != nullptr) --owner->under_way;
        owner = nullptr;
    }
};

} // namespace halocline::comm
