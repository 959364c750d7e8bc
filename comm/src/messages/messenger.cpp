// SPDX-License-Identifier: Apache-2.0
// Set-up, end and description of a messenger; its calls are passed on to the engine.
#include <halocline/comm/messenger.hpp>

#include "control/wire.hpp"
#include "message_engine.hpp"
#include "ofi/world.hpp"

#include <halocline/comm/costs.hpp>

#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>
#include <sys/uio.h>

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

} // namespace

message_engine::message_engine(const job& j, const messenger_options& options)
    : job_(j), core_(j.core()), options_(options), polls_per_pause_(core_.spin.has_own_core() ? 2 : 1) {
    const std::string own = "'" + options_.name + "': ";
    j.agree(
        "the options of messenger '" + options_.name + "'",
        std::to_string(options_.unexpected) + " unexpected, immediate to " + std::to_string(options_.immediate_bytes) +
            ", synergistic from " + std::to_string(options_.synergistic_bytes) + ", streamed from " +
            std::to_string(options_.streamed_bytes) + ", frames of " + std::to_string(options_.frame_bytes) + " bytes");
    j.collectively([&] {
        if (options_.immediate_bytes > messenger_options::largest_immediate) {
            throw input_error(own + "immediate messages of " + std::to_string(options_.immediate_bytes) +
                              " bytes; at most " + std::to_string(messenger_options::largest_immediate) +
                              " are possible");
        }
        if (options_.unexpected < 1) throw input_error(own + "room for 0 unexpected messages; at least 1 is needed");
        if (options_.frame_bytes != 0 && options_.frame_bytes < smallest_frame) {
            throw input_error(own + "frames of " + std::to_string(options_.frame_bytes) + " bytes; at least " +
                              std::to_string(smallest_frame) + " are needed, or 0: by transport and ranks");
        }
        for (const rank_info& m : core_.members) {
            if (m.transport != mock_channel::transport) continue;
            throw input_error(own + "messages don't go over 'mock'; choose among shm, verbs, ofi, mpi");
        }
    });
    const streaming wish = j.options().streaming;
    const costs c = core_.ranks > 1 && wish == streaming::automatic ? measured_costs(j) : costs{};
    links_.reserve(static_cast<std::size_t>(core_.ranks));
    j.collectively([&] {
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
    const std::uint64_t probe = 0x68616c6f636c696eu + static_cast<std::uint64_t>(core_.rank);
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
        else if (word != 0x68616c6f636c696eu + static_cast<std::uint64_t>(l.peer)) {
            l.readable = false;
            l.why_not_readable = "pid " + std::to_string(l.pid) + " is another process here";
        }
    }
}

void message_engine::connect_frames() {
    std::vector<channel_request> requests;
    for (const link& l : links_) {
        if (!l.frames) continue;
        const auto key = [](int rank, std::uint32_t n) {
            return static_cast<std::uint32_t>(frame_link::channels) * static_cast<std::uint32_t>(rank) + n;
        };
        for (std::uint32_t n = 0; n < frame_link::channels; ++n) {
            requests.push_back({l.peer, key(l.peer, n), key(core_.rank, n), l.frames->room, l.frames->room,
                                "frames " + std::to_string(n)});
        }
    }
    channels_ = channel_set(job_, requests, {options_.name, ""});
    for (link& l : links_) {
        if (!l.frames) continue;
        l.frames->kept =
            std::make_unique_for_overwrite<std::byte[]>(link_layout::records * l.frames->most_whole()); // not touched
        l.frames->may_send = l.frames->credit_told = options_.unexpected;
        l.frames->channel.reserve(frame_link::channels);
    }
    channels_.for_each([this]<class C>(C& c) { // those of a peer in the order of their requests
        if constexpr (std::is_constructible_v<frame_channel, C&>)
            links_[static_cast<std::size_t>(c.peer())].frames->channel.emplace_back(c);
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

std::string message_engine::pending() const {
    std::string text = "'" + options_.name + "': " + (failed_.is_send ? "a send" : "a receive");
    if (!failed_.is_send && failed_.message_bytes > failed_.room) {
        text += " of up to " + std::to_string(failed_.room) + " bytes that got a message of " +
                std::to_string(failed_.message_bytes);
    }
    text += failed_.is_send ? " to " : " from ";
    text += failed_.peer == any_source ? std::string("any rank") : "rank " + std::to_string(failed_.peer);
    text += ", " + (failed_.tag == any_tag ? std::string("any tag") : "tag " + std::to_string(failed_.tag));
    if (status_ == status::misused)
        text += ": ranks are 0 to " + std::to_string(core_.ranks - 1) + ", tags not negative";
    if (failed_.more > 0) text += ", and " + std::to_string(failed_.more) + " more";
    return text;
}

std::string message_engine::describe() const {
    std::string text =
        "'" + options_.name + "': immediate to " + std::to_string(options_.immediate_bytes) +
        " bytes, synergistic from " + std::to_string(options_.synergistic_bytes) + ", direct between" +
        (options_.streamed_bytes == std::numeric_limits<std::size_t>::max()
             ? ""
             : ", past the cache from " + std::to_string(options_.streamed_bytes) + " where they go both ways") +
        "; room for " + std::to_string(options_.unexpected) + " unexpected messages per peer\n";
    for (const link& l : links_) {
        if (l.peer == core_.rank) continue;
        text += "  rank " + std::to_string(l.peer) + ": ";
        if (l.frames)
            text += "over " + core_.members[static_cast<std::size_t>(l.peer)].transport + ", frames of " +
                    std::to_string(l.frames->room) +
                    " bytes; messages that don't fit when their receive calls for them" + way_of_large(l);
        else if (l.same_process)
            text += "all memory directly (same process)";
        else if (l.readable)
            text += "slabs directly, other memory by process_vm_readv";
        else
            text += "slabs directly, other memory through copies in its slab (process_vm_readv: " + l.why_not_readable +
                    ")";
        if (!l.frames && l.pushed.streamed())
            text += "; past the sender's cache from " + std::to_string(least_pushed) + " bytes";
        if (!l.frames && l.pushed.watches())
            text += "; messages of " + std::to_string(least_pushed) + " bytes are " + l.pushed.describe();
        text += '\n';
    }
    return text;
}

message_request::~message_request() {
    if (engine_ != nullptr) engine_->withdraw(*this);
}

messenger::messenger(const job& j, const messenger_options& options)
    : engine_(std::make_unique<message_engine>(j, options)) {}
messenger::messenger(messenger&&) noexcept = default;
messenger& messenger::operator=(messenger&&) noexcept = default;
messenger::~messenger() = default;

void messenger::isend(message_request& request, std::span<const std::byte> data, int to, int tag,
                      std::uint32_t context) noexcept {
    engine_->isend(request, data, to, tag, context);
}
void messenger::irecv(message_request& request, std::span<std::byte> into, int from, int tag,
                      std::uint32_t context) noexcept {
    engine_->irecv(request, into, from, tag, context);
}
bool messenger::test(message_request& request) noexcept { return engine_->test(request); }
status messenger::wait(message_request& request) noexcept { return engine_->wait_one(request); }
status messenger::wait_all(std::span<message_request> requests) noexcept { return engine_->wait_all(requests); }
status messenger::wait_all(std::span<message_request* const> requests) noexcept { return engine_->wait_all(requests); }
status messenger::wait_all_for(std::span<message_request> requests, std::chrono::nanoseconds longest) noexcept {
    return engine_->wait_all(requests, longest);
}
status messenger::start_all(std::span<message_request> requests, std::chrono::nanoseconds longest) noexcept {
    return engine_->start_all(requests, longest);
}
bool messenger::probe(int from, int tag, message_info& info, std::uint32_t context) noexcept {
    return engine_->probe(from, tag, context, info);
}
status messenger::send(std::span<const std::byte> data, int to, int tag, std::uint32_t context) noexcept {
    if (engine_->send_now(data, to, tag, context)) return engine_->state();
    return engine_->send(data, to, tag, context);
}
status messenger::recv(std::span<std::byte> into, int from, int tag, message_info* info,
                       std::uint32_t context) noexcept {
    message_info unwanted;
    message_info& received = info != nullptr ? *info : unwanted;
    if (engine_->recv_now(into, from, tag, context, received)) return engine_->state();
    return engine_->recv(into, from, tag, context, received);
}
status messenger::state() const noexcept { return engine_->state(); }
std::string messenger::pending() const { return engine_->pending(); }
const message_counts& messenger::counts() const noexcept { return engine_->counts(); }
std::string messenger::describe() const { return engine_->describe(); }
const job& messenger::owner() const noexcept { return engine_->owner(); }

} // namespace halocline::comm
