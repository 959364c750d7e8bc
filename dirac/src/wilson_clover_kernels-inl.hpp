// SPDX-License-Identifier: Apache-2.0
// The table of SIMD kernels of the Wilson-clover operator; included once per target (Highway's foreach_target).
#include "wilson_clover_kernels.hpp"

#include <utility>

// Per-target include guard
#if defined(HALOCLINE_DIRAC_WILSON_CLOVER_KERNELS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HALOCLINE_DIRAC_WILSON_CLOVER_KERNELS_INL
#undef HALOCLINE_DIRAC_WILSON_CLOVER_KERNELS_INL
#else
#define HALOCLINE_DIRAC_WILSON_CLOVER_KERNELS_INL
#endif

#include "block_kernels-inl.hpp"
#include "surface_kernels-inl.hpp"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace halocline::dirac::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T, int W, int... F>
table<T> kernels_of(std::integer_sequence<int, F...>) {
    using block = block_kernels<T, W>;
    return {block::vectors, block::apply,          block::add_between,
            block::solve,   {produce<T, W, F>...}, {consume<T, W, F>...}};
}

template <class T>
table<T> table_for(int lane_width) {
    constexpr std::make_integer_sequence<int, lattice::faces> all_faces;
    switch (lane_width) {
    case 16: return kernels_of<T, 16>(all_faces);
    case 8: return kernels_of<T, 8>(all_faces);
    case 4: return kernels_of<T, 4>(all_faces);
    default: return kernels_of<T, 1>(all_faces);
    }
}

} // namespace halocline::dirac::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
