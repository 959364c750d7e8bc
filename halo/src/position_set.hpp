// SPDX-License-Identifier: Apache-2.0
// A set of storage positions: one bit each, in pages of 512, of which only those with a member exist. So its memory
// follows its members, not the storage that they lie in.
#pragma once

#include <halocline/halo/detail/position_list.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <unordered_map>

namespace halocline::halo {

class position_set {
  public:
    /// Adds all positions of the list. Returns one that occurred before, in the set or in the list; -1 if none did.
    std::int64_t add(const position_list& list) {
        std::int64_t repeated = -1, number = -1;
        page* bits = nullptr; // the page of that number: neighbours mostly share one
        for_each_word(list, [&](std::int64_t word, std::uint64_t mask) {
            if (word / page_words != number) bits = &pages_[number = word / page_words];
            std::uint64_t& w = (*bits)[static_cast<std::size_t>(word % page_words)];
            if (repeated < 0 && (w & mask) != 0) repeated = word * word_bits + std::countr_zero(w & mask);
            w |= mask;
        });
        return repeated;
    }
    /// A position of the list that is in the set; -1 if there is none.
    [[nodiscard]] std::int64_t common(const position_list& list) const {
        std::int64_t found = -1, number = -1;
        const page* bits = nullptr;
        for_each_word(list, [&](std::int64_t word, std::uint64_t mask) {
            if (word / page_words != number) bits = page_of(number = word / page_words);
            if (found >= 0 || bits == nullptr) return;
            if (const std::uint64_t w = (*bits)[static_cast<std::size_t>(word % page_words)] & mask; w != 0)
                found = word * word_bits + std::countr_zero(w);
        });
        return found;
    }
    [[nodiscard]] bool contains(std::int64_t position) const {
        if (position < 0) return false;
        const page* const bits = page_of(position / word_bits / page_words);
        return bits != nullptr &&
               ((*bits)[static_cast<std::size_t>(position / word_bits % page_words)] >> (position % word_bits) & 1) !=
                   0;
    }

  private:
    static constexpr std::int64_t word_bits = 64, page_words = 8;
    using page = std::array<std::uint64_t, page_words>;

    /// Calls use(word, mask) for the words of 64 positions in which each run lies.
    template <class Use>
    static void for_each_word(const position_list& list, Use&& use) {
        for (const position_run& r : list.runs())
            for (std::int64_t i = 0; i < r.count; ++i) {
                const std::int64_t first = r.first + i * r.stride, last = first + r.sites;
                for (std::int64_t word = first / word_bits; word * word_bits < last; ++word) {
                    const std::int64_t from = std::max(first - word * word_bits, std::int64_t{0}),
                                       to = std::min(last - word * word_bits, word_bits);
                    use(word, ~std::uint64_t{0} << from & ~std::uint64_t{0} >> (word_bits - to));
                }
            }
    }
    [[nodiscard]] const page* page_of(std::int64_t number) const {
        const auto found = pages_.find(number);
        return found == pages_.end() ? nullptr : &found->second;
    }

    std::unordered_map<std::int64_t, page> pages_;
};

} // namespace halocline::halo
