// SPDX-License-Identifier: Apache-2.0
// Copies count a message's sites from its start. A caller with only a part of the message in a buffer passes the
// address where the message would start.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halocline::halo {

/// Where a message starts whose site `first` lies at `at`. It may be the address of nothing: computed as an integer,
/// and read or written only from site `first` on.
inline std::byte* message_start(void* at, std::int64_t first, std::size_t site_bytes) noexcept {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(at) -
                                        static_cast<std::size_t>(first) * site_bytes);
}
inline const std::byte* message_start(const void* at, std::int64_t first, std::size_t site_bytes) noexcept {
    return reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(at) -
                                              static_cast<std::size_t>(first) * site_bytes);
}

} // namespace halocline::halo
