// SPDX-License-Identifier: Apache-2.0
// How a large window's messages travel over a network whose device reads and writes memory by itself: straight from
// the sender's array if that lies in its slab, and straight into the receiver's if that does. If an array lies
// elsewhere, or the window has its own buffer, that end uses registered memory instead: one buffer at the sender, two
// slots at the receiver.
#pragma once

#include "network/direct_memory.hpp"
#include "network/network_window_channel.hpp"
#include "network_window_end.hpp"

#include <memory>

namespace halocline::comm {

/// From this size on two copies take longer than the wait that replaces them, for the token of the message's own step
/// (docs/decisions/0011-windows.md).
inline constexpr std::size_t least_straight = 64 * 1024;

/// The memory that messages are written from, or to, at one end.
class straight_places {
  public:
    /// Err: job_error: the network can't register it.
    straight_places(connection_core& c, const window_request& r)
        : core_(c.job.core()), in_array_(core_.memory->contains(r.buffer)), stride_((r.bytes() + 63) / 64 * 64),
          count_(in_array_ || r.sends ? 1 : 2) {
        if (!in_array_) block_ = static_cast<std::byte*>(core_.memory->allocate_for_peers(count_ * stride_, 64));
        first_ = in_array_ ? r.buffer : block_;
        try {
            std::vector<std::span<std::byte>> all;
            for (std::size_t n = 0; n < count_; ++n) all.emplace_back(first_ + n * stride_, r.bytes());
            memory_ = register_fields(c.job, core_.members[c.peer].transport, all);
        } catch (...) {
            give_back();
            throw;
        }
    }
    /// The peer may still access the block, which stays pinned for as long as the channel's end needs it.
    ~straight_places() {
        if (!core_.in_forked_child()) give_back();
    }
    straight_places(const straight_places&) = delete;
    straight_places& operator=(const straight_places&) = delete;

    /// For the channel, which keeps the memory registered.
    [[nodiscard]] std::shared_ptr<const direct_memory> registered() const { return memory_; }
    /// Is it the user's array?
    [[nodiscard]] bool in_array() const noexcept { return in_array_; }
    [[nodiscard]] std::byte* of(std::uint64_t step) const noexcept {
        return count_ == 1 ? first_ : first_ + (step & 1) * stride_;
    }

  private:
    void give_back() noexcept {
        if (block_ != nullptr) core_.memory->deallocate(block_, count_ * stride_, 64);
    }

    job_core& core_;
    bool in_array_;
    std::size_t stride_, count_;
    std::byte *block_ = nullptr, *first_ = nullptr;
    std::shared_ptr<const direct_memory> memory_;
};

template <class Channel>
class straight_window_end : private straight_places, public network_window_end<Channel> {
    using base = network_window_end<Channel>;

  public:
    /// See network_window_end().
    straight_window_end(connection_core& c, const window_request& r, std::uint32_t number, std::uint32_t id)
        : straight_places(c, r), base(c, r, number, id,
                                      Channel(world_of<Channel>(c.job.core()), *c.job.core().memory, c.peer, id,
                                              r.sends, r.bytes(), registered())) {}

    void tell(wire_writer& card) const {
        base::tell(card);
        card.number(in_array());
    }
    void connect(wire_reader& card, int peer, std::uint32_t id) {
        base::connect(card, peer, id);
        peer_in_array_ = card.number<bool>();
    }
    [[nodiscard]] status check(std::uint64_t epoch) noexcept {
        return this->explained(this->request_.sends ? this->channel_.check_part(epoch)
                                                    : this->channel_.check_message(epoch));
    }
    [[nodiscard]] bool arrived(std::uint64_t step) noexcept { return this->channel_.message_arrived(step); }
    /// A window's own buffer may be filled while the receiver still reads the previous message from its array.
    [[nodiscard]] std::uint64_t token_to_fill(std::uint64_t step) const noexcept { return step - 1; }
    [[nodiscard]] std::uint64_t token_to_send(std::uint64_t step) const noexcept {
        return this->channel_.has_one_target() ? step : step - 1;
    }
    [[nodiscard]] std::byte* target(std::uint64_t step) const noexcept { return of(step); }
    void copy(std::uint64_t step, const std::byte* from, std::size_t bytes) noexcept {
        if (!in_array()) this->copy_counted(target(step), from, bytes);
    }
    [[nodiscard]] std::size_t bytes(std::uint64_t step) const noexcept { return this->channel_.bytes(step); }
    [[nodiscard]] const std::byte* received(std::uint64_t step) const noexcept { return of(step); }
    void take(std::uint64_t step, std::size_t bytes) noexcept {
        if (!in_array()) this->copy_counted(this->request_.buffer, received(step), bytes);
    }

    [[nodiscard]] std::string describe() const {
        const bool sends = this->request_.sends, own = this->has_own_buffer();
        const bool from_array = sends ? in_array() : peer_in_array_, to_array = sends ? peer_in_array_ : in_array();
        std::string how = from_array ? "from the sender's array" : sends && !own ? "copied to" : "from";
        if (!from_array) how += " a send buffer";
        how += to_array ? ", straight into the receiver's array" : ", into the receiver's slot";
        if (!sends && !own && !to_array) how += ", copied from there";
        return how + this->copied_here();
    }

  private:
    bool peer_in_array_ = false; // once connected
};

} // namespace halocline::comm
