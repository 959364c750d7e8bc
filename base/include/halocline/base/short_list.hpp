// SPDX-License-Identifier: Apache-2.0
// A list of a few small values that allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace halocline {

/// Up to `most` values of a trivial type, in an array.
template <class T, std::size_t most>
class short_list {
  public:
    /// Pre: fewer than `most` values.
    void push_back(T value) noexcept { values_[size_++] = value; }
    [[nodiscard]] std::span<const T> values() const noexcept { return std::span(values_).first(size_); }

  private:
    std::array<T, most> values_; // not initialised: most of it is never read
    std::size_t size_ = 0;
};

} // namespace halocline
