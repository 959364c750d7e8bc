// SPDX-License-Identifier: Apache-2.0
// What site_map.cpp and its kernels say to each other.
#pragma once

#include <halocline/halo/site_map.hpp>

namespace halocline::halo::kernels {

template <class T>
struct map_table {
    using kernel = void (*)(const map_program<T>& program, const T* from, const std::int32_t* positions,
                            std::int64_t count, T* to);
    std::size_t widest_bytes = 0;    ///< of a step
    std::array<kernel, 3> kernels{}; ///< assign, gather, add: positions are of neither, of `from`, of `to`
};

/// For the SIMD target of this machine.
template <class T>
map_table<T> table_of_maps();

} // namespace halocline::halo::kernels
