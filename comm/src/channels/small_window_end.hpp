// SPDX-License-Identifier: Apache-2.0
// How a small window's messages travel through shared memory: through eight slots in the receiver's slab. A sender may
// be four to seven steps ahead, so that a token every fourth step is enough: a step without one moves only the lines of
// its messages (docs/decisions/0011-windows.md).
#pragma once

#include "connection_core.hpp"
#include "control/wire.hpp"
#include "job/slab_block.hpp"
#include "node/short_copy.hpp"

#include <halocline/comm/detail/control_line.hpp>
#include <halocline/comm/detail/prefetch.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace halocline::comm {

/// Where a small window's messages lie in the receiver's slab. One of up to 48 bytes shares its label's cache line; the
/// others begin on the next one.
class window_slots {
  public:
    static constexpr std::uint64_t count = 8;
    static constexpr std::size_t line = 64, beside_label = 48;

    /// What the sender writes behind a message.
    struct label {
        std::uint32_t bytes = 0, window_id = 0;
        std::atomic<std::uint64_t> step{0}; ///< stored last
    };
    static_assert(sizeof(label) == line - beside_label);

    window_slots() = default;
    /// `start`: aligned to 128 bytes.
    window_slots(std::byte* start, std::size_t payload) noexcept : start_(start), payload_(payload) {}

    [[nodiscard]] static constexpr std::size_t block_bytes(std::size_t payload) { return count * stride(payload); }
    [[nodiscard]] std::byte* message(std::uint64_t step) const noexcept { return slot(step) + message_at(payload_); }
    [[nodiscard]] label& of(std::uint64_t step) const noexcept {
        return *reinterpret_cast<label*>(slot(step) + beside_label);
    }
    void prefetch(std::uint64_t step) const noexcept {
        for (std::size_t at = 0; at < used(payload_); at += line) prefetch_for_writing(slot(step) + at);
    }

  private:
    [[nodiscard]] static constexpr std::size_t message_at(std::size_t payload) {
        return payload <= beside_label ? 0 : line;
    }
    [[nodiscard]] static constexpr std::size_t used(std::size_t payload) {
        return payload <= beside_label ? line : line + payload;
    }
    /// Slots are whole pairs of lines, which prefetchers fetch together. (A message that began with a pair of its own
    /// would take a quarter longer where cores are far apart.)
    [[nodiscard]] static constexpr std::size_t stride(std::size_t payload) {
        return (used(payload) + 2 * line - 1) / (2 * line) * (2 * line);
    }
    [[nodiscard]] std::byte* slot(std::uint64_t step) const noexcept {
        return start_ + step % count * stride(payload_);
    }

    std::byte* start_ = nullptr;
    std::size_t payload_ = 0;
};

class small_window_end {
  public:
    /// Larger ones may be streamed (near_window_end.hpp), which where cores are far apart is worth more than tokens.
    static constexpr std::size_t most_bytes = 256;
    /// Token k is sent if k is a multiple of this.
    static constexpr std::uint64_t token_interval = 4;
    static_assert(2 * token_interval == window_slots::count);

    /// Local: memory that the peer may write.  Pre: r.bytes() <= most_bytes.  Lifetime: refers to the request.
    /// `never_connected`: the letter by which the peer's end takes its leave if it was never connected.
    small_window_end(job_core& core, const window_request& r, keyed_letters::name never_connected);
    /// Says farewell. The memory is parked until the peer has said farewell, too.
    ~small_window_end();
    small_window_end(const small_window_end&) = delete;
    small_window_end& operator=(const small_window_end&) = delete;

    // For all of these see window_way.
    void tell(wire_writer& card) const;
    void connect(wire_reader& card, int peer, std::uint32_t id);
    void refuse() noexcept { peer_never_connects_ = true; }
    [[nodiscard]] bool is_connected(status&) const noexcept { return true; }

    [[nodiscard]] bool sent(std::uint64_t) const noexcept { return true; }
    /// For a sender, token `step`.  Pre: has_token(step), or arrived(step).
    [[nodiscard]] status check(std::uint64_t step) const noexcept {
        if (request_.sends) return known_ >= step ? status::ok : status::aborted;
        const bool over = ended(step); // read first: anything sent before the farewell is then visible
        const window_slots::label& l = slots_.of(step);
        if (l.step.load(std::memory_order_acquire) != step) return over ? status::aborted : status::wrong_data;
        return l.window_id == id_ ? status::ok : status::wrong_data;
    }

