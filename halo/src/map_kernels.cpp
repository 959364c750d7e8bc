// SPDX-License-Identifier: Apache-2.0
// The steps of a site_map, for every SIMD target.
#include "simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "map_kernels.cpp"
#include <hwy/foreach_target.h> // IWYU pragma: keep

#include "map_kernels.hpp"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace halocline::halo::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Targets without permutations take the reals one by one.
constexpr std::size_t widest_bytes = HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 ? 0 : HWY_MAX_BYTES;

template <std::size_t Bytes, class D>
HWY_INLINE hn::Vec<D> permuted(D tag, hn::Vec<D> v, const std::uint32_t* permutation) {
    if constexpr (Bytes > 16) {
        const hn::CappedTag<std::uint32_t, Bytes / 4> words;
        return hn::BitCast(tag, hn::TableLookupLanes(hn::BitCast(words, v), hn::SetTableIndices(words, permutation)));
    } else {
        const hn::CappedTag<std::uint8_t, Bytes> bytes;
        const auto from = hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(permutation));
        return hn::BitCast(tag, hn::TableLookupBytes(hn::BitCast(bytes, v), from));
    }
}

/// Those steps of a site whose vectors have so many bytes.
template <std::size_t Bytes, bool Add, class T>
HWY_INLINE void take_steps(const map_step<T>* step, const map_step<T>* end, const T* HWY_RESTRICT x,
                           T* HWY_RESTRICT y) {
    if constexpr (Bytes == sizeof(T)) {
        T sum = 0;
        for (; step != end; ++step) {
            if (step->first) sum = Add ? y[step->to] : 0;
            sum += step->coefficient[0] * x[step->from];
            if (step->last) y[step->to] = sum;
        }
    } else if constexpr (Bytes > sizeof(T) && Bytes <= widest_bytes) {
        const hn::CappedTag<T, Bytes / sizeof(T)> tag;
        auto sum = hn::Zero(tag);
        for (; step != end; ++step) {
            if (step->first) sum = Add ? hn::LoadU(tag, y + step->to) : hn::Zero(tag);
            const auto v = permuted<Bytes>(tag, hn::LoadU(tag, x + step->from), step->permutation.data());
            sum = hn::MulAdd(hn::Load(tag, step->coefficient.data()), v, sum);
            if (step->last) hn::StoreU(sum, tag, y + step->to);
        }
    }
}

enum class listed : std::uint8_t { neither, from, to_add };

template <listed Side, class T>
void map_sites(const map_program<T>& program, const T* from, const std::int32_t* positions, std::int64_t count, T* to) {
    const map_step<T>* const s = program.steps;
    const std::array<std::int32_t, 5> end = program.end;
    constexpr bool adds = Side == listed::to_add;
    for (std::int64_t i = 0; i < count; ++i) {
        const T* const x = from + (Side == listed::from ? positions[i] : i) * program.in_reals;
        T* const y = to + (adds ? positions[i] : i) * program.out_reals;
        take_steps<64, adds>(s, s + end[0], x, y);
        take_steps<32, adds>(s + end[0], s + end[1], x, y);
        take_steps<16, adds>(s + end[1], s + end[2], x, y);
        take_steps<8, adds>(s + end[2], s + end[3], x, y);
        take_steps<4, adds>(s + end[3], s + end[4], x, y);
    }
}

template <class T>
map_table<T> table_of() {
    return {widest_bytes, {map_sites<listed::neither, T>, map_sites<listed::from, T>, map_sites<listed::to_add, T>}};
}
map_table<float> float_table() { return table_of<float>(); }
map_table<double> double_table() { return table_of<double>(); }

} // namespace halocline::halo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halocline::halo::kernels {
HWY_EXPORT(float_table);
HWY_EXPORT(double_table);

template <>
map_table<float> table_of_maps() {
    return HWY_DYNAMIC_DISPATCH(float_table)();
}
template <>
map_table<double> table_of_maps() {
    return HWY_DYNAMIC_DISPATCH(double_table)();
}
} // namespace halocline::halo::kernels
#endif
