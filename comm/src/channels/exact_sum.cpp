// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/exact_sum.hpp>

#include <halocline/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace halocline::comm {

namespace {

constexpr int lowest_exponent = -1075; // of bit 0 of digit 0

/// Collective.  Err: input_error on every rank.
int words_of(const job& j, int values) {
    constexpr int words = static_cast<int>(exact_accumulator::words), most = 1024 / words;
    j.collectively([&] {
        if (values < 1 || values > most)
            throw input_error("an exact sum of " + std::to_string(values) + " values: 1 to " + std::to_string(most) +
                              " are expected");
    });
    return values * words;
}

} // namespace

void exact_accumulator::settle() noexcept {
    for (std::size_t i = 0; i + 1 < digits; ++i) {
        digits_[i + 1] += digits_[i] >> 32; // rounds down, so that what stays is not negative
        digits_[i] &= 0xffff'ffff;
    }
    unsettled_ = 0;
}

void exact_accumulator::add_not_finite(double x) noexcept {
    if (std::isnan(x))
        ++nans_;
    else
        ++infinities_[std::signbit(x) ? 1 : 0];
}

double exact_accumulator::rounded() const noexcept {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (nans_ > 0 || (infinities_[0] > 0 && infinities_[1] > 0)) return std::numeric_limits<double>::quiet_NaN();
    if (infinities_[0] > 0) return infinity;
    if (infinities_[1] > 0) return -infinity;

    exact_accumulator a = *this;
    a.settle();
    const bool negative = a.digits_.back() < 0;
    if (negative) {
        for (std::int64_t& d : a.digits_) d = -d;
        a.settle();
    }
    // The highest digit, and the number of bits below the end of its highest bit.
    std::size_t top = digits - 1;
    while (top > 0 && a.digits_[top] == 0) --top;
    const int bits =
        static_cast<int>(32 * top) + static_cast<int>(std::bit_width(static_cast<std::uint64_t>(a.digits_[top])));

    // The mantissa has the highest 53 bits, or those from 2^-1074 on.
    const int cut = std::max(bits - 53, 1);
    std::uint64_t mantissa = 0;
    for (int digit = cut / 32, shift = -(cut % 32); digit < static_cast<int>(digits) && shift < 64;
         ++digit, shift += 32) {
        const auto d = static_cast<std::uint64_t>(a.digits_[static_cast<std::size_t>(digit)]);
        mantissa |= shift < 0 ? d >> -shift : d << shift;
    }
    const auto bit = [&](int i) { return (a.digits_[static_cast<std::size_t>(i / 32)] >> i % 32 & 1) != 0; };
    const auto is_any_below = [&](int end) {
        for (int i = 0; i < end / 32; ++i)
            if (a.digits_[static_cast<std::size_t>(i)] != 0) return true;
        const std::int64_t below = (std::int64_t{1} << end % 32) - 1;
        return (a.digits_[static_cast<std::size_t>(end / 32)] & below) != 0;
    };
    if (bit(cut - 1) && ((mantissa & 1) != 0 || is_any_below(cut - 1))) ++mantissa;
    const double magnitude = std::ldexp(static_cast<double>(mantissa), cut + lowest_exponent);
    return negative ? -magnitude : magnitude;
}

exact_accumulator& exact_accumulator::operator+=(const exact_accumulator& other) noexcept {
    settle();
    exact_accumulator settled = other;
    settled.settle();
    for (std::size_t i = 0; i < digits; ++i) digits_[i] += settled.digits_[i];
    settle();
    nans_ += other.nans_;
    for (int sign : {0, 1}) infinities_[sign] += other.infinities_[sign];
    return *this;
}

void exact_accumulator::to_words(std::span<double, words> w) noexcept {
    settle();
    for (std::size_t i = 0; i < digits; ++i) w[i] = static_cast<double>(digits_[i]);
    w[digits] = nans_;
    w[digits + 1] = infinities_[0];
    w[digits + 2] = infinities_[1];
}

exact_accumulator exact_accumulator::from_words(std::span<const double, words> w) noexcept {
    exact_accumulator a;
    for (std::size_t i = 0; i < digits; ++i) a.digits_[i] = static_cast<std::int64_t>(w[i]);
    a.nans_ = w[digits];
    a.infinities_[0] = w[digits + 1];
    a.infinities_[1] = w[digits + 2];
    a.settle();
    return a;
}

exact_sum::exact_sum(const job& j, int values) : sum_(j, words_of(j, values)) {
    parts_.resize(static_cast<std::size_t>(values));
    totals_.resize(parts_.size());
    words_.resize(parts_.size() * exact_accumulator::words);
}

status exact_sum::sum() noexcept {
    constexpr std::size_t words = exact_accumulator::words;
    const auto of = [&](std::size_t i) { return std::span<double, words>(words_.data() + i * words, words); };
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        parts_[i].to_words(of(i));
        parts_[i] = {};
    }
    const status s = sum_(words_);
    if (s == status::ok)
        for (std::size_t i = 0; i < parts_.size(); ++i) totals_[i] = exact_accumulator::from_words(of(i)).rounded();
    return s;
}

double exact_sum::sum_or_throw() {
    if (const status s = sum(); s != status::ok) sum_.job().fail(s, sum_.pending());
    return total();
}

} // namespace halocline::comm
