// SPDX-License-Identifier: Apache-2.0
// What the packing kernels compute, as plain loops for their tests to compare with.
#pragma once

#include "message_sum.hpp"

#include <halocline/halo/field_view.hpp>
#include <halocline/halo/packer.hpp>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace halocline::halo::reference {

/// One side of a copy: positions of its sites in storage with this many lanes.
struct side {
    std::span<const std::int64_t> positions;
    int lanes = 1;

    /// Offset in bytes of component c of the i-th site.
    [[nodiscard]] std::size_t offset(std::int64_t i, int c, const site_shape& shape) const {
        const std::int64_t p = positions[i];
        return static_cast<std::size_t>((p / lanes * shape.components + c) * lanes + p % lanes) * shape.component_bytes;
    }
};

/// site_copy::copy for the same lists.
inline void copy(const side& from, const side& to, const std::byte* source, std::byte* target, const site_shape& shape,
                 std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
        for (int c = 0; c < shape.components; ++c)
            std::memcpy(target + to.offset(i, c, shape), source + from.offset(i, c, shape), shape.component_bytes);
}

/// site_copy::add for the same lists.
template <class T>
void add(const side& from, const side& to, const std::byte* source, std::byte* target, const site_shape& shape,
         std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
        for (int c = 0; c < shape.components; ++c) {
            T x, y;
            std::memcpy(&x, source + from.offset(i, c, shape), sizeof(T));
            std::memcpy(&y, target + to.offset(i, c, shape), sizeof(T));
            y += x;
            std::memcpy(target + to.offset(i, c, shape), &y, sizeof(T));
        }
}

/// The message's contents for one site: phase * map applied to its reals (no rows: phase * site).
inline std::vector<double> mapped(const block_map& map, std::complex<double> phase, std::span<const double> site) {
    const std::size_t block = map.empty() ? site.size() : static_cast<std::size_t>(map.block_reals);
    const std::vector<std::vector<block_map::term>> identity{{{0, 1}}}, &rows = map.empty() ? identity : map.rows;
    std::vector<double> out;
    for (const auto& row : rows)
        for (std::size_t i = 0; i < block; ++i) {
            double sum = 0;
            for (const block_map::term& t : row) {
                const std::complex<double> c = phase * t.coefficient;
                const double* in = site.data() + static_cast<std::size_t>(t.block) * block;
                if (block % 2 != 0)
                    sum += c.real() * in[i];
                else if (i % 2 == 0)
                    sum += c.real() * in[i] - c.imag() * in[i + 1]; // real part
                else
                    sum += c.real() * in[i] + c.imag() * in[i - 1];
            }
            out.push_back(sum);
        }
    return out;
}

/// unpacker::add() of one ghost: y += phase * expansion applied to the reals of a site in a message.
template <class T>
void add_expanded(const block_map& expansion, std::complex<double> phase, std::span<const double> message_site,
                  std::span<T> y) {
    const std::vector<double> x = mapped(expansion, phase, message_site);
    for (std::size_t c = 0; c < y.size(); ++c) y[c] += static_cast<T>(x[c]);
}

/// Sign, exponent and mantissa of the nearest number (ties to even) with these numbers of bits, as IEEE 754 encodes it.
inline std::uint16_t encoded(float value, int exponent_bits, int mantissa_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1, infinity = ((1 << exponent_bits) - 1) << mantissa_bits;
    const int sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isnan(value)) return static_cast<std::uint16_t>(sign | infinity | 1 << (mantissa_bits - 1));
    if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
    if (value == 0) return static_cast<std::uint16_t>(sign);
    const double magnitude = std::fabs(static_cast<double>(value));
    const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
    const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent)));
    // One unit more than the mantissa can hold carries into the exponent, as it should; beyond the last exponent:
    // infinity.
    const int bits = ((exponent + bias - 1) << mantissa_bits) + units;
    return static_cast<std::uint16_t>(sign | std::min(bits, infinity));
}
inline std::uint16_t half_of(float value) { return encoded(value, 5, 10); }
inline std::uint16_t bfloat16_of(float value) { return encoded(value, 8, 7); }

inline double decoded(std::uint16_t bits, int exponent_bits, int mantissa_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1, exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1)
        return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                             : sign * std::numeric_limits<double>::infinity();
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}
inline double half_value(std::uint16_t bits) { return decoded(bits, 5, 10); }
inline double bfloat16_value(std::uint16_t bits) { return decoded(bits, 8, 7); }

/// message_sum, byte by byte.
inline std::uint64_t message_sum(std::span<const std::byte> bytes, std::size_t offset) {
    std::uint64_t sum = 0;
    for (std::size_t at = offset; at < offset + bytes.size(); ++at) {
        const auto [first, step] = message_key_of(static_cast<std::uint32_t>(at / 4 % 16));
        const auto key = static_cast<std::uint32_t>(first + at / 64 * step);
        sum += (static_cast<std::uint64_t>(bytes[at - offset]) << (8 * (at % 4))) * key;
    }
    return sum;
}

} // namespace halocline::halo::reference
