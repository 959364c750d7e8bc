// SPDX-License-Identifier: Apache-2.0
// How a messenger is set up, and how it ends.
#include "message_engine.hpp"

#include "control/wire_format.hpp"
#include "ofi/world.hpp"

#include <halocline/comm/costs.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace halocline::comm {
namespace {

/// What two ranks of a node tell each other.
struct near_link_card {
    std::uint64_t bell = 0, link = 0, box = 0; ///< where they are in the writer's slab (message_place)
    std::uint64_t in_one_piece = 0;            ///< or 1
    memory_probe::told probe;
};

/// The default for messenger_options::frame_bytes: as much as two copies move during a round trip, which longer
/// messages have to wait for.
std::size_t usual_frame_bytes(const job_core& core, const std::string& transport) {
    constexpr std::size_t least = 16 * 1024, most_memory = 48 << 20;
    const auto has_provider = [&](std::string_view name) { return core.networks.ofi->kind().starts_with(name); };
    std::size_t message = least;
    if (transport == mpi_channel::transport) message = 32 * 1024;
    if (transport == ofi_channel::transport && (has_provider("tcp") || has_provider("net") || has_provider("sockets")))
        message = 64 * 1024;
    const auto memory = [&] { return message_frames::frames * message * static_cast<std::size_t>(core.ranks); };
    while (message > least && memory() > most_memory) message /= 2;
    return message + sizeof(frame_head) + sizeof(frame_item);
}

/// Collective.  Err: input_error: options that differ between ranks, or are out of range.
void check_options(const job& j, const messenger_options& o) {
    const std::string own = "'" + o.name + "': ";
    j.agree("the options of messenger '" + o.name + "'",
            std::to_string(o.unexpected) + " unexpected, immediate to " + std::to_string(o.immediate_bytes) +
                ", synergistic from " + std::to_string(o.synergistic_bytes) + ", streamed from " +
                std::to_string(o.streamed_bytes) + ", frames of " + std::to_string(o.frame_bytes) + " bytes");
    j.collectively([&] {
        if (o.immediate_bytes > messenger_options::largest_immediate) {
            throw input_error(own + "immediate messages of " + std::to_string(o.immediate_bytes) + " bytes; at most " +
                              std::to_string(messenger_options::largest_immediate) + " are possible");
        }
        if (o.unexpected < 1 || o.unexpected > messenger_options::most_unexpected) {
            throw input_error(own + "room for " + std::to_string(o.unexpected) + " unexpected messages; 1 to " +
                              std::to_string(messenger_options::most_unexpected) + " are possible");
        }
        if (o.frame_bytes != 0 && o.frame_bytes < smallest_frame) {
            throw input_error(own + "frames of " + std::to_string(o.frame_bytes) + " bytes; at least " +
                              std::to_string(smallest_frame) + " are needed, or 0: by transport and ranks");
        }
        for (const rank_info& m : j.members()) {
            if (m.transport != mock_channel::transport) continue;
            throw input_error(own + "messages don't go over 'mock'; choose among shm, verbs, ofi, mpi");
        }
    });
}

} // namespace

message_engine::message_engine(const comm::job& j, const messenger_options& options)
    : job_(j), core_{j.core(), options, {.engine = this}}, matching_(core_.counts),
      polls_per_pause_(core_.job.spin.has_own_core() ? 2 : 1) {
    check_options(j, options);
    make_links();
    connect_shm();
    connect_frames();
}

/// Makes one link per rank, as far as possible without the others, and this rank's part of their memory. Collective.
void message_engine::make_links() {
    job_core& core = core_.job;
    links_.reserve(static_cast<std::size_t>(core.ranks));
    job_.collectively([&] {
        const messenger_options& o = core_.options;
        matching_.reserve(core.ranks, o.unexpected, std::max(o.immediate_bytes, sizeof(announcement)));
        for (const rank_info& m : core.members) {
            message_link& l = links_.emplace_back(m.rank);
            if (m.rank == core.rank) {
                l.self.emplace(core_, matching_);
            } else if (m.transport != shm_channel::transport) {
                const std::size_t chosen = core_.options.frame_bytes;
                l.network = std::make_unique<network_link>(core_, matching_, m.rank,
                                                           chosen != 0 ? chosen : usual_frame_bytes(core, m.transport));
            }
        }
        for (const message_link& l : links_)
            if (!l.self && !l.network) near_.push_back(l.peer);
        memory_.emplace(core, near_.size());
    });
}

