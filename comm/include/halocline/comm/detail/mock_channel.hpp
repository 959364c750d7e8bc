// SPDX-License-Identifier: Apache-2.0
// A channel to nobody: a send is done at once, and a message of zeros has always arrived. An exchange over it costs
// everything but the wire; for benches and tests. Only a job that names "mock", and nothing else, uses it, for messages
// to itself too.
#pragma once

#include <halocline/comm/detail/channel.hpp>
#include <halocline/comm/detail/control_line.hpp>
#include <halocline/comm/status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <string>
#include <utility>

namespace halocline::comm {

struct mock_world {};

class mock_channel {
  public:
    static constexpr const char* transport = "mock";
    static constexpr const char* path_name = "packed";
    static constexpr channel_kind kind = channel_kind::slots;
    static constexpr bool in_peer_memory = false;
    using world_type = mock_world;

    mock_channel(mock_world&, std::pmr::memory_resource& memory, std::size_t index, int peer, std::uint32_t plan_id,
                 std::size_t send_bytes, std::size_t receive_bytes)
        : memory_(&memory), index_(index), send_bytes_(padded(send_bytes)), receive_bytes_(padded(receive_bytes)),
          label_(std::make_unique<line_label>()), peer_(peer) {
        buffer_ = static_cast<std::byte*>(memory.allocate(send_bytes_ + receive_bytes_, 64));
        std::fill_n(buffer_, send_bytes_ + receive_bytes_, std::byte{});
        label_->fill(plan_id, 0, receive_bytes, 0);
        label_->epoch.store(~std::uint64_t{0}, std::memory_order_relaxed);
    }
    mock_channel(mock_channel&& other) noexcept { swap(other); }
    mock_channel& operator=(mock_channel&& other) noexcept {
        mock_channel(std::move(other)).swap(*this);
        return *this;
    }
    ~mock_channel() {
        if (buffer_ != nullptr) memory_->deallocate(buffer_, send_bytes_ + receive_bytes_, 64);
    }

    [[nodiscard]] std::string card() const { return {}; }
    void connect(const std::string&) {}
    [[nodiscard]] bool connected() const noexcept { return true; }
    [[nodiscard]] std::string trouble() const { return {}; }

    [[nodiscard]] std::size_t index() const noexcept { return index_; }
    [[nodiscard]] int peer() const noexcept { return peer_; }
    [[nodiscard]] std::byte* target(std::uint64_t) noexcept { return buffer_; }
    void send(std::uint64_t, std::uint64_t, std::uint32_t = 0) noexcept {}
    void send_part(std::uint64_t, std::uint64_t, std::size_t, std::uint32_t = 0) noexcept {}
    [[nodiscard]] bool sent(std::uint64_t) const noexcept { return true; }
    [[nodiscard]] bool arrived(std::uint64_t) const noexcept { return true; }
    [[nodiscard]] status check(std::uint64_t) const noexcept { return status::ok; }
    [[nodiscard]] status check_part(std::uint64_t) const noexcept { return status::ok; }
    [[nodiscard]] const std::byte* received(std::uint64_t) const noexcept { return buffer_ + send_bytes_; }
    [[nodiscard]] const line_label& label(std::uint64_t) const noexcept { return *label_; }

  private:
    static std::size_t padded(std::size_t bytes) { return std::max<std::size_t>((bytes + 63) / 64 * 64, 64); }
    void swap(mock_channel& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(index_, other.index_);
        std::swap(send_bytes_, other.send_bytes_);
        std::swap(receive_bytes_, other.receive_bytes_);
        std::swap(label_, other.label_);
        std::swap(peer_, other.peer_);
        std::swap(buffer_, other.buffer_);
    }

    std::pmr::memory_resource* memory_ = nullptr;
    std::size_t index_ = 0, send_bytes_ = 0, receive_bytes_ = 0;
    std::unique_ptr<line_label> label_;
    std::byte* buffer_ = nullptr; // what is sent, followed by the zeros that arrived
    int peer_ = 0;
};
static_assert(channel<mock_channel> && carded_channel<mock_channel>);

} // namespace halocline::comm
