// SPDX-License-Identifier: Apache-2.0
#include "bulk.hpp"

#include "control/wire.hpp"

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

namespace halocline::comm {
namespace {

void drop(ofi_registration& r) noexcept { close_object(r.region); }

struct ofi_exposed_memory final : exposed_memory {
    ofi_registration registered;
    ~ofi_exposed_memory() override { drop(registered); }
};

} // namespace

static_assert(bulk_link::records == std::uint32_t{1} << ofi_tags::record_bits);

std::unique_ptr<bulk_link> ofi_world::open_bulk(const slab& memory, int peer, std::uint32_t count) {
    return std::make_unique<ofi_bulk_link>(*this, memory, peer, count);
}

bool ofi_world::writes_memory() const { return !endpoint_->provider.tagged; }

std::shared_ptr<const exposed_memory> ofi_world::expose(std::span<std::byte> memory) {
    if (endpoint_->provider.tagged) return nullptr;
    auto e = std::make_shared<ofi_exposed_memory>();
    e->registered = endpoint_->register_memory(memory, endpoint_->next_key++);
    endpoint_->require(e->registered.error, e->registered.call);
    e->ticket = {e->registered.base, e->registered.key};
    e->local = reinterpret_cast<std::uintptr_t>(e->registered.descriptor);
    return e;
}

ofi_bulk_link::ofi_bulk_link(ofi_world& world, const slab& memory, int peer, std::uint32_t count)
    : world_(world), endpoint_(*world.endpoint_), peer_(peer), id_(static_cast<std::uint32_t>(world.bulks_.size())),
      piece_(std::min(endpoint_.largest_write, piece_bytes)), in_(count), out_(count) {
    if (id_ >= ofi_tags::most_links)
        throw job_error("libfabric: " + std::to_string(id_) +
                        " messengers' links were open, no more can be told apart");
    endpoint_.caches.make(memory);
    for (auto* set : {&in_, &out_}) {
        for (std::uint32_t record = 0; record < count; ++record) {
            transfer& t = (*set)[record];
            t.record = record;
            t.receives = set == &in_;
            t.cache = (t.receives ? endpoint_.caches.targets : endpoint_.caches.sources).get();
            for (piece& p : t.operation) {
                p.link = this;
                p.of = &t;
            }
        }
    }
    world.bulks_.push_back(this);
}

ofi_bulk_link::~ofi_bulk_link() {
    constexpr double most = 2; // seconds
    for (const std::uint64_t since = ticks(); busy() && seconds(ticks() - since) < most;) world_.poll();
    if (busy()) world_.cut(); // for a provider that keeps a cancelled receive
    for (auto* set : {&in_, &out_})
        for (transfer& t : *set) close(t);
    world_.bulks_[id_] = nullptr;
}

/// Is anything posted that libfabric still holds?
bool ofi_bulk_link::busy() const noexcept {
    if (endpoint_.is_cut) return false;
    for (const auto* set : {&in_, &out_})
        for (const transfer& t : *set)
            for (const piece& p : t.operation)
                if (p.busy) return true;
    return false;
}

std::string ofi_bulk_link::card() const { return wire_writer().number(id_).take(); }

void ofi_bulk_link::connect(const std::string& peer_card) { peer_id_ = wire_reader(peer_card).number<std::uint32_t>(); }

std::string ofi_bulk_link::describe() const {
    return (endpoint_.provider.tagged ? "tagged messages of " : "RMA writes of ") + endpoint_.provider.name;
}

bulk_link::opening ofi_bulk_link::open(transfer& t, std::byte* data, std::size_t bytes, bool must_register) noexcept {
    if (!must_register) return t.open(data, bytes, piece_);
    const auto make = [&](std::byte* start, std::size_t n) {
        return endpoint_.register_memory({start, n}, endpoint_.next_key++);
    };
    return t.open(data, bytes, piece_, make, drop);
}

bulk_link::opening ofi_bulk_link::receive(std::uint32_t record, std::span<std::byte> into,
                                          bulk_ticket& ticket) noexcept {
    transfer& t = in_[record];
    const bool must_register = !endpoint_.provider.tagged || endpoint_.registers_local();
    const opening how = open(t, into.data(), into.size(), must_register);
    if (how != opening::open) return how;
    if (endpoint_.provider.tagged) {
        push(t); // the first receives are posted before the sender is invited
    } else {
        const ofi_registration& r = t.registered->region;
        ticket = {r.base + static_cast<std::uint64_t>(into.data() - t.registered->start), r.key};
    }
    return how;
}

bulk_link::opening ofi_bulk_link::send(std::uint32_t record, std::span<const std::byte> data,
                                       const bulk_ticket& ticket) noexcept {
    transfer& t = out_[record];
    const opening how = open(t, const_cast<std::byte*>(data.data()), data.size(), endpoint_.registers_local());
    if (how != opening::open) return how;
    t.ticket = ticket;
    push(t);
    return how;
}

int ofi_bulk_link::post(transfer& t, piece& operation) noexcept {
    const std::size_t start = t.next * piece_, n = std::min(piece_, t.bytes - start);
    std::byte* const data = t.data + start;
    void* const descriptor = t.registered != nullptr ? t.registered->region.descriptor : nullptr;
    const fi_addr_t there = endpoint_.peers[peer_];
    const auto bits = [&](std::uint32_t link) { return ofi_tags::bulk | link << ofi_tags::record_bits | t.record; };
    if (t.receives)
        return static_cast<int>(
            fi_trecv(endpoint_.ep, data, n, descriptor, there, ofi_tags::match_bits(bits(id_), t.next), 0, &operation));
    if (endpoint_.provider.tagged)
        return static_cast<int>(fi_tsend(endpoint_.ep, data, n, descriptor, there,
                                         ofi_tags::match_bits(bits(peer_id_), t.next), &operation));
    return static_cast<int>(fi_writedata(endpoint_.ep, data, n, descriptor, bits(peer_id_), there,
                                         t.ticket.address + start, t.ticket.key, &operation));
}

void ofi_bulk_link::push(transfer& t) noexcept {
    for (piece& p : t.operation) {
        if (t.next == t.pieces || failed() || endpoint_.is_cut) return;
        if (p.busy) continue;
        const int code = post(t, p);
        if (code == -FI_EAGAIN) return;
        if (code != 0) {
            world_.note(code, t.receives ? "fi_trecv" : endpoint_.provider.tagged ? "fi_tsend" : "fi_writedata");
            error_ = code;
            return;
        }
        p.busy = true;
        ++t.next;
        if (!t.receives && !endpoint_.provider.tagged) ++writes_;
    }
}

void ofi_bulk_link::completed(ofi_operation& operation, int error) noexcept {
    auto& p = static_cast<piece&>(operation);
    p.busy = false;
    ofi_bulk_link& link = *p.link;
    if (p.of->given_up) return link.close_if_let_go(*p.of);
    if (error == -FI_ECANCELED) return;
    if (error != 0) {
        link.error_ = error;
        return;
    }
    ++p.of->done;
    ++link.moved_;
}

bool ofi_bulk_link::received(std::uint32_t record) noexcept {
    transfer& t = in_[record];
    if (endpoint_.provider.tagged) push(t);
    return closed_if_done(t);
}

bool ofi_bulk_link::sent(std::uint32_t record) noexcept {
    transfer& t = out_[record];
    push(t);
    return closed_if_done(t);
}

void ofi_bulk_link::give_up(std::uint32_t record) noexcept {
    transfer& t = in_[record];
    for (piece& p : t.operation)
        if (p.busy && !endpoint_.is_cut) fi_cancel(&endpoint_.ep->fid, &p);
    t.given_up = true;
    close_if_let_go(t);
}

/// A cancelled receive may still have its message, and then counts for none that follows under the same number.
void ofi_bulk_link::close_if_let_go(transfer& t) noexcept {
    if (!endpoint_.is_cut && std::ranges::any_of(t.operation, &piece::busy)) return;
    t.given_up = false;
    close(t);
}

bool ofi_bulk_link::closed_if_done(transfer& t) noexcept {
    if (t.done < t.pieces) return false;
    close(t);
    return true;
}

void ofi_bulk_link::close(transfer& t) noexcept { t.close(drop); }

} // namespace halocline::comm
