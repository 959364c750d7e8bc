// SPDX-License-Identifier: Apache-2.0
// Writing into memory that another core reads, without fetching its cache lines first (docs/decisions/0030): stores
// that bypass the cache, where the machine has them.
#pragma once

#include <cstddef>

namespace halocline::comm {

/// to[0, bytes) = from[0, bytes); whole cache lines of `to` bypass the cache, the remainders at both ends do not.
/// A release store publishes the bytes if the same thread has called finish_streams() in between.  Pre: no overlap.
void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// stream_bytes() for whole cache lines.  Pre: `to` is the start of one; bytes is a multiple of 64.
void stream_lines(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// Makes everything that this thread streamed visible before its later stores.
void finish_streams() noexcept;

} // namespace halocline::comm
