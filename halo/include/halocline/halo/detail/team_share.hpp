// SPDX-License-Identifier: Apache-2.0
// How the members of a team divide work that none of them waits for.
#pragma once

#include <halocline/halo/team.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>

namespace halocline::halo {

/// The things [first, last) of a member, out of several in a row.
struct team_share {
    std::int64_t first = 0, last = 0;

    /// Of `count` things that follow `before` others: the first and last of the member's.
    /// Shape: 0 <= first <= last <= count.
    [[nodiscard]] team_share among(std::int64_t before, std::int64_t count) const noexcept {
        return {std::clamp<std::int64_t>(first - before, 0, count), std::clamp<std::int64_t>(last - before, 0, count)};
    }
    /// The same for things of equal `size` > 0: each is the member's in whose share it begins.
    [[nodiscard]] team_share among(std::int64_t before, std::int64_t count, std::int64_t size) const noexcept {
        const auto whole = [&](std::int64_t end) {
            return std::clamp<std::int64_t>((end - before + size - 1) / size, 0, count);
        };
        return {whole(first), whole(last)};
    }
};

/// Member t's share of `count` things, equal to the others' but for one. Nothing for a thread that is no member.
[[nodiscard]] inline team_share share_of(std::int64_t count, team t) noexcept {
    if (!t.is_member()) return {};
    return {count * t.index / t.size, count * (t.index + 1) / t.size};
}

/// A value that members of a team write, all the same, or one of them for the others. Whoever reads it also sees what its
/// writer wrote before.
template <class T>
class team_value {
  public:
    team_value(T value = {}) noexcept : value_(value) {}
    team_value(const team_value& other) noexcept : value_(other) {}
    team_value& operator=(T value) noexcept {
        std::atomic_ref(value_).store(value, std::memory_order_release);
        return *this;
    }
    team_value& operator=(const team_value& other) noexcept { return *this = static_cast<T>(other); }
    operator T() const noexcept { return std::atomic_ref(value_).load(std::memory_order_acquire); }
    T operator->() const noexcept requires std::is_pointer_v<T> { return *this; }

  private:
    mutable T value_; // mutable because std::atomic_ref needs that, even to read; no std::atomic, which can't move
};

} // namespace halocline::halo
