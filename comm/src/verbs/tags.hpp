// SPDX-License-Identifier: Apache-2.0
// The 32 bits that come with a write (its immediate): its kind, and the low 29 bits of a number that both ends know: a
// message's epoch, or a greeting's plan.
#pragma once

#include <cstdint>

namespace halocline::comm::verbs_tags {

constexpr std::uint32_t bits = 3, mask = (1u << bits) - 1;
constexpr std::uint32_t payload = 0;  ///< a message without its label: epoch and length say all that is in it
constexpr std::uint32_t labelled = 1; ///< a message preceded by its label
constexpr std::uint32_t greeting = 2, farewell = 3;
constexpr std::uint32_t values = 4; ///< the last write of a direct message's or a window's values
constexpr std::uint32_t parts = 5;  ///< the last write of a window's message that is shorter than planned

constexpr std::uint32_t immediate(std::uint32_t tag, std::uint64_t number) {
    return static_cast<std::uint32_t>(number << bits) | tag;
}
/// Among all numbers with the immediate's 29 bits, the one nearest to `expected`.
constexpr std::uint64_t number_near(std::uint64_t expected, std::uint32_t immediate) {
    const auto ahead = static_cast<std::int32_t>((immediate & ~mask) - static_cast<std::uint32_t>(expected << bits));
    return expected + static_cast<std::uint64_t>(std::int64_t{ahead} / (1 << bits));
}

} // namespace halocline::comm::verbs_tags
