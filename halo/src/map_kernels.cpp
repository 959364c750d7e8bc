// SPDX-License-Identifier: Apache-2.0
// The steps of a site_map, for every SIMD target.
#include <halocline/base/simd_targets.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "map_kernels.cpp"
#include <hwy/foreach_target.h> // IWYU pragma: keep

#include "map_kernels.hpp"

#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace halocline::halo::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Targets without permutations take the reals one by one.
constexpr std::size_t widest_bytes = HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 ? 0 : HWY_MAX_BYTES;

/// A step, loaded into registers.
template <std::size_t Bytes, class T>
struct loaded_step {
    using tag = hn::CappedTag<T, Bytes / sizeof(T)>;
    using index_tag = std::conditional_t<(Bytes > 16), hn::CappedTag<std::uint32_t, Bytes / 4>,
                                         hn::CappedTag<std::uint8_t, Bytes>>; // of words, or of bytes

    HWY_INLINE explicit loaded_step(const map_step<T>& step)
        : from(step.from), coefficient(hn::Load(tag(), step.coefficient.data())), index(indices(step)) {}
    static HWY_INLINE auto indices(const map_step<T>& step) {
        if constexpr (Bytes > 16)
            return hn::SetTableIndices(index_tag(), step.permutation.data());
        else
            return hn::LoadU(index_tag(), reinterpret_cast<const std::uint8_t*>(step.permutation.data()));
    }
    /// sum + coefficient * permuted x.
    HWY_INLINE hn::Vec<tag> added_to(hn::Vec<tag> sum, const T* x) const {
        const auto v = hn::BitCast(index_tag(), hn::LoadU(tag(), x + from));
        if constexpr (Bytes > 16)
            return hn::MulAdd(coefficient, hn::BitCast(tag(), hn::TableLookupLanes(v, index)), sum);
        else
            return hn::MulAdd(coefficient, hn::BitCast(tag(), hn::TableLookupBytes(v, index)), sum);
    }

    std::int32_t from;
    hn::Vec<tag> coefficient;
    decltype(indices(std::declval<const map_step<T>&>())) index;
};
template <class T>
struct loaded_step<sizeof(T), T> {
    struct tag {};
    HWY_INLINE explicit loaded_step(const map_step<T>& step) : from(step.from), coefficient(step.coefficient[0]) {}
    HWY_INLINE T added_to(T sum, const T* x) const { return sum + coefficient * x[from]; }

    std::int32_t from;
    T coefficient;
};

/// Some sites on both sides: few enough to stay in the first-level cache from step to step.
template <class T>
struct batch {
    static constexpr std::int64_t most = 64;
    std::int64_t count = 0;
    const T* x[most];
    T* y[most];
};

/// y = or += the sum of one or two steps, site by site, so that the steps stay in registers.
template <std::size_t Bytes, bool Add, bool Two, class T>
HWY_INLINE void take_steps(const map_step<T>* step, const batch<T>& sites) {
    const loaded_step<Bytes, T> one(step[0]), two(step[Two ? 1 : 0]);
    const std::int32_t to = step->to;
    for (std::int64_t i = 0; i < sites.count; ++i) {
        const T* HWY_RESTRICT const x = sites.x[i];
        T* HWY_RESTRICT const y = sites.y[i] + to;
        if constexpr (Bytes == sizeof(T)) {
            T sum = one.added_to(Add ? *y : 0, x);
            if constexpr (Two) sum = two.added_to(sum, x);
            *y = sum;
        } else {
            const typename loaded_step<Bytes, T>::tag tag;
            auto sum = hn::Zero(tag);
            if constexpr (Add) sum = hn::LoadU(tag, y);
            sum = one.added_to(sum, x);
            if constexpr (Two) sum = two.added_to(sum, x);
            hn::StoreU(sum, tag, y);
        }
    }
}

/// Takes the steps whose vectors have `Bytes` bytes.
template <std::size_t Bytes, bool Add, class T>
HWY_INLINE void take_all(const map_step<T>* step, const map_step<T>* end, const batch<T>& sites) {
    if constexpr (Bytes == sizeof(T) || (Bytes > sizeof(T) && Bytes <= widest_bytes))
        while (step != end) {
            const bool two = !step->last;
            if (Add || !step->first)
                two ? take_steps<Bytes, true, true>(step, sites) : take_steps<Bytes, true, false>(step, sites);
            else
                two ? take_steps<Bytes, false, true>(step, sites) : take_steps<Bytes, false, false>(step, sites);
            step += two ? 2 : 1;
        }
}

template <bool Add, class T>
void map_sites(const map_program<T>& program, const T* from, const std::int32_t* from_at, T* to,
               const std::int32_t* to_at, std::int64_t count) {
    const map_step<T>* const s = program.steps;
    const std::array<std::int32_t, 5>& end = program.end;
    batch<T> sites;
    for (std::int64_t first = 0; first < count; first += sites.count) {
        sites.count = std::min(count - first, batch<T>::most);
        for (std::int64_t i = 0; i < sites.count; ++i) {
            sites.x[i] = from + (from_at != nullptr ? from_at[first + i] : first + i) * program.in_reals;
            sites.y[i] = to + (to_at != nullptr ? to_at[first + i] : first + i) * program.out_reals;
        }
        take_all<64, Add>(s, s + end[0], sites);
        take_all<32, Add>(s + end[0], s + end[1], sites);
        take_all<16, Add>(s + end[1], s + end[2], sites);
        take_all<8, Add>(s + end[2], s + end[3], sites);
        take_all<4, Add>(s + end[3], s + end[4], sites);
    }
}

template <class T>
map_table<T> table_of() {
    return {widest_bytes, map_sites<false, T>, map_sites<true, T>};
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
