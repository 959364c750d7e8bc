// SPDX-License-Identifier: Apache-2.0
// What a message of a global sum says of itself: of which sum it is, and what is summed; or, in place of values, that
// two ranks sum different things.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace halocline::comm {

/// The most values of a sum.
inline constexpr int most_values = 1024;

/// What a rank asks of one call, in 12 bits: of how many values, and whether their sum or their maximum.
class sum_word {
  public:
    static constexpr int bits = 12;
    static constexpr std::uint32_t mask = (std::uint32_t{1} << bits) - 1;

    /// More than most_values are told as one more.
    sum_word(std::size_t values, bool maximum)
        : word_(static_cast<std::uint32_t>(std::min<std::size_t>(values, most_values + 1)) |
                (maximum ? maximum_bit : 0)) {}
    /// From word().
    explicit sum_word(std::uint32_t word) : word_(word) {}
    [[nodiscard]] std::uint32_t word() const { return word_; }

    [[nodiscard]] std::size_t values() const { return word_ & ~maximum_bit; }
    [[nodiscard]] bool is_maximum() const { return (word_ & maximum_bit) != 0; }
    friend bool operator==(const sum_word&, const sum_word&) = default;

  private:
    static constexpr std::uint32_t maximum_bit = std::uint32_t{1} << (bits - 1);
    static_assert(most_values + 1 < maximum_bit && ((most_values + 1) | maximum_bit) < mask); // mask: a refusal
    std::uint32_t word_;
};

/// The word in the low bits, the ordinal number of the sum in the others (modulo 2^20): by it a rank tells parts of
/// this sum from those of another.
class sum_label {
  public:
    sum_label(std::uint64_t ordinal, sum_word what) : sum_label(ordinal, what.word()) {}
    /// The label of a message that says which two ranks disagree.
    static sum_label of_refusal(std::uint64_t ordinal) { return {ordinal, sum_word::mask}; }
    /// From field_index().
    explicit sum_label(std::uint32_t field_index) : bits_(field_index) {}
    [[nodiscard]] std::uint32_t field_index() const { return bits_; }

    [[nodiscard]] sum_word what() const { return sum_word(bits_ & sum_word::mask); }
    [[nodiscard]] bool is_refusal() const { return (bits_ & sum_word::mask) == sum_word::mask; }
    [[nodiscard]] bool is_of_sum(std::uint64_t ordinal) const {
        return (bits_ & ~sum_word::mask) == sum_label(ordinal, 0).bits_;
    }
    friend bool operator==(const sum_label&, const sum_label&) = default;

  private:
    sum_label(std::uint64_t ordinal, std::uint32_t word)
        : bits_(static_cast<std::uint32_t>(ordinal << sum_word::bits) | word) {}
    std::uint32_t bits_;
};

/// What a rank asks for, as a refusal says it of two: in the place of a value.
struct summed {
    int rank = 0;
    sum_word what{0};
    /// Exact: 31 + 12 bits.
    [[nodiscard]] double packed() const {
        return static_cast<double>((static_cast<std::uint64_t>(rank) << sum_word::bits) + what.word());
    }
    static summed of(double packed) {
        const auto bits = static_cast<std::uint64_t>(packed);
        return {static_cast<int>(bits >> sum_word::bits), sum_word(static_cast<std::uint32_t>(bits) & sum_word::mask)};
    }
};

} // namespace halocline::comm
