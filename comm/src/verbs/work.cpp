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
void verbs_world::shape(connected_end& e, std::size_t slot, std::size_t first, std::size_t bytes) noexcept {
    connected_end::message_writes& m = e.prepared[slot];
    m.first = first;
    m.bytes = bytes;
    m.count = bytes == 0 ? 1 : static_cast<std::uint32_t>((bytes - 1) / port_->largest_write + 1);
    const unsigned flags = e.room > 1 ? IBV_SEND_INLINE : 0;
    for (std::uint32_t i = 0; i < m.count; ++i) {
        const std::size_t start = i * port_->largest_write;
        const bool last = i + 1 == m.count;
        m.places[i] = {reinterpret_cast<std::uintptr_t>(e.outgoing() + first + start),
                       static_cast<std::uint32_t>(std::min(port_->largest_write, bytes - start)), e.region->lkey};
        ibv_send_wr& w = m.pieces[i];
        w = {};
        w.wr_id = e.id(connected_end::message);
        w.next = last ? nullptr : &m.pieces[i + 1];
        w.sg_list = &m.places[i];
        w.num_sge = bytes > 0 ? 1 : 0; // some devices take an entry of 0 bytes for one of 2^31
        // Writes of a queue pair are placed in order, so the last one announces all.
        w.opcode = last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
        w.send_flags = flags | (last && e.messages_per_signal == 1 ? IBV_SEND_SIGNALED : 0);
        w.wr.rdma.remote_addr = e.peer_block + e.place_at_peer(slot) + first + start;
        w.wr.rdma.rkey = e.peer_key;
    }
}

void verbs_world::post(connected_end& e, ibv_send_wr* first, std::size_t count) noexcept {
    ibv_send_wr* bad = nullptr;
    const int code = ibv_post_send(e.queue_pair, first, &bad);
    e.writes += count;
    if (code != 0) fail(e, -code, "ibv_post_send");
}

void verbs_world::greet(verbs_end& end) noexcept {
    connected_end& e = connected(end);
    post_handshake(e, connected_end::greeting, verbs_tags::immediate(verbs_tags::greeting, e.plan->id));
}

void verbs_world::say_farewell(verbs_end& end) noexcept {
    post_handshake(connected(end), connected_end::farewell, verbs_tags::farewell);
}

void verbs_world::post_handshake(connected_end& e, std::uint64_t kind, std::uint32_t immediate) noexcept {
    ibv_send_wr w{};
    w.wr_id = e.id(static_cast<connected_end::kind>(kind));
    w.opcode = IBV_WR_RDMA_WRITE_WITH_IMM; // of 0 bytes
    w.send_flags = IBV_SEND_SIGNALED;
    w.imm_data = htonl(immediate);
    post(e, &w, 1);
}

void verbs_world::send(verbs_end& end, std::uint64_t epoch, std::size_t bytes) noexcept {
    connected_end& e = connected(end);
    connected_end::message_writes& m = e.prepared[epoch & 1];
    // Labels rarely say more than epoch and length. The peer knows the length only if there is a single write.
    const auto& label = *std::launder(reinterpret_cast<const message_label*>(e.outgoing()));
    const bool alone =
        label.field_index == 0 && label.start_stamp == 0 && bytes - sizeof(message_label) <= port_->largest_write;
    const std::size_t first = alone ? sizeof(message_label) : 0;
    if (m.first != first || m.bytes != bytes - first) shape(e, epoch & 1, first, bytes - first);
    m.pieces[m.count - 1].imm_data =
        htonl(verbs_tags::immediate(alone ? verbs_tags::payload : verbs_tags::labelled, epoch));
    ++e.posted;
    if (e.messages_per_signal > 1) { // the message is one piece then
        m.pieces[0].send_flags =
            IBV_SEND_INLINE |
            (e.posted % connected_end::inline_messages_per_signal == 0 ? unsigned{IBV_SEND_SIGNALED} : 0U);
    }
    post(e, m.pieces.data(), m.count);
}

void verbs_world::send_values(verbs_end& end) noexcept {
    connected_end& e = connected(end);
    if (e.value_writes.size() != e.values.writes.size()) e.chain_values(); // a window may send a part
    for (std::size_t i = 0; i < e.value_writes.size(); ++i) {
        const direct_write& w = e.values.writes[i];
        const direct_memory::field& from = e.values.source(w);
        const bulk_ticket& to = e.values.target(w);
        e.value_places[i].length = static_cast<std::uint32_t>(w.bytes);
        e.value_places[i].addr = reinterpret_cast<std::uintptr_t>(from.start + w.from);
        e.value_places[i].lkey = static_cast<std::uint32_t>(from.registered->local);
        e.value_writes[i].wr.rdma.remote_addr = to.address + w.to;
        e.value_writes[i].wr.rdma.rkey = static_cast<std::uint32_t>(to.key);
    }
    const std::uint32_t tag = e.values.is_part ? verbs_tags::parts : verbs_tags::values;
    e.value_writes.back().imm_data = htonl(verbs_tags::immediate(tag, e.values.given));
    ++e.values_posted;
    post(e, e.value_writes.data(), e.value_writes.size());
}

void verbs_world::replenish(connected_end& e) noexcept {
    ibv_recv_wr* bad = nullptr;
    const int code = ibv_post_recv(e.queue_pair, e.receives_chained.data(), &bad);
    e.receives += connected_end::batch;
    if (code != 0) fail(e, -code, "ibv_post_recv");
}

} // namespace halocline::comm
