// SPDX-License-Identifier: Apache-2.0
// What copy_table.cpp and its kernels say to each other.
#pragma once

#include <halocline/halo/copy_table.hpp>

namespace halocline::halo::kernels {

/// Copies sites [first, last) of a list from `source` to `target`.
using copy_function = void (*)(const copy_pattern& p, const std::byte* source, std::byte* target, std::int64_t first,
                               std::int64_t last);

/// The kernel for this pattern on the SIMD target of this machine.
copy_function copy_for(const copy_pattern& p, std::size_t component_bytes);

} // namespace halocline::halo::kernels
