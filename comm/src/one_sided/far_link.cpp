// SPDX-License-Identifier: Apache-2.0
#include "far_link.hpp"

namespace halocline::comm {

bool far_link::append(const far_item& what, std::span<const std::byte> bytes) noexcept {
    return say_due() && append_item(what, bytes);
}

void far_link::tell(int half, std::uint64_t count) noexcept {
    due_[half] = count;
    push();
}

bool far_link::append_item(const far_item& what, std::span<const std::byte> bytes) noexcept {
    far_item r = what;
    r.bytes = bytes.size();
    if (frames_.append_item(r, bytes.data(), bytes.size())) return true;
    if (frames_.is_empty()) return false;
    send(); // it is full
    return frames_.append_item(r, bytes.data(), bytes.size());
}

bool far_link::say_due() noexcept {
    for (std::uint32_t half = 0; half < 2; ++half) {
        if (due_[half] == said_[half]) continue;
        if (!append_item({far_item::tell, half, due_[half]}, {})) return false;
        said_[half] = due_[half];
    }
    return true;
}

void far_link::send() noexcept {
    if (state_ == status::ok && frames_.can_send()) frames_.send();
}

void far_link::push() noexcept {
    if (state_ != status::ok) return;
    say_due();
    if (!frames_.is_empty()) send();
    while (frames_.owes_answer() && frames_.open()) send();
}

} // namespace halocline::comm
