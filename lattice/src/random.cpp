// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/random.hpp>

#include <cmath>
#include <numbers>

namespace halocline::lattice {
namespace {

std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }

} // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
    constexpr std::uint64_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57;
    constexpr std::uint32_t weyl0 = 0x9E3779B9, weyl1 = 0xBB67AE85; // golden ratio, sqrt(3) - 1
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t p0 = multiplier0 * counter[0], p1 = multiplier1 * counter[2];
        counter = {high(p1) ^ counter[1] ^ key[0], low(p1), high(p0) ^ counter[3] ^ key[1], low(p0)};
        key[0] += weyl0;
        key[1] += weyl1;
    }
    return counter;
}

std::uint32_t site_random::bits() {
    if (used_ == 4) {
        words_ = philox({block_++, stream_, low(site_), high(site_)}, {low(seed_), high(seed_)});
        used_ = 0;
    }
    return words_[used_++];
}

double site_random::uniform() {
    const std::uint64_t upper = bits() >> 5, lower = bits() >> 6; // 27 + 26 bits
    return static_cast<double>((upper << 26) | lower) * 0x1p-53;
}

double site_random::normal() {
    if (have_normal_) {
        have_normal_ = false;
        return normal_;
    }
    const double radius = std::sqrt(-2 * std::log(1 - uniform())); // 1 - u is in (0, 1]
    const double angle = 2 * std::numbers::pi * uniform();
    normal_ = radius * std::sin(angle);
    have_normal_ = true;
    return radius * std::cos(angle);
}

} // namespace halocline::lattice
