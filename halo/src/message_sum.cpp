// SPDX-License-Identifier: Apache-2.0
#include <halocline/base/simd_targets.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "message_sum.cpp"
#include <hwy/foreach_target.h> // IWYU pragma: keep

#include "message_sum.hpp"

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstring>

#ifndef HALOCLINE_HALO_MESSAGE_SUM_KEYS
#define HALOCLINE_HALO_MESSAGE_SUM_KEYS
namespace halocline::halo {

inline constexpr std::size_t line_bytes = 64, line_words = line_bytes / sizeof(std::uint32_t);

struct line_keys {
    alignas(line_bytes) std::array<std::uint32_t, line_words> first, step;
};
inline constexpr line_keys keys = [] {
    line_keys k{};
    for (std::uint32_t place = 0; place < line_words; ++place) {
        k.first[place] = message_key_of(place).first;
        k.step[place] = message_key_of(place).step;
    }
    return k;
}();

} // namespace halocline::halo
#endif

HWY_BEFORE_NAMESPACE();
namespace halocline::halo::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

/// Adds up the lines of a message, one after the other.
class line_sum {
  public:
    explicit line_sum(std::size_t first_line) : line_(static_cast<std::uint32_t>(first_line)) {}
    void add(const std::byte* line) {
        for (std::size_t place = 0; place < line_words; ++place) {
            std::uint32_t word;
            std::memcpy(&word, line + place * sizeof word, sizeof word);
            const std::uint32_t key = keys.first[place] + line_ * keys.step[place];
            total_ += std::uint64_t{word} * key;
        }
        ++line_;
    }
    [[nodiscard]] std::uint64_t total() const { return total_; }

  private:
    std::uint32_t line_;
    std::uint64_t total_ = 0;
};

#else

namespace hn = hwy::HWY_NAMESPACE;
using words = hn::CappedTag<std::uint32_t, line_words>;
using products = hn::Repartition<std::uint64_t, words>;

/// Adds up the lines of a message, one after the other.
class line_sum {
  public:
    explicit line_sum(std::size_t first_line) {
        const auto line = hn::Set(words(), static_cast<std::uint32_t>(first_line));
        for (std::size_t v = 0; v < vectors; ++v) {
            step_[v] = hn::Load(words(), &keys.step[v * lanes]);
            key_[v] = hn::Add(hn::Load(words(), &keys.first[v * lanes]), hn::Mul(line, step_[v]));
        }
    }
    HWY_INLINE void add(const std::byte* line) {
        for (std::size_t v = 0; v < vectors; ++v) {
            const auto word = hn::LoadU(words(), reinterpret_cast<const std::uint32_t*>(line) + v * lanes);
            even_ = hn::Add(even_, hn::MulEven(word, key_[v]));
            odd_ = hn::Add(odd_, hn::MulEven(upper(word), upper(key_[v])));
            key_[v] = hn::Add(key_[v], step_[v]);
        }
    }
    [[nodiscard]] std::uint64_t total() const { return hn::GetLane(hn::SumOfLanes(products(), hn::Add(even_, odd_))); }

  private:
    static constexpr std::size_t lanes = hn::MaxLanes(words()), vectors = line_words / lanes;

    /// Each odd lane's value in the even one before it.
    static HWY_INLINE hn::Vec<words> upper(hn::Vec<words> v) {
        return hn::BitCast(words(), hn::ShiftRight<32>(hn::BitCast(products(), v)));
    }

    hn::Vec<words> key_[vectors], step_[vectors];
    hn::Vec<products> even_ = hn::Zero(products()), odd_ = hn::Zero(products());
};

#endif

/// Adds the line of which these bytes are part, and the others 0.
HWY_INLINE void add_part(line_sum& lines, const std::byte* bytes, std::size_t count, std::size_t at) {
    alignas(line_bytes) std::array<std::byte, line_bytes> line{};
    std::memcpy(line.data() + at, bytes, count);
    lines.add(line.data());
}

std::uint64_t sum(const std::byte* bytes, std::size_t count, std::size_t offset) {
    line_sum lines(offset / line_bytes);
    if (const std::size_t at = offset % line_bytes; at != 0) {
        const std::size_t here = std::min(count, line_bytes - at);
        add_part(lines, bytes, here, at);
        bytes += here;
        count -= here;
    }
    for (; count >= line_bytes; count -= line_bytes, bytes += line_bytes) lines.add(bytes);
    if (count > 0) add_part(lines, bytes, count, 0);
    return lines.total();
}

} // namespace halocline::halo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halocline::halo {
HWY_EXPORT(sum);

std::uint64_t message_sum(const std::byte* bytes, std::size_t count, std::size_t offset) noexcept {
    return HWY_DYNAMIC_DISPATCH(sum)(bytes, count, offset);
}
} // namespace halocline::halo
#endif
