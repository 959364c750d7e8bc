// SPDX-License-Identifier: Apache-2.0
// The work requests posted to the device: messages, handshakes, receives.
#include "end.hpp"
#include "port.hpp"
#include "tags.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <new>

namespace halocline::comm {

/// Prepares the work requests for messages into a slot that consist of `bytes` from `first` on. They are posted again
/// and again, changing only the epoch, until a message of another shape comes.
void verbs_world::shape(link& l, std::size_t slot, std::size_t first, std::size_t bytes) noexcept {
    link::message_writes& m = l.prepared[slot];
    m.first = first;
    m.bytes = bytes;
    m.count = bytes == 0 ? 1 : static_cast<std::uint32_t>((bytes - 1) / port_->largest_write + 1);
    const unsigned flags = l.room > 1 ? IBV_SEND_INLINE : 0;
    for (std::uint32_t i = 0; i < m.count; ++i) {
        const std::size_t start = i * port_->largest_write;
        const bool last = i + 1 == m.count;
        m.places[i] = {reinterpret_cast<std::uintptr_t>(l.outgoing() + first + start),
                       static_cast<std::uint32_t>(std::min(port_->largest_write, bytes - start)), l.region->lkey};
        ibv_send_wr& w = m.pieces[i];
        w = {};
        w.wr_id = l.id(link::message);
        w.next = last ? nullptr : &m.pieces[i + 1];
        w.sg_list = &m.places[i];
        w.num_sge = bytes > 0 ? 1 : 0; // some devices take an entry of 0 bytes for one of 2^31
        // Writes of a queue pair are placed in order, so the last one announces all.
        w.opcode = last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
        w.send_flags = flags | (last && l.signal_every == 1 ? IBV_SEND_SIGNALED : 0);
        w.wr.rdma.remote_addr = l.peer_block + l.place_at_peer(slot) + first + start;
        w.wr.rdma.rkey = l.peer_key;
    }
}

void verbs_world::post(link& l, ibv_send_wr* first, std::size_t count) noexcept {
    ibv_send_wr* bad = nullptr;
    const int code = ibv_post_send(l.queue_pair, first, &bad);
    l.writes += count;
    if (code != 0) fail(l, -code, "ibv_post_send");
}

void verbs_world::greet(verbs_end& end) noexcept {
    link& l = linked(end);
    post_handshake(l, link::greeting, verbs_tags::immediate(verbs_tags::greeting, l.plan->id));
}

void verbs_world::say_farewell(verbs_end& end) noexcept {
    post_handshake(linked(end), link::farewell, verbs_tags::farewell);
}

void verbs_world::post_handshake(link& l, std::uint64_t kind, std::uint32_t immediate) noexcept {
    ibv_send_wr w{};
    w.wr_id = l.id(static_cast<link::kind>(kind));
    w.opcode = IBV_WR_RDMA_WRITE_WITH_IMM; // of 0 bytes
    w.send_flags = IBV_SEND_SIGNALED;
    w.imm_data = htonl(immediate);
    post(l, &w, 1);
}

void verbs_world::send(verbs_end& end, std::uint64_t epoch, std::size_t bytes) noexcept {
    link& l = linked(end);
    link::message_writes& m = l.prepared[epoch & 1];
    // Labels rarely say more than epoch and length. The peer knows the length only if there is a single write.
    const auto& label = *std::launder(reinterpret_cast<const message_label*>(l.outgoing()));
    const bool alone =
        label.field_index == 0 && label.start_stamp == 0 && bytes - sizeof(message_label) <= port_->largest_write;
    const std::size_t first = alone ? sizeof(message_label) : 0;
    if (m.first != first || m.bytes != bytes - first) shape(l, epoch & 1, first, bytes - first);
    m.pieces[m.count - 1].imm_data =
        htonl(verbs_tags::immediate(alone ? verbs_tags::payload : verbs_tags::labelled, epoch));
    ++l.posted;
    if (l.signal_every > 1) { // the message is one piece then
        m.pieces[0].send_flags =
            IBV_SEND_INLINE | (l.posted % link::told_every == 0 ? unsigned{IBV_SEND_SIGNALED} : 0U);
    }
    post(l, m.pieces.data(), m.count);
}

void verbs_world::send_values(verbs_end& end) noexcept {
    link& l = linked(end);
    if (l.value_writes.size() != l.values.writes.size()) l.chain_values(); // a window may send a part
    for (std::size_t i = 0; i < l.value_writes.size(); ++i) {
        const direct_write& w = l.values.writes[i];
        const direct_memory::field& from = l.values.source(w);
        const bulk_ticket& to = l.values.target(w);
        l.value_places[i].length = static_cast<std::uint32_t>(w.bytes);
        l.value_places[i].addr = reinterpret_cast<std::uintptr_t>(from.start + w.from);
        l.value_places[i].lkey = static_cast<std::uint32_t>(from.registered->local);
        l.value_writes[i].wr.rdma.remote_addr = to.address + w.to;
        l.value_writes[i].wr.rdma.rkey = static_cast<std::uint32_t>(to.key);
    }
    const std::uint32_t tag = l.values.is_part ? verbs_tags::parts : verbs_tags::values;
    l.value_writes.back().imm_data = htonl(verbs_tags::immediate(tag, l.values.given));
    ++l.values_posted;
    post(l, l.value_writes.data(), l.value_writes.size());
}

void verbs_world::replenish(link& l) noexcept {
    ibv_recv_wr* bad = nullptr;
    const int code = ibv_post_recv(l.queue_pair, l.receives_chained.data(), &bad);
    l.receives += link::batch;
    if (code != 0) fail(l, -code, "ibv_post_recv");
}

} // namespace halocline::comm
