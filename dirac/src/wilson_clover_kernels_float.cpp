// SPDX-License-Identifier: Apache-2.0
// Kernels in single precision, for every SIMD target.
#include <halocline/base/simd_targets.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "wilson_clover_kernels_float.cpp"
#include <hwy/foreach_target.h> // IWYU pragma: keep

#include "wilson_clover_kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace halocline::dirac::kernels::HWY_NAMESPACE {
table<float> float_table(int lane_width) { return table_for<float>(lane_width); }
int bytes_of_vectors() { return static_cast<int>(hn::Lanes(hn::ScalableTag<float>()) * sizeof(float)); }
} // namespace halocline::dirac::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halocline::dirac::kernels {
HWY_EXPORT(float_table);
HWY_EXPORT(bytes_of_vectors);

template <>
table<float> for_lane_width<float>(int lane_width) {
    return HWY_DYNAMIC_DISPATCH(float_table)(lane_width);
}
int vector_bytes() { return HWY_DYNAMIC_DISPATCH(bytes_of_vectors)(); }
} // namespace halocline::dirac::kernels
#endif
