// SPDX-License-Identifier: Apache-2.0
// What the parts of one messenger share: the job, the options, counts, and what went wrong.
#pragma once

#include "job/job_core.hpp"

#include <halocline/comm/detail/copy_bytes.hpp>
#include <halocline/comm/messenger.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace halocline::comm {

/// A message's description of itself; in MPI's words its envelope, and its size.
struct envelope {
    int source = 0, tag = 0;
    std::uint32_t context = 0;
    std::uint64_t bytes = 0;
};

/// Frames, and pieces of large messages that went one by one: whether what a wait is for moves on.
class movement {
  public:
    explicit movement(int ranks) : latest_(static_cast<std::size_t>(ranks), 0) {}
    /// Some more have gone to that rank, or come from it.
    void note(int peer, std::uint64_t more = 1) noexcept { latest_[peer] = count_ += more; }
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    /// Has anything gone to that rank (any_source: to any), or come from it, since count() was this?
    [[nodiscard]] bool since(std::uint64_t then, int peer) const noexcept {
        return (peer == any_source ? count_ : latest_[peer]) > then;
    }

  private:
    std::uint64_t count_ = 0;
    std::vector<std::uint64_t> latest_; ///< by rank: the count when something last moved
};

/// What the failed wait was for.
struct failed_wait {
    bool is_send = false;
    int peer = 0, tag = 0;
    std::uint64_t room = 0, message_bytes = 0;
    std::size_t more = 0;    ///< number of other operations that it waited for, too
    bool in_use = false;     ///< its request was under way already
    bool queued = false;     ///< a send that has not found room
    bool is_settled = false; ///< it was for nothing more, when the job ended
};

struct messenger_core {
    job_core& job;
    const messenger_options options;
    message_owner owner{};
    message_counts counts{};
    status state = status::ok;  ///< bad since the first wait that failed
    status broken = status::ok; ///< a channel's; becomes `state` in a wait, which knows what was waited for
    failed_wait failed{};       ///< what that wait was for
    movement moved{job.ranks};

    [[nodiscard]] bool is_immediate(std::uint64_t bytes) const noexcept { return bytes <= options.immediate_bytes; }
    /// A message has met its receive. Returns the number of bytes wanted: all, or none if the receive has too little
    /// room, which is a failure. Even then a large message is called for, so that its send ends.
    std::uint64_t begin_receive(message_operation& receive, const envelope& m) noexcept {
        receive.info = {m.source, m.tag, m.bytes};
        if (m.bytes <= receive.bytes) return m.bytes;
        if (state == status::ok) fail(status::wrong_data, receive, 0, m.bytes);
        return 0;
    }
    /// A receive gets an immediate message, whose bytes are here.
    void deliver_immediate(message_operation& receive, const envelope& m, const std::byte* payload) noexcept {
        copy_bytes(receive.data, payload, begin_receive(receive, m));
        ++counts.immediate;
        receive.finish();
    }
    void fail(status why, const message_operation& o, std::size_t more, std::uint64_t message_bytes = 0) noexcept;
    /// The message that a receive had met is withdrawn by its sender: the receive takes the next one.
    void receive_another(message_operation& receive) noexcept;
    /// Fails with status::misused: no such peer or tag, or a request that is `in_use`.
    void misuse(bool is_send, int peer, int tag, bool in_use = false) noexcept {
        if (state != status::ok) return;
        state = status::misused;
        failed = {.is_send = is_send, .peer = peer, .tag = tag, .in_use = in_use};
    }
};

} // namespace halocline::comm
