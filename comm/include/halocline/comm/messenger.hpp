// SPDX-License-Identifier: Apache-2.0
// Messages matched by (source, tag, context) as in MPI, for codes whose partners or sizes are not known in advance. An
// exchange that repeats belongs in a plan, which is matched once.
//
// Within a node there are three protocols, by size, after Hybrid MPI [Friedley2013]: immediate (the payload lies next
// to the flag), direct (the receiver copies once, out of the sender's memory) and synergistic (both copy pieces of one
// large message). Small direct messages are first copied by their sender if they come in streams, or if the peer can't
// read where they lie. Over verbs, libfabric or MPI there are two, after LibOF [HoeflerLumsdaine2008]. Small messages
// are eager: they go at once, as far as the receiver has given credits. Large ones are announced, and sent when the
// receiver calls for them (rendezvous).
#pragma once

#include <halocline/base/checked_pointer.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/message_operation.hpp>
#include <halocline/comm/status.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>

namespace halocline::comm {

class message_engine; // private: comm/src/messages/message_engine.hpp

/// One send or receive under way. It lies in the caller's memory, so their number is unlimited; it must not move until
/// it is done, and may then be reused. Destroying it earlier withdraws it. A message that a withdrawn receive has
/// already matched counts as received for its sender. Afterwards nobody writes into a receive's buffer or, over a
/// network, reads a send's: if the bytes are already on their way, the destructor waits. A large message whose send is
/// withdrawn before its receiver looks for it (later than a barrier after the withdrawal, say) is discarded: receives
/// and probes don't see it (over a network a probe may until the notice has come), and a receive that has met it, but not
/// yet got its bytes, gets the next message. Within a node one that the receiver is reading right now may still be
/// received, with whatever the send's buffer then holds, and so may one withdrawn while 64 messages behind each other,
/// all not yet looked at, left no room for that notice.
class message_request {
  public:
    message_request() = default;
    ~message_request();
    message_request(const message_request&) = delete;
    message_request& operator=(const message_request&) = delete;

    /// True unless something is under way; so also true before the first use.
    [[nodiscard]] bool done() const noexcept { return operation_.done(); }
    /// Pre: this is a receive that is done.
    [[nodiscard]] const message_info& info() const noexcept { return operation_.info; }

  private:
    friend class message_engine;
    message_operation operation_;
};
static_assert(sizeof(message_request) <= 128, "two cache lines; what every message needs comes first");

struct messenger_options {
    // These must be equal on all ranks.
    std::string name = "messages"; ///< in error messages and reports
    /// Messages per peer that may arrive before their receive is posted; 1 to most_unexpected. When there is no more
    /// room, that peer's next messages stay at the peer, and its sends under way, until receives are posted. The same
    /// happens, whatever their size, behind most_large messages larger than immediate_bytes whose receives are not
    /// posted: then post receives in the order of the sends, or fewer sends. Memory:
    /// immediate_bytes + 64 for each, touched only when used; and of the slab 17 KiB per rank of the node, with 576 KiB
    /// of address space for what is sent to it, which takes memory only when used.
    std::size_t unexpected = 1024;
    static constexpr std::size_t most_unexpected = std::size_t{1} << 32;
    static constexpr std::size_t most_large = 1024;
    static constexpr std::size_t largest_immediate = 1024;
    /// Largest immediate message; at most largest_immediate. Within a node, 4 messages of more than 64 bytes can be on
    /// their way to a peer; later ones stay with their sender until the peer takes them.
    std::size_t immediate_bytes = 1024;
    /// Smallest synergistic message.
    std::size_t synergistic_bytes = 128 * 1024;
    /// Smallest message that the sender alone copies, with stores that bypass its cache, if another message goes the
    /// other way at the same time. Default: none, because at 8 MiB that takes 0.6 times as long when cores are far
    /// apart but 1.3 times as long when they are near. Messages of 32 KiB and more are copied this way in any case
    /// while the cores are found to be far apart (job_options::path, streaming_watch.hpp).
    std::size_t streamed_bytes = std::numeric_limits<std::size_t>::max();
    /// Size of a frame, the unit in which messages are sent to a peer over a network. A message that fits, with 40
    /// bytes of overhead, goes at once, small ones together; a longer one is only announced until its receive calls for
    /// it, as is one of more than immediate_bytes while 64 such wait for their receives. Memory per such peer: 12
    /// frames, plus 64 that are touched when messages that are not immediate arrive before their receives. 0: room for
    /// 64 KiB over libfabric's tcp, 32 KiB over mpi, 16 KiB over networks that bypass the kernel; halved, down to 16
    /// KiB, as long as frames for all ranks would take more than 48 MiB.
    std::size_t frame_bytes = 0;

