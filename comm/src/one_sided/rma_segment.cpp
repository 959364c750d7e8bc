// SPDX-License-Identifier: Apache-2.0
#include "rma_segment.hpp"

#include "channels/channel_agreement.hpp"
#include "control/wire_format.hpp"
#include "node/peer_stores.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/detail/copy_bytes.hpp>
#include <halocline/comm/transport_names.hpp>

#include <atomic>
#include <cstring>
#include <new>

namespace halocline::comm {

namespace {

/// Err: input_error: a neighbour that is not a rank, is named twice or can't be reached.
requests_by_peer sorted(const job& j, const std::string& name, std::span<const int> ranks) {
    const job_core& core = j.core();
    requests_by_peer by_peer;
    for (std::size_t n = 0; n < ranks.size(); ++n) {
        const int peer = ranks[n];
        if (peer < 0 || peer >= core.ranks) {
            throw input_error("'" + name + "': neighbour " + std::to_string(peer) +
                              " is not a rank of this job (0 to " + std::to_string(core.ranks - 1) + ")");
        }
        if (!by_peer.emplace(peer, std::vector{n}).second) {
            throw input_error("'" + name + "': rank " + std::to_string(core.rank) + " names neighbour " +
                              std::to_string(peer) + " twice");
        }
        if (core.members[peer].transport == mock_channel::transport) {
            throw input_error("'" + name + "': rank " + std::to_string(peer) +
                              " is served by 'mock', which moves nothing");
        }
    }
    return by_peer;
}

/// A rank's description of itself for a neighbour.
struct block_card {
    std::string name, shape;
    std::uint64_t place = 0; // the reader's, in the writer's list
    std::uint64_t start = 0; // the block's, in the slab
    std::uint64_t lines = 0, payload_bytes = 0;

