// SPDX-License-Identifier: Apache-2.0
// Messages matched by (source, tag, context) as in MPI: for codes whose partners or sizes are not known beforehand.
// What repeats belongs in a channel_set or a plan, which match once and for all.
//
// Within a node three protocols, by size, after Hybrid MPI (Friedley et al., SC'13): immediate (the payload lies beside
// the flag), direct (the receiver copies once, out of the sender's memory), synergistic (both copy pieces of one large
// message). Over verbs, libfabric or MPI two, after LibOF [HoeflerLumsdaine2008]: immediate, with credits, and large
// messages for which their receiver calls.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>

namespace halocline::comm {

inline constexpr int any_source = -1, any_tag = -1;

/// What a receive got.
struct message_info {
    int source = any_source;
    int tag = any_tag;
    std::size_t bytes = 0;
};

class message_engine; // private: comm/src/messages/message_engine.hpp

/// One send or receive under way. The caller's memory, so that their number has no limit but the caller's; may be used
/// again when done. A request that is destroyed earlier is withdrawn: within a node a peer may still read or write its
/// buffer; over a network nobody does, for which the destructor waits where the bytes are on their way already.
class message_request {
  public:
    message_request() = default;
    ~message_request();
    message_request(const message_request&) = delete;
    message_request& operator=(const message_request&) = delete;

    /// Also true before first use.
    [[nodiscard]] bool done() const noexcept { return state_ == state::done; }
    /// Of a receive that is done.
    [[nodiscard]] const message_info& info() const noexcept { return info_; }

  private:
    friend class message_engine;
    friend struct request_list;
    enum class state : std::uint8_t {
        done,
        queued,      ///< a send that found no room yet
        announced,   ///< a send whose buffer the receiver will copy
        posted,      ///< a receive without message
        synergistic, ///< a receive, copied by both ends
        staged,      ///< a receive, through copies in the sender's slab
        // Over a network:
        framed,    ///< a send whose last bytes wait for their frame to go
        streaming, ///< a send whose receiver has called for it
        calling,   ///< a receive that has to call for its message
        streamed,  ///< a receive that has called
        invited,   ///< a receive whose memory is open to its sender
        admitted,  ///< a send to memory that is open
        writing,   ///< the same, its bytes given to the network
    };

    state state_ = state::done;
    int peer_ = any_source, tag_ = any_tag;
    std::uint32_t context_ = 0;
    std::uint32_t record_ = 0;    ///< which record of its sender: of a large message
    std::uint32_t polls_ = 0;     ///< in which its sender has not begun to push
    std::byte* data_ = nullptr;   ///< a send's is only read
    std::size_t bytes_ = 0;       ///< to send; room of a receive
    std::uint64_t posted_as_ = 0; ///< of a receive: its number among this rank's
    message_request *next_ = nullptr, *before_ = nullptr;
    message_engine* engine_ = nullptr; ///< while under way
    message_info info_;
    // Of a large message within a node:
    std::uint64_t generation_ = 0;      ///< of its record
    std::uint64_t pieces_done_ = 0;     ///< that this end has copied
    const std::byte* source_ = nullptr; ///< of a receive that its sender should push: until that begins
    // Of one over a network:
    std::uint64_t asked_bytes_ = 0; ///< that its receiver wants
    std::uint64_t moved_bytes_ = 0; ///< of them, in frames
};
static_assert(sizeof(message_request) <= 128, "two cache lines; what every message needs comes first");

/// Equal on all ranks, but for direct_bytes and what follows it.
struct messenger_options {
    std::string name = "messages";
    /// Messages per peer that may come before their receive is posted. When the place is used up, that peer's next
    /// messages stay with it: its sends remain under way until receives are posted. Memory: immediate_bytes and 64 each,
    /// touched when used.
    std::size_t unexpected = 1024;
    static constexpr std::size_t largest_immediate = 1024;
    /// Largest immediate message; at most largest_immediate. Within a node, 4 of more than 40 bytes can be on their way
    /// to a peer; later ones stay with their sender until it takes them.
    std::size_t immediate_bytes = 1024;
    /// Smallest synergistic message.
    std::size_t synergistic_bytes = 256 * 1024;
    /// Smallest message that its sender alone copies, past its cache, when another goes the other way at the same time.
    /// Default: none, because at 8 MiB that takes 0.6 of the time where cores are far apart, but 1.3 where they are near.
    /// Apart from that, every message of 32 KiB and more is copied so as long as cores are found to be far apart
    /// (job_options::streaming, streaming_watch.hpp).
    std::size_t streamed_bytes = std::numeric_limits<std::size_t>::max();
    /// Of what goes to a peer over a network at a time. Messages that fit, with 48 bytes, go at once, small ones
    /// together; of longer ones only word, until their receive calls for them. Memory per such peer: 12 of these, and 64
    /// touched when messages that are not immediate come before their receives. 0: by transport and ranks: room for
    /// 64 KiB over libfabric's tcp, 32 KiB over mpi, 16 KiB over what needs no kernel; halved, down to 16 KiB, as long as
    /// all ranks would take more than 48 MiB.
    std::size_t frame_bytes = 0;
    /// Smallest message that its sender writes straight into the receiver's memory over a network, which the receiver
    /// registers (verbs, ofi) or posts a receive for (mpi), if it doesn't fit into a frame; smaller ones go in several.
    /// Each rank decides for what it receives.
    std::size_t direct_bytes = 16 * 1024;
    /// isend() and irecv() also move on what is under way with that peer, over a network.
    bool test_on_init = true;
    /// isend() over a network waits so long for its message to be started (see start_all).
    std::chrono::nanoseconds wait_on_send{0};
    /// Memory outside slabs is read by process_vm_readv where the system allows it; false: never.
    bool read_processes = true;
};

/// Messages received by each way.
struct message_counts {
    std::uint64_t arrived = 0; ///< received or not
    std::uint64_t immediate = 0, direct = 0, synergistic = 0;
    std::uint64_t read = 0;           ///< of the direct ones: by process_vm_readv
    std::uint64_t staged = 0;         ///< through copies in the sender's slab
    std::uint64_t whole = 0;          ///< over a network, in one frame, but not immediate
    std::uint64_t called = 0;         ///< over a network, when their receive had called for them
    std::uint64_t written = 0;        ///< of these: straight into the receiver's memory
    std::uint64_t writes = 0;         ///< RDMA writes of this rank, as a sender
    std::uint64_t frame_pieces = 0;   ///< in which the others came
    std::uint64_t not_registered = 0; ///< those, sent or received, whose memory could not be registered
    std::uint64_t unexpected = 0;     ///< came before their receive
    std::uint64_t pushed = 0;         ///< of the synergistic ones: left to their sender, past its cache
    std::uint64_t pieces_sent = 0;    ///< pieces of synergistic messages that this rank copied as their sender
};

/// Order: messages of one sender with the same tag and context are received in the order of their sends; a receive
/// takes the oldest message that it matches, a message the oldest receive.
/// Progress is made inside every call, on all requests. Memory of the messenger is bounded by its options: a flood of
/// messages that nobody receives ends in sends that stay under way (and in their deadlines), not in growth.
/// After set-up all members but describe() and pending() are noexcept and neither allocate nor lock; system calls: none
/// within the spin budget of a wait but process_vm_readv, for buffers outside slabs.
class messenger {
  public:
    /// Collective.  Err: input_error; job_error.
    explicit messenger(const job& j, const messenger_options& options = {});
    messenger(messenger&&) noexcept;
    messenger& operator=(messenger&&) noexcept;
    /// Ends requests that are still under way, and waits for nobody but as message_request's destructor does.
    ~messenger();

