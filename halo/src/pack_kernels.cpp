// SPDX-License-Identifier: Apache-2.0
// Maps of sites and changes of format, for every SIMD target.
#include "simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pack_kernels.cpp"
#include <hwy/foreach_target.h> // IWYU pragma: keep

#include "pack_kernels.hpp"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace halocline::halo::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// One row of a map on a site without lanes: elements [i, i + N) of its blocks, N at a time.
template <std::size_t N, bool Real, class T>
HWY_INLINE void row_by(const map_view<T>& m, std::int32_t row, const T* HWY_RESTRICT x, T* HWY_RESTRICT y,
                       std::int32_t& i) {
    const hn::CappedTag<T, N> tag;
    const auto n = static_cast<std::int32_t>(hn::Lanes(tag));
    // multiplication by i: (re, im) -> (-im, re)
    alignas(64) constexpr T signs[16] = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
    for (; i + n <= m.block_reals; i += n) {
        auto sum = hn::Zero(tag);
        for (std::int32_t t = m.row_begin[row]; t < m.row_begin[row + 1]; ++t) {
            const auto v = hn::LoadU(tag, x + m.block[t] * m.block_reals + i);
            sum = hn::MulAdd(hn::Set(tag, m.re[t]), v, sum);
            if constexpr (!Real)
                sum = hn::MulAdd(hn::Mul(hn::Set(tag, m.im[t]), hn::LoadU(tag, signs)), hn::Reverse2(tag, v), sum);
        }
        hn::StoreU(sum, tag, y + i);
    }
}

template <bool Real, class T>
void map_contiguous(const map_view<T>& m, const std::int32_t* positions, const T* values, std::int64_t first,
                    std::int64_t last, T* out) {
    for (std::int64_t s = first; s < last; ++s) {
        const T* x = values + static_cast<std::int64_t>(positions[s]) * m.components;
        for (std::int32_t r = 0; r < m.rows; ++r, out += m.block_reals) {
            std::int32_t i = 0;
            row_by<16, Real>(m, r, x, out, i);
            row_by<8, Real>(m, r, x, out, i);
            row_by<4, Real>(m, r, x, out, i);
            row_by<2, Real>(m, r, x, out, i);
            if constexpr (Real) row_by<1, Real>(m, r, x, out, i);
        }
    }
}

/// Sites in storage with lanes: reals of a site are W apart.
template <bool Real, int Lanes, class T>
void map_lanes(const map_view<T>& m, const std::int32_t* positions, const T* values, std::int64_t first,
               std::int64_t last, T* HWY_RESTRICT out) {
    for (std::int64_t s = first; s < last; ++s) {
        const std::int64_t p = positions[s], w = Lanes > 0 ? Lanes : m.lanes;
        const T* HWY_RESTRICT x = values + p / w * w * m.components + p % w;
        for (std::int32_t r = 0; r < m.rows; ++r, out += m.block_reals) {
            const std::int32_t begin = m.row_begin[r], end = m.row_begin[r + 1];
            if constexpr (Real) {
                for (std::int32_t i = 0; i < m.block_reals; ++i) {
                    T sum = 0;
                    for (std::int32_t t = begin; t < end; ++t) sum += m.re[t] * x[(m.block[t] * m.block_reals + i) * w];
                    out[i] = sum;
                }
            } else {
                for (std::int32_t i = 0; i < m.block_reals; i += 2) {
                    T re = 0, im = 0;
                    for (std::int32_t t = begin; t < end; ++t) {
                        const T* v = x + (m.block[t] * m.block_reals + i) * w;
                        re += m.re[t] * v[0];
                        re -= m.im[t] * v[w];
                        im += m.re[t] * v[w];
                        im += m.im[t] * v[0];
                    }
                    out[i] = re;
                    out[i + 1] = im;
                }
            }
        }
    }
}

template <bool Real, class T>
void map_any(const map_view<T>& m, const std::int32_t* positions, const T* values, std::int64_t first,
             std::int64_t last, T* out) {
    constexpr bool has_vectors = HWY_TARGET != HWY_SCALAR; // pairs need two lanes
    if (m.lanes == 1 && has_vectors) return map_contiguous<Real>(m, positions, values, first, last, out);
    switch (m.lanes) {
    case 4: return map_lanes<Real, 4>(m, positions, values, first, last, out);
    case 8: return map_lanes<Real, 8>(m, positions, values, first, last, out);
    case 16: return map_lanes<Real, 16>(m, positions, values, first, last, out);
    default: return map_lanes<Real, 0>(m, positions, values, first, last, out);
    }
}
template <class T>
void map_any(const map_view<T>& m, const std::int32_t* positions, const T* values, std::int64_t first,
             std::int64_t last, T* out) {
    m.real ? map_any<true>(m, positions, values, first, last, out)
           : map_any<false>(m, positions, values, first, last, out);
}
void map_float(const map_view<float>& m, const std::int32_t* positions, const float* values, std::int64_t first,
               std::int64_t last, float* out) {
    map_any(m, positions, values, first, last, out);
}
void map_double(const map_view<double>& m, const std::int32_t* positions, const double* values, std::int64_t first,
                std::int64_t last, double* out) {
    map_any(m, positions, values, first, last, out);
}

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
        // subnormal: with the exponent of 2^-14 the mantissa counts from 2^-14, which is taken off again
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

void encode_half(const float* from, float scale, std::size_t count, std::uint16_t* to) {
    encode<half_format>(from, scale, count, to);
}
void encode_bfloat16(const float* from, float scale, std::size_t count, std::uint16_t* to) {
    encode<bfloat16_format>(from, scale, count, to);
}
void decode_half(const std::uint16_t* from, float scale, std::size_t count, float* to) {
    decode<half_format>(from, scale, count, to);
}
void decode_bfloat16(const std::uint16_t* from, float scale, std::size_t count, float* to) {
    decode<bfloat16_format>(from, scale, count, to);
}

} // namespace halocline::halo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halocline::halo::kernels {
HWY_EXPORT(map_float);
HWY_EXPORT(map_double);
HWY_EXPORT(encode_half);
HWY_EXPORT(encode_bfloat16);
HWY_EXPORT(decode_half);
HWY_EXPORT(decode_bfloat16);

template <>
void map_sites<float>(const map_view<float>& map, const std::int32_t* positions, const float* values,
                      std::int64_t first, std::int64_t last, float* out) {
    HWY_DYNAMIC_DISPATCH(map_float)(map, positions, values, first, last, out);
}
template <>
void map_sites<double>(const map_view<double>& map, const std::int32_t* positions, const double* values,
                       std::int64_t first, std::int64_t last, double* out) {
    HWY_DYNAMIC_DISPATCH(map_double)(map, positions, values, first, last, out);
}
void to_half(const float* from, float scale, std::size_t count, std::uint16_t* to) {
    HWY_DYNAMIC_DISPATCH(encode_half)(from, scale, count, to);
}
void to_bfloat16(const float* from, float scale, std::size_t count, std::uint16_t* to) {
    HWY_DYNAMIC_DISPATCH(encode_bfloat16)(from, scale, count, to);
}
void from_half(const std::uint16_t* from, float scale, std::size_t count, float* to) {
    HWY_DYNAMIC_DISPATCH(decode_half)(from, scale, count, to);
}
void from_bfloat16(const std::uint16_t* from, float scale, std::size_t count, float* to) {
    HWY_DYNAMIC_DISPATCH(decode_bfloat16)(from, scale, count, to);
}
} // namespace halocline::halo::kernels
#endif
