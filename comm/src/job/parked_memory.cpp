// SPDX-License-Identifier: Apache-2.0
#include "parked_memory.hpp"

#include <algorithm>

namespace halocline::comm {
namespace {

/// True if nobody will write into it any more.
bool is_quiet(const parked_block& block, const keyed_letters& letters) noexcept {
    const bool is_left = std::ranges::all_of(block.lines, &control_line::closed);
    return (is_left || (block.or_letter && letters.find(*block.or_letter) != nullptr)) &&
           std::ranges::all_of(block.exposed, [](const auto& e) { return e.use_count() <= 1; });
}

} // namespace

bool parked_memory::expects_letters() const noexcept {
    return std::ranges::any_of(blocks_, [](const parked_block& block) { return block.or_letter.has_value(); });
}

void parked_memory::sweep(node_slab& slab, keyed_letters& letters) noexcept {
    std::erase_if(blocks_, [&](parked_block& block) {
        if (!is_quiet(block, letters)) return false;
        block.exposed.clear(); // before its memory is freed
        slab.deallocate(block.start, block.bytes, alignof(control_line));
        for (const void* p : block.pinned) slab.unpin(p);
        if (block.or_letter) letters.forget(*block.or_letter);
        return true;
    });
}

} // namespace halocline::comm
