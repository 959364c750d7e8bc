// SPDX-License-Identifier: Apache-2.0
// The implementation of a messenger: its calls and its waits. matching decides which message meets which receive; the
// links, one per rank, move the bytes.
#pragma once

#include "job/job_core.hpp"
#include "matching.hpp"
#include "message_link.hpp"
#include "message_memory.hpp"
#include "messenger_core.hpp"

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/messenger.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace halocline::comm {

class message_engine {
  public:
    message_engine(const comm::job& j, const messenger_options& options);
    ~message_engine();
    message_engine(const message_engine&) = delete;
    message_engine& operator=(const message_engine&) = delete;

    void isend(message_request& r, std::span<const std::byte> data, int to, int tag, std::uint32_t context) noexcept;
    void irecv(message_request& r, std::span<std::byte> into, int from, int tag, std::uint32_t context) noexcept;
    /// Sends an immediate message without a request, if there is room.
    bool try_send_immediate(std::span<const std::byte> data, int to, int tag, std::uint32_t context) noexcept;
    /// Receives an immediate message without a request, if it comes soon, is the next from that peer, and no other
    /// receive from it is posted. If false, use irecv().
    bool try_receive_immediate(std::span<std::byte> into, int from, int tag, std::uint32_t context,
                               message_info& info) noexcept;
    // isend() and irecv() with a request of their own, and a wait: for what the two above can't do.
    status send(std::span<const std::byte> data, int to, int tag, std::uint32_t context) noexcept;
    status recv(std::span<std::byte> into, int from, int tag, std::uint32_t context, message_info& info) noexcept;
    void progress() noexcept;
    /// Progress between the polls of this rank's other waits, because a peer may be waiting for this rank's part in a
    /// message. The messenger's own calls make progress anyway; twice would take large messages both ways a sixth
    /// longer. Of several threads that wait, one does it at a time.
    void serve() noexcept {
        if (in_own_call_ || !is_needed() || serving_.exchange(true, std::memory_order_acquire)) return;
        ++core_.counts.served;
        progress();
        serving_.store(false, std::memory_order_release);
    }
    bool test(message_request& r) noexcept;
    status wait_one(message_request& r) noexcept;
    status wait_all(std::span<message_request> all, std::optional<std::chrono::nanoseconds> longest = {}) noexcept;
    status wait_all(std::span<message_request* const> all) noexcept;
    status wait_any(std::span<message_request* const> all) noexcept;
    status start_all(std::span<message_request> all, std::chrono::nanoseconds longest) noexcept;
    bool probe(int from, int tag, std::uint32_t context, message_info& info) noexcept;
    status wait_probe(int from, int tag, std::uint32_t context, message_info& info) noexcept;
    /// Called when a request is destroyed while under way.
    void withdraw(message_request& r) noexcept;
    /// The message that a receive had met is withdrawn by its sender: the receive takes the next one, unless it is being
    /// withdrawn itself.
    void receive_another(message_operation& r) noexcept;

    [[nodiscard]] status state() const noexcept { return core_.state; }
    [[nodiscard]] std::string pending() const;
    [[nodiscard]] std::string describe() const;
    [[nodiscard]] const comm::job& job() const noexcept { return job_; }
    [[nodiscard]] const message_counts& counts() const noexcept { return core_.counts; }

  private:
    // Set-up (message_setup.cpp).
    void make_links();
    void connect_shm();
    void connect_frames();
    void connect_bulk();

    [[nodiscard]] message_operation& start_operation(message_request& r, std::byte* data, std::size_t bytes, int peer,
                                                     int tag, std::uint32_t context) noexcept;
    /// Polls of one link in which an immediate message may be received without looking at others.
    [[nodiscard]] int patience() const noexcept;
    /// Completes a posted receive as try_receive_immediate() would.  True: it is done.
    bool try_complete_receive(message_operation& r, int patience) noexcept;
    /// Could progress() help a peer? Within a node only if something is under way here, or if a peer has no room.
    [[nodiscard]] bool is_needed() noexcept {
        return core_.owner.under_way > 0 || over_network_ || memory_->bell()->answer();
    }
    /// A call has not looked at other messages, nor at the rank's other objects: now and then one has to.
    void count_unattended() noexcept {
        if (++unattended_ >= most_unattended) attend();
    }
    void attend() noexcept;
    enum class until { all, any };
    template <class OperationAt, class IsSettled>
    class awaited_operations;
    /// Bad if a peer of one that is not settled has left; `culprit` is then that operation.
    template <class Awaited>
    status left_by_one(const Awaited& operations, message_operation*& culprit) noexcept;
    /// Makes progress until is_settled(*operation_at(i)) for all i in [0, count), or for any. Null pointers are
    /// ignored.
    /// Pre: until::any: not all are null.
    template <class OperationAt, class IsSettled>
    status wait(std::size_t count, OperationAt&& operation_at, IsSettled&& is_settled, until how = until::all,
                std::optional<std::chrono::nanoseconds> longest = {}) noexcept;
    /// Waits for requests, or for those of these pointers that are not null. If for all: begins with
    /// try_complete_receive() in this order, unless one is under way otherwise: that one needs progress().
    /// Pre: as wait().
    template <class Request>
    status wait_for(std::span<Request> all, until how, std::optional<std::chrono::nanoseconds> longest = {}) noexcept;
    [[nodiscard]] static message_operation* operation_of(message_request& r) noexcept { return &r.operation_; }
    [[nodiscard]] static message_operation* operation_of(message_request* r) noexcept {
        return r != nullptr ? &r->operation_ : nullptr;
    }
    /// Looks for deaths now and then, because waits that are each too short for that may follow each other.
    status look_after_short_wait(int peer, std::uint64_t now) noexcept;
    /// Has it started, as start_all() means it?
    [[nodiscard]] bool has_started(const message_operation& o) const noexcept;
    /// The rank that has left, so that no message of `peer` can come; of any_source, all others have. -1: it can.
    [[nodiscard]] int gone(int peer) const noexcept;
    /// Will the next wait fail?
    [[nodiscard]] bool has_failed() const noexcept {
        return core_.state != status::ok || end_of_job_.load(std::memory_order_relaxed) != 0;
    }
    [[nodiscard]] bool is_rank(int r) const noexcept { return static_cast<std::size_t>(r) < links_.size(); }
    [[nodiscard]] bool can_come(int from, int tag) const noexcept {
        return (is_rank(from) || from == any_source) && tag >= any_tag;
    }
    [[nodiscard]] message_link& link_to(int rank) noexcept { return links_[rank]; }
    /// The oldest unexpected message that such a receive would get, and whose sender has not withdrawn it. nullptr:
    /// none.
    [[nodiscard]] unexpected_message* find(int from, int tag, std::uint32_t context) noexcept;
    /// find() among what is known already.
    [[nodiscard]] unexpected_message* find_kept(int from, int tag, std::uint32_t context) noexcept;
    /// Gives the receive that message.
    void receive_kept(message_operation& r, unexpected_message& m) noexcept {
        message_link& l = link_to(m.source);
        matching_.remove(m); // first: if m is withdrawn now, r looks for another; what m holds stays until one is kept
        l.receive_kept(r, m);
    }

    comm::job job_;
    messenger_core core_;
    matching matching_;
    std::vector<message_link> links_;          ///< by rank
    channel_set channels_;                     ///< carry the frames
    std::vector<int> near_;                    ///< the peers with which this rank shares memory
    std::optional<message_memory> memory_;     ///< for these, in their order
    static constexpr int most_unattended = 32; ///< a few microseconds of messages from one peer
    int unattended_ = 0;                       ///< calls since the last progress()
    std::uint64_t fruitless_calls_ = 0;
    std::uint64_t looked_ = 0; ///< when the latest short wait looked for deaths, in ticks
    /// A wait pauses (waiting.hpp) after this many polls. Not after each one if every rank has a core of its own,
    /// because a pause takes half as long as a message.
    std::uint64_t polls_per_pause_ = 1;
    const std::atomic<std::uint32_t>& end_of_job_{core_.job.memory->record().state}; ///< 0: it goes on
    bool over_network_ = false;
    bool is_ending_ = false;   ///< no receive may begin to wait for another message
    bool in_own_call_ = false; ///< is one running that makes progress?
    std::atomic<bool> serving_{false};
};

} // namespace halocline::comm
