// SPDX-License-Identifier: Apache-2.0
// Kernels in double precision, for every SIMD target.
#include <halocline/base/simd_targets.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "wilson_clover_kernels_double.cpp"
#include <hwy/foreach_target.h> // IWYU pragma: keep

#include "wilson_clover_kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace halocline::dirac::kernels::HWY_NAMESPACE {
table<double> double_table(int lane_width) { return table_for<double>(lane_width); }
} // namespace halocline::dirac::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halocline::dirac::kernels {
HWY_EXPORT(double_table);

template <>
table<double> for_lane_width<double>(int lane_width) {
    return HWY_DYNAMIC_DISPATCH(double_table)(lane_width);
}
} // namespace halocline::dirac::kernels
#endif
