// SPDX-License-Identifier: Apache-2.0
// A channel over InfiniBand or RoCE verbs: one reliable connection (RC queue pair). Header and payload are written into
// the peer's slot; the write's immediate consumes one of the peer's posted receives, whose completion is the arrival.
#pragma once

#include <halocline/comm/channel.hpp>
#include <halocline/comm/control_line.hpp>

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <string>

namespace halocline::comm {

class verbs_world; // private: comm/src/verbs_world.hpp
struct verbs_end;  // private: comm/src/verbs_world.hpp

class verbs_channel {
  public:
    static constexpr const char* transport = "verbs";
    static constexpr const char* path = "packed";
    using world_type = verbs_world;
    /// This end: buffers from `memory`, registered for the peer's writes. Local; then complete(), then card() goes to
    /// the peer. `memory` and the world must outlive the channel.  Err: job_error.
    verbs_channel(verbs_world& world, std::pmr::memory_resource& memory, std::size_t index, int peer,
                  std::uint32_t plan_id, std::size_t send_bytes, std::size_t receive_bytes);
    /// Makes the completion queue and the queue pairs of a plan, all of whose own ends are there. Local.
    /// Err: job_error.
    static void complete(verbs_world& world, std::uint32_t plan_id);
    /// What the peer's end needs for connect().  Pre: complete() was called.
    [[nodiscard]] std::string card() const;
    /// Brings the queue pair up. Local.  Err: job_error; error if that is no card.
    void connect(const std::string& peer_card);
    /// Greets the peer at the first call: it must have connected then, or the greeting waits for a retransmission.
    /// True also when it will never be: then trouble() says why.
    [[nodiscard]] bool connected() noexcept;
    verbs_channel(verbs_channel&& other) noexcept;
    verbs_channel& operator=(verbs_channel&& other) noexcept;
    /// Says farewell and never waits for the peer's: until that has come the world keeps the memory.
    ~verbs_channel();

    [[nodiscard]] std::size_t index() const noexcept { return index_; }
    [[nodiscard]] int peer() const noexcept { return peer_; }

    /// Where the payload of `epoch` is to be written.  Pre: sent(epoch - 1).
    [[nodiscard]] std::byte* target(std::uint64_t) noexcept { return send_ + sizeof(message_header); }
    /// Pre: arrived(epoch - 1) and sent(epoch - 1).
    void send(std::uint64_t epoch, std::uint64_t start_stamp, std::uint32_t field_index = 0) noexcept {
        send_part(epoch, start_stamp, send_bytes_, field_index);
    }
    /// A message of fewer bytes than planned; the other end asks check_part() and header().bytes.
    void send_part(std::uint64_t epoch, std::uint64_t start_stamp, std::size_t bytes,
                   std::uint32_t field_index = 0) noexcept;
    /// Has the peer's message of `epoch` arrived? Also true when it never will: then check(epoch) says why.
    [[nodiscard]] bool arrived(std::uint64_t epoch) noexcept;
    [[nodiscard]] bool sent(std::uint64_t epoch) noexcept;
    /// The peer's payload, 64-byte aligned; valid until send(epoch + 1).  Pre: arrived(epoch).
    [[nodiscard]] const std::byte* received(std::uint64_t epoch) const noexcept {
        return slots_ + (epoch & 1) * stride_ + sizeof(message_header);
    }
    [[nodiscard]] const message_header& header(std::uint64_t epoch) const noexcept {
        return *std::launder(reinterpret_cast<const message_header*>(slots_ + (epoch & 1) * stride_));
    }
    [[nodiscard]] status check(std::uint64_t epoch) const noexcept;
    /// check() but for the bytes.
    [[nodiscard]] status check_part(std::uint64_t epoch) const noexcept;
    /// The first completion that failed, in the words of libibverbs; else empty.
    [[nodiscard]] std::string trouble() const;
    /// Work requests of this end: writes (greeting and farewell among them) and receives; completions taken.
    [[nodiscard]] std::uint64_t writes() const noexcept;
    [[nodiscard]] std::uint64_t receives() const noexcept;
    [[nodiscard]] std::uint64_t completions() const noexcept;

    /// A farewell in place of the next epoch: a peer that waits for it gets status::aborted.
    void close() noexcept;

  private:
    void swap(verbs_channel& other) noexcept;

    verbs_world* world_ = nullptr;
    verbs_end* end_ = nullptr;   // the world's: it stays where it is until its queue pair is destroyed
    std::byte* send_ = nullptr;  // header and payload
    std::byte* slots_ = nullptr; // two of them, header and payload each
    std::size_t stride_ = 0;     // from slot 0 to slot 1
    std::size_t index_ = 0, send_bytes_ = 0, receive_bytes_ = 0;
    int peer_ = 0;
    std::uint32_t plan_id_ = 0;
};
static_assert(carded_channel<verbs_channel>);

} // namespace halocline::comm
