// SPDX-License-Identifier: Apache-2.0
// How a window's messages travel over a network through buffers at both ends: through the send buffer of a channel into
// the peer's slot.
#pragma once

#include "network_window_end.hpp"

namespace halocline::comm {

template <class Channel>
class far_window_end : public network_window_end<Channel> {
    using base = network_window_end<Channel>;

  public:
    /// See network_window_end().
    far_window_end(connection_core& c, const window_request& r, std::uint32_t number, std::uint32_t id)
        : base(c, r, number, id,
               Channel(world_of<Channel>(c.job.core()), *c.job.core().memory, 0, c.peer, id, r.bytes_out(),
                       r.bytes_in())) {}

    [[nodiscard]] status check(std::uint64_t epoch) noexcept {
        return this->explained(this->channel_.check_part(epoch));
    }
    [[nodiscard]] bool arrived(std::uint64_t step) noexcept { return this->channel_.arrived(step); }
    [[nodiscard]] std::uint64_t token_to_fill(std::uint64_t step) const noexcept { return step - 1; }
    [[nodiscard]] std::uint64_t token_to_send(std::uint64_t step) const noexcept { return step - 1; }
    [[nodiscard]] std::byte* target(std::uint64_t step) noexcept { return this->channel_.target(step); }
    void copy(std::uint64_t step, const std::byte* from, std::size_t bytes) noexcept {
        this->copy_counted(target(step), from, bytes);
    }
    [[nodiscard]] std::size_t bytes(std::uint64_t step) const noexcept { return this->channel_.label(step).bytes; }
    [[nodiscard]] const std::byte* received(std::uint64_t step) const noexcept { return this->channel_.received(step); }
    void take(std::uint64_t step, std::size_t bytes) noexcept {
        this->copy_counted(this->request_.buffer, received(step), bytes);
    }

    [[nodiscard]] std::string describe() const {
        const bool own = this->has_own_buffer();
        return std::string(own ? "from" : "copied to") + " a send buffer, into the receiver's slot" +
               (this->request_.sends || own ? "" : ", copied from there") + this->copied_here();
    }
};

} // namespace halocline::comm
