// SPDX-License-Identifier: Apache-2.0
// This rank's part of what it shares with its peers: a link and an outbox for each (message_layout.hpp), in its slab.
#pragma once

#include "job/job_core.hpp"
#include "message_layout.hpp"

#include <halocline/comm/detail/control_line.hpp>

#include <cstddef>
#include <new>
#include <vector>

namespace halocline::comm {

/// What one rank's slab holds for its messages with one peer.
struct message_place {
    link_layout* link = nullptr;
    outbox* box = nullptr;
};

class message_memory {
  public:
    /// Links take memory at once, outboxes when they are first used.  Err: slab_full.
    message_memory(job_core& core, std::size_t peers) : core_(core), peers_(peers) {
        if (peers == 0) return;
        links_ = static_cast<link_layout*>(core.memory->allocate_for_peers(link_bytes(), alignof(link_layout)));
        try {
            boxes_ = static_cast<outbox*>(core.memory->reserve(box_bytes(), alignof(outbox)));
        } catch (...) {
            core.memory->deallocate(links_, link_bytes(), alignof(link_layout));
            throw;
        }
        for (std::size_t i = 0; i < peers; ++i) new (links_ + i) link_layout;
    }
    /// Given back at once, unless it was parked, or peers may write to it because the job has failed.
    ~message_memory() {
        if (links_ == nullptr || core_.failed() != status::ok) return;
        core_.memory->deallocate(boxes_, box_bytes(), alignof(outbox));
        core_.memory->deallocate(links_, link_bytes(), alignof(link_layout));
    }
    message_memory(const message_memory&) = delete;
    message_memory& operator=(const message_memory&) = delete;

    /// For the peer with this index among the peers.
    [[nodiscard]] message_place operator[](std::size_t peer) const noexcept { return {links_ + peer, boxes_ + peer}; }

    /// Keeps the memory until all peers have said farewell, on these lines.
    void park(const std::vector<const control_line*>& farewells) {
        if (links_ == nullptr) return;
        core_.park({boxes_, box_bytes(), farewells});
        core_.park({links_, link_bytes(), farewells});
        links_ = nullptr;
    }

  private:
    [[nodiscard]] std::size_t link_bytes() const noexcept { return peers_ * sizeof(link_layout); }
    [[nodiscard]] std::size_t box_bytes() const noexcept { return peers_ * sizeof(outbox); }

    job_core& core_;
    std::size_t peers_;
    link_layout* links_ = nullptr;
    outbox* boxes_ = nullptr;
};

} // namespace halocline::comm
