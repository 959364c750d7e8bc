// SPDX-License-Identifier: Apache-2.0
// One end of a window: a channel whose payload goes one way and whose tokens, epochs without payload, come back. Token
// k says that the receiver has begun step k: it is done with message k - 1, and its own buffer may be written.
//
// The sender may therefore send k into slots once token k - 1 is here (what the channel asks for anyway), and straight
// into the receiver's only buffer once token k is here.
#pragma once

#include "connection_core.hpp"
#include "job/job_core.hpp"

#include <halocline/comm/mpi_channel.hpp>
#include <halocline/comm/ofi_channel.hpp>
#include <halocline/comm/shm_channel.hpp>
#include <halocline/comm/streaming_watch.hpp>
#include <halocline/comm/verbs_channel.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace halocline::comm {

class window_end {
  public:
    struct request {
        bool sends = false;
        std::string element;
        std::size_t element_bytes = 0, count = 0;
        std::byte* buffer = nullptr; // of the user; nullptr: the channel's slots are the buffer
    };
    /// Local: memory, and a card on its way to the peer.
    window_end(std::shared_ptr<connection_core> c, request r);
    ~window_end();
    window_end(const window_end&) = delete;
    window_end& operator=(const window_end&) = delete;

    /// Joins the two ends.  Err: input_error if the peer's is another kind of window.
    void connect(const std::string& peer_card);

    status begin() noexcept;
    status fill() noexcept;
    status post(std::size_t bytes) noexcept;
    [[nodiscard]] bool test() noexcept;
    [[nodiscard]] status wait() noexcept;
    /// Sends what is due, if that is possible now. True: nothing is due any more.
    bool push() noexcept;
    /// The same, of a window in job_core::due, which it leaves then.
    bool push_listed() noexcept;

    [[nodiscard]] const job& owner() const { return connection_->owner; }
    [[nodiscard]] std::string title() const; ///< "send window 0"
    [[nodiscard]] std::string pending() const;
    [[nodiscard]] std::string describe() const;
    [[nodiscard]] bool sends() const { return request_.sends; }
    [[nodiscard]] std::uint32_t number() const { return number_; }
    [[nodiscard]] std::size_t came_bytes() const noexcept { return came_bytes_; }
    [[nodiscard]] std::byte* buffer() const noexcept { return buffer_; }
    /// A thread's part of a message, to where the peer reads it, by what is the better way now.
    void write(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
    [[nodiscard]] status state() const noexcept { return status_; }

  private:
    enum class phase : std::uint8_t { made, idle, begun, posted };
    [[nodiscard]] std::size_t bytes() const { return request_.element_bytes * request_.count; }
    [[nodiscard]] job_core& core() const { return connection_->owner.core(); }
    /// Makes the channel, if that transport serves the peer; `card` is for its other end.
    template <class Channel>
    bool open(std::string& card);
    /// Over shared memory; where the peer's control line and, if it receives there, its buffer lie in its slab.
    void connect_lines(std::uint64_t block_offset, std::uint64_t buffer_offset);
    template <class Work>
    bool with_channel(Work&& work);
    template <class Done>
    status until(Done done) noexcept;
    template <class Channel>
    bool may_write(Channel& c) noexcept;
    [[nodiscard]] bool streamed() const noexcept { return streaming_.streamed(); }
    /// Looks now and then how far the peer is (docs/decisions/0032); the bytes from `to` on are about to be written.
    void look_for_peer(std::byte* to, std::size_t bytes) noexcept;
    void expect_token(std::uint64_t token) noexcept;
    template <class Channel>
    bool is_good(Channel& c, std::uint64_t epoch) noexcept;
    template <class Channel>
    bool send(Channel& c) noexcept;
    bool done() noexcept;
    void send_later() noexcept;
    /// Looks for the peer's word that it has connected its end.
    bool peer_connected() noexcept;
    status misused(const char* how) noexcept;
    [[nodiscard]] std::uint32_t agreed_id() const;

    std::shared_ptr<connection_core> connection_;
    request request_;
    std::uint32_t number_ = 0; // among the windows of this direction of the connection

    std::variant<std::monostate, shm_channel, verbs_channel, ofi_channel, mpi_channel> channel_;
    std::byte* block_ = nullptr; // shm: control line, and slots unless direct
    std::size_t block_bytes_ = 0;
    bool direct_ = false;         // shm: payloads go into the receiver's own buffer
    std::byte* remote_ = nullptr; // that buffer, at the sender
    streaming_watch streaming_;   // shm, of a sender
    bool claims_ = false;         // likewise: lines that the peer has read (docs/decisions/0010)
    bool peer_connected_ = true;  // verbs: nothing may be written before that

    std::uint64_t step_ = 0, stamp_ = 0;
    std::size_t post_bytes_ = 0, came_bytes_ = 0;
    std::byte* buffer_ = nullptr; // between init and post, or wait and init, of windows without a user's
    const char* misuse_ = nullptr;
    phase phase_ = phase::made;
    bool due_ = false;    // a message or a token still has to be sent
    bool listed_ = false; // in job_core::due
    std::uint64_t tests_for_nothing_ = 0;
    status status_ = status::ok;
};

/// Sends what is due at any window of the job, as far as it can go.
void push_windows(job_core& core) noexcept;

} // namespace halocline::comm
