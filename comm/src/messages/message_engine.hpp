// SPDX-License-Identifier: Apache-2.0
// What is behind a messenger: matching, the three protocols, progress.
#pragma once

#include "job/job_core.hpp"
#include "message_frames.hpp"
#include "message_layout.hpp"
#include "message_ring.hpp"
#include "request_list.hpp"

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/messenger.hpp>
#include <halocline/comm/shm_channel.hpp>
#include <halocline/comm/streaming_watch.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <sys/types.h>
#include <vector>

namespace halocline::comm {

/// A message as its receiver sees it: where it came from, and what it says of itself.
struct incoming {
    int source = 0, tag = 0;
    std::uint32_t context = 0;
    std::uint64_t bytes = 0;
    const std::byte* payload = nullptr; ///< immediate bytes, or an announcement
    message_request* own = nullptr;     ///< a large message of this rank to itself
    const message_slot* slot = nullptr; ///< where the immediate bytes are if they don't fit into a cell
};

/// The header of an unexpected message (one without a receive); its payload follows. Kept in a list, oldest first. Without
/// initialisers, so that making a store does not touch its memory.
struct unexpected_message {
    std::uint64_t arrival;
    std::uint32_t context;
    std::int32_t tag;
    std::uint64_t bytes;
    message_request* own;
    unexpected_message *next, *before;
    [[nodiscard]] std::byte* payload() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

/// The messages of one peer that wait for a receive: a fixed number, whose memory is touched when it is first used.
class unexpected_store {
  public:
    unexpected_store(std::size_t room, std::size_t largest_payload)
        : room_(room), stride_((sizeof(unexpected_message) + largest_payload + 63) / 64 * 64),
          all_(new std::byte[room * stride_]) {}
    /// nullptr: no room.
    unexpected_message* push() noexcept;
    void remove(unexpected_message& m) noexcept;
    [[nodiscard]] unexpected_message* first() const noexcept { return first_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

  private:
    std::size_t room_, stride_, used_ = 0, size_ = 0;
    std::unique_ptr<std::byte[]> all_;
    unexpected_message *first_ = nullptr, *last_ = nullptr, *free_ = nullptr;
};

/// Nothing but memcpy: string moves and AVX-512 loops were within 3 % of it, non-temporal stores up to 3 times slower.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    if (bytes > 0) std::memcpy(to, from, bytes);
}

/// Copies memory of another process of this node.  False: the system doesn't let it; errno says why.
[[nodiscard]] bool read_process(pid_t pid, std::byte* to, std::uint64_t address, std::uint64_t bytes) noexcept;

class message_engine {
  public:
    message_engine(const job& j, const messenger_options& options);
    ~message_engine();
    message_engine(const message_engine&) = delete;
    message_engine& operator=(const message_engine&) = delete;

    void isend(message_request& r, std::span<const std::byte> data, int to, int tag, std::uint32_t context) noexcept;
    /// An immediate message for which there is room, without a request.
    bool send_now(std::span<const std::byte> data, int to, int tag, std::uint32_t context) noexcept;
    /// Receives an immediate message without a request, if it comes soon, is the next from that peer, and no other receive
    /// from it is posted. False: use irecv().
    bool recv_now(std::span<std::byte> into, int from, int tag, std::uint32_t context, message_info& info) noexcept;
    // send_now() and recv_now(), or else a request of their own.
    status send(std::span<const std::byte> data, int to, int tag, std::uint32_t context) noexcept;
    status recv(std::span<std::byte> into, int from, int tag, std::uint32_t context, message_info& info) noexcept;
    void irecv(message_request& r, std::span<std::byte> into, int from, int tag, std::uint32_t context) noexcept;
    void progress() noexcept;
    bool test(message_request& r) noexcept;
    status wait_one(message_request& r) noexcept;
    status wait_all(std::span<message_request> all, std::optional<std::chrono::nanoseconds> longest = {}) noexcept;
    status wait_all(std::span<message_request* const> all) noexcept;
    status start_all(std::span<message_request> all, std::chrono::nanoseconds longest) noexcept;
    bool probe(int from, int tag, std::uint32_t context, message_info& info) noexcept;
    /// A request is destroyed while under way.
    void withdraw(message_request& r) noexcept;

