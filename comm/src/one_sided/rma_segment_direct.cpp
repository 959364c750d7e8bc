// SPDX-License-Identifier: Apache-2.0
// Large writes over networks: straight into the neighbour's payload, and announced in frames. Where the network writes,
// the payload is registered for it at set-up, and the frame states the number of writes, because frames may overtake
// them; where it only sends, the frame makes the neighbour post a receive. Either way later reports wait for the bytes
// (docs/decisions/0031-large-messages-by-rma.md).
#include "rma_segment.hpp"

#include "control/wire.hpp"

#include <numeric>

namespace halocline::comm {

void rma_segment::connect_direct() {
    job_core& core = job.core();
    std::vector<int> peers;
    std::vector<std::string> cards;
    job.collectively([&] {
        for (neighbour& peer : neighbours) {
            if (!peer.far) continue;
            const std::string& transport = core.members[peer.rank].transport;
            peer.bulk = make_bulk_link(core, peer.rank, 1);
            auto& own = exposed_[transport];
            if (!own && payload_bytes > 0) own = expose(core, transport, {payload, payload_bytes});
            peers.push_back(peer.rank);
            wire_writer card;
            card.text(peer.bulk->card()).number<std::uint32_t>(own != nullptr);
            cards.push_back(card.number(own ? own->ticket : bulk_ticket{}).take());
        }
    });
    cards = job.exchange(peers, cards);
    job.collectively([&] {
        auto card = cards.begin();
        for (neighbour& peer : neighbours) {
            if (!peer.far) continue;
            wire_reader reader(*card++);
            peer.bulk->connect(reader.text());
            if (reader.number<std::uint32_t>() != 0) peer.open = reader.number<bulk_ticket>();
        }
    });
    channels_.for_each([&]<class C>(C& c) { // memory that may still be written outlives this object
        if constexpr (requires { c.keep(nullptr); }) c.keep(exposed_[C::transport]);
    });
}

std::optional<status> rma_segment::write_direct(const neighbour& peer, std::size_t place,
                                                std::span<const std::byte> bytes) noexcept {
    bulk_link& bulk = *peer.bulk;
    const bulk_ticket there = peer.open ? bulk_ticket{peer.open->address + place, peer.open->key} : bulk_ticket{};
    auto how = bulk_link::opening::busy;
    status s = wait_unless_left(peer, [&] {
        how = bulk.send(0, bytes, there);
        return how != bulk_link::opening::busy;
    });
    if (s != status::ok) return s;
    if (how == bulk_link::opening::refused) {
        ++counts_.not_registered;
        return std::nullopt;
    }
    const auto say = [&](const far_item& r, std::span<const std::byte> more) {
        return wait_unless_left(peer, [&] { return peer.far->append(r, more); });
    };
    bool gone = false;
    const auto go = [&] {
        peer.far->push();
        bulk.poll();
        gone = bulk.sent(0);
        return gone || bulk.failed();
    };
    if (peer.open) {
        s = wait_unless_left(peer, go, true); // the memory there lives until this rank's farewell
        if (s == status::ok && gone) s = say({.kind = far_item::wrote, .place = bulk.writes()}, {});
    } else {
        const std::uint64_t size = bytes.size();
        s = say({.kind = far_item::sends, .place = place}, std::as_bytes(std::span(&size, 1)));
        if (s == status::ok) s = wait_unless_left(peer, go);
    }
    if (gone) {
        ++counts_.direct;
        return s;
    }
    bulk.cut(); // nobody reads `bytes` any more
    if (s == status::ok && !left(peer)) poll_direct(peer);
    return s != status::ok ? s : state_ != status::ok ? state_ : job.core().left_by(peer.rank);
}

far_link::visited rma_segment::receive_direct(neighbour& peer, std::size_t place, std::size_t bytes) noexcept {
    if (!peer.receiving) {
        bulk_ticket nothing;
        switch (peer.bulk->receive(0, {payload + place, bytes}, nothing)) {
        case bulk_link::opening::busy: return far_link::visited::later;
        case bulk_link::opening::refused: return far_link::visited::wrong; // the slab can always be registered
        case bulk_link::opening::open: peer.receiving = true;
        }
    }
    if (!peer.bulk->received(0)) return far_link::visited::later;
    peer.receiving = false;
    return far_link::visited::done;
}

void rma_segment::poll_direct(const neighbour& peer) noexcept {
    peer.bulk->poll();
    if (peer.bulk->failed() && state_ == status::ok) state_ = job.core().lost(peer.rank, peer.bulk->trouble());
}

std::uint64_t rma_segment::moved(const neighbour* peer) const noexcept {
    const auto of = [](const neighbour& n) { return n.bulk ? n.bulk->moved() : std::uint64_t{0}; };
    if (peer != nullptr) return of(*peer);
    return std::accumulate(neighbours.begin(), neighbours.end(), std::uint64_t{0},
                           [&](std::uint64_t sum, const neighbour& n) { return sum + of(n); });
}

exposure_counts rma_segment::counts() const noexcept {
    exposure_counts c = counts_;
    for (const neighbour& peer : neighbours) c.writes += peer.bulk ? peer.bulk->writes() : 0;
    return c;
}

} // namespace halocline::comm
