// SPDX-License-Identifier: Apache-2.0
// An end's memory, its registration, and how long it lives.
#include "control/wire_format.hpp"
#include "endpoint.hpp"
#include "registration.hpp"
#include "tags.hpp"

#include <halocline/base/error.hpp>

#include <utility>

namespace halocline::comm {

namespace {

/// One receive per piece of the messages of two epochs, then the greeting and the farewell.
void make_receives(ofi_end& e) {
    e.receives.resize(2 * std::size_t{e.pieces_in} + 2);
    for (std::size_t i = 0; i < e.receives.size(); ++i) {
        e.receives[i].end = &e;
        e.receives[i].receives = true;
        e.receives[i].tag = ofi_tags::message + static_cast<std::uint32_t>(i / e.pieces_in); // that of a slot
    }
    e.receives[e.receives.size() - 2].tag = ofi_tags::greeting;
    e.receives[e.receives.size() - 1].tag = ofi_tags::farewell;
}

} // namespace

/// Makes room in ends_ for one more end.
std::uint32_t ofi_world::take_id() {
    if (!free_ids_.empty()) {
        const std::uint32_t id = free_ids_.back();
        free_ids_.pop_back();
        return id;
    }
    if (ends_.size() >= ofi_tags::most_ends)
        throw job_error("libfabric: " + std::to_string(ends_.size()) + " channels are open, no more can be told apart");
    ends_.emplace_back();
    // So that the data path never allocates.
    free_ids_.reserve(ends_.capacity());
    waiting_.reserve(ends_.capacity());
    return static_cast<std::uint32_t>(ends_.size() - 1);
}

void ofi_world::register_block(ofi_end& e) {
    // Nobody addresses the block of tagged messages, and a region that belongs to an endpoint keeps that from being closed.
    if (e.tagged && !endpoint_->registers_local()) return;
    const ofi_registration r = endpoint_->register_memory({e.block, e.block_bytes}, e.id + 1);
    endpoint_->require(r.error, r.call);
    e.region = r.region;
    e.descriptor = r.descriptor;
    e.key = r.key;
    e.base = r.base;
}

ofi_end& ofi_world::open(std::pmr::memory_resource& memory, int peer, std::uint32_t, std::size_t send_bytes,
                         std::size_t receive_bytes) {
    sweep();
    auto end = std::make_unique<ofi_end>();
    ofi_end& e = *end;
    e.peer = peer;
    const auto pieces = [&](std::size_t payload) {
        return static_cast<std::uint32_t>((message_slots::message_bytes(payload) - 1) / endpoint_->largest_write + 1);
    };
    e.pieces_in = pieces(receive_bytes);
    e.pieces_out = e.next_piece = pieces(send_bytes);
    e.operations.resize(e.pieces_out + 2);
    for (ofi_operation& o : e.operations) o.end = &e;
    e.tagged = endpoint_->provider.tagged;
    if (e.tagged) make_receives(e);
    e.next_receive[0] = e.pieces_in;                // nothing to post: epoch 2 comes after this end's epoch 1 (send())
    e.next_receive[1] = e.tagged ? 0 : e.pieces_in; // epoch 1 may arrive as soon as the peer knows this end

    e.id = take_id();
    try {
        e.allocate(memory, send_bytes, receive_bytes, sizeof(ofi_handshake), sizeof(ofi_handshake));
        new (e.block) ofi_handshake;
        new (&e.handshake_out()) ofi_handshake;
        register_block(e);
    } catch (...) {
        e.deallocate();
        free_ids_.push_back(e.id);
        throw;
    }
    e.error = endpoint_->error;
    ends_[e.id] = std::move(end);
    return e;
}

void ofi_world::open_values(ofi_end& e, std::span<const direct_write> writes) {
    e.values.writes = direct_values::split(writes, endpoint_->largest_write);
    e.next_value = static_cast<std::uint32_t>(e.values.writes.size());
    e.operations.resize(e.operations.size() + e.values.writes.size());
    for (ofi_operation& o : e.operations) o.end = &e;
}

namespace {

struct end_card {
    std::uint64_t id = 0, key = 0, base = 0;
};

} // namespace

std::string ofi_world::card(const ofi_end& e) const { return to_wire(end_card{e.id, e.key, e.base}); }

void ofi_world::connect(ofi_end& e, const std::string& peer_card) {
    const auto theirs = from_wire<end_card>(peer_card);
    e.peer_id = static_cast<std::uint32_t>(theirs.id);
    e.peer_key = theirs.key;
    e.peer_base = theirs.base;
    e.greeting_said = true; // the peer's end need not be connected for that
    greet(e);
}

bool ofi_world::close_end(ofi_end& e) noexcept {
    if (!close_object(e.region)) return false;
    e.deallocate();
    return true;
}

void ofi_world::sweep() noexcept {
    if (endpoint_->is_cut) return; // everything goes with the world
    for (auto& e : ends_) {
        if (!e || !e->released || e->error || e->waiting || !e->has_room() || !(e->over() || e->refused)) continue;
        if (e->receives_posted >
            0) { // for a message that will not come: the memory goes once they have been taken back
            if (!std::exchange(e->cancelled, true)) {
                for (ofi_operation& o : e->receives) fi_cancel(&endpoint_->ep->fid, &o);
            }
            continue;
        }
        if (!close_end(*e)) continue;
        free_ids_.push_back(e->id);
        e = nullptr;
    }
}

} // namespace halocline::comm