    [[nodiscard]] status state() const noexcept { return status_; }
    [[nodiscard]] std::string pending() const;
    [[nodiscard]] std::string describe() const;
    [[nodiscard]] const job& owner() const noexcept { return job_; }
    [[nodiscard]] const message_counts& counts() const noexcept { return counts_; }

  private:
    static constexpr std::size_t least_pushed = least_streamed;
    using request_state = message_request::state;
    /// This end of both directions with one peer.
    struct link {
        link(int rank, const messenger_options& o)
            : peer(rank), early(o.unexpected, std::max(o.immediate_bytes, sizeof(announcement))) {
            for (std::uint32_t i = 0; i < link_layout::records; ++i) free_records[i] = link_layout::records - 1 - i;
        }
        int peer;
        std::unique_ptr<frame_link> frames; ///< to a peer over a network; else of the peer's memory:
        // Of what comes.
        ring_reader in;
        send_record* their_records = nullptr;
        request_list posted; ///< receives from this peer alone
        unexpected_store early;
        // Of what goes.
        ring_writer out;
        send_record* records = nullptr;
        std::uint32_t free_records[link_layout::records]{};
        std::size_t free_count = link_layout::records;
        std::uint64_t generation = 0; ///< of the last announcement
        request_list queued, announced;
        message_request* staging = nullptr; ///< whose pieces lie in the staging area
        // How its memory is reached.
        std::byte* slab = nullptr;
        std::byte* block = nullptr; ///< the peer's, as mapped here
        pid_t pid = 0;
        streaming_watch pushed; ///< do large messages go past their sender's cache?
        bool same_process = false, readable = false;
        std::string why_not_readable;
        std::optional<shm_channel> farewell;
    };

    // Set-up (message_setup.cpp).
    void make_links();
    void connect(const std::vector<std::string>& cards);
    void connect_frames();
    void connect_bulk();
    [[nodiscard]] std::string way_of_large(const link& l) const;

    /// Hands a send to its receiver: the message itself, or an announcement of it.  False: no room yet.
    bool announce(link& to, message_request& r) noexcept;
    bool to_self(link& self, message_request& r) noexcept;
    [[nodiscard]] static ring_writer::label label_for(const link& to, int tag, std::uint32_t context) noexcept {
        return {tag, context, to.in.slots_taken()};
    }
    /// Frees a place of the ring: what lay there has been copied.
    static void take(link& from, ring_reader::place p) noexcept {
        from.out.credit(p.cell->slots_taken);
        from.in.take(p);
    }
    /// Looks for what has come.
    void drain(link& from) noexcept;
    /// Gives a message to the receive that waits for it, or keeps it.  False: no room; ask again.
    bool arrive(link& from, const incoming& m) noexcept;
    /// A message has met its receive.
    void deliver(link& from, message_request& r, const incoming& m) noexcept;
    // Large messages between ranks that share memory (message_large.cpp).
    bool announce_large(link& to, message_request& r) noexcept;
    /// Receiver: takes `bytes` of an announced message, in whichever way reaches them.
    void fetch(link& from, message_request& r, std::uint64_t bytes, const announcement& a) noexcept;
    void look_for_sender(link& from, send_record& record, std::uint64_t bytes) noexcept;
    /// True if the sender of so many bytes should write them past its cache.
    [[nodiscard]] bool wants_push(const link& from, std::uint64_t bytes) const noexcept;
    /// Lets the sender copy a part, or all.  False: that would not pay, or the receiver's memory is not mapped there.
    bool share_copy(link& from, message_request& r, send_record& record, const std::byte* source,
                    std::uint64_t bytes) noexcept;
    /// Receiver: the next step of a receive in which its sender has a part.
    void go_on(message_request& r) noexcept;
    /// Sender: does what the receiver of an announced message asks for.
    void follow(link& to, message_request& r) noexcept;
    void help_copy(link& to, message_request& r, send_record& record, bool streaming) noexcept;
    void stage(link& to, message_request& r, send_record& record) noexcept;
    // Over a network (message_frames.cpp).
    /// Notes that so many bytes of a large message are wanted; call_for() is tried until it can be sent.
    void enlist_call(link& from, message_request& r, std::uint32_t record, std::uint64_t bytes) noexcept;
    bool frame_message(link& to, message_request& r) noexcept;
    void send_frame(link& to, bool also_empty) noexcept;
    void take_frames(link& from) noexcept;
    status read_frame(link& from, std::span<const std::byte> bytes) noexcept;
    bool read_item(link& from, const frame_item& r, const std::byte* payload) noexcept;
    void take_whole(link& from, message_request& r, std::uint64_t bytes, const announcement& a) noexcept;
    void call_for(link& from, message_request& r) noexcept;
    void stream(link& to, message_request& r) noexcept;
    void move_frames(link& l) noexcept;
    // Straight into the receiver's memory (message_bulk.cpp).
    bool invite(link& from, message_request& r) noexcept;
    bool invited(link& to, const frame_item& r, const std::byte* payload) noexcept;
    bool declined(link& from, std::uint32_t record) noexcept;
    void move_bulk(link& l) noexcept;
    void leave_bulk(link& l, message_request& r) noexcept;