    // Each rank may choose these for itself.
    /// Smallest message, among those that don't fit into a frame, that the sender writes straight into the receiver's
    /// memory over a network; the receiver registers that memory (verbs, ofi) or posts a receive for it (mpi). Smaller
    /// ones go in several frames. Each rank decides for what it receives.
    std::size_t direct_bytes = 16 * 1024;
    /// isend() and irecv() over a network also make progress on operations under way with that peer.
    bool test_on_init = true;
    /// How long isend() over a network waits for its message to be started (see start_all).
    std::chrono::nanoseconds wait_on_send{0};
    /// Copies messages of more than 16 KiB from and to memory outside slabs with process_vm_readv and process_vm_writev
    /// if the system allows it; false: through the slab, which smaller ones use in any case while there is room.
    bool read_processes = true;
};

/// Messages by the way they took: those received, unless the line says that it counts this rank's sends.
struct message_counts {
    std::uint64_t arrived = 0;   ///< all that arrived, received or not
    std::uint64_t immediate = 0; ///< eager: sent at once
    std::uint64_t direct = 0, synergistic = 0;
    /// Among direct and synergistic ones: read with process_vm_readv, as far as the receiver copied.
    std::uint64_t read = 0;
    std::uint64_t staged = 0;         ///< through copies in the sender's slab
    std::uint64_t whole = 0;          ///< over a network in one frame, but not immediate (eager)
    std::uint64_t called = 0;         ///< over a network, after their receive called for them (rendezvous)
    std::uint64_t written = 0;        ///< called ones that went straight into the receiver's memory
    std::uint64_t writes = 0;         ///< RDMA writes of this rank as a sender
    std::uint64_t frame_pieces = 0;   ///< frames in which the other called ones arrived
    std::uint64_t not_registered = 0; ///< messages, sent or received, whose memory could not be registered
    std::uint64_t unexpected = 0;     ///< messages that came before their receive
    std::uint64_t pushed = 0;         ///< synergistic ones that were left to their sender, past its cache or by moves
    std::uint64_t copied = 0;         ///< sends of this rank that ended once copied into its slab
    std::uint64_t copied_past = 0;    ///< of these, copied past its cache
    std::uint64_t pieces_sent = 0;    ///< pieces of synergistic messages that this rank copied as their sender
    std::uint64_t withdrawn = 0;      ///< unexpected ones that were discarded, because their sends were withdrawn
    std::uint64_t served = 0;         ///< no messages: looks for them by waits of this rank for something else
};

/// Order: messages from one sender with the same tag and context are received in the order in which they were sent. A
/// receive takes the oldest message that matches it; a message takes the oldest receive.
/// Waits and tests make progress on all requests, also those for plans, sums and other objects of this job; so does
/// every 32nd message that is sent or received at once. So while a thread is in one of these calls, no other thread of
/// its rank is in any, not for plans and sums either. The options bound the messenger's memory: a flood of messages
/// that nobody receives ends in sends that stay under way (until their deadlines), not in growth.
/// After set-up all members except describe() and pending() are noexcept and neither allocate nor lock. Within a node
/// and the spin budget of a wait the only system calls are process_vm_readv and process_vm_writev, for buffers outside
/// slabs.
class messenger {
  public:
    /// Collective.  Err: input_error; slab_full; job_error.
    explicit messenger(const comm::job& j, const messenger_options& options = {});
    messenger(messenger&&) noexcept;
    messenger& operator=(messenger&&) noexcept;
    /// Withdraws requests that are still under way; waits only as message_request's destructor does.
    ~messenger();

