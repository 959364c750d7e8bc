// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "message_layout.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace halocline::comm {

/// The numbers by which both ends identify the sends from this rank to one peer that take more than a word: a send has
/// one from its announcement until its peer has all of it.
class send_records {
  public:
    static constexpr std::uint32_t records = link_layout::records;
    send_records() noexcept {
        for (std::uint32_t i = 0; i < records; ++i) free_[i] = records - 1 - i;
    }
    [[nodiscard]] bool all_taken() const noexcept { return count_ == 0; }
    /// What take() will return.  Pre: !all_taken(), as for take().
    [[nodiscard]] std::uint32_t next() const noexcept { return free_[count_ - 1]; }
    std::uint32_t take() noexcept { return free_[--count_]; }
    void give_back(std::uint32_t record) noexcept { free_[count_++] = record; }

  private:
    std::size_t count_ = records;
    std::uint32_t free_[records];
};

/// Some of the records of one link.
class record_set {
  public:
    constexpr record_set() = default;
    /// A bit for each record, as in frames.
    constexpr explicit record_set(std::uint64_t bits) noexcept : bits_(bits) {}
    [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
    [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == 0; }
    [[nodiscard]] constexpr std::size_t size() const noexcept { return static_cast<std::size_t>(std::popcount(bits_)); }
    [[nodiscard]] constexpr bool has(std::uint32_t record) const noexcept { return (bits_ >> record & 1) != 0; }
    constexpr void add(std::uint32_t record) noexcept { bits_ |= std::uint64_t{1} << record; }
    constexpr void remove(std::uint32_t record) noexcept { bits_ &= ~(std::uint64_t{1} << record); }
    constexpr void remove(record_set others) noexcept { bits_ &= ~others.bits_; }
    [[nodiscard]] constexpr bool is_within(record_set one, record_set other) const noexcept {
        return (bits_ & ~(one.bits_ | other.bits_)) == 0;
    }
    [[nodiscard]] constexpr record_set without(record_set others) const noexcept {
        return record_set(bits_ & ~others.bits_);
    }
    /// The lowest one, which leaves the set.  Pre: !empty().
    constexpr std::uint32_t take() noexcept {
        const auto record = static_cast<std::uint32_t>(std::countr_zero(bits_));
        bits_ &= bits_ - 1;
        return record;
    }
    template <class Use>
    void for_each(Use&& use) const noexcept {
        for (record_set left = *this; !left.empty();) use(left.take());
    }
    /// Those for which done(record) is true leave the set, in order, until one is not.
    template <class Done>
    void take_while(Done&& done) noexcept {
        for (record_set left = *this; !left.empty();) {
            const std::uint32_t record = left.take();
            if (!done(record)) return;
            remove(record);
        }
    }

  private:
    static_assert(send_records::records == 64);
    std::uint64_t bits_ = 0;
};

} // namespace halocline::comm
