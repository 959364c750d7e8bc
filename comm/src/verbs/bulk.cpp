// SPDX-License-Identifier: Apache-2.0
#include "bulk.hpp"

#include "control/wire_format.hpp"

#include <algorithm>
#include <cerrno>

namespace halocline::comm {
namespace {

struct verbs_exposed_memory final : exposed_memory {
    verbs_exposed_memory(const verbs_library& from, ibv_mr* registered) : lib(from), region(registered) {}
    ~verbs_exposed_memory() override { lib.dereg_mr(region); }
    const verbs_library& lib;
    ibv_mr* region;
};

} // namespace

std::unique_ptr<bulk_link> verbs_world::open_bulk(const slab& memory, int peer, std::uint32_t count) {
    sweep();
    return std::make_unique<verbs_bulk_link>(*this, memory, peer, count);
}

std::shared_ptr<const exposed_memory> verbs_world::expose(std::span<std::byte> memory) {
    auto e = std::make_shared<verbs_exposed_memory>(port_->lib, port_->register_for_peers(memory, "to expose them"));
    e->ticket = {reinterpret_cast<std::uintptr_t>(memory.data()), e->region->rkey};
    e->local = e->region->lkey;
    return e;
}

verbs_bulk_link::verbs_bulk_link(verbs_world& world, const slab& memory, int peer, std::uint32_t count)
    : port_(*world.port_),
      pair_(*world.bulk_pairs_.emplace_back(std::make_unique<verbs_world::bulk_pair>(*world.port_, peer))), peer_(peer),
      piece_(std::min(port_.largest_write, piece_bytes)), in_(count), out_(count) {
    port_.caches.make(memory);
    pair_.link = this;
    for (transfer& t : in_) t.cache = port_.caches.targets.get();
    for (transfer& t : out_) t.cache = port_.caches.sources.get();
}

verbs_bulk_link::~verbs_bulk_link() {
    const auto busy = [](const transfer& t) { return t.data != nullptr; };
    if (std::ranges::any_of(in_, busy) || std::ranges::any_of(out_, busy)) pair_.close(); // the job has failed
    for (auto* set : {&in_, &out_})
        for (transfer& t : *set) close(t);
    pair_.link = nullptr;
    if (pair_.joined) pair_.write(verbs_world::bulk_pair::farewell, {}, 0, 0);
}

namespace {

struct bulk_card {
    std::uint32_t queue_pair = 0, first_psn = 0;
    std::size_t piece = 0;
};

} // namespace

std::string verbs_bulk_link::card() const {
    return to_wire(bulk_card{pair_.queue_pair->qp_num, pair_.first_psn, piece_});
}

void verbs_bulk_link::connect(const std::string& peer_card) {
    const auto theirs = from_wire<bulk_card>(peer_card);
    piece_ = std::min(piece_, theirs.piece);
    port_.connect(pair_.queue_pair, peer_, theirs.queue_pair, theirs.first_psn, pair_.first_psn);
    pair_.joined = true;
}

std::string verbs_bulk_link::trouble() const {
    return port_.explain(pair_.error, pair_.failed_call, pair_.vendor_error, peer_);
}

bulk_link::opening verbs_bulk_link::open(transfer& t, std::byte* data, std::size_t bytes, int access) noexcept {
    const auto make = [&](std::byte* start, std::size_t n) {
        ibv_mr* const region = port_.with_room([&] { return port_.lib.reg_mr(port_.domain, start, n, access); });
        return verbs_registration{region, region != nullptr ? 0 : errno};
    };
    return t.open(data, bytes, piece_, make, [&](verbs_registration& r) { deregister(r); });
}

bulk_link::opening verbs_bulk_link::receive(std::uint32_t record, std::span<std::byte> into,
                                            bulk_ticket& ticket) noexcept {
    transfer& t = in_[record];
    const opening how = open(t, into.data(), into.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (how == opening::open)
        ticket = {reinterpret_cast<std::uintptr_t>(into.data()), t.registered->region.region->rkey};
    return how;
}

bulk_link::opening verbs_bulk_link::send(std::uint32_t record, std::span<const std::byte> data,
                                         const bulk_ticket& ticket) noexcept {
    transfer& t = out_[record];
    const opening how = open(t, const_cast<std::byte*>(data.data()), data.size(), 0);
    if (how != opening::open) return how;
    t.ticket = ticket;
    push(record);
    return how;
}

void verbs_bulk_link::push(std::uint32_t record) noexcept {
    transfer& t = out_[record];
    for (; t.next < t.pieces && t.next - t.done < verbs_world::bulk_pair::at_once && !failed(); ++t.next) {
        const std::size_t start = t.next * piece_;
        pair_.write(record,
                    {reinterpret_cast<std::uintptr_t>(t.data + start),
                     static_cast<std::uint32_t>(std::min(piece_, t.bytes - start)), t.registered->region.region->lkey},
                    t.ticket.address + start, static_cast<std::uint32_t>(t.ticket.key));
        ++writes_;
    }
}

void verbs_bulk_link::delivered(std::uint32_t record) noexcept {
    ++out_[record].done;
    ++moved_;
    push(record);
}

bool verbs_bulk_link::closed_if_done(transfer& t) noexcept {
    if (t.done < t.pieces) return false;
    close(t);
    return true;
}

void verbs_bulk_link::close(transfer& t) noexcept {
    t.close([&](verbs_registration& r) { deregister(r); });
}

/// The peer may have been given up half-way: memory that stays registered is protected by ending the link.
void verbs_bulk_link::deregister(const verbs_registration& r) noexcept {
    if (port_.lib.dereg_mr(r.region) == 0) return;
    pair_.close();
    port_.lib.dereg_mr(r.region);
}

} // namespace halocline::comm
