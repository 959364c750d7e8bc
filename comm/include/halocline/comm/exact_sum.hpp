// SPDX-License-Identifier: Apache-2.0
// Sums of doubles that are exact until they are read: their bits depend on what was added, not on the order, the number
// of ranks, or which rank adds what. For means and norms over all sites of a lattice, in place of long double and hope.
#pragma once

#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace halocline::comm {

/// The exact sum of any number of doubles: an integer of 2144 bits, in digits that overlap [Neal2015].
class exact_accumulator {
  public:
    /// Cost: two additions to memory, and a few shifts.
    void add(double x) noexcept {
        const auto bits = std::bit_cast<std::uint64_t>(x);
        const auto exponent = static_cast<unsigned>(bits >> 52) & 0x7ff;
        if (exponent == 0x7ff) [[unlikely]]
            return add_not_finite(x);
        constexpr std::uint64_t one = std::uint64_t{1} << 52;
        const std::uint64_t fraction = bits & (one - 1);
        // x = mantissa * 2^(exponent - 1075); below the smallest normal number there is no leading one.
        const std::uint64_t mantissa = exponent == 0 ? fraction << 1 : fraction | one;
        const unsigned digit = exponent / 32, shift = exponent % 32;
        const auto low = static_cast<std::int64_t>(mantissa << shift & 0xffff'ffff);
        const auto high = static_cast<std::int64_t>(mantissa >> (32 - shift)); // at most 52 bits
        const auto sign = static_cast<std::int64_t>(bits) >> 63;               // 0 or -1
        digits_[digit] += (low ^ sign) - sign;
        digits_[digit + 1] += (high ^ sign) - sign;
        if (++unsettled_ == most_unsettled) [[unlikely]]
            settle();
    }
    /// Adds all that another one holds.
    exact_accumulator& operator+=(const exact_accumulator& other) noexcept;
    /// The sum, rounded once, to nearest, ties to even. NaN if one was added, or infinities of both signs.
    [[nodiscard]] double rounded() const noexcept;

    /// The accumulator as integers, which may be added, exactly, to those of up to a million others.
    static constexpr std::size_t words = 70;
    void to_words(std::span<double, words> w) noexcept;
    [[nodiscard]] static exact_accumulator from_words(std::span<const double, words> w) noexcept;

  private:
    /// Leaves in each digit but the last 0 to 2^32 - 1.
    void settle() noexcept;
    void add_not_finite(double x) noexcept;

    // 2^10 additions of less than 2^52 fit into a digit of 63 bits.
    static constexpr int most_unsettled = 1 << 10;
    static constexpr std::size_t digits = 67; // those of 2046 / 32 and the next, and two for carries

    std::array<std::int64_t, digits> digits_{}; // digit i counts 2^(32 i - 1075)
    int unsettled_ = 0;                         // additions since settle()
    double nans_ = 0, infinities_[2] = {};      // how many; of either sign
};

/// One or several exact sums over all ranks, here of a product of neighbours:
///
///     comm::exact_sum energy(job);
///     s.for_interior(halo::sequential([&](const auto& n) { energy.add(n.here() * n.at(0, 1)); }));
///     …
///     const double total = energy.sum_or_throw();
///
/// Not for several threads at once: of a team each has an exact_accumulator, and one thread adds these.
class exact_sum {
  public:
    /// Collective.  `values`: how many sums, 1 to 14.
    /// Err: as global_sum's.
    explicit exact_sum(const job& j, int values = 1);

    /// Adds to one of the sums, on this rank.  Pre: 0 <= which < values.
    void add(double x, int which = 0) noexcept { parts_[static_cast<std::size_t>(which)].add(x); }
    /// Adds all that an accumulator holds.
    void add(const exact_accumulator& x, int which = 0) noexcept { parts_[static_cast<std::size_t>(which)] += x; }
    /// Collective. The totals become the sums of all that was added on all ranks since the last call.
    /// Err, Cost: as a global_sum of 70 doubles per value.
    [[nodiscard]] status sum() noexcept;
    /// sum() that throws on a bad status.  Returns: total(0).
    double sum_or_throw();
    /// Of the last sum(): the same bits on every rank.  Pre: 0 <= which < values.
    [[nodiscard]] double total(int which = 0) const { return totals_[static_cast<std::size_t>(which)]; }

  private:
    std::vector<exact_accumulator> parts_;
    std::vector<double> words_, totals_;
    global_sum sum_;
};

} // namespace halocline::comm
