// SPDX-License-Identifier: Apache-2.0
// How a messenger comes to be, and ends.
#include "message_engine.hpp"

#include "control/wire.hpp"
#include "ofi/world.hpp"

#include <halocline/comm/costs.hpp>

#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

namespace halocline::comm {
namespace {

/// What messenger_options::frame_bytes says of 0: as much as two copies move in the time of a round trip, which longer
/// messages wait for.
std::size_t usual_frame_bytes(const job_core& core, const std::string& transport) {
    constexpr std::size_t least = 16 * 1024, most_memory = 48 << 20, heads = 48;
    const auto has_provider = [&](std::string_view name) { return core.ofi->kind().starts_with(name); };
    std::size_t message = least;
    if (transport == mpi_channel::transport) message = 32 * 1024;
    if (transport == ofi_channel::transport && (has_provider("tcp") || has_provider("net") || has_provider("sockets")))
        message = 64 * 1024;
    const auto memory = [&] { return frame_link::frames * message * static_cast<std::size_t>(core.ranks); };
    while (message > least && memory() > most_memory) message /= 2;
    return message + heads;
}

/// What a rank of the node finds where this one's card says, if process_vm_readv() reads the right process.
std::uint64_t probe_word(int rank) { return 0x68616c6f636c696eu + static_cast<std::uint64_t>(rank); }

/// Collective.  Err: input_error: options that differ between ranks, or that are not possible.
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
        if (o.unexpected < 1) throw input_error(own + "room for 0 unexpected messages; at least 1 is needed");
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

message_engine::message_engine(const job& j, const messenger_options& options)
    : job_(j), core_(j.core()), options_(options), polls_per_pause_(core_.spin.has_own_core() ? 2 : 1) {
    check_options(j, options_);
    make_links();
    const std::uint64_t probe = probe_word(core_.rank);
    try {
        wire_writer card;
        card.number<std::uint64_t>(static_cast<std::uint64_t>(block_ - core_.memory->base()));
        card.number<std::uint64_t>(reinterpret_cast<std::uint64_t>(&probe));
        connect(j.gather(card.take()));
        j.barrier(); // the probes have been read
        connect_frames();
    } catch (...) {
        if (core_.failed() == status::ok)
            core_.memory->deallocate(block_, block_bytes(core_.ranks), alignof(link_layout));
        throw;
    }
}

/// One link per rank, and this rank's block of the slab. Collective.
void message_engine::make_links() {
    const path wish = job_.options().path;
    const costs c = core_.ranks > 1 && leaves_streaming(wish) ? measured_costs(job_) : costs{};
    links_.reserve(static_cast<std::size_t>(core_.ranks));
    job_.collectively([&] {
        for (const rank_info& m : core_.members) {
            link& l = links_.emplace_back(m.rank, options_);
            l.pushed = streaming_watch(c, least_pushed, streaming_pays(wish, c, least_pushed));
            if (m.transport == "self" || m.transport == shm_channel::transport) continue;
            l.frames = std::make_unique<frame_link>();
            l.frames->room = options_.frame_bytes != 0 ? options_.frame_bytes : usual_frame_bytes(core_, m.transport);
        }
        block_ =
            static_cast<std::byte*>(core_.memory->allocate_for_peers(block_bytes(core_.ranks), alignof(link_layout)));
        for (const link& l : links_)
            if (!l.frames) new (link_of(block_, l.peer)) link_layout;
    });
}

void message_engine::connect(const std::vector<std::string>& cards) {
    const std::uint32_t id = core_.next_plan_id++;
    for (link& l : links_) {
        if (l.frames) continue;
        wire_reader card(cards[static_cast<std::size_t>(l.peer)]);
        l.slab = core_.peer_base[static_cast<std::size_t>(l.peer)];
        l.block = l.slab + card.number<std::uint64_t>();
        const auto probe = card.number<std::uint64_t>();
        l.pid = core_.members[static_cast<std::size_t>(l.peer)].pid;
        l.same_process = l.pid == core_.members[static_cast<std::size_t>(core_.rank)].pid;
        if (l.peer == core_.rank) continue;

        link_layout& here = *link_of(block_, l.peer);
        link_layout& there = *link_of(l.block, core_.rank);
        l.in = ring_reader(here, there);
        l.out = ring_writer(there, here);
        l.records = here.record;
        l.their_records = there.record;
        l.farewell.emplace(0, l.peer, id, 0, 0, reinterpret_cast<std::byte*>(&there.farewell),
                           reinterpret_cast<std::byte*>(&here.farewell));
        if (l.same_process) continue;
        if (!options_.read_processes) {
            l.why_not_readable = "not wanted";
            continue;
        }
        std::uint64_t word = 0;
        l.readable = read_process(l.pid, reinterpret_cast<std::byte*>(&word), probe, sizeof word);
        if (!l.readable) l.why_not_readable = std::strerror(errno);
        // Another process may have that number here, in a namespace of its own.
        else if (word != probe_word(l.peer)) {
            l.readable = false;
            l.why_not_readable = "pid " + std::to_string(l.pid) + " is another process here";
        }
    }
}

void message_engine::connect_frames() {
    std::vector<channel_request> requests;
    for (const link& l : links_)
        if (l.frames) request_frame_channels(requests, core_.rank, l.peer, l.frames->room);
    channels_ = channel_set(job_, requests, {options_.name, ""});
    for (link& l : links_) {
        if (!l.frames) continue;
        l.frames->kept =
            std::make_unique_for_overwrite<std::byte[]>(link_layout::records * l.frames->most_whole()); // not touched
        l.frames->may_send = l.frames->credit_told = options_.unexpected;
        l.frames->channel.reserve(frame_link::channels);
    }
    for_each_frame_channel(channels_, [this](int peer, frame_channel c) {
        links_[static_cast<std::size_t>(peer)].frames->channel.push_back(c);
    });
    connect_bulk();
    if (requests.empty()) return;
    // A peer may be waiting for an answer while this rank waits for something else.
    channels_.work_in_every_wait(this, [](void* engine) { static_cast<message_engine*>(engine)->progress(); });
}

message_engine::~message_engine() {
    const closing_scope closing(core_.doing);
    const auto end = [&](message_request& r) { finish(r); };
    parked_block parked{block_, block_bytes(core_.ranks), {}};
    for (link& l : links_) {
        l.queued.for_each(end);
        l.announced.for_each(end);
        l.posted.for_each(end);
        if (l.frames) {
            for (request_list* all : {&l.frames->invited, &l.frames->writing})
                all->for_each([&](message_request& r) { withdraw(r); });
            l.frames->framed.for_each(end);
            l.frames->streaming.for_each(end);
            for (message_request* r : l.frames->receiving)
                if (r != nullptr) finish(*r);
        }
        if (!l.farewell) continue;
        l.farewell->close();
        parked.lines.push_back(l.farewell->line());
    }
    posted_any_.for_each(end);
    active_.for_each(end);
    core_.parked.push_back(std::move(parked));
    core_.sweep();
}

} // namespace halocline::comm