void message_engine::connect_shm() {
    job_core& core = core_.job;
    const memory_probe probe;
    std::vector<std::string> cards;
    for (std::size_t i = 0; i < near_.size(); ++i) {
        const message_place own = (*memory_)[i];
        const node_slab& slab = *core.memory;
        cards.push_back(to_wire(near_link_card{slab.offset_of(own.bell), slab.offset_of(own.link),
                                               slab.offset_of(own.box), own.in_one_piece, probe.card()}));
    }
    cards = job_.exchange(near_, cards);
    const path wish = core.options.path;
    const costs c = core.ranks > 1 && leaves_streaming(wish) ? measured_costs(job_) : unmeasured_costs();
    const receiving_policy receiving(wish, c, core_.options);
    const sending_policy sending(wish, c);
    for (std::size_t i = 0; i < near_.size(); ++i) {
        const int peer = near_[i];
        const auto card = from_wire<near_link_card>(cards[i]);
        std::byte* const base = core.peer_base[peer];
        const message_place theirs{reinterpret_cast<message_bell*>(base + card.bell),
                                   reinterpret_cast<link_layout*>(base + card.link),
                                   reinterpret_cast<outbox*>(base + card.box), card.in_one_piece != 0};
        const peer_memory memory(core, peer, card.probe, core_.options.read_processes);
        link_to(peer).shm.emplace(core_, matching_, peer, (*memory_)[i], theirs, memory, receiving, sending);
    }
    job_.barrier(); // the probes have been read
}

void message_engine::connect_frames() {
    std::vector<channel_request> requests;
    for (const message_link& l : links_)
        if (l.network) request_frame_channels(requests, core_.job.rank, l.peer, l.network->frame_bytes());
    channels_ = channel_set(job_, requests, {core_.options.name, ""});
    for_each_frame_channel(channels_, [this](int peer, frame_channel c) { link_to(peer).network->connect(c); });
    connect_bulk();
    if (requests.empty() && near_.empty()) return;
    over_network_ = !requests.empty();
    constexpr std::uint32_t seldom = 16; // a node's peers are many, and polling them delays what the wait is for
    channels_.work_in_every_wait(
        this, [](void* engine) { static_cast<message_engine*>(engine)->serve(); },
        !over_network_ && core_.job.spin.has_own_core() ? seldom : 1);
}

void message_engine::connect_bulk() {
    std::vector<int> peers;
    std::vector<std::string> cards;
    std::vector<std::unique_ptr<bulk_link>> bulk;
    job_.collectively([&] {
        for (const message_link& l : links_) {
            if (!l.network) continue;
            peers.push_back(l.peer);
            bulk.push_back(make_bulk_link(core_.job, l.peer));
            cards.push_back(bulk.back() ? bulk.back()->card() : "");
        }
    });
    cards = job_.exchange(peers, cards);
    job_.collectively([&] {
        for (std::size_t i = 0; i < peers.size(); ++i) {
            if (!bulk[i]) continue;
            bulk[i]->connect(cards[i]);
            link_to(peers[i]).network->connect(std::move(bulk[i]));
        }
    });
}

message_engine::~message_engine() {
    const closing_scope closing(core_.job.own_activity);
    is_ending_ = true;
    matching_.abandon();
    for (message_link& l : links_) l.queued.finish_all();
    for (message_link& l : links_) l.abandon(); // may wait, which makes progress on all links
    in_own_call_ = true; // no more, because after a farewell the peer's memory is not ours to write
    std::vector<const control_line*> farewells;
    for (message_link& l : links_)
        if (l.shm) farewells.push_back(l.shm->close());
    links_.clear(); // they call libraries, too
    memory_->park(farewells);
}

} // namespace halocline::comm
