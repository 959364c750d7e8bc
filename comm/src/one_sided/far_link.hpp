// SPDX-License-Identifier: Apache-2.0
// Writes into a neighbour's memory over a network. They travel in frames, which use the epochs of a few channels in
// turn; the neighbour stores the bytes when it takes a frame. So everything arrives in the order in which it was sent.
//
// Frame n may go when the neighbour's frame n - channels is here. Whoever takes frames answers them, with empty ones if
// need be, in every wait of the rank.
#pragma once

#include "messages/message_frames.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace halocline::comm {

struct far_record {
    enum : std::uint32_t {
        put,   ///< the bytes that follow, to `place` of the payload
        add,   ///< 1 to the counter at `place` of the payload
        tell,  ///< `place` is the new count of half `which` of this neighbour's line
        wrote, ///< this neighbour has written into the payload: `place` writes in all, which have to be here first
        sends, ///< the number of bytes that follows comes apart, to `place` of the payload
    };
    std::uint32_t kind = put;
    std::uint32_t which = 0;
    std::uint64_t place = 0;
    std::uint64_t bytes = 0; ///< that follow, padded to 8
};

class far_link {
  public:
    static constexpr std::uint64_t channels = 4;
    static constexpr std::size_t frame_bytes = 8192;
    static constexpr std::size_t most = frame_bytes - sizeof(far_record); ///< bytes of one record

    /// In the order of their requests, `channels` times.
    void connect(frame_channel c) { channel_.push_back(c); }

    /// Appends a record to the frames. False: there is no room now.  Pre: bytes.size() <= most.
    bool append(const far_record& what, std::span<const std::byte> bytes = {}) noexcept;
    /// Sets the count of a half of the line there: now, or if there is no room, before anything that is appended later.
    void tell(int half, std::uint64_t count) noexcept;
    /// Hands what is appended to the transport, as far as it may go, or an empty frame if the neighbour needs one.
    void push() noexcept;
    /// True if nothing is left to be sent.
    [[nodiscard]] bool all_sent() const noexcept { return used_ == 0 && due_[0] == said_[0] && due_[1] == said_[1]; }

    /// What became of a record: `later` ends a take(), and the next one visits it again.
    enum class visited { done, later, wrong };
    /// Calls visit(record, payload) -> visited for all that has come, in order.  Returns status::aborted after the
    /// farewell, status::wrong_data if a visit says so or a frame is none.
    template <class Visit>
    status take(Visit&& visit) noexcept {
        while (state_ == status::ok) {
            frame_channel& c = channel_[taken_ % channels];
            const std::uint64_t epoch = taken_ / channels + 1;
            if (!c.arrived(epoch)) break;
            state_ = c.check(epoch);
            if (state_ != status::ok) break;
            const visited frame = read(c.received(epoch), visit);
            if (frame == visited::later) break;
            if (frame == visited::wrong) state_ = status::wrong_data;
            read_ = 0;
            if (state_ == status::ok) ++taken_;
        }
        return state_;
    }
    /// What the transport said when take() gave status::peer_died.
    [[nodiscard]] std::string trouble() { return channel_[taken_ % channels].trouble(); }

  private:
    template <class Visit>
    visited read(std::span<const std::byte> frame, Visit& visit) {
        for (frame = frame.subspan(read_); frame.size() >= sizeof(far_record);) {
            far_record r;
            std::memcpy(&r, frame.data(), sizeof r);
            frame = frame.subspan(sizeof r);
            if (padded(r.bytes) > frame.size()) return visited::wrong;
            if (const visited v = visit(r, frame.first(r.bytes)); v != visited::done) return v;
            frame = frame.subspan(padded(r.bytes));
            read_ += sizeof r + padded(r.bytes);
        }
        return frame.empty() ? visited::done : visited::wrong;
    }
    static constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }
    bool append_record(const far_record& what, std::span<const std::byte> bytes) noexcept;
    bool open() noexcept;
    bool say_due() noexcept;
    void send() noexcept;

    std::vector<frame_channel> channel_;
    std::uint64_t sent_ = 0, taken_ = 0; // frames
    std::byte* frame_ = nullptr;         // number sent_, if it may be filled
    std::size_t used_ = 0;               // bytes of it
    std::size_t read_ = 0;               // bytes of frame taken_
    std::uint64_t due_[2]{}, said_[2]{}; // counts of the line
    status state_ = status::ok;
};

} // namespace halocline::comm
