// SPDX-License-Identifier: Apache-2.0
#include "far_link.hpp"

namespace halocline::comm {

bool far_link::append(const far_record& what, std::span<const std::byte> bytes) noexcept {
    return say_due() && append_record(what, bytes);
}

void far_link::tell(int half, std::uint64_t count) noexcept {
    due_[half] = count;
    push();
}

bool far_link::open() noexcept {
    if (frame_ == nullptr) frame_ = channel_[sent_ % channels].target(sent_ / channels + 1);
    return frame_ != nullptr;
}

bool far_link::append_record(const far_record& what, std::span<const std::byte> bytes) noexcept {
    const std::size_t size = sizeof what + padded(bytes.size());
    if (used_ + size > frame_bytes) send();
    if (!open() || used_ + size > frame_bytes) return false;
    far_record r = what;
    r.bytes = bytes.size();
    std::memcpy(frame_ + used_, &r, sizeof r);
    if (!bytes.empty()) std::memcpy(frame_ + used_ + sizeof r, bytes.data(), bytes.size());
    used_ += size;
    return true;
}

bool far_link::say_due() noexcept {
    for (std::uint32_t half = 0; half < 2; ++half) {
        if (due_[half] == said_[half]) continue;
        if (!append_record({far_record::tell, half, due_[half]}, {})) return false;
        said_[half] = due_[half];
    }
    return true;
}

void far_link::send() noexcept {
    if (frame_ == nullptr || state_ != status::ok || sent_ == taken_ + channels) return;
    channel_[sent_ % channels].send(sent_ / channels + 1, used_);
    ++sent_;
    frame_ = nullptr;
    used_ = 0;
}

void far_link::push() noexcept {
    if (state_ != status::ok) return;
    say_due();
    if (used_ > 0) send();
    // Half of what the neighbour may have under way is unanswered: it may be unable to send.
    while (taken_ >= sent_ + channels / 2 && open()) send();
}

} // namespace halocline::comm
