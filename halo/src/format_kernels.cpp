// SPDX-License-Identifier: Apache-2.0
// Changes of format, for every SIMD target.
#include <halocline/base/simd_targets.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "format_kernels.cpp"
#include <hwy/foreach_target.h> // IWYU pragma: keep

#include "format_kernels.hpp"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace halocline::halo::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using bits_of = hn::Vec<hn::RebindToSigned<D>>;

struct half_format {
    /// Bits of the nearest half in the lower 16 bits of each lane.
    template <class D>
    static HWY_INLINE bits_of<D> encode(D tag, hn::Vec<D> v) {
        const hn::RebindToSigned<D> itag;
        const auto magnitude = hn::BitCast(itag, hn::Abs(v));
        const auto sign = hn::ShiftRight<16>(hn::And(hn::BitCast(itag, v), hn::Set(itag, INT32_MIN)));
        // normal: exponent from bias 127 to 15; adding half a unit of the last place, to even, carries into it
        const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(itag, 1));
        const auto normal =
            hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, odd), hn::Set(itag, 0xfff - ((127 - 15) << 23))));
        // subnormal: the sum with 0.5 has its last bit at 2^-24, the smallest half, and is rounded by the machine
        const auto half = hn::Set(tag, 0.5F);
        const auto small = hn::Sub(hn::BitCast(itag, hn::Add(hn::Abs(v), half)), hn::BitCast(itag, half));
        const auto big =
            hn::IfThenElse(hn::Gt(magnitude, hn::Set(itag, 0x7f800000)), hn::Set(itag, 0x7e00), hn::Set(itag, 0x7c00));
        const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(itag, 113 << 23)), small, normal);
        const auto result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(itag, 143 << 23)), finite, big);
        return hn::Or(result, hn::And(sign, hn::Set(itag, 0x8000)));
    }
    template <class D>
    static HWY_INLINE hn::Vec<D> decode(D tag, bits_of<D> h) {
        const hn::RebindToSigned<D> itag;
        const auto magnitude = hn::ShiftLeft<13>(hn::And(h, hn::Set(itag, 0x7fff)));
        const auto sign = hn::ShiftLeft<16>(hn::And(h, hn::Set(itag, 0x8000)));
        const auto rebias = hn::Set(itag, (127 - 15) << 23);
        const auto normal = hn::Add(magnitude, rebias);
        const auto special = hn::Add(normal, rebias); // infinity, not a number: the exponent becomes 255
        // subnormal: with the exponent of 2^-14 the mantissa counts from 2^-14, which is then subtracted
        const auto least = hn::Set(itag, 113 << 23);
        const auto small =
            hn::BitCast(itag, hn::Sub(hn::BitCast(tag, hn::Add(magnitude, least)), hn::BitCast(tag, least)));
        const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(itag, 1 << 23)), small, normal);
        const auto result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(itag, 0x1f << 23)), finite, special);
        return hn::BitCast(tag, hn::Or(result, sign));
    }
};

struct bfloat16_format {
    template <class D>
    static HWY_INLINE bits_of<D> encode(D, hn::Vec<D> v) {
        const hn::RebindToSigned<D> itag;
        const auto x = hn::BitCast(itag, v);
        const auto odd = hn::And(hn::ShiftRight<16>(x), hn::Set(itag, 1));
        const auto rounded = hn::Add(x, hn::Add(odd, hn::Set(itag, 0x7fff)));
        const auto nan = hn::Gt(hn::And(x, hn::Set(itag, 0x7fffffff)), hn::Set(itag, 0x7f800000));
        const auto quiet = hn::Or(x, hn::Set(itag, 0x400000)); // rounding could carry a NaN to infinity
        return hn::And(hn::ShiftRight<16>(hn::IfThenElse(nan, quiet, rounded)), hn::Set(itag, 0xffff));
    }
    template <class D>
    static HWY_INLINE hn::Vec<D> decode(D tag, bits_of<D> h) {
        return hn::BitCast(tag, hn::ShiftLeft<16>(h));
    }
};

template <class Format, std::size_t N>
HWY_INLINE void encode_by(const float*& from, float scale, std::size_t& left, std::uint16_t*& to) {
    const hn::CappedTag<float, N> tag;
    const hn::Rebind<std::uint16_t, decltype(tag)> short_tag;
    const std::size_t n = hn::Lanes(tag);
    for (; left >= n; left -= n, from += n, to += n) {
        const auto scaled = hn::Mul(hn::LoadU(tag, from), hn::Set(tag, scale));
        hn::StoreU(hn::DemoteTo(short_tag, Format::encode(tag, scaled)), short_tag, to);
    }
}
template <class Format>
HWY_INLINE void encode(const float* from, float scale, std::size_t left, std::uint16_t* to) {
    encode_by<Format, 16>(from, scale, left, to);
    encode_by<Format, 4>(from, scale, left, to);
    encode_by<Format, 1>(from, scale, left, to);
}

template <class Format, std::size_t N>
HWY_INLINE void decode_by(const std::uint16_t*& from, float scale, std::size_t& left, float*& to) {
    const hn::CappedTag<float, N> tag;
    const hn::RebindToSigned<decltype(tag)> itag;
    const hn::Rebind<std::uint16_t, decltype(tag)> short_tag;
    const std::size_t n = hn::Lanes(tag);
    for (; left >= n; left -= n, from += n, to += n) {
        const auto value = Format::decode(tag, hn::PromoteTo(itag, hn::LoadU(short_tag, from)));
        hn::StoreU(hn::Mul(value, hn::Set(tag, scale)), tag, to);
    }
}
template <class Format>
HWY_INLINE void decode(const std::uint16_t* from, float scale, std::size_t left, float* to) {
    decode_by<Format, 16>(from, scale, left, to);
    decode_by<Format, 4>(from, scale, left, to);
    decode_by<Format, 1>(from, scale, left, to);
}

void encode_reals(message_format format, const float* from, float scale, std::size_t count, std::uint16_t* to) {
    if (format == message_format::half)
        encode<half_format>(from, scale, count, to);
    else
        encode<bfloat16_format>(from, scale, count, to);
}
void decode_reals(message_format format, const std::uint16_t* from, float scale, std::size_t count, float* to) {
    const float inverse = 1 / scale;
    if (format == message_format::half)
        decode<half_format>(from, inverse, count, to);
    else
        decode<bfloat16_format>(from, inverse, count, to);
}

} // namespace halocline::halo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halocline::halo::kernels {
HWY_EXPORT(encode_reals);
HWY_EXPORT(decode_reals);

void encode(message_format format, const float* from, float scale, std::size_t count, std::uint16_t* to) noexcept {
    HWY_DYNAMIC_DISPATCH(encode_reals)(format, from, scale, count, to);
}
void decode(message_format format, const std::uint16_t* from, float scale, std::size_t count, float* to) noexcept {
    HWY_DYNAMIC_DISPATCH(decode_reals)(format, from, scale, count, to);
}
} // namespace halocline::halo::kernels
#endif
