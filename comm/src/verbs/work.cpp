// SPDX-License-Identifier: Apache-2.0
// The work requests that are given to the device: messages, handshakes, receives.
#include "end.hpp"
#include "port.hpp"
#include "tags.hpp"

#include <algorithm>
#include <arpa/inet.h>

namespace halocline::comm {

/// Writes the work requests of messages of so many bytes into a slot. They are posted again and again as they are, until a
/// message of another size comes.
void verbs_world::shape(link& l, std::size_t slot, std::size_t bytes) noexcept {
    link::message_writes& m = l.slot[slot];
    m.bytes = bytes;
    m.count = static_cast<std::uint32_t>((bytes - 1) / port_->largest_write + 1);
    const unsigned flags = l.room > 1 ? IBV_SEND_INLINE : 0;
    for (std::uint32_t i = 0; i < m.count; ++i) {
        const std::size_t start = i * port_->largest_write;
        const bool last = i + 1 == m.count;
        m.places[i] = {reinterpret_cast<std::uintptr_t>(l.outgoing() + start),
                       static_cast<std::uint32_t>(std::min(port_->largest_write, bytes - start)), l.region->lkey};
        ibv_send_wr& w = m.pieces[i];
        w = {};
        w.wr_id = l.id(link::message);
        w.next = last ? nullptr : &m.pieces[i + 1];
        w.sg_list = &m.places[i];
        w.num_sge = 1;
        // Writes of a queue pair are placed in order: the last one announces all.
        w.opcode = last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
        w.send_flags = flags | (last && l.signal_every == 1 ? IBV_SEND_SIGNALED : 0);
        w.imm_data = htonl(verbs_tags::message);
        w.wr.rdma.remote_addr = l.peer_block + l.place_at_peer(slot) + start;
        w.wr.rdma.rkey = l.peer_key;
    }
}

void verbs_world::greet(verbs_end& end) noexcept { post_handshake(linked(end), link::greeting, verbs_tags::greeting); }

void verbs_world::say_farewell(verbs_end& end) noexcept {
    post_handshake(linked(end), link::farewell, verbs_tags::farewell);
}

void verbs_world::post_handshake(link& l, std::uint64_t kind, std::uint32_t tag) noexcept {
    ibv_send_wr w{};
    w.wr_id = l.id(static_cast<link::kind>(kind));
    w.opcode = IBV_WR_RDMA_WRITE_WITH_IMM; // of no bytes
    w.send_flags = IBV_SEND_SIGNALED;
    w.imm_data = htonl(tag);
    ibv_send_wr* bad = nullptr;
    const int code = ibv_post_send(l.queue_pair, &w, &bad);
    ++l.writes;
    if (code != 0) fail(l, -code, "ibv_post_send");
}

void verbs_world::send(verbs_end& end, std::uint64_t epoch, std::size_t bytes) noexcept {
    link& l = linked(end);
    link::message_writes& m = l.slot[epoch & 1];
    if (m.bytes != bytes) shape(l, epoch & 1, bytes);
    ++l.posted;
    if (l.signal_every > 1) { // then it is one piece
        m.pieces[0].send_flags =
            IBV_SEND_INLINE | (l.posted % link::told_every == 0 ? unsigned{IBV_SEND_SIGNALED} : 0U);
    }
    ibv_send_wr* bad = nullptr;
    const int code = ibv_post_send(l.queue_pair, m.pieces.data(), &bad);
    l.writes += m.count;
    if (code != 0) fail(l, -code, "ibv_post_send");
}

void verbs_world::replenish(link& l) noexcept {
    ibv_recv_wr* bad = nullptr;
    const int code = ibv_post_recv(l.queue_pair, l.receives_chained.data(), &bad);
    l.receives += link::batch;
    if (code != 0) fail(l, -code, "ibv_post_recv");
}

} // namespace halocline::comm
