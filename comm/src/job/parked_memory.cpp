// SPDX-License-Identifier: Apache-2.0
#include "parked_memory.hpp"

#include <halocline/comm/detail/shm_channel.hpp>

#include <algorithm>

namespace halocline::comm {
namespace {

/// True if nobody will write into it any more.
bool is_quiet(const parked_block& block) noexcept {
    return std::ranges::all_of(block.lines, [](const control_line* l) { return shm_channel::closed(*l); }) &&
           std::ranges::all_of(block.exposed, [](const auto& e) { return e.use_count() <= 1; });
}

} // namespace

void parked_memory::sweep(node_slab& slab) noexcept {
    std::erase_if(blocks_, [&](parked_block& block) {
        if (!is_quiet(block)) return false;
        block.exposed.clear(); // before its memory is freed
        slab.deallocate(block.start, block.bytes, alignof(control_line));
        for (const void* p : block.pinned) slab.unpin(p);
        return true;
    });
}

} // namespace halocline::comm
