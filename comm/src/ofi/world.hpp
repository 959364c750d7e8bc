// SPDX-License-Identifier: Apache-2.0
// A rank's place in libfabric: one domain, one reliable-datagram endpoint, one completion queue and one address vector,
// shared by all channels of the job. The library is loaded when a job first needs it (docs/decisions/0008-ofi.md);
// a build without its headers has ofi/absent.cpp in place of the rest of ofi/.
#pragma once

#include "network/network_end.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct fid_mr; // libfabric's

namespace halocline::comm {

/// Is transport `ofi` in this build?
[[nodiscard]] bool ofi_is_built();
/// "libfabric 1.17 with tcp;ofi_rxm, shm", or why there is none; for reports.
[[nodiscard]] std::string ofi_present();

class bulk_link;
struct exposed_memory;
class ofi_bulk_link;
class slab;
struct ofi_end;

/// Identifies a write until it completes. libfabric owns `scratch` meanwhile, if the provider requires that
/// (FI_CONTEXT, FI_CONTEXT2).
struct ofi_operation {
    void* scratch[8]{};
    ofi_end* end = nullptr; ///< nullptr: a piece of a large message (ofi/bulk.hpp)
    bool receives = false;  ///< a tagged receive; otherwise a write or send
    std::uint32_t tag = 0;  ///< of what is received
};

/// What a channel's end sends besides messages: its greeting and its farewell, two writes of 8 bytes.
struct ofi_handshake {
    std::uint64_t greeting = 1;
    std::uint64_t messages_sent = 0; ///< the farewell: the number of messages before it, counting writes of values
    std::uint64_t unused[6]{};
};
static_assert(sizeof(ofi_handshake) == 64);

/// Its block: the handshake that the peer writes, the three slots, the handshake that is written to the peer.
struct ofi_end : network_end {
    fid_mr* region = nullptr;
    void* descriptor = nullptr;
    std::uint64_t key = 0;  ///< of the region, for the peer
    std::uint64_t base = 0; ///< how the peer addresses the block: by its address or from 0, as the provider requires
    std::uint32_t id = 0;   ///< accompanies each write to this end
    std::uint32_t pieces_in = 0, pieces_out = 0; // of a message

    std::uint32_t peer_id = 0;
    std::uint64_t peer_key = 0, peer_base = 0;

    // Written by ofi_world::poll().
    std::uint64_t came[2]{};        ///< complete messages, per slot
    std::uint32_t pieces[2]{};      ///< of the incomplete message
    std::uint64_t values_came[2]{}; ///< writes, by the parity of their epochs
    std::uint64_t parts_came[2]{};  ///< the same for messages shorter than planned

    // Still to be written, in this order.
    bool greeting_due = false, farewell_due = false;
    std::size_t now_bytes = 0;    ///< of message number `started`: send_message, or less
    std::uint32_t next_piece = 0; ///< pieces_out if all of it is under way
    std::uint32_t next_value = 0; ///< in values.writes; their number if all are under way or none is due
    std::uint64_t values_sent = 0;
    std::uint32_t under_way = 0; ///< writes that have not completed
    // Tagged messages, for providers without RMA: receives posted by the world replace the peer's writes.
    bool tagged = false, cancelled = false;
    std::uint32_t handshakes_posted = 0;
    std::uint64_t refused_since = 0;       ///< ticks; when the first receives found no room; 0: not yet
    std::uint32_t next_receive[2]{};       ///< pieces of a slot's next message to be posted; pieces_in: all are
    std::uint32_t receives_posted = 0;     ///< those that have not completed
    std::vector<ofi_operation> receives;   // for pieces into slot 0 and slot 1; greeting, farewell
    bool waiting = false;                  // in the world's queue, for room
    std::vector<ofi_operation> operations; // pieces, greeting, farewell, values

