// SPDX-License-Identifier: Apache-2.0
// This rank's part of what it shares with its peers, in its slab: a bell, and for each peer a link and an outbox
// (message_layout.hpp).
#pragma once

#include "job/slab_block.hpp"
#include "message_layout.hpp"

#include <halocline/comm/detail/control_line.hpp>
#include <halocline/comm/detail/copy_bytes.hpp>
#include <halocline/comm/detail/line_pairs.hpp>

#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

namespace halocline::comm {

static_assert(std::max(alignof(link_layout), alignof(outbox)) <= alignof(control_line)); // as slab blocks are

/// What one rank's slab holds for its messages with one peer.
struct message_place {
    message_bell* bell = nullptr; ///< the same for all peers
    link_layout* link = nullptr;
    outbox* box = nullptr;
    /// Do larger payloads lie in one piece in the slots that its owner fills? Its processor decides that: where moves
    /// skip waits, and on Intel's, where a stream takes three quarters of the time (docs/decisions/0015).
    bool in_one_piece = false;
};

class message_memory {
  public:
    /// Links take memory at once, outboxes when they are first used.  Err: slab_full.
    message_memory(job_core& core, std::size_t peers) : core_(core) {
        if (peers == 0) return;
        links_ = slab_block(core, peers * sizeof(link_layout) + sizeof(message_bell));
        boxes_ = slab_block::reserved(core, peers * sizeof(outbox));
        for (std::size_t i = 0; i < peers; ++i) new (links_.start() + i * sizeof(link_layout)) link_layout;
        bell_ = new (links_.start() + peers * sizeof(link_layout)) message_bell;
    }

    /// For the peer with this index among the peers.
    [[nodiscard]] message_place operator[](std::size_t peer) const noexcept {
        return {bell_, reinterpret_cast<link_layout*>(links_.start()) + peer,
                reinterpret_cast<outbox*>(boxes_.start()) + peer, moves_skip_waits() || lines_come_in_pairs};
    }
    /// nullptr if there are no peers.
    [[nodiscard]] message_bell* bell() const noexcept { return bell_; }

    /// Keeps the memory until all peers have said farewell, on these lines, which lie in the links.
    void park(const std::vector<const control_line*>& farewells) {
        if (links_.start() == nullptr) return;
        core_.memory->pin(boxes_.start());
        links_.park({.lines = farewells, .pinned = {boxes_.start()}});
        boxes_ = {}; // given back to the slab, which keeps it as long as it is pinned
    }

  private:
    job_core& core_;
    slab_block links_, boxes_;
    message_bell* bell_ = nullptr; ///< behind the links
};

} // namespace halocline::comm
