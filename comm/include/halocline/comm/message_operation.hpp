// SPDX-License-Identifier: Apache-2.0
// What a message_request holds of its send or receive, for the parts of the messenger (comm/src/messages).
#pragma once

#include <cstddef>
#include <cstdint>

namespace halocline::comm {

/// A receive or probe that names these takes messages from every rank, of every tag.
inline constexpr int any_source = -1, any_tag = -1;

/// What a receive got: where the message came from, and its size.
struct message_info {
    int source = any_source;
    int tag = any_tag;
    std::size_t bytes = 0;
};

class message_engine; // private: comm/src/messages/message_engine.hpp

/// How far a send or receive is. For the library's own use, as message_operation is.
enum class operation_state : std::uint8_t {
    done,
    queued,      ///< a send that found no room yet
    announced,   ///< a send whose receiver will copy it, or call for it (rendezvous)
    posted,      ///< a receive that no message has matched
    synergistic, ///< a receive, copied by both ends
    staged,      ///< a receive, through copies in the sender's slab
    framed,      ///< a send whose last bytes are in a frame that has not gone to the network
    // Of large messages over a network (rendezvous):
    calling,    ///< a receive that still has to call for its message
    called_for, ///< a send whose receiver has called for it: goes in pieces, in frames
    in_pieces,  ///< a receive that has called for its message: comes in pieces
    invited,    ///< a receive that has told its sender where to write (RDMA)
    admitted,   ///< a send that has been told where to write
    writing,    ///< a send that the network writes there
};

/// One send or receive.
struct message_operation {
    operation_state state = operation_state::done;
    bool is_waited_for = false; ///< a send whose caller does nothing else until it is done
    bool is_refused = false;    ///< of a large message within a node: the system did not let this end copy a piece
    int peer = any_source, tag = any_tag;
    std::uint32_t context = 0;
    std::uint32_t record = 0;    ///< of a large message: which record of its sender
    std::uint32_t polls = 0;     ///< of a receive that its sender should push: polls before that began
    std::byte* data = nullptr;   ///< of a send: only read
    std::size_t bytes = 0;       ///< of a send: its size; of a receive: the room
    std::uint64_t posted_as = 0; ///< of a receive: its number among this rank's
    message_operation *next = nullptr, *before = nullptr;
    message_engine* engine = nullptr; ///< while under way
    message_info info;
    // Of a large message within a node:
    std::uint64_t generation = 0;      ///< of its record
    std::uint64_t pieces_done = 0;     ///< that this end has copied
    const std::byte* source = nullptr; ///< of a receive that its sender should push: until that begins
    // Of one over a network:
    std::uint64_t asked_bytes = 0; ///< that its receiver wants
    std::uint64_t moved_bytes = 0; ///< of them, in frames

    [[nodiscard]] bool done() const noexcept { return state == operation_state::done; }
    void finish() noexcept {
        state = operation_state::done;
        engine = nullptr;
    }
};

} // namespace halocline::comm
