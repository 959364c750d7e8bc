// SPDX-License-Identifier: Apache-2.0
#include "neighbourhood.hpp"

#include "channel_agreement.hpp"
#include "wire.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace halocline::comm {

neighbourhood::neighbourhood(const job& j, const std::string& name, std::span<const int> neighbours, std::size_t bytes,
                             std::string_view shape)
    : owner(j), payload_bytes(bytes) {
    job_core& core = j.core();
    core.sweep();
    requests_by_peer by_peer;
    j.collectively([&] {
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
            const std::string& transport = core.members[peer].transport;
            if (transport != "self" && transport != "shm") {
                throw input_error("'" + name + "': rank " + std::to_string(peer) + " is reached from rank " +
                                  std::to_string(core.rank) + " over '" + transport +
                                  "'; memory can be exposed over shm only: put both on one node");
            }
        }
    });
    check_symmetry(j, by_peer, name);
    const std::size_t lines = neighbours.size() * sizeof(control_line);
    j.collectively([&] {
        block_bytes_ = lines + payload_bytes;
        block_ = static_cast<std::byte*>(core.memory->allocate(block_bytes_, alignof(control_line)));
    });
    payload = block_ + lines;
    std::memset(payload, 0, payload_bytes);
    std::vector<std::string> out;
    for (std::size_t n = 0; n < neighbours.size(); ++n) {
        new (block_ + n * sizeof(control_line)) control_line;
        wire_writer w;
        w.text(name).text(shape).number<std::uint64_t>(n);
        w.number(static_cast<std::uint64_t>(block_ - core.memory->base())).number<std::uint64_t>(lines);
        out.push_back(w.number<std::uint64_t>(payload_bytes).take());
    }
    const std::vector<std::string> in = j.exchange(neighbours, out);
    j.collectively([&] {
        for (std::size_t n = 0; n < neighbours.size(); ++n) {
            wire_reader reader(in[n]);
            const std::string theirs = reader.text(), their_shape = reader.text();
            const std::string peer = "rank " + std::to_string(neighbours[n]);
            if (theirs != name || their_shape != shape) {
                throw input_error("rank " + std::to_string(core.rank) + " makes '" + name + "' (" + std::string(shape) +
                                  "), " + peer + " makes '" + theirs + "' (" + their_shape + "): both must agree");
            }
            const auto place = reader.number<std::uint64_t>(), start = reader.number<std::uint64_t>();
            const auto their_lines = reader.number<std::uint64_t>(), size = reader.number<std::uint64_t>();
            std::byte* const base = core.peer_base[neighbours[n]] + start;
            members.push_back({neighbours[n], reinterpret_cast<control_line*>(block_ + n * sizeof(control_line)),
                               reinterpret_cast<control_line*>(base + place * sizeof(control_line)), base + their_lines,
                               size, place});
        }
    });
}

neighbourhood::~neighbourhood() {
    parked_block parked{block_, block_bytes_, {}};
    for (const member& m : members) {
        for (message_header& half : m.theirs->half) half.end.store(1, std::memory_order_release);
        parked.lines.push_back(m.mine);
    }
    owner.core().parked.push_back(std::move(parked));
    owner.core().sweep();
}

} // namespace halocline::comm
