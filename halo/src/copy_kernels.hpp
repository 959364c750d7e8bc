// SPDX-License-Identifier: Apache-2.0
// The interface between site_copy.cpp and its kernels.
#pragma once

#include <halocline/halo/detail/site_copy.hpp>

namespace halocline::halo::kernels {

/// Copies sites [first, last) of a list from one storage to another.
using site_kernel = void (*)(const site_list& list, const std::byte* from, std::byte* to, std::int64_t first,
                             std::int64_t last);

struct table {
    site_kernel copy[3]; ///< components of 2, 4, 8 bytes
    site_kernel stream;  ///< copy that bypasses the cache; null: the list has no runs
    site_kernel add[2];  ///< float, double
    /// For a single run; null: the list has no runs.
    void (*run)(const std::byte* from, std::byte* to, std::size_t bytes);
};

/// The kernels for such lists on the SIMD target of this machine: for storages without lanes (run_kernels.cpp), or if
/// one has lanes (lane_kernels.cpp).
table table_of_runs(bool strips);
table table_of_lanes(bool groups, int from_lanes, int to_lanes);

} // namespace halocline::halo::kernels
