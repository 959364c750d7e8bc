// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <halocline/comm/messenger.hpp>

#include <bit>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace halocline::comm {

/// The numbers by which both ends identify the sends from this rank to one peer that take more than a word: a send has
/// one from its announcement until its peer has all of it. Those never used before are taken in their order.
class send_records {
  public:
    explicit send_records(std::uint32_t records) : free_(records) {
        for (std::uint32_t i = 0; i < records; ++i) free_[i] = records - 1 - i;
    }
    [[nodiscard]] bool all_taken() const noexcept { return free_.empty(); }
    /// What take() will return.  Pre: !all_taken(), as for take().
    [[nodiscard]] std::uint32_t next() const noexcept { return free_.back(); }
    std::uint32_t take() noexcept {
        const std::uint32_t record = next();
        free_.pop_back();
        return record;
    }
    void give_back(std::uint32_t record) noexcept { free_.push_back(record); } // never more than there were

  private:
    std::vector<std::uint32_t> free_;
};

/// How many whole messages that are not immediate a peer over a network keeps a place for.
inline constexpr std::uint32_t whole_places = 64;

/// Some of these places, one bit each, as in frames.
class place_set {
  public:
    constexpr place_set() = default;
    constexpr explicit place_set(std::uint64_t bits) noexcept : bits_(bits) {}
    [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
    [[nodiscard]] constexpr std::size_t size() const noexcept { return static_cast<std::size_t>(std::popcount(bits_)); }
    constexpr void add(std::uint32_t place) noexcept { bits_ |= std::uint64_t{1} << place; }
    constexpr void remove(place_set others) noexcept { bits_ &= ~others.bits_; }
    [[nodiscard]] constexpr bool is_within(place_set other) const noexcept { return (bits_ & ~other.bits_) == 0; }
    template <class Use>
    void for_each(Use&& use) const noexcept {
        for (std::uint64_t left = bits_; left != 0; left &= left - 1)
            use(static_cast<std::uint32_t>(std::countr_zero(left)));
    }

  private:
    static_assert(whole_places == 64);
    std::uint64_t bits_ = 0;
};

/// Some of a link's records, of which it has up to messenger_options::most_large.
class record_set {
  public:
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] bool has(std::uint32_t record) const noexcept { return has_[record]; }
    void add(std::uint32_t record) noexcept {
        size_ += !has_[record];
        has_[record] = true;
    }
    void remove(std::uint32_t record) noexcept {
        size_ -= has_[record];
        has_[record] = false;
    }
    /// Those for which done(record) is true leave the set, in order, until one is not.
    template <class Done>
    void take_while(Done&& done) noexcept {
        for (std::uint32_t record = 0; size_ > 0 && record < has_.size(); ++record) {
            if (!has(record)) continue;
            if (!done(record)) return;
            remove(record);
        }
    }

  private:
    std::bitset<messenger_options::most_large> has_;
    std::size_t size_ = 0;
};

} // namespace halocline::comm
