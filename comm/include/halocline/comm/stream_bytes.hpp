// SPDX-License-Identifier: Apache-2.0
// Writing into memory that another core reads without fetching its cache lines first (docs/decisions/0030): stores that
// bypass the cache, where the machine has them.
#pragma once

#include <cstddef>

namespace halocline::comm {

/// to[0, bytes) = from[0, bytes); whole cache lines of `to` bypass the cache, what is left at both ends does not.
/// The bytes may be published by a release store after finish_streams() of the same thread.  Pre: no overlap.
void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// stream_bytes() of whole cache lines.  Pre: `to` is the start of one; bytes is a multiple of 64.
void stream_lines(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// Everything that this thread streamed is visible before what it stores from now on.
void finish_streams() noexcept;

} // namespace halocline::comm
