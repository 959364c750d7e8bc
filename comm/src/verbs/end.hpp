// SPDX-License-Identifier: Apache-2.0
// An end of a channel with its queue pair and its work requests, all made at set-up.
#pragma once

#include "library.hpp"
#include "world.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace halocline::comm {

/// What the channels of one plan share: one place where all their completions arrive, and no other plan's.
struct verbs_plan {
    std::uint32_t id = 0;
    const verbs_library& lib;
    ibv_cq* queue = nullptr;
    std::size_t open_ends = 0; ///< not closed yet

    verbs_plan(std::uint32_t plan_id, const verbs_library& functions) : id(plan_id), lib(functions) {}
    verbs_plan(const verbs_plan&) = delete;
    verbs_plan& operator=(const verbs_plan&) = delete;
    ~verbs_plan() {
        if (queue != nullptr) lib.destroy_cq(queue);
    }
};

struct verbs_world::connected_end : verbs_end {
    // A greeting, two messages, the values of one (of a window, of both) and a farewell may arrive before this rank
    // polls; the protocol allows no more.
    static constexpr std::uint32_t batch = 16, receive_depth = 2 * batch;
    static_assert(receive_depth - batch >= 6);
    // Small messages are copied into the work request (inline), so that the next may be filled at once. Only every 16th
    // of them signals its delivery, and twice as many may be under way.
    static constexpr std::uint32_t inline_messages_per_signal = 16;

    // The low bits of a work request's id, below the address of its end.
    enum kind : std::uint64_t { message, receive, greeting, farewell, values_of, kinds = 8 };

    std::shared_ptr<verbs_plan> plan;
    ibv_qp* queue_pair = nullptr;
    ibv_mr* region = nullptr;
    std::uint32_t first_psn = 0;
    std::uint32_t pieces = 1; ///< per message
    std::uint32_t messages_per_signal = 1;
    std::uint32_t consumed = 0; ///< receives since the last batch was posted
    /// The work requests for a message into one slot of the peer: its bytes [first, first + bytes).
    struct message_writes {
        std::vector<ibv_send_wr> pieces; ///< chained
        std::vector<ibv_sge> places;
        std::size_t first = 0, bytes = 0;
        std::uint32_t count = 0; ///< number of pieces that those bytes need
    };
    std::array<message_writes, 2> prepared; ///< by slot
    std::vector<ibv_send_wr> value_writes;  ///< chained
    std::vector<ibv_sge> value_places;
    std::uint32_t peer_key = 0;
    std::uint64_t peer_block = 0;
    std::array<ibv_recv_wr, batch> receives_chained{};
    const char* failed_call = nullptr;
    std::uint32_t vendor_error = 0;
    bool closed = false;       ///< remains only because completions in the plan's queue may still name it
    bool holds_memory = false; ///< closed, but the device didn't let go of its memory

    void chain_values();
    void travel_inline(bool yes) {
        messages_per_signal = yes ? inline_messages_per_signal : 1;
        room = yes ? 2 * inline_messages_per_signal : 1;
    }
    /// The number of writes (messages, greeting and farewell) that may be under way.
    [[nodiscard]] std::uint32_t send_depth() const {
        return pieces * static_cast<std::uint32_t>(room) + 2 + static_cast<std::uint32_t>(value_writes.size());
    }
    /// The number of completions that may arrive before they are polled: if a queue pair fails, one per request, even
    /// those that are not signalled.
    [[nodiscard]] std::size_t most_completions() const { return std::size_t{receive_depth} + send_depth(); }

    [[nodiscard]] std::uint64_t id(kind k) const { return reinterpret_cast<std::uintptr_t>(this) | k; }
    static connected_end& of(std::uint64_t id) {
        return *reinterpret_cast<connected_end*>(id & ~std::uint64_t{kinds - 1});
    }
};

} // namespace halocline::comm
