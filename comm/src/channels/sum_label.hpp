// SPDX-License-Identifier: Apache-2.0
// What a message of a global sum says of itself: of which sum it is, and how many values; or, in place of values, that
// two ranks sum different numbers of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halocline::comm {

/// The most values of a sum, and the bits that say how many there are.
inline constexpr int most_values = 1024, values_bits = 11;

/// The number of values in the low bits, the ordinal number of the sum in the others (modulo 2^21): by it a rank tells
/// parts of this sum from those of another.
class sum_label {
  public:
    sum_label(std::uint64_t ordinal, std::size_t values)
        : bits_(static_cast<std::uint32_t>(ordinal << values_bits) | static_cast<std::uint32_t>(values)) {}
    /// Of a message that says which two ranks disagree.
    static sum_label of_refusal(std::uint64_t ordinal) { return {ordinal, value_mask}; }
    /// As a channel carries it.
    explicit sum_label(std::uint32_t field_index) : bits_(field_index) {}
    [[nodiscard]] std::uint32_t field_index() const { return bits_; }

    [[nodiscard]] std::size_t values() const { return bits_ & value_mask; }
    [[nodiscard]] bool is_refusal() const { return values() == value_mask; }
    [[nodiscard]] bool is_of_sum(std::uint64_t ordinal) const {
        return (bits_ & ~value_mask) == sum_label(ordinal, 0).bits_;
    }
    friend bool operator==(const sum_label&, const sum_label&) = default;

  private:
    static constexpr std::uint32_t value_mask = (std::uint32_t{1} << values_bits) - 1;
    static_assert(most_values < value_mask);
    std::uint32_t bits_;
};

/// How many values a rank sums, as a refusal says it of two: in the place of a value.
struct summed {
    int rank = 0;
    std::size_t values = 0;
    /// Exact: 31 + 11 bits.
    [[nodiscard]] double packed() const {
        return static_cast<double>((static_cast<std::uint64_t>(rank) << values_bits) + values);
    }
    static summed of(double packed) {
        const auto bits = static_cast<std::uint64_t>(packed);
        return {static_cast<int>(bits >> values_bits), bits & ((std::uint64_t{1} << values_bits) - 1)};
    }
};

} // namespace halocline::comm
