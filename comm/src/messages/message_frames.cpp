// SPDX-License-Identifier: Apache-2.0
#include "message_frames.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace halocline::comm {

message_frames::message_frames(messenger_core& core, const matching& m, int peer, std::size_t frame_bytes)
    : core_(core), matching_(m), peer_(peer), may_send_(core.options.unexpected),
      credit_told_(core.options.unexpected) {
    stream_.frame_bytes = frame_bytes;
    stream_.head_bytes = sizeof(frame_head);
    stream_.channel.reserve(frame_stream::channels);
}

bool message_frames::send(bool also_empty) noexcept {
    // Everything that arrived and was received, plus the free room among the unexpected ones.
    const std::uint64_t credit = core_.options.unexpected + messages_came_ - matching_.kept(peer_);
    // Both travel with other items if possible.
    constexpr std::size_t most_untold = 8; // places that don't justify a frame of their own
    if (stream_.is_empty() && !also_empty && !credit_is_due(credit) && give_back_.size() < most_untold) return false;
    if (!stream_.can_send()) return false;
    const frame_head head{credit_told_ = credit, std::exchange(give_back_, {}).bits()};
    std::memcpy(stream_.frame, &head, sizeof head);
    stream_.send();
    framed_.finish_all();
    return true;
}

bool message_frames::credit_is_due(std::uint64_t credit) const noexcept {
    const std::uint64_t more = credit - credit_told_;
    const bool is_blocked = messages_came_ == credit_told_; // then this rank may be waiting for the peer's next message
    return more >= std::max<std::uint64_t>(1, core_.options.unexpected / 4) || (is_blocked && more > 0);
}

bool message_frames::read_head(std::span<const std::byte>& frame, std::uint64_t& given_back) noexcept {
    frame_head head;
    if (frame.size() < sizeof head) return false;
    std::memcpy(&head, frame.data(), sizeof head);
    frame = frame.subspan(sizeof head);
    may_send_ = head.credit;
    given_back = head.given_back;
    return true;
}

void message_frames::stop(status s) noexcept {
    closed_ = true;
    if (s == status::peer_died) s = core_.job.lost(peer_, stream_.trouble());
    if (s != status::aborted) core_.broken = s; // aborted: the peer's farewell
}

void message_frames::lose(const std::string& why) {
    closed_ = true;
    core_.broken = core_.job.lost(peer_, why);
}

} // namespace halocline::comm
