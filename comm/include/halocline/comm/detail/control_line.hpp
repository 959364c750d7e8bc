// SPDX-License-Identifier: Apache-2.0
// The control line: what a sender writes into its receiver's memory per channel direction, next to the payload. It has
// two halves, used in turn by even and odd epochs, because the sender may be one epoch ahead of the reader. They are
// 128 bytes apart: prefetchers fetch pairs of cache lines, so polling one half would otherwise take the other away from
// its sender. Changes raise layout_number (src/job/layout_number.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace halocline::comm {

/// The label of every message, which its receiver checks. Over a network it travels in front of the payload; over verbs
/// only if the write's completion can't say the same.
struct message_label {
    std::atomic<std::uint64_t> epoch{0};
    std::uint32_t plan_id = 0; ///< same number on every rank of the job
    /// What the kind of channel needs: a direct one's free flag says which field (over a network) or binding may be
    /// written, a slotted one's message where it lies (shm_slotted_channel), that of a sum what is added (sum_label);
    /// otherwise 0.
    std::uint32_t field_index = 0;
    std::uint64_t bytes = 0;
    /// The sender's clock at start() in some epochs, otherwise 0: distinguishes a late peer from a slow transfer.
    std::uint64_t start_stamp = 0;

    /// Sets everything except the epoch, which is stored last.
    void fill(std::uint32_t plan, std::uint32_t field, std::uint64_t payload_bytes, std::uint64_t stamp) noexcept {
        plan_id = plan;
        field_index = field;
        bytes = payload_bytes;
        start_stamp = stamp;
    }
    /// True if the message belongs to that plan and epoch and has that size.
    [[nodiscard]] bool is(std::uint32_t plan, std::uint64_t of_epoch, std::uint64_t payload_bytes) const noexcept {
        return epoch.load(std::memory_order_relaxed) == of_epoch && plan_id == plan && bytes == payload_bytes;
    }
};
static_assert(sizeof(message_label) == 32);

/// The label in mapped memory, where its epoch is the flag: stored last (release) and read first (acquire).
struct alignas(128) line_label : message_label {
    std::atomic<std::uint64_t> end{0}; ///< the sender's farewell: the first epoch that will not come; 0: none yet
    std::byte looked_at{};             ///< only the sender takes it, to measure how far away the receiver is
    alignas(16) std::uint64_t immediate[2]{}; ///< room for a payload of 16 bytes next to the flag
};
static_assert(sizeof(line_label) == 128);

struct alignas(128) control_line {
    line_label half[2];

    /// The sender's last word: nothing is written to the receiver's memory afterwards, so the receiver may reuse it. The
    /// labels stay unchanged, because it may not have read them.  `first`: the first epoch that will not come.
    void say_farewell(std::uint64_t first) noexcept {
        for (line_label& label : half) label.end.store(first, std::memory_order_release);
        // What this rank writes into its buffers from now on is not seen before the farewell (near_window_end.cpp,
        // joint_channel.hpp).
        std::atomic_thread_fence(std::memory_order_release);
    }
    /// That epoch; 0: no farewell yet.
    [[nodiscard]] std::uint64_t end() const noexcept {
        return half[1].end.load(std::memory_order_acquire); // written last
    }
    /// Has the sender said farewell?
    [[nodiscard]] bool closed() const noexcept { return end() != 0; }
};
static_assert(sizeof(control_line) == 256);

} // namespace halocline::comm
