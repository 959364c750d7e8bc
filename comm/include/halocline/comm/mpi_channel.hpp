// SPDX-License-Identifier: Apache-2.0
// A channel over MPI: persistent requests made once, started each epoch, or (job_options::mpi) a put into the peer's
// exposed slot. A message is its header and then the payload; the receive of epoch k + 1 is posted when k is sent, so
// that a message never has to wait for it.
#pragma once

#include <halocline/comm/channel.hpp>
#include <halocline/comm/control_line.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <span>
#include <string>

struct halocline_mpi_channel; // private: comm/src/mpi_module.h

namespace halocline::comm {

class mpi_world;    // private: comm/src/mpi_library.hpp
struct mpi_windows; // private: comm/src/mpi_library.hpp

class mpi_channel {
  public:
    static constexpr const char* transport = "mpi";
    static constexpr const char* path = "packed";
    using world_type = mpi_world;
    /// This end: buffers from `memory`, and a tag for what the peer will send here. Local; then card() goes to the
    /// peer. Both must outlive the channel.  Err: job_error.
    mpi_channel(mpi_world& world, std::pmr::memory_resource& memory, std::size_t index, int peer, std::uint32_t plan_id,
                std::size_t send_bytes, std::size_t receive_bytes);
    /// What the peer's end needs for connect().
    [[nodiscard]] std::string card() const;
    /// Makes the requests and posts the first receive. Local.  Err: job_error.
    void connect(const std::string& peer_card);
    /// The same for all channels of a plan; cards by index(). Collective over the world if that is one-sided: windows.
    static void connect_all(mpi_world& world, std::span<mpi_channel> all, std::span<const std::string> peer_cards,
                            const std::function<void()>& check);
    /// "one-sided" or "packed"
    [[nodiscard]] const char* way() const noexcept { return windows_ ? "one-sided" : path; }
    /// Of what the peer sends here; no other channel of this world has it.
    [[nodiscard]] int tag() const { return tag_; }
    /// MPI reaches every rank of its world: nothing is tried before the first message.
    [[nodiscard]] bool connected() const noexcept { return requests_ != nullptr; }
    mpi_channel(mpi_channel&& other) noexcept;
    mpi_channel& operator=(mpi_channel&& other) noexcept;
    /// Says farewell and never waits for the peer's: until that has come the world keeps the memory and the tag.
    ~mpi_channel();

    [[nodiscard]] std::size_t index() const noexcept { return index_; }
    [[nodiscard]] int peer() const noexcept { return peer_; }

    /// Where the payload of `epoch` is to be written.  Pre: sent(epoch - 1).
    [[nodiscard]] std::byte* target(std::uint64_t) noexcept { return send_ + sizeof(message_header); }
    /// Sends what target(epoch) holds; `stamp` is this rank's clock at the start of the exchange.
    /// Pre: arrived(epoch - 1) and sent(epoch - 1).
    void send(std::uint64_t epoch, std::uint64_t start_stamp, std::uint32_t field_index = 0) noexcept {
        send_part(epoch, start_stamp, send_bytes_, field_index);
    }
    /// A message of fewer bytes than planned; the other end asks check_part() and header().bytes.
    void send_part(std::uint64_t epoch, std::uint64_t start_stamp, std::size_t bytes,
                   std::uint32_t field_index = 0) noexcept;
    /// Has the peer's message of `epoch` arrived? Also true when it never will: then check(epoch) says why.
    [[nodiscard]] bool arrived(std::uint64_t epoch) noexcept;
    /// May the memory of target(epoch) be written again?
    [[nodiscard]] bool sent(std::uint64_t epoch) noexcept;
    /// The peer's payload, 64-byte aligned; valid until send(epoch + 1).  Pre: arrived(epoch).
    [[nodiscard]] const std::byte* received(std::uint64_t epoch) const noexcept {
        return receive_[epoch & 1] + sizeof(message_header);
    }
    /// What came with it.  Pre: arrived(epoch).
    [[nodiscard]] const message_header& header(std::uint64_t epoch) const noexcept {
        return *std::launder(reinterpret_cast<const message_header*>(receive_[epoch & 1]));
    }
    /// Does that header belong to this plan, epoch and size?  Pre: arrived(epoch).
    [[nodiscard]] status check(std::uint64_t epoch) const noexcept;
    /// check() but for the bytes.
    [[nodiscard]] status check_part(std::uint64_t epoch) const noexcept;
    /// What MPI said, if it was MPI that failed; else empty.
    [[nodiscard]] std::string trouble() const;

    /// A farewell in place of the next epoch: a peer that waits for it gets status::aborted.
    void close() noexcept;
    /// Has the peer said farewell too, and is ours delivered? Then nothing is under way any more, in no direction.
    [[nodiscard]] bool closed() noexcept;

  private:
    static constexpr std::uint64_t farewell = std::numeric_limits<std::uint64_t>::max();
    friend class mpi_world; // keeps the ends whose peers have not said farewell
    bool post(std::uint64_t epoch) noexcept;
    void release() noexcept;
    void swap(mpi_channel& other) noexcept;

    mpi_world* world_ = nullptr;
    std::pmr::memory_resource* memory_ = nullptr;
    halocline_mpi_channel* requests_ = nullptr;
    std::byte* buffer_ = nullptr; // one block: send, receive 0, receive 1
    std::size_t buffer_bytes_ = 0;
    std::byte* send_ = nullptr;
    std::array<std::byte*, 2> receive_{};
    std::size_t send_bytes_ = 0, receive_bytes_ = 0, index_ = 0;
    std::uint64_t posted_ = 0;  // receives of epochs <= this one were started
    std::uint64_t arrived_ = 0; // and this many are done
    std::uint64_t started_ = 0; // sends of epochs <= this one were started
    std::uint64_t sent_ = 0;
    std::uint32_t plan_id_ = 0;
    int peer_ = 0, tag_ = -1, error_ = 0;
    int window_ = 0;                       // of this end among those of its plan
    std::shared_ptr<mpi_windows> windows_; // nullptr: two-sided
    bool farewell_sent_ = false, farewell_came_ = false;
};
static_assert(carded_channel<mpi_channel>);

} // namespace halocline::comm
