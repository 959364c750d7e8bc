// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/window.hpp>

#include "window_end.hpp"

#include <halocline/comm/detail/copy_bytes.hpp>

#include <algorithm>
#include <utility>

namespace halocline::comm {

window::window(connection& c, const spec& s)
    : end_("a window", std::make_unique<window_end>(c.core(), window_request{s.sends, s.element, s.count, s.buffer})) {}
window::window(window&&) noexcept = default;
window& window::operator=(window&&) noexcept = default;
window::~window() = default;

bool window::test() noexcept { return end_->test(); }
status window::wait() noexcept { return end_->wait(); }
void window::wait_or_throw() {
    if (const status s = end_->wait(); s != status::ok) end_->job().fail(s, end_->pending());
}
status window::state() const noexcept { return end_->state(); }
std::string window::pending() const { return end_->pending(); }
std::string window::describe() const { return end_->describe(); }
status window::begin() noexcept { return end_->begin(); }
status window::fill() noexcept { return end_->fill(); }
status window::post_bytes(std::size_t bytes) noexcept { return end_->post(bytes); }
std::size_t window::received_bytes() const noexcept { return end_->received_bytes(); }
std::byte* window::buffer() const noexcept { return end_->buffer(); }

namespace {

/// Bytes [first, last) for one member of the team, cut at cache lines.  Pre: t.is_member().
std::pair<std::size_t, std::size_t> share_of(std::size_t bytes, team t) noexcept {
    constexpr std::size_t line = 64;
    const std::size_t lines = (bytes + line - 1) / line;
    const auto index = static_cast<std::size_t>(t.index), size = static_cast<std::size_t>(t.size);
    return {std::min(bytes, lines * index / size * line), std::min(bytes, lines * (index + 1) / size * line)};
}

} // namespace

void window::insert_share(std::size_t at, const std::byte* from, std::size_t bytes, team t) noexcept {
    if (!end_->may_fill(at, bytes) || !end_->has_member(t)) return;
    const auto [first, last] = share_of(bytes, t);
    if (last > first) end_->write(end_->buffer() + at + first, from + first, last - first);
}

void window::extract_share(std::byte* to, const std::byte* from, std::size_t bytes, team t) const noexcept {
    if (!end_->has_member(t)) return;
    const auto [first, last] = share_of(bytes, t);
    if (last > first) copy_bytes(to + first, from + first, last - first);
}

} // namespace halocline::comm
