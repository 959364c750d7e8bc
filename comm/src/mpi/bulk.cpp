// SPDX-License-Identifier: Apache-2.0
#include "bulk.hpp"

#include "control/wire.hpp"

#include <algorithm>

namespace halocline::comm {

mpi_bulk_link::mpi_bulk_link(mpi_world& world, int peer, std::uint32_t count)
    : world_(world), peer_(peer), in_(count), out_(count) {
    std::size_t taken = 0;
    try {
        for (transfer& t : in_) {
            t.tag = world.take_tag();
            t.receives = true;
            ++taken;
        }
    } catch (...) { // the messenger tries again
        while (taken > 0) world.return_tag(in_[--taken].tag);
        throw;
    }
}

mpi_bulk_link::~mpi_bulk_link() {
    for (transfer& t : in_)
        if (!t.given_up) world_.return_tag(t.tag);
}

std::string mpi_bulk_link::card() const {
    wire_writer tags;
    for (const transfer& t : in_) tags.number(t.tag);
    return tags.take();
}

void mpi_bulk_link::connect(const std::string& peer_card) {
    wire_reader tags(peer_card);
    for (transfer& t : out_) t.tag = tags.number<int>();
}

bulk_link::opening mpi_bulk_link::open(transfer& t, std::byte* data, std::size_t bytes) noexcept {
    const opening how = t.open(data, bytes, piece_bytes);
    if (how == opening::open) post(t);
    return how;
}

bulk_link::opening mpi_bulk_link::receive(std::uint32_t record, std::span<std::byte> into, bulk_ticket&) noexcept {
    return open(in_[record], into.data(), into.size());
}

bulk_link::opening mpi_bulk_link::send(std::uint32_t record, std::span<const std::byte> data,
                                       const bulk_ticket&) noexcept {
    return open(out_[record], const_cast<std::byte*>(data.data()), data.size());
}

void mpi_bulk_link::post(transfer& t) noexcept {
    while (error_ == HALOCLINE_MPI_OK && t.next < t.pieces && t.next - t.done < transfer::at_once) {
        const std::size_t start = t.next * piece_bytes, n = std::min(piece_bytes, t.bytes - start);
        error_ = world_.module().transfer_start(world_.handle(), t.receives, peer_, t.tag, t.data + start, n,
                                                &t.request[t.next % transfer::at_once]);
        if (error_ == HALOCLINE_MPI_OK) ++t.next;
    }
}

bool mpi_bulk_link::move(transfer& t) noexcept {
    while (error_ == HALOCLINE_MPI_OK && t.done < t.next) {
        int done = 0;
        error_ = world_.module().transfer_test(world_.handle(), &t.request[t.done % transfer::at_once], &done);
        if (!done) return false;
        ++t.done;
        ++moved_;
        post(t);
    }
    if (error_ != HALOCLINE_MPI_OK) return false;
    t.data = nullptr;
    return true;
}

void mpi_bulk_link::give_up(std::uint32_t record) noexcept {
    transfer& t = in_[record];
    for (; t.done < t.next; ++t.done)
        world_.module().transfer_cancel(world_.handle(), &t.request[t.done % transfer::at_once]);
    t.data = nullptr;
    t.given_up = true;
}

} // namespace halocline::comm
