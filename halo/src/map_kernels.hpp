// SPDX-License-Identifier: Apache-2.0
// The interface between site_map.cpp and its kernels.
#pragma once

#include <halocline/halo/detail/site_map.hpp>

namespace halocline::halo::kernels {

template <class T>
struct map_table {
    std::size_t widest_bytes = 0; ///< of a step
    map_kernel<T>*assign = nullptr, *add = nullptr;
};

/// The kernels for the SIMD target of this machine.
template <class T>
map_table<T> table_of_maps();

} // namespace halocline::halo::kernels
