// SPDX-License-Identifier: Apache-2.0
// Where fields live unless they are told otherwise: large ones on huge pages, which the kernel gives only to memory
// that asks for them (`madvise` in /sys/kernel/mm/transparent_hugepage/enabled, as most systems have it).
#pragma once

#include <cstddef>
#include <memory_resource>

namespace halocline::lattice {

/// Of x86-64; allocations of at least this size start at a multiple of it.
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

/// Memory of operator new, huge pages asked for. The wish may be refused: that costs speed, nothing else.
[[nodiscard]] std::pmr::memory_resource* huge_pages() noexcept;

} // namespace halocline::lattice
