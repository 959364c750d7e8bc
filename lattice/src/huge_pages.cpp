// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/huge_pages.hpp>

#include <algorithm>
#include <new>

#include <sys/mman.h>

namespace halocline::lattice {
namespace {

class huge_page_resource final : public std::pmr::memory_resource {
    static std::align_val_t alignment_of(std::size_t bytes, std::size_t alignment) {
        return std::align_val_t{bytes < huge_page_bytes ? alignment : std::max(alignment, huge_page_bytes)};
    }

    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        void* const p = ::operator new(bytes, alignment_of(bytes, alignment));
        const std::size_t whole_pages = bytes / huge_page_bytes * huge_page_bytes;
        if (whole_pages > 0) madvise(p, whole_pages, MADV_HUGEPAGE);
        return p;
    }
    void do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override {
        ::operator delete(p, alignment_of(bytes, alignment));
    }
    [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

} // namespace

std::pmr::memory_resource* huge_pages() noexcept {
    static huge_page_resource resource;
    return &resource;
}

} // namespace halocline::lattice