    [[nodiscard]] message_request* receive_for(link& from, const incoming& m) noexcept;
    [[nodiscard]] unexpected_message* message_for(int from, int tag, std::uint32_t context, link*& owner) noexcept;
    /// Until `fine` is true of all of who(0) … who(count - 1).
    template <class Who, class Fine>
    status wait(std::size_t count, Who&& who, Fine&& fine,
                std::optional<std::chrono::nanoseconds> longest = {}) noexcept;
    [[nodiscard]] bool has_started(const message_request& r) const noexcept;
    [[nodiscard]] bool gone(int peer) const noexcept;
    void finish(message_request& r) noexcept {
        r.state_ = message_request::state::done;
        r.engine_ = nullptr;
    }
    void begin(message_request& r, std::byte* data, std::size_t bytes, int peer, int tag,
               std::uint32_t context) noexcept;
    void fail(status why, const message_request& r, std::size_t more, std::uint64_t message_bytes = 0) noexcept;
    /// Fails with status::misused: no such peer or tag.
    void misuse(bool is_send, int peer, int tag) noexcept;
    [[nodiscard]] bool is_rank(int r) const noexcept { return static_cast<std::size_t>(r) < links_.size(); }
    [[nodiscard]] bool can_come(int from, int tag) const noexcept {
        return (is_rank(from) || from == any_source) && tag >= any_tag;
    }

    job job_;
    job_core& core_;
    messenger_options options_;
    std::vector<link> links_;                       ///< by rank
    request_list posted_any_;                       ///< receives from any rank
    request_list active_;                           ///< receives of large messages that have begun
    std::uint64_t posted_count_ = 0, arrivals_ = 0; ///< ever: they order what several links hold
    std::uint64_t calls_for_nothing_ = 0;
    static constexpr int most_unattended = 32; ///< a few microseconds of messages from one peer
    int unattended_ = 0;                       ///< receives since the last progress()
    /// A wait pauses (waiting.hpp) after so many polls. Not after each where every rank has a core of its own, because a
    /// pause takes half as long as a message.
    std::uint64_t polls_per_pause_ = 1;
    status status_ = status::ok;
    status broken_ = status::ok; ///< of a channel; becomes status_ in a wait, which says what was waited for
    channel_set channels_;       ///< of frames
    std::uint64_t moved_ = 0;    ///< frames, and pieces of large messages: a wait that sees more come goes on
    message_counts counts_;
    std::byte* block_ = nullptr; ///< this rank's, in its slab (message_layout.hpp)
    struct {
        bool is_send = false;
        int peer = 0, tag = 0;
        std::uint64_t room = 0, message_bytes = 0;
        std::size_t more = 0;
    } failed_; ///< what the wait that failed was for
};

} // namespace halocline::comm
