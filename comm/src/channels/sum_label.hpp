// SPDX-License-Identifier: Apache-2.0
// What a message of a global sum carries besides values: which sum it belongs to, and what is summed; or, in place of
// values, that two ranks sum different things.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace halocline::comm {

/// The largest number of values in a sum.
inline constexpr int most_values = 1024;

/// What a rank asks for in one call, in 12 bits: the number of values, and whether their sum or their maximum.
class sum_word {
  public:
    static constexpr int bits = 12;
    static constexpr std::uint32_t mask = (std::uint32_t{1} << bits) - 1;

    /// Any number above most_values is encoded as most_values + 1.
    sum_word(std::size_t values, bool maximum)
        : word_(static_cast<std::uint32_t>(std::min<std::size_t>(values, most_values + 1)) |
                (maximum ? maximum_bit : 0)) {}
    /// Decodes word().
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

/// The word in the low bits, the ordinal number of the sum (modulo 2^20) in the others: it distinguishes parts of
/// this sum from those of another.
class sum_label {
  public:
    sum_label(std::uint64_t ordinal, sum_word what) : sum_label(ordinal, what.word()) {}
    /// The label of a message that names two ranks that disagree.
    static sum_label of_refusal(std::uint64_t ordinal) { return {ordinal, sum_word::mask}; }
    /// Decodes field_index().
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

/// What a rank asks for, in the form in which a refusal reports it, twice, in place of values.
struct summed {
    int rank = 0;
    sum_word what{0};
    /// Exact in a double: 31 + 12 bits.
    [[nodiscard]] double packed() const {
        return static_cast<double>((static_cast<std::uint64_t>(rank) << sum_word::bits) + what.word());
    }
    static summed of(double packed) {
        const auto bits = static_cast<std::uint64_t>(packed);
        return {static_cast<int>(bits >> sum_word::bits), sum_word(static_cast<std::uint32_t>(bits) & sum_word::mask)};
    }
};

} // namespace halocline::comm
