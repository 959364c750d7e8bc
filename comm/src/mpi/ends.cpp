// SPDX-License-Identifier: Apache-2.0
// What an MPI world does for its ends: memory and tag, requests, messages, farewells.
#include "control/wire.hpp"
#include "end.hpp"
#include "world.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <limits>
#include <new>

namespace halocline::comm {
namespace {

static_assert(message_slots::payload_at % HALOCLINE_MPI_UNIT == 0); // a message is a whole slot

constexpr std::uint64_t farewell = std::numeric_limits<std::uint64_t>::max(); // as an epoch

std::uint64_t epoch_in(const mpi_end& end, std::uint64_t slot) {
    return std::launder(reinterpret_cast<const message_label*>(end.slot(slot) + message_slots::label_at))
        ->epoch.load(std::memory_order_relaxed);
}

} // namespace

mpi_end& mpi_world::open(std::pmr::memory_resource& memory, int peer, std::uint32_t plan_id, std::size_t send_bytes,
                         std::size_t receive_bytes) {
    auto made = std::make_unique<mpi_end>();
    mpi_end& e = *made;
    e.peer = peer;
    e.greeting_said = e.greeted = true; // MPI reaches every rank of its world
    e.tag = take_tag();
    e.window = next_window(plan_id);
    try {
        e.allocate(memory, send_bytes, receive_bytes);
        ends_.push_back(std::move(made));
    } catch (...) {
        e.deallocate();
        return_tag(e.tag);
        throw;
    }
    return e;
}

std::string mpi_world::card(const mpi_end& e) const { return wire_writer().number(e.tag).number(e.window).take(); }

void mpi_world::connect(mpi_end& e, const std::string& peer_card) {
    wire_reader reader(peer_card);
    const int peer_tag = reader.number<int>(), peer_window = reader.number<int>();
    const halocline_mpi_channel_spec spec{e.peer,
                                          peer_tag,
                                          e.tag,
                                          e.send_slot(),
                                          {e.slot(0), e.slot(1)},
                                          e.send_stride,
                                          e.receive_stride,
                                          e.windows ? e.windows->handle : nullptr,
                                          e.window,
                                          peer_window};
    int code = module_->channel_open(world_, &spec, &e.requests);
    if (code == HALOCLINE_MPI_OK) code = module_->receive_start(e.requests, 1);
    if (code != HALOCLINE_MPI_OK) {
        throw job_error("MPI: the channel to rank " + std::to_string(e.peer) + " (slots of " +
                        std::to_string(e.send_stride) + " bytes out, " + std::to_string(e.receive_stride) +
                        " bytes in) can't be made: " + describe(code));
    }
    e.posted = 1;
}

bool mpi_world::post(mpi_end& e, std::uint64_t epoch) noexcept {
    fail(e, module_->receive_start(e.requests, static_cast<int>(epoch & 1)));
    if (!e.error) e.posted = epoch;
    return !e.error;
}

void mpi_world::send(mpi_end& e, std::uint64_t epoch, std::size_t bytes) noexcept {
    // Slot (epoch + 1) & 1 held epoch - 1, which this call ends: it is free for the peer's next message.
    if (!e.farewell_came && !post(e, epoch + 1)) return;
    const blocking_call call(e.windows ? doing_ : nullptr, e.peer);
    fail(e, bytes == e.send_message
                ? module_->send_start(e.requests)
                : module_->send_part_start(e.requests, message_slots::slot_bytes(bytes - sizeof(message_label))));
}

void mpi_world::poll(mpi_end& e) noexcept {
    int done = 0;
    if (!e.error && !e.farewell_came && e.came < e.posted) {
        const std::uint64_t next = e.came + 1;
        fail(e, module_->receive_test(e.requests, static_cast<int>(next & 1), &done));
        if (done && !e.error) {
            e.farewell_came = epoch_in(e, next & 1) == farewell;
            if (!e.farewell_came) e.came = next;
        }
    }
    if (e.error || e.sent == e.started) return;
    fail(e, module_->send_test(e.requests, &done));
    if (done && !e.error) e.sent = e.started;
}

void mpi_world::say_farewell(mpi_end& e) noexcept {
    alignas(64) std::array<std::byte, HALOCLINE_MPI_UNIT> unit{}; // a message without payload
    auto* const label = new (unit.data() + message_slots::label_at) message_label;
    label->epoch.store(farewell, std::memory_order_relaxed);
    fail(e, module_->farewell_start(e.requests, unit.data()));
}

/// Has the peer said farewell too, and is ours delivered? Then nothing is under way any more, in either direction.
bool mpi_world::closed(mpi_end& e) noexcept {
    if (e.error || !e.farewell_said) return false;
    // The peer may have sent one epoch more than this end did.
    while (!e.farewell_came) {
        if (e.came == e.posted && !post(e, e.posted + 1)) return false;
        const std::uint64_t before = e.came;
        poll(e);
        if (e.error || (e.came == before && !e.farewell_came)) return false;
    }
    int done = 0;
    {
        const blocking_call call(e.windows ? doing_ : nullptr, e.peer);
        fail(e, module_->farewell_test(e.requests, &done));
    }
    if (!done || e.error) return false;
    poll(e);
    return e.has_room() && !e.error;
}

void mpi_world::release(mpi_end& e) noexcept {
    e.released = true;
    if (e.requests != nullptr && !closed(e)) return; // kept until the peer has said farewell
    close_end(e);
    std::erase_if(ends_, [&](const auto& end) { return end.get() == &e; });
}

void mpi_world::close_end(mpi_end& e) noexcept {
    const bool joined = e.requests != nullptr, clean = !joined || closed(e);
    const bool idle = module_->channel_close(e.requests) != 0;
    // Otherwise a message may still arrive with this tag, or be read from this memory, so both stay taken. So does the
    // tag of an end that was never joined, unless neither was: the peer's end may have been, and say farewell.
    if ((joined || e.refused) && clean && idle) return_tag(e.tag);
    if (idle) e.deallocate();
    holds_memory_ = holds_memory_ || !idle;
    if (clean && idle && e.windows) --e.windows->channels;
    // Nor is the world left clean: the peer may send to an end that was never joined.
    clean_ = clean_ && clean && idle && (joined || e.refused);
}

void mpi_world::sweep() noexcept {
    std::erase_if(ends_, [&](const auto& e) {
        if (!e->released || !closed(*e)) return false;
        close_end(*e);
        return true;
    });
}

void mpi_world::finish(const std::function<bool()>& give_up) noexcept {
    const auto done = [&] {
        poll();
        const auto may_close = [](const auto& e) { return e->released && e->farewell_said && e->error == 0; };
        return std::ranges::none_of(ends_, may_close);
    };
    await_farewells(done, give_up);
    if (give_up()) leave();
    close_ends();
}

void mpi_world::close_ends() noexcept {
    for (auto& end : ends_) close_end(*end);
    ends_.clear();
}

void mpi_world::fail(mpi_end& e, int code) noexcept {
    if (code == HALOCLINE_MPI_OK || e.error != 0) return;
    e.error = code;
    if (code == HALOCLINE_MPI_TRUNCATED) e.lost = status::wrong_data;
}

std::string mpi_world::describe(const mpi_end& e) const { return describe(e.error); }

} // namespace halocline::comm