    template <class Self, class Pass>
    static void fields(Self& c, Pass& pass) {
        pass(c.name, c.shape, c.place, c.start, c.lines, c.payload_bytes);
    }
};

} // namespace

rma_segment::rma_segment(const comm::job& j, const std::string& name, std::span<const int> ranks, std::size_t bytes,
                         std::string_view shape, std::optional<std::size_t> direct_bytes)
    : job(j), payload_bytes(bytes), direct_bytes_(direct_bytes) {
    j.core().sweep();
    requests_by_peer by_peer;
    j.collectively([&] { by_peer = sorted(j, name, ranks); });
    check_symmetry(j, by_peer, name);
    lay_out_block(ranks.size());
    meet(name, shape, ranks);
    connect_far(name);
    if (direct_bytes_) connect_direct();
}

/// Allocates a control line for each neighbour to write to, then the payload. Collective.
void rma_segment::lay_out_block(std::size_t count) {
    const std::size_t lines = count * sizeof(control_line);
    job.collectively([&] { block_ = slab_block(job.core(), sum_or_most(lines, payload_bytes)); });
    for (std::size_t n = 0; n < count; ++n) new (block_.start() + n * sizeof(control_line)) control_line;
    payload = block_.start() + lines;
    std::memset(payload, 0, payload_bytes);
}

/// Swaps the positions of the blocks and fills in the neighbours. Collective.
void rma_segment::meet(const std::string& name, std::string_view shape, std::span<const int> ranks) {
    const job_core& core = job.core();
    const auto start = static_cast<std::uint64_t>(block_.start() - core.memory->base());
    const auto lines = static_cast<std::uint64_t>(payload - block_.start());
    std::vector<std::string> out;
    for (std::size_t n = 0; n < ranks.size(); ++n)
        out.push_back(to_wire(block_card{name, std::string(shape), n, start, lines, payload_bytes}));
    const std::vector<std::string> in = job.exchange(ranks, out);
    const path wish = job.options().path;
    const costs c = job.ranks() > 1 && leaves_streaming(wish) ? measured_costs(job) : unmeasured_costs();
    largest_claimed_ = c.claims_pay() ? largest_claimed() : 0;
    job.collectively([&] {
        for (std::size_t n = 0; n < ranks.size(); ++n) {
            const int peer = ranks[n];
            const auto theirs = from_wire<block_card>(in[n]);
            if (theirs.name != name || theirs.shape != shape) {
                throw input_error("rank " + std::to_string(core.rank) + " makes '" + name + "' (" + std::string(shape) +
                                  "), rank " + std::to_string(peer) + " makes '" + theirs.name + "' (" + theirs.shape +
                                  "); make the same on both, with the same sizes");
            }
            auto* const mine = reinterpret_cast<control_line*>(block_.start() + n * sizeof(control_line));
            const std::string& transport = core.members[peer].transport;
            if (!is_in_memory(transport)) {
                neighbours.push_back(
                    {peer, mine, nullptr, nullptr, theirs.payload_bytes, theirs.place, std::make_unique<far_link>()});
                continue;
            }
            std::byte* const base = core.peer_base[peer] + theirs.start;
            neighbours.push_back({peer, mine,
                                  reinterpret_cast<control_line*>(base + theirs.place * sizeof(control_line)),
                                  base + theirs.lines, theirs.payload_bytes, theirs.place});
            neighbours.back().streaming = streaming_watch(c, least_streamed, streaming_pays(wish, c, least_streamed));
        }
    });
}

void rma_segment::connect_far(const std::string& name) {
    std::vector<channel_request> requests;
    std::vector<far_link*> of_rank(static_cast<std::size_t>(job.ranks()), nullptr);
    for (const neighbour& peer : neighbours) {
        if (!peer.far) continue;
        of_rank[peer.rank] = peer.far.get();
        request_frame_channels(requests, job.rank(), peer.rank, far_link::frame_bytes);
    }
    channels_ = channel_set(job, requests, {name, ""});
    for_each_frame_channel(channels_, [&](int rank, frame_channel c) { of_rank[rank]->connect(c); });
    over_network_ = !requests.empty();
    if (!over_network_) return;
    // A neighbour may wait for an answer while this rank waits for something else.
    channels_.work_in_every_wait(this, [](void* self) { static_cast<rma_segment*>(self)->poll(); });
}

/// Large writes bypass this core's cache while the neighbour is far away (docs/decisions/0032); otherwise their lines
/// are claimed first (0010).
void rma_segment::write_shared(neighbour& peer, std::byte* to, std::span<const std::byte> bytes) noexcept {
    if (bytes.size() < least_streamed) return copy_bytes(to, bytes.data(), bytes.size());
    look_for_peer(peer.streaming, to, bytes.size(), ticks());
    const peer_stores how = peer.streaming.streamed()          ? peer_stores::streamed
                            : bytes.size() <= largest_claimed_ ? peer_stores::claimed
                                                               : peer_stores::cached;
    counts_.streamed += how == peer_stores::streamed;
    copy_to_peer(how, to, bytes.data(), bytes.size());
}

bool rma_segment::try_write(neighbour& peer, std::size_t place, std::span<const std::byte> bytes) noexcept {
    if (!peer.far) {
        if (!bytes.empty()) write_shared(peer, peer.payload + place, bytes);
        return true;
    }
    const bool room = peer.far->append({.kind = far_item::put, .place = place}, bytes);
    peer.far->push();
    counts_.framed += room;
    return room;
}

status rma_segment::write(neighbour& peer, std::size_t place, std::span<const std::byte> bytes) noexcept {
    if (peer.bulk && bytes.size() >= *direct_bytes_) {
        if (const auto s = write_direct(peer, place, bytes)) return *s;
    }
    for (; peer.far && bytes.size() > far_link::most; bytes = bytes.subspan(far_link::most)) {
        const status s = wait_unless_left(peer, [&] { return try_write(peer, place, bytes.first(far_link::most)); });
        if (s != status::ok) return s;
        place += far_link::most;
    }
    return wait_unless_left(peer, [&] { return try_write(peer, place, bytes); });
}

status rma_segment::add_one(const neighbour& peer, std::size_t place) noexcept {
    if (peer.far)
        return wait_unless_left(peer, [&] { return peer.far->append({.kind = far_item::add, .place = place}); });
    reinterpret_cast<std::atomic<std::uint64_t>*>(peer.payload + place)->fetch_add(1, std::memory_order_release);
    return status::ok;
}

status rma_segment::flush(const neighbour& peer) noexcept {
    if (!peer.far) return status::ok;
    return wait_unless_left(peer, [&] {
        peer.far->push();
        return peer.far->all_sent();
    });
}

far_link::visited rma_segment::apply(neighbour& peer, const far_item& r, std::span<const std::byte> bytes) noexcept {
    using enum far_link::visited;
    const auto fits = [&](std::size_t n) { return r.place <= payload_bytes && n <= payload_bytes - r.place; };
    switch (r.kind) {
    case far_item::put:
        if (!fits(bytes.size())) return wrong;
        copy_bytes(payload + r.place, bytes.data(), bytes.size());
        return done;
    case far_item::add:
        if (!fits(sizeof(std::uint64_t)) || r.place % sizeof(std::uint64_t) != 0) return wrong;
        reinterpret_cast<std::atomic<std::uint64_t>*>(payload + r.place)->fetch_add(1, std::memory_order_release);
        return done;
    case far_item::tell:
        if (r.which > 1) return wrong;
        peer.mine->half[r.which].epoch.store(r.place, std::memory_order_release);
        return done;
    case far_item::wrote:
        if (!peer.bulk) return wrong;
        return peer.bulk->came() >= r.place ? done : later;
    case far_item::sends: {
        std::uint64_t size = 0;
        if (!peer.bulk || bytes.size() != sizeof size) return wrong;
        std::memcpy(&size, bytes.data(), sizeof size);
        return fits(size) ? receive_direct(peer, r.place, size) : wrong;
    }
    default: return wrong;
    }
}

void rma_segment::poll() noexcept {
    if (!over_network_) return;
    for (neighbour& peer : neighbours) {
        if (!peer.far || left(peer)) continue;
        if (peer.bulk) poll_direct(peer);
        status s = peer.far->take([&](const far_item& r, std::span<const std::byte> b) { return apply(peer, r, b); });
        peer.far->push();
        if (s == status::aborted) peer.mine->say_farewell(1);
        if (s == status::peer_died) s = job.core().lost(peer.rank, peer.far->trouble());
        if (s != status::ok && s != status::aborted && state_ == status::ok) state_ = s;
    }
}

rma_segment::~rma_segment() {
    if (job.core().in_forked_child()) {
        leave_to_parent(neighbours);
        leave_to_parent(exposed_);
        return;
    }
    const closing_scope closing(job.core().own_activity);
    parked_block until;
    for (auto& [transport, memory] : exposed_) until.exposed.push_back(std::move(memory));
    for (const neighbour& peer : neighbours) {
        // Also puts that were announced, or sent, without being looked at: unless the neighbour has said farewell.
        if (peer.bulk && (peer.receiving || !left(peer))) peer.bulk->give_up(0);
        if (peer.far) continue; // its channels say farewell
        peer.theirs->say_farewell(1);
        until.lines.push_back(peer.mine);
    }
    neighbours.clear(); // their links call libraries, too
    block_.park(std::move(until));
}

} // namespace halocline::comm
