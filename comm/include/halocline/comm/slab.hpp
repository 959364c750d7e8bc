// SPDX-License-Identifier: Apache-2.0
// A slab: one rank's memory that transports know. One sparse sealed memfd per rank, sized at job start, mapped by the
// peers of the node; committed by fallocate as it is used, so that a full machine is an error here, never a SIGBUS.
// A std::pmr::memory_resource: fields and buffers can live in it.
#pragma once

#include <cstddef>
#include <memory_resource>

namespace halocline::comm {

class slab : public std::pmr::memory_resource {
  public:
    /// Start of the mapping in this rank. Peers map the same bytes elsewhere: they talk in offsets.
    [[nodiscard]] virtual std::byte* base() const = 0;
    [[nodiscard]] virtual std::size_t bytes() const = 0;
    /// Bytes handed out now, and the most so far.
    [[nodiscard]] virtual std::size_t used() const = 0;
    [[nodiscard]] virtual std::size_t peak() const = 0;
    [[nodiscard]] bool contains(const void* p) const {
        const auto* b = static_cast<const std::byte*>(p);
        return b >= base() && b < base() + bytes();
    }
};

} // namespace halocline::comm
