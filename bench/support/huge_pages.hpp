// SPDX-License-Identifier: Apache-2.0
// Memory of contenders in the same kind of pages as a slab (docs/decisions/0037-huge-pages-in-slabs.md): of 2 MiB,
// whatever the system's setting is, or small ones where the kernel makes no others. Otherwise a comparison would
// partly be one of pages. In a slab small arrays lie in them too, one behind the other, and so they do here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <sys/mman.h>
#include <utility>
#include <vector>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 // Linux 6.1; not yet in every C library
#endif

namespace halocline::bench {

inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

constexpr std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

/// Makes huge, if the kernel can, what lies in whole huge pages from `p` on.
/// Pre: p and bytes are multiples of huge_page_bytes; the memory holds nothing yet: some of its bytes become 0.
inline void make_huge(std::byte* p, std::size_t bytes) {
    madvise(p, bytes, MADV_HUGEPAGE);
    // The kernel makes a huge page only where it finds a small one; its first user determines the NUMA node.
    for (std::size_t at = 0; at < bytes; at += huge_page_bytes) *static_cast<volatile std::byte*>(p + at) = {};
    madvise(p, bytes, MADV_COLLAPSE);
}

/// Maps `bytes` of the file, or of zeroed memory (-1), at a multiple of a huge page. nullptr: errno says why not.
/// Pre: bytes is a multiple of huge_page_bytes.
inline std::byte* map_aligned(std::size_t bytes, int file) {
    // Inside a larger reservation, whose remainders are given back.
    void* const room = mmap(nullptr, bytes + huge_page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return nullptr;
    std::byte* const reserved = static_cast<std::byte*>(room);
    const auto address = reinterpret_cast<std::uintptr_t>(room);
    const std::size_t before = round_up(address, huge_page_bytes) - address;
    if (before > 0) munmap(reserved, before);
    munmap(reserved + before + bytes, huge_page_bytes - before);
    const int kind = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void* const p = mmap(reserved + before, bytes, PROT_READ | PROT_WRITE, kind | MAP_FIXED, file, 0);
    if (p != MAP_FAILED) return static_cast<std::byte*>(p);
    munmap(reserved + before, bytes);
    return nullptr;
}

/// Memory of this process. What is allocated is zeroed, and freed together with this object.
class huge_memory final : public std::pmr::memory_resource {
  public:
    huge_memory() = default;
    huge_memory(const huge_memory&) = delete;
    huge_memory& operator=(const huge_memory&) = delete;
    ~huge_memory() override {
        for (const auto& [p, bytes] : blocks_) munmap(p, bytes);
    }
    /// Aligned to a pair of cache lines.  Err: std::bad_alloc.
    [[nodiscard]] std::byte* take(std::size_t bytes) { return static_cast<std::byte*>(allocate(bytes, granule)); }

  private:
    static constexpr std::size_t granule = 128; // a slab's
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        const std::size_t need = round_up(std::max<std::size_t>(bytes, 1), granule);
        std::size_t at = round_up(used_, std::max(alignment, granule));
        if (blocks_.empty() || at > blocks_.back().second || need > blocks_.back().second - at) {
            add_block(round_up(need, huge_page_bytes));
            at = 0;
        }
        used_ = at + need;
        return blocks_.back().first + at;
    }
    void do_deallocate(void*, std::size_t, std::size_t) override {}
    [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        return this == &other;
    }
    void add_block(std::size_t bytes) {
        blocks_.reserve(blocks_.size() + 1);
        std::byte* const p = map_aligned(bytes, -1);
        if (p == nullptr) throw std::bad_alloc();
        blocks_.emplace_back(p, bytes);
        make_huge(p, bytes);
    }

    std::vector<std::pair<std::byte*, std::size_t>> blocks_; // whole huge pages
    std::size_t used_ = 0;                                   // of the last block
};

} // namespace halocline::bench
