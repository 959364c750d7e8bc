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
#include <vector>

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
        : index_(index), label_(std::make_unique<line_label>()), peer_(peer), receive_at_(lines_of(send_bytes)),
          lines_(receive_at_ + lines_of(receive_bytes), &memory) {
        label_->fill(plan_id, 0, receive_bytes, 0);
        label_->epoch.store(~std::uint64_t{0}, std::memory_order_relaxed);
    }

    [[nodiscard]] std::string card() const { return {}; }
    void connect(const std::string&) {}
    [[nodiscard]] bool connected() const noexcept { return true; }
    [[nodiscard]] std::string trouble() const { return {}; }

    [[nodiscard]] std::size_t index() const noexcept { return index_; }
    [[nodiscard]] int peer() const noexcept { return peer_; }
    [[nodiscard]] std::byte* target(std::uint64_t) noexcept { return reinterpret_cast<std::byte*>(lines_.data()); }
    void send(std::uint64_t, std::uint64_t, std::uint32_t = 0) noexcept {}
    void send_part(std::uint64_t, std::uint64_t, std::size_t, std::uint32_t = 0) noexcept {}
    [[nodiscard]] bool sent(std::uint64_t) const noexcept { return true; }
    [[nodiscard]] bool arrived(std::uint64_t) const noexcept { return true; }
    [[nodiscard]] status check(std::uint64_t) const noexcept { return status::ok; }
    [[nodiscard]] status check_part(std::uint64_t) const noexcept { return status::ok; }
    [[nodiscard]] const std::byte* received(std::uint64_t) const noexcept {
        return reinterpret_cast<const std::byte*>(lines_.data() + receive_at_);
    }
    [[nodiscard]] const line_label& label(std::uint64_t) const noexcept { return *label_; }

  private:
    struct alignas(64) line {
        std::byte bytes[64]{};
    };
    static std::size_t lines_of(std::size_t bytes) { return std::max<std::size_t>((bytes + 63) / 64, 1); }

    std::size_t index_;
    std::unique_ptr<line_label> label_;
    int peer_;
    std::size_t receive_at_;
    std::pmr::vector<line> lines_; // what is sent, followed by the zeros that arrived
};
static_assert(channel<mock_channel> && carded_channel<mock_channel>);

} // namespace halocline::comm
