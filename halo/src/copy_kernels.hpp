// SPDX-License-Identifier: Apache-2.0
// What site_copy.cpp and its kernels say to each other.
#pragma once

#include <halocline/halo/detail/site_copy.hpp>

namespace halocline::halo::kernels {

/// Takes sites [first, last) of a list from one storage to another.
using site_kernel = void (*)(const site_list& list, const std::byte* from, std::byte* to, std::int64_t first,
                             std::int64_t last);

struct table {
    site_kernel copy[3]; ///< components of 2, 4, 8 bytes
    site_kernel stream;  ///< copy past the cache; null: the list has no runs
    site_kernel add[2];  ///< float, double
    /// A single run; null: the list has no runs.
    void (*run)(const std::byte* from, std::byte* to, std::size_t bytes);
};

/// The kernels for such lists on the SIMD target of this machine: neither storage has lanes (run_kernels.cpp), or one
/// has (lane_kernels.cpp).
table table_of_runs(bool strips);
table table_of_lanes(bool groups, int from_lanes, int to_lanes);

} // namespace halocline::halo::kernels