    /// Step k reuses the slot of step k - 8, so it may be filled once the receiver has begun step k - 7. After the
    /// receiver's farewell, which says how far it came, token k - 1 is asked for: check() tells whether it began that step.
    [[nodiscard]] std::uint64_t token_to_fill(std::uint64_t step) const noexcept {
        constexpr std::uint64_t most_ahead = window_slots::count - 1;
        return end() != 0 ? step - 1 : step <= most_ahead ? 0 : step - most_ahead;
    }
    [[nodiscard]] std::uint64_t token_to_send(std::uint64_t step) const noexcept { return token_to_fill(step); }
    [[nodiscard]] bool has_token(std::uint64_t token) noexcept {
        if (known_ < token) known_ = token_line().epoch.load(std::memory_order_acquire);
        return known_ >= token || has_left();
    }
    [[nodiscard]] std::byte* target(std::uint64_t step) const noexcept { return slots_.message(step); }
    void write(std::byte* to, const std::byte* from, std::size_t bytes) const noexcept {
        if (bytes <= window_slots::line)
            copy_line(to, from, bytes);
        else
            std::memcpy(to, from, bytes);
    }
    void copy(std::uint64_t step, const std::byte* from, std::size_t bytes) const noexcept {
        write(target(step), from, bytes);
    }
    [[nodiscard]] bool is_copied(std::uint64_t, std::size_t) const noexcept { return true; }
    void send_message(std::uint64_t step, std::size_t bytes) noexcept {
        window_slots::label& l = slots_.of(step);
        l.bytes = static_cast<std::uint32_t>(bytes);
        l.window_id = id_;
        l.step.store(step, std::memory_order_release);
        last_ = step;
    }
    /// The slot's lines have been in the receiver's cache since it read them. The token, if one will be needed, should
    /// have come by now.
    void step_begins(std::uint64_t step) const noexcept {
        slots_.prefetch(step);
        if (known_ < token_to_send(step)) __builtin_prefetch(&token_line());
    }
    void step_ended(std::uint64_t) const noexcept {}
    void look_for_peer(std::uint64_t, std::byte*, std::size_t) const noexcept {}

    void send_token(std::uint64_t step) noexcept {
        last_ = step;
        if (step % token_interval == 0) remote_line_->half[0].epoch.store(step, std::memory_order_release);
    }
    [[nodiscard]] bool arrived(std::uint64_t step) const noexcept {
        return slots_.of(step).step.load(std::memory_order_acquire) >= step || ended(step);
    }
    void help(std::uint64_t) const noexcept {}
    [[nodiscard]] const std::byte* received(std::uint64_t step) const noexcept { return slots_.message(step); }
    [[nodiscard]] std::size_t bytes(std::uint64_t step) const noexcept { return slots_.of(step).bytes; }
    void take(std::uint64_t step, std::size_t bytes) const noexcept { write(request_.buffer, received(step), bytes); }

    [[nodiscard]] std::string describe() const;

  private:
    /// Where the peer's tokens and its farewell arrive.
    [[nodiscard]] control_line& line() const noexcept { return *reinterpret_cast<control_line*>(block_.start()); }
    [[nodiscard]] const line_label& token_line() const noexcept { return line().half[0]; }
    /// The peer's farewell: the first step that it won't begin, or whose message won't come; 0: none yet.
    [[nodiscard]] std::uint64_t end() const noexcept { return line().end(); }
    /// Receiver: has the peer said farewell before it sent that step's message?
    [[nodiscard]] bool ended(std::uint64_t step) const noexcept {
        const std::uint64_t e = end();
        return e != 0 && e <= step;
    }
    /// Sender: has the peer said farewell? If so, that has told how far it came, too.
    [[nodiscard]] bool has_left() noexcept {
        const std::uint64_t e = end();
        if (e != 0) known_ = e - 1;
        return e != 0;
    }

    job_core& core_;
    const window_request& request_;
    keyed_letters::name never_connected_;
    slab_block block_; // in this rank's slab: control line and, at the receiver, slots
    // Set by connect():
    control_line* remote_line_ = nullptr;
    window_slots slots_; // both ends': the receiver's
    std::uint32_t id_ = 0;
    bool peer_never_connects_ = false;
    std::uint64_t last_ = 0;  // the last step whose message was sent, or that has begun
    std::uint64_t known_ = 0; // sender: the last token seen
};

} // namespace halocline::comm
