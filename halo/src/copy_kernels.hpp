// SPDX-License-Identifier: Apache-2.0
// The interface between site_copy.cpp and its kernels.
#pragma once

#include <halocline/halo/detail/site_copy.hpp>

namespace halocline::halo::kernels {

/// The kernels for such lists on the SIMD target of this machine: for storages without lanes (run_kernels.cpp), or if
/// one has lanes (lane_kernels.cpp).
table table_of_runs(bool strips);
table table_of_lanes(int from_lanes, int to_lanes);

} // namespace halocline::halo::kernels
