// SPDX-License-Identifier: Apache-2.0
#include <halocline_test/allocation_counter.hpp>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::uint64_t> count{0}, bytes_in_all{0};
thread_local bool has_memory = true;

void* counted_or_null(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) noexcept {
    count.fetch_add(1, std::memory_order_relaxed);
    bytes_in_all.fetch_add(bytes, std::memory_order_relaxed);
    if (!has_memory) return nullptr;
    return alignment <= alignof(std::max_align_t)
               ? std::malloc(bytes ? bytes : 1)
               : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* counted(std::size_t bytes, std::align_val_t alignment = std::align_val_t{alignof(std::max_align_t)}) {
    void* p = counted_or_null(bytes, static_cast<std::size_t>(alignment));
    if (!p) throw std::bad_alloc();
    return p;
}
} // namespace

namespace halocline_test {
without_memory::without_memory() noexcept { has_memory = false; }
without_memory::~without_memory() { has_memory = true; }
std::uint64_t allocations() noexcept { return count.load(std::memory_order_relaxed); }
std::uint64_t allocated_bytes() noexcept { return bytes_in_all.load(std::memory_order_relaxed); }
} // namespace halocline_test

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void* operator new(std::size_t bytes, std::align_val_t a) { return counted(bytes, a); }
void* operator new[](std::size_t bytes, std::align_val_t a) { return counted(bytes, a); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return counted_or_null(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return counted_or_null(bytes); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
