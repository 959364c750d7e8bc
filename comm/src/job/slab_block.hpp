// SPDX-License-Identifier: Apache-2.0
// Memory for what peers write, while it is being set up: if that throws, the block goes back to the slab, so that the
// program may try again with less.
#pragma once

#include "job_core.hpp"

#include <cstddef>
#include <utility>

namespace halocline::comm {

class slab_block {
  public:
    slab_block() = default;
    /// Err: slab_full.
    slab_block(job_core& core, std::size_t bytes)
        : slab_block(core, bytes, core.memory->allocate_for_peers(bytes, alignof(control_line))) {}
    /// A block that takes memory only when it is touched.  Err: slab_full.
    [[nodiscard]] static slab_block reserved(job_core& core, std::size_t bytes) {
        return {core, bytes, core.memory->reserve(bytes, alignof(control_line))};
    }
    slab_block(slab_block&& other) noexcept
        : core_(other.core_), bytes_(other.bytes_), start_(std::exchange(other.start_, nullptr)) {}
    slab_block& operator=(slab_block&& other) noexcept {
        std::swap(core_, other.core_);
        std::swap(bytes_, other.bytes_);
        std::swap(start_, other.start_);
        return *this;
    }
    /// Pre: no peer writes there any more. Once the job has failed nobody knows that, so the block stays taken.
    ~slab_block() {
        if (start_ == nullptr || core_->in_forked_child() || core_->failed() != status::ok) return;
        core_->memory->deallocate(start_, bytes_, alignof(control_line));
    }

    [[nodiscard]] std::byte* start() const noexcept { return start_; }
    /// Hands the block over, to be parked.
    [[nodiscard]] parked_block release() noexcept { return {std::exchange(start_, nullptr), bytes_, {}}; }
    /// Parks the block: peers may write it until they have said farewell, as `until` describes it.
    void park(parked_block until) {
        until.start = std::exchange(start_, nullptr);
        until.bytes = bytes_;
        core_->park(std::move(until));
    }

  private:
    slab_block(job_core& core, std::size_t bytes, void* start)
        : core_(&core), bytes_(bytes), start_(static_cast<std::byte*>(start)) {}

    job_core* core_ = nullptr;
    std::size_t bytes_ = 0;
    std::byte* start_ = nullptr;
};

} // namespace halocline::comm
