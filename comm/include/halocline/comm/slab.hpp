// SPDX-License-Identifier: Apache-2.0
// A slab: the memory of a rank that its peers can reach. One sparse, sealed memfd per rank, sized when the job starts
// and mapped by the peers of the node. Memory is committed on first use, in huge pages where the kernel can
// (docs/decisions/0037-huge-pages-in-slabs.md), so running out of memory is an error here, not a SIGBUS later; only the
// boxes of messages take their pages when they are first used. It is a std::pmr::memory_resource: fields and buffers can
// live in it.
#pragma once

#include <cstddef>
#include <memory_resource>

namespace halocline::comm {

/// allocate() throws slab_full (slab_full.hpp).
class slab : public std::pmr::memory_resource {
  public:
    /// Start of the mapping in this rank. Peers map the same bytes at other addresses, so ranks exchange offsets.
    [[nodiscard]] virtual std::byte* base() const = 0;
    /// Virtual size (job_options::slab_bytes).
    [[nodiscard]] virtual std::size_t bytes() const = 0;
    /// Bytes allocated now, and the peak so far.
    [[nodiscard]] virtual std::size_t used() const = 0;
    [[nodiscard]] virtual std::size_t peak() const = 0;
    /// Committed bytes that are in pages of 2 MiB; all others are in small ones.
    [[nodiscard]] virtual std::size_t huge() const = 0;
    [[nodiscard]] bool contains(const void* p) const {
        const auto* b = static_cast<const std::byte*>(p);
        return b >= base() && b < base() + bytes();
    }
};

} // namespace halocline::comm
