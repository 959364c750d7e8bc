// SPDX-License-Identifier: Apache-2.0
#include "neighbourhood.hpp"

#include "channels/channel_agreement.hpp"
#include "control/wire.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <type_traits>

namespace halocline::comm {

namespace {

/// Err: input_error: a neighbour that is no rank, is named twice or can't be reached.
requests_by_peer sorted(const job& j, const std::string& name, std::span<const int> neighbours) {
    const job_core& core = j.core();
    requests_by_peer by_peer;
    for (std::size_t n = 0; n < neighbours.size(); ++n) {
        const int peer = neighbours[n];
        if (peer < 0 || peer >= core.ranks) {
            throw input_error("'" + name + "': neighbour " + std::to_string(peer) +
                              " is not a rank of this job (0 to " + std::to_string(core.ranks - 1) + ")");
        }
        if (!by_peer.emplace(peer, std::vector{n}).second) {
            throw input_error("'" + name + "': rank " + std::to_string(core.rank) + " names neighbour " +
                              std::to_string(peer) + " twice");
        }
        if (core.members[peer].transport == "mock") {
            throw input_error("'" + name + "': rank " + std::to_string(peer) +
                              " is served by 'mock', which moves nothing");
        }
    }
    return by_peer;
}

/// What a rank tells a neighbour of itself.
struct block_card {
    std::string name, shape;
    std::uint64_t place = 0; // of the reader in the writer's list
    std::uint64_t start = 0; // of the block in the slab
    std::uint64_t lines = 0, payload_bytes = 0;

