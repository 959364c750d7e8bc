// SPDX-License-Identifier: Apache-2.0
// Outgoing: greeting, the pieces of a message, farewell; and the receives for a provider without RMA.
#include "endpoint.hpp"
#include "tags.hpp"

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

namespace halocline::comm {

int ofi_world::write(ofi_end& e, const std::byte* from, std::size_t bytes, std::uint64_t remote_offset,
                     std::uint32_t tag, std::uint32_t piece, ofi_operation& operation) noexcept {
    const std::uint32_t data = e.peer_id << ofi_tags::bits | tag;
    const ssize_t code = e.tagged
                             ? fi_tsend(endpoint_->ep, from, bytes, e.descriptor, endpoint_->peers[e.peer],
                                        ofi_tags::match_bits(data, piece), &operation)
                             : fi_writedata(endpoint_->ep, from, bytes, e.descriptor, data, endpoint_->peers[e.peer],
                                            e.peer_base + remote_offset, e.peer_key, &operation);
    if (code == 0) {
        ++e.under_way;
        ++e.writes;
    }
    return static_cast<int>(code);
}

int ofi_world::write_value(ofi_end& e, const direct_write& w, ofi_operation& operation) noexcept {
    const direct_memory::field& from = e.values.source(w);
    const bulk_ticket& to = e.values.target(w);
    const std::uint32_t kind = e.values.is_part ? ofi_tags::parts : ofi_tags::values;
    const std::uint32_t tag = kind + static_cast<std::uint32_t>(e.values.given & 1);
    const ssize_t code = fi_writedata(
        endpoint_->ep, from.start + w.from, w.bytes, reinterpret_cast<void*>(from.registered->local),
        e.peer_id << ofi_tags::bits | tag, endpoint_->peers[e.peer], to.address + w.to, to.key, &operation);
    if (code == 0) {
        ++e.under_way;
        ++e.writes;
        ++e.values_sent;
    }
    return static_cast<int>(code);
}

/// With tagged messages in place of the peer's writes: posts receives for what it may send next, a message per slot,
/// the greeting and the farewell. Returns as push_all() does.
int ofi_world::post_receives(ofi_end& e) noexcept {
    const auto post = [&](std::size_t offset, std::size_t bytes, std::uint32_t piece, ofi_operation& operation) {
        const std::uint64_t bits = ofi_tags::match_bits(e.id << ofi_tags::bits | operation.tag, piece);
        const ssize_t code = fi_trecv(endpoint_->ep, e.block + offset, bytes, e.descriptor, endpoint_->peers[e.peer],
                                      bits, 0, &operation);
        if (code == 0) ++e.receives_posted;
        return static_cast<int>(code);
    };
    ofi_operation* const handshakes = e.receives.data() + 2 * std::size_t{e.pieces_in};
    for (; e.handshakes_posted < 2; ++e.handshakes_posted) {
        const std::size_t offset =
            e.handshakes_posted == 0 ? offsetof(ofi_handshake, greeting) : offsetof(ofi_handshake, messages_sent);
        if (const int code = post(offset, 8, 0, handshakes[e.handshakes_posted]); code != 0) return code;
    }
    for (std::uint32_t slot = 0; slot < 2; ++slot) {
        for (std::uint32_t& n = e.next_receive[slot]; n < e.pieces_in; ++n) {
            const std::size_t start = n * endpoint_->largest_write;
            const int code = post(static_cast<std::size_t>(e.slot(slot) - e.block) + message_slots::label_at + start,
                                  std::min(endpoint_->largest_write, e.receive_message - start), n,
                                  e.receives[slot * std::size_t{e.pieces_in} + n]);
            if (code != 0) return code;
        }
    }
    return 0;
}

bool ofi_world::receives_refused(ofi_end& e) noexcept {
    if (e.handshakes_posted == 2) return false; // later ones wait until messages come
    if (e.refused_since == 0) e.refused_since = ticks();
    constexpr double patience = 5; // seconds
    if (seconds(ticks() - e.refused_since) < patience) return false;
    const auto open = ends_.size() - free_ids_.size();
    char text[128];
    std::snprintf(text, sizeof text,
                  "%zu channels are open here, each with at least 2 receives, and %s takes about %zu", open,
                  endpoint_->provider.name.c_str(), endpoint_->provider.list->rx_attr->size);
    note(-FI_ENOSPC, text);
    return true;
}

/// Writes what is due, in this order: greeting, the pieces of a message, values, farewell. Returns the first code that
/// is not 0; what was written before that is no longer due, so after -FI_EAGAIN the next call continues where this one
/// stopped.
int ofi_world::push_all(ofi_end& e) noexcept {
    // If libfabric has no room for a receive now, what is to be sent goes all the same: the peer may be waiting for it, as
    // this end for the peer's, and a message without a receive is kept by the provider.
    const int receives = e.tagged ? post_receives(e) : 0;
    if (receives != 0 && receives != -FI_EAGAIN) return receives;
    if (receives != 0 && receives_refused(e)) return -FI_ENOSPC;
    const std::byte* const handshake = reinterpret_cast<const std::byte*>(&e.handshake_out());
    if (e.greeting_due) {
        const int code = write(e, handshake + offsetof(ofi_handshake, greeting), 8, offsetof(ofi_handshake, greeting),
                               ofi_tags::greeting, 0, e.operations[e.pieces_out]);
        if (code != 0) return code;
        e.greeting_due = false;
    }
    for (; e.next_piece < e.pieces_out; ++e.next_piece) {
        const std::size_t start = e.next_piece * endpoint_->largest_write;
        // A shorter message still has all its pieces, because the peer counts them; some hold one meaningless byte.
        const std::size_t bytes = start < e.now_bytes ? std::min(endpoint_->largest_write, e.now_bytes - start) : 1;
        const auto slot = static_cast<std::uint32_t>(e.started & 1);
        const int code = write(e, e.outgoing() + start, bytes, e.place_at_peer(slot) + start, ofi_tags::message + slot,
                               e.next_piece, e.operations[e.next_piece]);
        if (code != 0) return code;
    }
    for (; e.next_value < e.values.writes.size(); ++e.next_value) {
        const int code = write_value(e, e.values.writes[e.next_value], e.operations[e.pieces_out + 2 + e.next_value]);
        if (code != 0) return code;
    }
    if (e.farewell_due) {
        const int code =
            write(e, handshake + offsetof(ofi_handshake, messages_sent), 8, offsetof(ofi_handshake, messages_sent),
                  ofi_tags::farewell, 0, e.operations[e.pieces_out + 1]);
        if (code != 0) return code;
        e.farewell_due = false;
    }
    return receives;
}

void ofi_world::greet(ofi_end& e) noexcept {
    e.greeting_due = true;
    push(e);
}

void ofi_world::send(ofi_end& e, std::uint64_t epoch, std::size_t bytes) noexcept {
    e.now_bytes = bytes;
    e.next_piece = 0;
    if (e.tagged) e.next_receive[(epoch + 1) & 1] = 0; // that slot held epoch - 1, which ends now
    push(e);
}

void ofi_world::send_values(ofi_end& e) noexcept {
    e.next_value = 0;
    push(e);
}

void ofi_world::say_farewell(ofi_end& e) noexcept {
    e.handshake_out().messages_sent = e.started + e.values_sent + (e.values.writes.size() - e.next_value);
    e.farewell_due = true;
    push(e);
}

void ofi_world::push(ofi_end& e) noexcept {
    if (e.waiting || e.error || endpoint_->is_cut) return;
    const int code = push_all(e);
    if (code == -FI_EAGAIN) {
        e.waiting = true;
        waiting_.push_back(&e);
    } else if (code != 0) {
        fail(&e, code, nullptr);
    }
}

} // namespace halocline::comm
