// SPDX-License-Identifier: Apache-2.0
#include "shm_incoming.hpp"

#include "job/waiting.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/detail/copy_bytes.hpp>
#include <halocline/comm/detail/shared_copy.hpp>
#include <halocline/comm/detail/take_line.hpp>

#include <algorithm>
#include <sched.h>
#include <utility>

namespace halocline::comm {
namespace {

/// How many polls a receiver waits for its sender to begin: a microsecond.
constexpr std::uint32_t patience = 100;
/// For how many seconds at most, in a job that has failed, a sender's last piece is waited for.
constexpr double longest_piece = 0.1;

} // namespace

shm_incoming::shm_incoming(messenger_core& core, int peer, message_place theirs, const peer_memory& memory,
                           const receiving_policy& policy)
    : core_(core), outbox_(theirs.box), peer_(peer), memory_(memory), policy_(policy) {}

void shm_incoming::receive(message_operation& r, std::uint64_t bytes, const announcement& a, bool sends_too) noexcept {
    r.peer = peer_;
    r.record = a.record;
    r.near.generation = a.generation;
    r.near.pieces_done = 0;
    r.near.source = 0;
    r.fruitless_polls = 0;
    r.piece_was_refused = false;
    look_for_sender(record_of(r), bytes);
    const peer_buffer source = memory_.at(a.place);
    const bool is_mapped = source.mapped() != nullptr;
    const receiving_policy::reach reach{source.is_reachable(), is_mapped, memory_.maps_back(*core_.job.memory, r.data)};
    const auto may_read_instead = [&] {
        r.near.source = a.place.address;
        r.source_in_slab = a.place.in_slab != 0;
    };
    switch (policy_.way_of(bytes, reach, sends_too)) {
    case large_message_way::alone:
        if (copy_alone(r, source, bytes)) return;
        ask_for_staging(r);
        break;
    case large_message_way::both:
        if (!is_mapped) ++core_.counts.read;
        ask_for_copy(r, send_record::shared);
        copy_pieces_of(r, source, bytes);
        break;
    case large_message_way::pushed:
        may_read_instead();
        ++core_.counts.pushed;
        ask_for_copy(r, send_record::pushed);
        break;
    case large_message_way::staged:
        if (reach.source) may_read_instead();
        record_of(r).next.store(0, std::memory_order_relaxed); // by it the sender says that it has begun
        ask_for_staging(r);
        break;
    }
    receiving_.push(r);
    advance(r);
}

bool shm_incoming::try_receive_alone(std::byte* into, const announcement& a) noexcept {
    const std::byte* const source = memory_.at(a.place).mapped();
    if (a.bytes >= policy_.least_shared() || source == nullptr) return false;
    copy_bytes(into, source, a.bytes);
    outbox_->record[a.record].set(a.generation, send_record::received);
    ++core_.counts.direct;
    return true;
}

void shm_incoming::look_for_sender(send_record& record, std::uint64_t bytes) noexcept {
    const std::uint64_t now = bytes >= least_pushed ? ticks() : 0;
    if (!policy_.is_look_due(bytes, now)) return;
    // Touches the page first, so that only the time for the line is measured.
    (void)record.next.load(std::memory_order_relaxed);
    policy_.looked(ticks_to_take(&record.receiver.looked_at), now);
}

bool shm_incoming::copy_alone(message_operation& r, const peer_buffer& source, std::uint64_t bytes) noexcept {
    if (bytes > 0 && !source.read(r.data, 0, bytes)) return false;
    ++core_.counts.direct;
    if (source.mapped() == nullptr) ++core_.counts.read;
    record_of(r).set(r.near.generation, send_record::received);
    r.finish();
    return true;
}

void shm_incoming::ask_for_copy(message_operation& r, send_record::phase how) noexcept {
    send_record& record = record_of(r);
    record.receiver.target = place_of(core_.job, r.data);
    record.next.store(0, std::memory_order_relaxed);
    // Last, with release: a sender that sees the phase also sees the target, and that no piece is taken.
    record.set(r.near.generation, how);
    r.state = operation_state::synergistic;
    ++core_.counts.synergistic;
}

void shm_incoming::copy_pieces_of(message_operation& r, const peer_buffer& source, std::uint64_t bytes) noexcept {
    r.near.pieces_done = copy_pieces(record_of(r).next, bytes, [&](std::uint64_t start, std::uint64_t n) {
        if (!source.read(r.data + start, start, n)) r.piece_was_refused = true;
    });
}

void shm_incoming::ask_for_staging(message_operation& r) noexcept {
    send_record& record = record_of(r);
    r.near.pieces_done = 0;
    record.receiver.read.store(0, std::memory_order_relaxed);
    record.set(r.near.generation, send_record::wants_staging);
    ++core_.counts.staged;
    r.state = operation_state::staged;
}

void shm_incoming::advance(message_operation& r) noexcept {
    const std::uint64_t bytes = r.info.bytes <= r.bytes ? r.info.bytes : 0; // too long: nothing is copied
    const outcome now = r.state == operation_state::staged ? copied_from_staging(r, bytes) : copied_by_both(r, bytes);
    if (now == outcome::under_way) return;
    receiving_.remove(r);
    record_of(r).set(r.near.generation, send_record::received);
    if (now == outcome::withdrawn)
        core_.receive_another(r);
    else
        r.finish();
}

shm_incoming::outcome shm_incoming::copied_by_both(message_operation& r, std::uint64_t bytes) noexcept {
    const std::uint64_t said = record_of(r).sender_pieces.load(std::memory_order_acquire);
    if (r.near.pieces_done + send_record::pieces_in(said) >= pieces_of(bytes)) {
        if (!r.piece_was_refused && (said & send_record::refused) == 0) return outcome::complete;
        r.near.source = 0;
        ask_for_staging(r); // all of it again
        return outcome::under_way;
    }
    const bool has_begun = record_of(r).next.load(std::memory_order_relaxed) != 0; // after that it copies all, at once
    if ((said & send_record::withdrawn) != 0 && !has_begun) return outcome::withdrawn;
    if (const auto source = source_of_idle_sender(r)) copy_pieces_of(r, *source, bytes);
    return outcome::under_way;
}

/// `staged` is the number of pieces placed there so far, `read` the number of those that were read.
shm_incoming::outcome shm_incoming::copied_from_staging(message_operation& r, std::uint64_t bytes) noexcept {
    constexpr std::uint64_t piece = link_layout::staging_bytes;
    send_record& record = record_of(r);
    // Loaded first: what a withdrawn sender has staged is all that there will be.
    const bool withdrawn = (record.sender_pieces.load(std::memory_order_acquire) & send_record::withdrawn) != 0;
    const std::uint64_t theirs = record.staged.load(std::memory_order_acquire);
    for (; r.near.pieces_done < theirs; ++r.near.pieces_done) {
        const std::uint64_t start = r.near.pieces_done * piece;
        copy_bytes(r.data + start, staged_piece(*outbox_, r.near.pieces_done), std::min(piece, bytes - start));
        record.receiver.read.store(r.near.pieces_done + 1, std::memory_order_release);
        core_.moved.note(peer_);
    }
    if (r.near.pieces_done >= pieces_of(bytes, piece)) return outcome::complete;
    if (withdrawn) return outcome::withdrawn;
    if (const auto source = source_of_idle_sender(r); source && source->read(r.data, 0, bytes)) {
        --core_.counts.staged;
        ++core_.counts.direct;
        ++core_.counts.read;
        return outcome::complete;
    }
    return outcome::under_way;
}

std::optional<peer_buffer> shm_incoming::source_of_idle_sender(message_operation& r) noexcept {
    if (r.near.source == 0 || ++r.fruitless_polls < patience) return std::nullopt;
    if (record_of(r).next.load(std::memory_order_relaxed) != 0) return std::nullopt; // it has begun
    return memory_.at({std::exchange(r.near.source, 0), r.source_in_slab});
}

void shm_incoming::withdraw(message_operation& r) noexcept {
    receiving_.remove(r);
    if (r.state == operation_state::synergistic) stop_sender(r);
    record_of(r).set(r.near.generation, send_record::received);
}

void shm_incoming::stop_sender(const message_operation& r) noexcept {
    send_record& record = record_of(r);
    const std::uint64_t pieces = pieces_of(r.info.bytes);
    const std::uint64_t taken = std::min(pieces, record.next.exchange(pieces, std::memory_order_relaxed));
    const auto copied = [&] { return send_record::pieces_in(record.sender_pieces.load(std::memory_order_acquire)); };
    const auto writes = [&] { return r.near.pieces_done + copied() < taken; };
    waiter waiting(core_.job);
    while (writes() && waiting.again(peer_) == status::ok) {
    }
    // If the job has failed, the sender may still be writing its last piece, unless it is dead.
    for (const std::uint64_t since = ticks(); writes() && seconds(ticks() - since) < longest_piece;) sched_yield();
}

void shm_incoming::abandon() noexcept {
    while (!receiving_.empty()) { // withdrawing one waits, which may end others
        message_operation& r = *receiving_.first;
        withdraw(r);
        r.finish();
    }
}

} // namespace halocline::comm
