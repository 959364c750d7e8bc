// SPDX-License-Identifier: Apache-2.0
// Writes into a neighbour's memory over a network, in frames (network/frame_stream.hpp). The neighbour stores the bytes
// when it takes a frame, so everything arrives in the order in which it was sent. Changes of items raise layout_number
// (job/layout_number.hpp).
#pragma once

#include "network/frame_stream.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace halocline::comm {

struct far_item {
    enum : std::uint32_t {
        put,   ///< the bytes that follow, to `place` of the payload
        add,   ///< adds 1 to the counter at `place` of the payload
        tell,  ///< `place` is the new count of half `which` of this neighbour's line
        wrote, ///< this neighbour has made `place` writes into the payload in all, which have to be here first
        sends, ///< `bytes`, which follow, come separately, to `place` of the payload
    };
    std::uint32_t kind = put;
    std::uint32_t which = 0;
    std::uint64_t place = 0;
    std::uint64_t bytes = 0; ///< that follow, padded to 8
};

class far_link {
  public:
    static constexpr std::size_t frame_bytes = 8192;
    static constexpr std::size_t most = frame_bytes - sizeof(far_item); ///< bytes of one item

    /// Called `channels` times, in the order of their requests.
    void connect(frame_channel c) { frames_.channel.push_back(c); }

    /// Appends an item to the frames. False: there is no room now.  Pre: bytes.size() <= most.
    bool append(const far_item& what, std::span<const std::byte> bytes = {}) noexcept;
    /// Sets the count of a half of the line there: now, or, if there is no room, before anything appended later.
    void tell(int half, std::uint64_t count) noexcept;
    /// Hands what was appended to the transport, as far as possible, or an empty frame if the neighbour needs one.
    void push() noexcept;
    /// True if nothing is left to be sent.
    [[nodiscard]] bool all_sent() const noexcept {
        return frames_.is_empty() && due_[0] == said_[0] && due_[1] == said_[1];
    }

    /// The result of visiting an item: `later` ends a take(), and the next one visits it again.
    enum class visited { done, later, wrong };
    /// Calls visit(item, payload) -> visited for everything that has arrived, in order.  Returns status::aborted after
    /// the farewell, status::wrong_data if a visit says so or a frame is malformed.
    template <class Visit>
    status take(Visit&& visit) noexcept {
        while (state_ == status::ok) {
            if (!frames_.arrived()) break;
            state_ = frames_.check();
            if (state_ != status::ok) break;
            const visited frame = read(frames_.received(), visit);
            if (frame == visited::later) break;
            if (frame == visited::wrong) state_ = status::wrong_data;
            read_ = 0;
            if (state_ == status::ok) frames_.take();
        }
        return state_;
    }
    /// The transport's error message after take() returned status::peer_died.
    [[nodiscard]] std::string trouble() { return frames_.trouble(); }

  private:
    template <class Visit>
    visited read(std::span<const std::byte> frame, Visit& visit) {
        for (frame = frame.subspan(read_); frame.size() >= sizeof(far_item);) {
            far_item r;
            std::memcpy(&r, frame.data(), sizeof r);
            frame = frame.subspan(sizeof r);
            if (!frame_stream::holds(frame.size(), r.bytes)) return visited::wrong;
            if (const visited v = visit(r, frame.first(r.bytes)); v != visited::done) return v;
            frame = frame.subspan(frame_stream::padded(r.bytes));
            read_ += sizeof r + frame_stream::padded(r.bytes);
        }
        return frame.empty() ? visited::done : visited::wrong;
    }
    bool append_item(const far_item& what, std::span<const std::byte> bytes) noexcept;
    bool say_due() noexcept;
    void send() noexcept;

    frame_stream frames_{.frame_bytes = frame_bytes};
    std::size_t read_ = 0;               // bytes read of the current frame
    std::uint64_t due_[2]{}, said_[2]{}; // counts of the line: as they should be there, and as sent
    status state_ = status::ok;
};

} // namespace halocline::comm