    /// Slot 1 gets the epochs 1, 3, 5, ..., slot 0 gets 2, 4, 6, ...
    [[nodiscard]] bool has(std::uint64_t epoch) const { return came[epoch & 1] >= (epoch + 1) / 2; }
    /// Has the peer's farewell arrived, and everything sent before it, its greeting too? Writes may overtake each other.
    [[nodiscard]] bool over() const {
        const std::uint64_t all = came[0] + came[1] + values_came[0] + values_came[1] + parts_came[0] + parts_came[1];
        return farewell_came && greeted && all >= handshake_in().messages_sent;
    }
    /// What a message of n writes adds to values_came or parts_came: each of them counts.
    [[nodiscard]] static std::uint64_t counted_values(std::uint64_t writes) { return writes; }
    /// No write of epoch + 1 arrives before this rank has freed its fields for it.
    [[nodiscard]] bool has_values(std::uint64_t epoch) const {
        return values_came[0] + values_came[1] >= epoch * counted_values(values.writes_in);
    }
    [[nodiscard]] bool has_room() const {
        return under_way == 0 && next_piece == pieces_out && next_value == values.writes.size() && !greeting_due &&
               !farewell_due;
    }
    [[nodiscard]] bool values_gone() const { return has_room(); }
    [[nodiscard]] bool greeting_done() const { return has_room(); }

    [[nodiscard]] ofi_handshake& handshake_in() const { return *std::launder(reinterpret_cast<ofi_handshake*>(block)); }
    [[nodiscard]] ofi_handshake& handshake_out() const {
        return *std::launder(reinterpret_cast<ofi_handshake*>(send_slot() + send_stride));
    }
};

/// The network_world of libfabric (network/network_world.hpp).
class ofi_world {
  public:
    /// Opens libfabric's `provider` ("": its own first choice that can do RMA; followed by ",tagged": as if it could
    /// not). Without RMA, tagged messages are used. `address`: of this host; selects the interface, if the provider has
    /// one with it. `largest_write`: a limit on the size of writes, as is the provider's own; the least of all ranks
    /// applies.
    /// Err: input_error: no library, no such provider, or none that can do either.
    explicit ofi_world(std::string_view provider, std::string_view address,
                       std::size_t largest_write = std::numeric_limits<std::size_t>::max());
    ~ofi_world();
    ofi_world(const ofi_world&) = delete;
    ofi_world& operator=(const ofi_world&) = delete;

    /// Two ranks reach each other if these are equal: the provider, "tcp;ofi_rxm"; for shm also the host.
    [[nodiscard]] std::string kind() const;
    /// This endpoint's address, with its largest write, for the peers.
    [[nodiscard]] std::string address() const;
    /// Takes every rank's address, by rank, "" for those that it does not reach; sends nothing.
    /// Err: job_error.
    void connect(std::span<const std::string> addresses, int own_rank);
    /// Provider shm: has this process mapped the files of all ranks that it reaches? Then their names are no longer
    /// needed. Other providers: true.
    [[nodiscard]] bool has_mapped_all() const;
    /// Provider shm: this rank's file vanishes with the last process that has mapped it, however that ends. Others:
    /// nothing.
    /// Pre: every rank has_mapped_all().
    void remove_name() const noexcept;

    /// An end with memory that the peer may write, for any plan.  Err: job_error; what `memory` throws.
    [[nodiscard]] ofi_end& open(std::pmr::memory_resource& memory, int peer, std::uint32_t plan_id,
                                std::size_t send_bytes, std::size_t receive_bytes);
    /// This end's part of its channel's card; connect() takes the other end's.
    [[nodiscard]] std::string card(const ofi_end& end) const;
    void connect(ofi_end& end, const std::string& peer_card);