    /// Bytes: any number, also 0 and more than 2^32.  Pre: request is done; 0 <= tag; data stays as it is until the
    /// request is done again. Large buffers are fastest in slabs (job::memory). To one peer, 64 messages that are not
    /// immediate can wait for their receives at a time, 57 over a network; later ones stay behind them.
    /// Err: status::misused, here and in irecv() and probe(): no such rank or tag; nothing is under way then.
    void isend(message_request& request, std::span<const std::byte> data, int to, int tag,
               std::uint32_t context = 0) noexcept;
    /// from may be any_source, tag may be any_tag. A message that is longer than `into` is status::wrong_data.
    void irecv(message_request& request, std::span<std::byte> into, int from, int tag,
               std::uint32_t context = 0) noexcept;
    /// True when done, or when state() is bad.
    [[nodiscard]] bool test(message_request& request) noexcept;
    [[nodiscard]] status wait(message_request& request) noexcept;
    [[nodiscard]] status wait_all(std::span<message_request> requests) noexcept;
    [[nodiscard]] status wait_all(std::span<message_request* const> requests) noexcept;
    /// As wait_all, but status::timed_out after that time; the job goes on, and so do the requests.
    [[nodiscard]] status wait_all_for(std::span<message_request> requests, std::chrono::nanoseconds longest) noexcept;
    /// Moves all of them on until none needs this rank to go on: sends whose receivers have not called for them are
    /// waited for so long.  status::timed_out after that; the job goes on, and so do the requests.
    [[nodiscard]] status start_all(std::span<message_request> requests, std::chrono::nanoseconds longest) noexcept;
    /// Is a message there that such a receive would get? Tells its source, tag and size.
    [[nodiscard]] bool probe(int from, int tag, message_info& info, std::uint32_t context = 0) noexcept;

    [[nodiscard]] status send(std::span<const std::byte> data, int to, int tag, std::uint32_t context = 0) noexcept;
    [[nodiscard]] status recv(std::span<std::byte> into, int from, int tag, message_info* info = nullptr,
                              std::uint32_t context = 0) noexcept;

    /// Bad since the first wait that failed.
    [[nodiscard]] status state() const noexcept;
    /// What that wait was waiting for: "'messages': a receive from rank 1, tag 5".
    [[nodiscard]] std::string pending() const;
    [[nodiscard]] const message_counts& counts() const noexcept;
    /// How each peer's memory is reached, a line each, and the thresholds.
    [[nodiscard]] std::string describe() const;
    [[nodiscard]] const job& owner() const noexcept;

  private:
    std::unique_ptr<message_engine> engine_;
};

} // namespace halocline::comm
