// SPDX-License-Identifier: Apache-2.0
// The default memory of fields: large ones ask for huge pages, which the kernel gives only to memory that asks for them
// (with `madvise` in /sys/kernel/mm/transparent_hugepage/enabled, the setting of most systems).
#pragma once

#include <cstddef>
#include <memory_resource>

namespace halocline::lattice {

/// Size of a huge page of x86-64. Allocations of at least this size start at a multiple of it.
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

/// Memory from operator new that asks for huge pages. If the kernel has none, only speed suffers.
[[nodiscard]] std::pmr::memory_resource* huge_pages() noexcept;

} // namespace halocline::lattice
