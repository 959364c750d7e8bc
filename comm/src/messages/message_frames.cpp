// SPDX-License-Identifier: Apache-2.0
#include "message_frames.hpp"

#include <algorithm>
#include <bit>
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
    constexpr int most_untold = 8; // records to give back that justify a frame of their own
    // Everything that arrived and was received, plus the free room among the unexpected ones.
    const std::size_t unexpected = core_.options.unexpected;
    const std::uint64_t credit = unexpected + messages_came_ - matching_.kept(peer_);
    const bool tell =
        credit - credit_told_ >= std::max<std::uint64_t>(1, unexpected / 4) || std::popcount(give_back_) >= most_untold;
    if (stream_.is_empty() && !also_empty && !tell) return false; // credit travels with other items if possible
    if (!stream_.can_send()) return false;
    const frame_head head{credit_told_ = credit, std::exchange(give_back_, 0)};
    std::memcpy(stream_.frame, &head, sizeof head);
    stream_.send();
    framed_.finish_all();
    return true;
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