    [[nodiscard]] std::string written() const {
        return wire_writer()
            .text(name)
            .text(shape)
            .number(place)
            .number(start)
            .number(lines)
            .number(payload_bytes)
            .take();
    }
    static block_card read(std::string_view bytes) {
        wire_reader r(bytes);
        block_card c;
        for (std::string* s : {&c.name, &c.shape}) *s = r.text();
        for (std::uint64_t* n : {&c.place, &c.start, &c.lines, &c.payload_bytes}) *n = r.number<std::uint64_t>();
        return c;
    }
};

} // namespace

neighbourhood::neighbourhood(const job& j, const std::string& name, std::span<const int> neighbours, std::size_t bytes,
                             std::string_view shape, std::optional<std::size_t> direct_bytes)
    : owner(j), payload_bytes(bytes), direct_bytes_(direct_bytes) {
    j.core().sweep();
    requests_by_peer by_peer;
    j.collectively([&] { by_peer = sorted(j, name, neighbours); });
    check_symmetry(j, by_peer, name);
    lay_out_block(neighbours.size());
    meet(name, shape, neighbours);
    connect_far(name);
    if (direct_bytes_) connect_direct();
}

/// A control line for each neighbour to write to, then the payload. Collective.
void neighbourhood::lay_out_block(std::size_t neighbours) {
    const std::size_t lines = neighbours * sizeof(control_line);
    owner.collectively([&] {
        block_bytes_ = lines + payload_bytes;
        block_ = static_cast<std::byte*>(owner.core().memory->allocate_for_peers(block_bytes_, alignof(control_line)));
    });
    for (std::size_t n = 0; n < neighbours; ++n) new (block_ + n * sizeof(control_line)) control_line;
    payload = block_ + lines;
    std::memset(payload, 0, payload_bytes);
}

/// Swaps where the blocks lie: the members. Collective.
void neighbourhood::meet(const std::string& name, std::string_view shape, std::span<const int> neighbours) {
    const job_core& core = owner.core();
    const auto start = static_cast<std::uint64_t>(block_ - core.memory->base());
    const auto lines = static_cast<std::uint64_t>(payload - block_);
    std::vector<std::string> out;
    for (std::size_t n = 0; n < neighbours.size(); ++n)
        out.push_back(block_card{name, std::string(shape), n, start, lines, payload_bytes}.written());
    const std::vector<std::string> in = owner.exchange(neighbours, out);
    owner.collectively([&] {
        for (std::size_t n = 0; n < neighbours.size(); ++n) {
            const int peer = neighbours[n];
            const block_card theirs = block_card::read(in[n]);
            if (theirs.name != name || theirs.shape != shape) {
                throw input_error("rank " + std::to_string(core.rank) + " makes '" + name + "' (" + std::string(shape) +
                                  "), rank " + std::to_string(peer) + " makes '" + theirs.name + "' (" + theirs.shape +
                                  "): both must agree");
            }
            auto* const mine = reinterpret_cast<control_line*>(block_ + n * sizeof(control_line));
            const std::string& transport = core.members[peer].transport;
            if (transport != "self" && transport != "shm") {
                members.push_back(
                    {peer, mine, nullptr, nullptr, theirs.payload_bytes, theirs.place, std::make_unique<far_link>()});
                continue;
            }
            std::byte* const base = core.peer_base[peer] + theirs.start;
            members.push_back({peer, mine, reinterpret_cast<control_line*>(base + theirs.place * sizeof(control_line)),
                               base + theirs.lines, theirs.payload_bytes, theirs.place});
        }
    });
}

void neighbourhood::connect_far(const std::string& name) {
    const auto key = [](int rank, std::uint64_t i) {
        return static_cast<std::uint32_t>(far_link::channels * static_cast<std::uint64_t>(rank) + i);
    };
    std::vector<channel_request> requests;
    std::vector<far_link*> of_rank(static_cast<std::size_t>(owner.ranks()), nullptr);
    for (const member& m : members) {
        if (!m.far) continue;
        of_rank[m.rank] = m.far.get();
        for (std::uint64_t i = 0; i < far_link::channels; ++i) {
            requests.push_back({m.rank, key(m.rank, i), key(owner.rank(), i), far_link::frame_bytes,
                                far_link::frame_bytes, "frames " + std::to_string(i)});
        }
    }
    channels_ = channel_set(owner, requests, {name, ""});
    channels_.for_each([&]<class C>(C& c) { // those of a rank in the order of their requests
        if constexpr (std::is_constructible_v<frame_channel, C&>) of_rank[c.peer()]->connect(frame_channel(c));
    });
    if (requests.empty()) return;
    // A neighbour may wait for an answer while this rank waits for something else.
    channels_.work_in_every_wait(this, [](void* self) { static_cast<neighbourhood*>(self)->poll(); });
}

bool neighbourhood::try_write(const member& m, std::size_t place, std::span<const std::byte> bytes) noexcept {
    if (!m.far) {
        if (!bytes.empty()) std::memcpy(m.payload + place, bytes.data(), bytes.size());
        return true;
    }
    const bool room = m.far->append({.kind = far_record::put, .place = place}, bytes);
    m.far->push();
    counts_.framed += room;
    return room;
}

status neighbourhood::write(const member& m, std::size_t place, std::span<const std::byte> bytes) noexcept {
    if (m.bulk && bytes.size() >= *direct_bytes_) {
        if (const auto s = write_direct(m, place, bytes)) return *s;
    }
    for (; m.far && bytes.size() > far_link::most; bytes = bytes.subspan(far_link::most)) {
        const status s = until(m, [&] { return try_write(m, place, bytes.first(far_link::most)); });
        if (s != status::ok) return s;
        place += far_link::most;
    }
    return until(m, [&] { return try_write(m, place, bytes); });
}

status neighbourhood::add_one(const member& m, std::size_t place) noexcept {
    if (m.far) return until(m, [&] { return m.far->append({.kind = far_record::add, .place = place}); });
    reinterpret_cast<std::atomic<std::uint64_t>*>(m.payload + place)->fetch_add(1, std::memory_order_release);
    return status::ok;
}

status neighbourhood::flush(const member& m) noexcept {
    if (!m.far) return status::ok;
    return until(m, [&] {
        m.far->push();
        return m.far->all_sent();
    });
}

far_link::visited neighbourhood::apply(member& m, const far_record& r, std::span<const std::byte> bytes) noexcept {
    using enum far_link::visited;
    const auto fits = [&](std::size_t n) { return r.place <= payload_bytes && n <= payload_bytes - r.place; };
    switch (r.kind) {
    case far_record::put:
        if (!fits(bytes.size())) return wrong;
        if (!bytes.empty()) std::memcpy(payload + r.place, bytes.data(), bytes.size());
        return done;
    case far_record::add:
        if (!fits(sizeof(std::uint64_t)) || r.place % sizeof(std::uint64_t) != 0) return wrong;
        reinterpret_cast<std::atomic<std::uint64_t>*>(payload + r.place)->fetch_add(1, std::memory_order_release);
        return done;
    case far_record::tell:
        if (r.which > 1) return wrong;
        m.mine->half[r.which].epoch.store(r.place, std::memory_order_release);
        return done;
    case far_record::wrote:
        if (!m.bulk) return wrong;
        return m.bulk->came() >= r.place ? done : later;
    case far_record::sends: {
        std::uint64_t size = 0;
        if (!m.bulk || bytes.size() != sizeof size) return wrong;
        std::memcpy(&size, bytes.data(), sizeof size);
        return fits(size) ? receive_direct(m, r.place, size) : wrong;
    }
    default: return wrong;
    }
}

void neighbourhood::poll() noexcept {
    for (member& m : members) {
        if (!m.far || left(m)) continue;
        if (m.bulk) poll_direct(m);
        status s = m.far->take([&](const far_record& r, std::span<const std::byte> b) { return apply(m, r, b); });
        m.far->push();
        if (s == status::aborted) m.mine->half[1].end.store(1, std::memory_order_release);
        if (s == status::peer_died) s = owner.core().lost(m.rank, "can't be reached: " + m.far->trouble());
        if (s != status::ok && s != status::aborted && state_ == status::ok) state_ = s;
    }
}

neighbourhood::~neighbourhood() {
    parked_block parked{block_, block_bytes_, {}};
    for (auto& [transport, memory] : exposed_) parked.exposed.push_back(std::move(memory));
    for (const member& m : members) {
        if (m.receiving) m.bulk->give_up(0);
        if (m.far) continue; // its channels say farewell
        for (message_header& half : m.theirs->half) half.end.store(1, std::memory_order_release);
        parked.lines.push_back(m.mine);
    }
    owner.core().parked.push_back(std::move(parked));
    owner.core().sweep();
}

} // namespace halocline::comm
