// SPDX-License-Identifier: Apache-2.0
// A memory resource that counts what it has handed out.
#pragma once

#include <cstddef>
#include <memory_resource>

namespace halocline_test {

struct counted_memory final : std::pmr::memory_resource {
    std::size_t taken = 0; ///< bytes

  private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        taken += bytes;
        return std::pmr::new_delete_resource()->allocate(bytes, alignment);
    }
    void do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override {
        taken -= bytes;
        std::pmr::new_delete_resource()->deallocate(p, bytes, alignment);
    }
    [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

} // namespace halocline_test
