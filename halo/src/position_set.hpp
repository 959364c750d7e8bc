// SPDX-License-Identifier: Apache-2.0
// A set of storage positions: one bit each, in pages of 2048, of which only those with a member exist. So its memory
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
        std::int64_t repeated = -1;
        std::uint64_t current = none;
        page* words = nullptr; // of the current page: neighbours mostly share one
        for_each_word(list, [&](std::uint64_t number, std::uint64_t bits) {
            if (number / page_words != current) words = &pages_[current = number / page_words];
            std::uint64_t& word = (*words)[number % page_words];
            if ((word & bits) != 0 && repeated < 0) repeated = first_of(number, word & bits);
            word |= bits;
        });
        return repeated;
    }
    /// A position of the list that is in the set; -1 if there is none.
    [[nodiscard]] std::int64_t common(const position_list& list) const {
        std::int64_t found = -1;
        std::uint64_t current = none;
        const page* words = nullptr;
        for_each_word(list, [&](std::uint64_t number, std::uint64_t bits) {
            if (number / page_words != current) words = page_of(current = number / page_words);
            if (words == nullptr) return;
            const std::uint64_t word = (*words)[number % page_words];
            if ((word & bits) != 0 && found < 0) found = first_of(number, word & bits);
        });
        return found;
    }
    [[nodiscard]] bool contains(std::int64_t position) const {
        if (position < 0) return false;
        const auto bit = static_cast<std::uint64_t>(position);
        const page* const bits = page_of(bit / word_bits / page_words);
        return bits != nullptr && ((*bits)[bit / word_bits % page_words] >> bit % word_bits & 1) != 0;
    }

  private:
    static constexpr std::int64_t word_bits = 64;
    static constexpr std::uint64_t page_words = 32, all = ~std::uint64_t{0}, none = all;
    using page = std::array<std::uint64_t, page_words>;

    /// The first position of a word whose bit is set.
    static std::int64_t first_of(std::uint64_t number, std::uint64_t bits) {
        return static_cast<std::int64_t>(number * word_bits) + std::countr_zero(bits);
    }
    /// 1 to 64 of them.
    static constexpr std::uint64_t low_bits(std::int64_t bits) { return all >> (word_bits - bits); }

    /// Calls use(number, bits) for the words in which the list's runs lie, with their bits there. A word may occur several
    /// times, with other bits unless the list repeats a position.
    template <class Use>
    static void for_each_word(const position_list& list, Use&& use) {
        for_each_part(list, [&](std::int64_t first, std::uint64_t bits) {
            const auto begin = static_cast<std::uint64_t>(first), number = begin / word_bits, shift = begin % word_bits;
            use(number, bits << shift);
            const std::uint64_t rest = shift > 0 ? bits >> (word_bits - shift) : 0;
            if (rest != 0) use(number + 1, rest);
        });
    }
    /// Calls use(first, bits) for parts of the list: the position `first`, which belongs to it, and those of the next 63
    /// whose bits are set.
    template <class Use>
    static void for_each_part(const position_list& list, Use&& use) {
        for (const position_run& r : list.runs()) {
            if (r.sites > word_bits) { // a word at a time
                for (std::int32_t i = 0; i < r.count; ++i)
                    for (std::int64_t site = 0; site < r.sites; site += word_bits)
                        use(r.first + i * r.stride + site, low_bits(std::min(r.sites - site, word_bits)));
                continue;
            }
            // As many runs together as fit into a word.
            const std::int64_t runs = r.stride < r.sites ? 1 : 1 + (word_bits - r.sites) / r.stride;
            std::uint64_t bits = 0;
            for (std::int64_t i = 0; i < runs; ++i) bits |= low_bits(r.sites) << i * r.stride;
            for (std::int64_t i = 0; i < r.count; i += runs) {
                if (r.count - i < runs) bits &= low_bits((r.count - 1 - i) * r.stride + r.sites);
                use(r.first + i * r.stride, bits);
            }
        }
    }
    [[nodiscard]] const page* page_of(std::uint64_t number) const {
        const auto found = pages_.find(number);
        return found == pages_.end() ? nullptr : &found->second;
    }

    std::unordered_map<std::uint64_t, page> pages_;
};

} // namespace halocline::halo
