// SPDX-License-Identifier: Apache-2.0
// A rank's place on an RDMA device: one port, one protection domain, a completion queue per plan, a queue pair per
// channel. libibverbs is loaded when a job first needs it (docs/decisions/0023-verbs.md); a build without its headers
// has verbs/absent.cpp in place of the rest of verbs/.
#pragma once

#include "network/network_end.hpp"

#include <halocline/comm/job.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

struct ibv_mr; // libibverbs'
struct ibv_send_wr;
struct ibv_wc;

namespace halocline::comm {

/// Is transport `verbs` in this build?
[[nodiscard]] bool verbs_is_built();
/// "rxe0 (port 1 active, RoCE)", or why there is none; for reports.
[[nodiscard]] std::string verbs_present();

class bulk_link;
struct exposed_memory;
class slab;
class verbs_bulk_link;
struct verbs_library; // private: comm/src/verbs/library.hpp
struct verbs_plan;    // private: comm/src/verbs/end.hpp

/// Messages arrive in the order in which they were sent, and so do completions of sends.
struct verbs_end : network_end {
    std::uint64_t posted = 0; ///< messages given to the device
    std::uint64_t done = 0;   ///< those known to be delivered
    std::uint64_t came = 0;   ///< messages that have arrived
    std::uint64_t room = 1;   ///< messages that may be posted and not done

    std::uint64_t values_posted = 0, values_done = 0; ///< messages of values
    std::uint64_t values_came[2]{};                   ///< by the parity of their epochs
    std::uint64_t parts_came[2]{};                    ///< the same for those shorter than planned
    bool greeting_delivered = false, farewell_delivered = false;

    std::uint64_t receives = 0, completions = 0;

    [[nodiscard]] bool has(std::uint64_t epoch) const { return came >= epoch; }
    [[nodiscard]] bool over() const { return farewell_came; } ///< the peer has sent all that it will
    [[nodiscard]] bool has_room() const { return posted - done < room; }
    /// What a message of n writes adds to values_came or parts_came: only its last write counts.
    [[nodiscard]] static std::uint64_t counted_values(std::uint64_t writes) { return writes > 0 ? 1 : 0; }
    [[nodiscard]] bool has_values(std::uint64_t epoch) const {
        return values_came[0] + values_came[1] >= epoch * counted_values(values.writes_in);
    }
    [[nodiscard]] bool values_gone() const { return values_done == values_posted; }
    [[nodiscard]] bool greeting_done() const { return greeting_delivered; }
    /// Nothing will be written from here or to here any more.
    [[nodiscard]] bool ended() const { return error != 0 || (farewell_came && farewell_delivered); }
};

/// The network_world of libibverbs (network/network_world.hpp).
class verbs_world {
  public:
    /// Opens the device and port of `options`, and checks that memory can be registered there.  `link_timeout`: from
    /// job_options.  `library`: replaces libibverbs, for tests.
    /// Err: input_error: no library, no such device (names those present), port, GID or MTU; job_error: the memlock
    /// limit is too low for any plan, or a fork() would take registered memory away.
    verbs_world(const verbs_options& options, std::chrono::milliseconds link_timeout,
                const verbs_library* library = nullptr);
    ~verbs_world();
    verbs_world(const verbs_world&) = delete;
    verbs_world& operator=(const verbs_world&) = delete;

    /// Two ranks reach each other if these are equal: "RoCE", "InfiniBand" or "InfiniBand with GIDs".
    [[nodiscard]] std::string kind() const;
    /// Address of this port, for the peers.
    [[nodiscard]] std::string address() const;
    /// Takes every rank's address, by rank, "" for those that it does not reach; sends nothing.
    void connect(std::span<const std::string> addresses, int);

    /// An end with memory that the peer may write.  Err: job_error; what `memory` throws.
    [[nodiscard]] verbs_end& open(std::pmr::memory_resource& memory, int peer, std::uint32_t plan_id,
                                  std::size_t send_bytes, std::size_t receive_bytes);
    /// Makes the completion queue of that plan, large enough for all ends opened for it, and their queue pairs: before
    /// card().  Err: job_error.
    void complete(std::uint32_t plan_id);
    /// This end's part of its channel's card; connect() takes the other end's.  Err: job_error.
    [[nodiscard]] std::string card(const verbs_end& end) const;
    void connect(verbs_end& end, const std::string& peer_card);

    /// Makes this the end of a direct channel whose messages consist of these writes.  Pre: its fields are known.  Err:
    /// job_error.
    void open_values(verbs_end& end, std::span<const direct_write> writes);
    void greet(verbs_end& end) noexcept;
    /// Writes the first `bytes` of the message into the peer's slot of that epoch; without its label, if the write's
    /// immediate and length say all that is in it.  Pre: end.has_room(); bytes counts the label.
    void send(verbs_end& end, std::uint64_t epoch, std::size_t bytes) noexcept;
    /// Writes the values of a direct message.
    void send_values(verbs_end& end) noexcept;
    void say_farewell(verbs_end& end) noexcept;
    /// Takes completions of the plan to which the end belongs.
    void poll(verbs_end& end) noexcept;
    /// The channel is gone: the end goes once its peer's farewell has arrived and its own was delivered.
    void release(verbs_end& end) noexcept;
    /// Frees released ends that no peer will write any more.
    void sweep() noexcept;
    /// Polls until every peer has said farewell, `give_up` says so, or 2 seconds have passed.
    void finish(const std::function<bool()>& give_up) noexcept;
    /// The text for an end's error.
    [[nodiscard]] std::string describe(const verbs_end& end) const;

    /// A link for large messages to and from that rank.  Err: job_error.
    [[nodiscard]] std::unique_ptr<bulk_link> open_bulk(const slab& memory, int peer, std::uint32_t records);
    /// Exposes memory for peers to write at any time.  Err: job_error.
    [[nodiscard]] std::shared_ptr<const exposed_memory> expose(std::span<std::byte> memory);

  private:
    friend class verbs_bulk_link;
    struct port;          // with libibverbs' types
    struct connected_end; // a verbs_end with its queue pair
    struct bulk_pair;     // a queue pair for large messages
    static connected_end& connected(verbs_end& end) noexcept;
    void make_queue_pair(connected_end& e);
    void shape(connected_end& e, std::size_t slot, std::size_t first, std::size_t bytes) noexcept;
    /// Posts a chain of writes.
    void post(connected_end& e, ibv_send_wr* first, std::size_t count) noexcept;
    void post_handshake(connected_end& e, std::uint64_t kind, std::uint32_t immediate) noexcept;
    void replenish(connected_end& e) noexcept;
    void take_completions(verbs_plan& plan) noexcept;
    void take(const ibv_wc& completion) noexcept;
    /// A write of the peer has arrived: its immediate (verbs/tags.hpp), and its number of bytes.
    void arrive(connected_end& e, std::uint32_t immediate, std::uint32_t bytes) noexcept;
    void fail(connected_end& e, int code, const char* call) noexcept;
    /// Its memory is given back, unless the device may still access it.
    void close(connected_end& e) noexcept;

    std::unique_ptr<port> port_;
    std::vector<std::unique_ptr<connected_end>> ends_;
    std::vector<std::unique_ptr<bulk_pair>> bulk_pairs_;
    std::shared_ptr<verbs_plan> building_; // between its first open() and complete()
};

} // namespace halocline::comm