    /// Sends `data` to rank `to`. Never waits (except for wait_on_send). Buffers of more than 16 KiB are fastest in
    /// slabs (job::memory); smaller ones that lie elsewhere are copied there. Behind messages that wait for their
    /// receives, and for which messenger_options leaves no room, later ones queue.
    /// Bytes: any number, including 0 and more than 2^32.
    /// Pre:   the request is done; 0 <= tag; data does not change until the request is done again.
    /// Err:   status::misused (in state()), here and in irecv() and probe(): no such rank or tag, or a request that is
    ///        under way; then nothing is begun.
    void isend(message_request& request, std::span<const std::byte> data, int to, int tag,
               std::uint32_t context = 0) noexcept;
    /// Receives into `into`; `from` may be any_source, `tag` may be any_tag. A message longer than `into` is
    /// status::wrong_data.  Pre: as isend().
    void irecv(message_request& request, std::span<std::byte> into, int from, int tag,
               std::uint32_t context = 0) noexcept;
    /// True if the request is done, or if state() is bad. A loop around it has no deadline: neither a late peer nor one
    /// that has closed its job in good order ends it.
    [[nodiscard]] bool test(message_request& request) noexcept;
    /// Waits until the request is done.
    [[nodiscard]] status wait(message_request& request) noexcept;
    [[nodiscard]] status wait_all(std::span<message_request> requests) noexcept;
    [[nodiscard]] status wait_all(std::span<message_request* const> requests) noexcept;
    /// Waits until at least one of them is done. Null pointers are ignored, as by wait_all().  Err: as wait_all(),
    /// if the peer of any of them dies or leaves.
    [[nodiscard]] status wait_any(std::span<message_request* const> requests) noexcept;
    /// wait_all() that returns status::timed_out after that time; the job and the requests continue.
    [[nodiscard]] status wait_all_for(std::span<message_request> requests, std::chrono::nanoseconds longest) noexcept;
    /// Makes progress until all sends among the requests are started: a small one has left; of a larger one over a
    /// network the receiver has called for all bytes, and they have left; one within the node is announced, and its
    /// receiver copies it, with this rank's help only if it can neither map nor read that memory. Receives count as
    /// started. Returns status::timed_out after that time; the job and the requests continue.
    [[nodiscard]] status start_all(std::span<message_request> requests, std::chrono::nanoseconds longest) noexcept;
    /// True if a message is there that such a receive would get; `info` then holds its source, tag and size. If its
    /// sender withdraws it before it is received, the receive waits for the next. A loop around it must also check
    /// state(), which turns bad when a rank dies.
    [[nodiscard]] bool probe(int from, int tag, message_info& info, std::uint32_t context = 0) noexcept;
    /// Waits until probe() would return true.
    [[nodiscard]] status wait_probe(int from, int tag, message_info& info, std::uint32_t context = 0) noexcept;

    /// isend() and wait(); irecv() and wait(). Within a node, among consecutive sends of at most 16 KiB to a rank from
    /// which nothing arrives in between, the second and later ones end once they are copied: up to 16 before they are
    /// received.
    [[nodiscard]] status send(std::span<const std::byte> data, int to, int tag, std::uint32_t context = 0) noexcept;
    [[nodiscard]] status recv(std::span<std::byte> into, int from, int tag, message_info* info = nullptr,
                              std::uint32_t context = 0) noexcept;
    /// isend(), irecv(), and waits for both.
    [[nodiscard]] status sendrecv(std::span<const std::byte> data, int to, int tag, std::span<std::byte> into, int from,
                                  int in_tag, message_info* info = nullptr, std::uint32_t context = 0) noexcept;

    /// The status of the first wait that failed; ok until then.
    [[nodiscard]] status state() const noexcept;
    /// What that wait was waiting for: "'messages': a receive from rank 1, tag 5".
    [[nodiscard]] std::string pending() const;
    [[nodiscard]] const message_counts& counts() const noexcept;
    /// For human readers: how each peer's memory is reached, one line per peer, and the thresholds.
    [[nodiscard]] std::string describe() const;
    [[nodiscard]] const comm::job& job() const noexcept;

  private:
    checked_pointer<std::unique_ptr<message_engine>> engine_;
};

} // namespace halocline::comm