    /// Makes this the end of a direct channel whose messages consist of these writes.  Pre: its fields are known.
    void open_values(ofi_end& end, std::span<const direct_write> writes);
    void greet(ofi_end& end) noexcept;
    /// Writes the first `bytes` of the message into the peer's slot of that epoch; poll() continues as room permits.
    /// Pre: end.has_room(); bytes counts the label.
    void send(ofi_end& end, std::uint64_t epoch, std::size_t bytes) noexcept;
    /// Writes the values of a direct message.
    void send_values(ofi_end& end) noexcept;
    void say_farewell(ofi_end& end) noexcept;
    /// Takes completions, then writes what was waiting for room.
    void poll() noexcept;
    void poll(ofi_end&) noexcept { poll(); } // all ends have one queue
    /// The channel is gone: the end goes once its peer's farewell has arrived and nothing is under way.
    void release(ofi_end& end) noexcept;
    /// Frees released ends that no peer will write any more.
    void sweep() noexcept;
    /// Polls until nothing is left to write and every peer has said farewell, `give_up` says so, or 2 seconds have
    /// passed.
    void finish(const std::function<bool()>& give_up) noexcept;
    /// The text for an end's error.
    [[nodiscard]] std::string describe(const ofi_end& end) const { return describe(end.error); }
    [[nodiscard]] std::string describe(int code) const;

    /// A link for large messages to and from that rank.
    [[nodiscard]] std::unique_ptr<bulk_link> open_bulk(const slab& memory, int peer, std::uint32_t records);
    [[nodiscard]] bool writes_memory() const; ///< otherwise it only sends
    /// Exposes memory for peers to write at any time.  nullptr: the provider has no RMA.  Err: job_error.
    [[nodiscard]] std::shared_ptr<const exposed_memory> expose(std::span<std::byte> memory);
    /// The job has ended: libfabric is not called any more, and does not touch this rank's memory.
    void leave() noexcept;
    /// leave(), after which operations under way can't succeed.
    void cut() noexcept;

  private:
    friend class ofi_bulk_link;
    struct endpoint;                             // with libfabric's types
    [[nodiscard]] bool in_shared_memory() const; ///< provider shm
    std::uint32_t take_id();
    void register_block(ofi_end& end);
    /// Keeps the text of the first error, for describe().
    void note(int code, const char* text) noexcept;
    void take_completions() noexcept;
    /// Removes one failed operation from its queue.  False: there is none.
    bool take_failure() noexcept;
    /// Writes for the ends that wait for room, in the order in which they began to wait, until there is no more room.
    void push_waiting() noexcept;
    /// A write has arrived with these bits (ofi/tags.hpp).
    void arrive(std::uint64_t data) noexcept;
    void arrive(ofi_end& end, std::uint32_t tag) noexcept;
    int post_receives(ofi_end& end) noexcept;
    /// Has an end waited for room for its first receives so long that there will be none? Then notes why.
    bool receives_refused(ofi_end& end) noexcept;
    int write_value(ofi_end& end, const direct_write& value, ofi_operation& operation) noexcept;
    /// end: nullptr: all ends.
    void fail(ofi_end* end, int code, const char* text) noexcept;
    /// 0, or libfabric's code: -FI_EAGAIN if there is no room now.
    int write(ofi_end& end, const std::byte* from, std::size_t bytes, std::uint64_t remote_offset, std::uint32_t tag,
              std::uint32_t piece, ofi_operation& operation) noexcept;
    /// Writes what is due at that end, as far as there is room; poll() writes the rest.
    void push(ofi_end& end) noexcept;
    int push_all(ofi_end& end) noexcept;
    /// False if libfabric may still access its memory, which stays taken.
    bool close_end(ofi_end& end) noexcept;

    std::unique_ptr<endpoint> endpoint_;
    std::vector<std::string> shared_files_; ///< provider shm: those of the ranks that it reaches
    std::string own_file_;
    std::vector<std::unique_ptr<ofi_end>> ends_; // by id; nullptr: free
    std::vector<std::uint32_t> free_ids_;
    std::vector<ofi_end*> waiting_;     // for room
    std::vector<ofi_bulk_link*> bulks_; // by id; nullptr: gone
    char trouble_[256]{};               // text of the first error
};

} // namespace halocline::comm
