// SPDX-License-Identifier: Apache-2.0
// The part of the engine that moves large messages between ranks that share memory. Their announcement comes through the
// ring; then the receiver copies out of the sender's memory, or both copy pieces of the message, or the sender alone past
// its cache, or both through a staging area. The send's record is where the two ends meet
// (docs/decisions/0015-matched-messages.md).
#include "message_engine.hpp"

#include <halocline/comm/stream_bytes.hpp>
#include <halocline/comm/take_line.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/uio.h>
#include <utility>

namespace halocline::comm {
namespace {

/// Polls for which a receiver waits for its sender to begin: a microsecond.
constexpr std::uint32_t patience = 100;

/// A piece of a message that both ends copy: an eighth of it, so that neither waits long for the other's last one, but
/// large enough that a piece costs more than the move of the counter's cache line.
std::uint64_t piece_bytes(std::uint64_t bytes) {
    return std::clamp<std::uint64_t>(bytes / 8 / 4096 * 4096, 16 * 1024, 128 * 1024);
}

std::uint64_t pieces_of(std::uint64_t bytes, std::uint64_t piece) { return (bytes + piece - 1) / piece; }

/// Copies pieces that nobody has taken yet, until none is left. How many these were.
std::uint64_t copy_pieces(send_record& record, std::byte* to, const std::byte* from, std::uint64_t bytes,
                          bool streaming) noexcept {
    const std::uint64_t piece = piece_bytes(bytes), pieces = pieces_of(bytes, piece);
    std::uint64_t copied = 0;
    while (true) {
        // Relaxed: it only deals pieces out. That they are there is said by sender_pieces, and by `received`.
        const std::uint64_t i = record.next.fetch_add(1, std::memory_order_relaxed);
        if (i >= pieces) return copied;
        (streaming ? stream_bytes : copy_bytes)(to + i * piece, from + i * piece, std::min(piece, bytes - i * piece));
        ++copied;
    }
}

} // namespace

bool read_process(pid_t pid, std::byte* to, std::uint64_t address, std::uint64_t bytes) noexcept {
    while (bytes > 0) { // the system moves at most 2 GiB a call
        const iovec here{to, bytes};
        const iovec there{reinterpret_cast<void*>(address), bytes};
        const ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        to += n;
        address += static_cast<std::uint64_t>(n);
        bytes -= static_cast<std::uint64_t>(n);
    }
    return true;
}

bool message_engine::announce_large(link& to, message_request& r) noexcept {
    if (to.free_count == 0 || !to.out.has_cell()) return false;
    announcement a{.bytes = r.bytes_};
    a.record = r.record_ = to.free_records[--to.free_count];
    a.generation = r.generation_ = ++to.generation;
    r.pieces_done_ = 0;
    a.in_slab = core_.memory->contains(r.data_);
    a.address = a.in_slab ? static_cast<std::uint64_t>(r.data_ - core_.memory->base())
                          : reinterpret_cast<std::uint64_t>(r.data_);
    to.records[a.record].sender_pieces.store(0, std::memory_order_relaxed);
    r.state_ = request_state::announced;
    to.announced.push(r);
    to.out.announce(a, label_for(to, r.tag_, r.context_));
    return true;
}

void message_engine::fetch(link& from, message_request& r, std::uint64_t bytes, const announcement& a) noexcept {
    r.peer_ = from.peer;
    r.record_ = a.record;
    r.generation_ = a.generation;
    r.pieces_done_ = 0;
    r.polls_ = 0;
    send_record& record = from.their_records[a.record];
    const std::byte* const source = a.in_slab           ? from.slab + a.address
                                    : from.same_process ? reinterpret_cast<const std::byte*>(a.address)
                                                        : nullptr;
    look_for_sender(from, record, bytes);
    if (source != nullptr && share_copy(from, r, record, source, bytes)) {
        ++counts_.synergistic;
    } else if (source != nullptr) {
        copy_bytes(r.data_, source, bytes);
        ++counts_.direct;
    } else if (from.readable && read_process(from.pid, r.data_, a.address, bytes)) {
        ++counts_.direct;
        ++counts_.read;
    } else {
        record.next.store(0, std::memory_order_relaxed);
        record.set(a.generation, send_record::wants_staging);
        ++counts_.staged;
        r.state_ = request_state::staged;
    }
    if (r.state_ == request_state::synergistic || r.state_ == request_state::staged) { // the sender has a part in it
        active_.push(r);
        go_on(r);
        return;
    }
    record.set(a.generation, send_record::received);
    finish(r);
}

/// How far away is the sender now? Asked seldom, and only for messages that might be pushed.
void message_engine::look_for_sender(link& from, send_record& record, std::uint64_t bytes) noexcept {
    if (bytes < least_pushed) return;
    if (const std::uint64_t now = ticks(); from.pushed.due(now))
        from.pushed.read(ticks_to_take(&record.receiver.looked_at), now);
}

bool message_engine::wants_push(const link& from, std::uint64_t bytes) const noexcept {
    return (bytes >= least_pushed && from.pushed.streamed()) ||
           (bytes >= options_.streamed_bytes && from.announced.first != nullptr && job_.options().path != path::direct);
}

bool message_engine::share_copy(link& from, message_request& r, send_record& record, const std::byte* source,
                                std::uint64_t bytes) noexcept {
    const bool push = wants_push(from, bytes);
    if (!push && bytes < options_.synergistic_bytes) return false;
    const bool target_in_slab = core_.memory->contains(r.data_);
    if (!target_in_slab && !from.same_process) return false;
    record.receiver.target = target_in_slab ? static_cast<std::uint64_t>(r.data_ - core_.memory->base())
                                            : reinterpret_cast<std::uint64_t>(r.data_);
    record.receiver.target_in_slab = target_in_slab;
    record.next.store(0, std::memory_order_relaxed);
    // Last, with release: a sender that sees the phase sees where the target is, and that no piece is taken.
    record.set(r.generation_, push ? send_record::pushed : send_record::shared);
    r.state_ = request_state::synergistic;
    r.source_ = push ? source : nullptr;
    if (push)
        ++counts_.pushed;
    else
        r.pieces_done_ = copy_pieces(record, r.data_, source, bytes, false);
    return true;
}

void message_engine::go_on(message_request& r) noexcept {
    link& from = links_[static_cast<std::size_t>(r.peer_)];
    if (from.frames) return call_for(from, r);
    send_record& record = from.their_records[r.record_];
    const std::uint64_t bytes = r.info_.bytes <= r.bytes_ ? r.info_.bytes : 0; // too long: nothing is copied
    const std::uint64_t theirs = record.sender_pieces.load(std::memory_order_acquire);
    if (r.state_ == request_state::synergistic) {
        if (r.pieces_done_ + theirs < pieces_of(bytes, piece_bytes(bytes))) {
            // A sender that doesn't begin to push computes, or waits elsewhere: then this end copies.
            if (r.source_ == nullptr || ++r.polls_ < patience || record.next.load(std::memory_order_relaxed) > 0)
                return;
            r.pieces_done_ = copy_pieces(record, r.data_, std::exchange(r.source_, nullptr), bytes, false);
            return;
        }
    } else { // staged: sender_pieces says how many pieces were ever there, `next` how many of them were read
        constexpr std::uint64_t piece = link_layout::staging_bytes;
        for (; r.pieces_done_ < theirs; ++r.pieces_done_) {
            const std::uint64_t start = r.pieces_done_ * piece;
            copy_bytes(r.data_ + start, staging_of(from.block, core_.ranks, core_.rank, r.pieces_done_),
                       std::min(piece, bytes - start));
            record.next.store(r.pieces_done_ + 1, std::memory_order_release);
        }
        if (r.pieces_done_ < pieces_of(bytes, piece)) return;
    }
    active_.remove(r);
    record.set(r.generation_, send_record::received);
    finish(r);
}

void message_engine::follow(link& to, message_request& r) noexcept {
    if (to.peer == core_.rank || to.frames) return;
    send_record& record = to.records[r.record_];
    switch (const send_record::phase now = record.phase_of(r.generation_)) {
    case send_record::announced: break;
    case send_record::received:
        to.announced.remove(r);
        to.free_records[to.free_count++] = r.record_;
        if (to.staging == &r) to.staging = nullptr;
        finish(r);
        break;
    case send_record::shared:
    case send_record::pushed: help_copy(to, r, record, now == send_record::pushed); break;
    case send_record::wants_staging:
        if (to.staging == nullptr) to.staging = &r; // there is one staging area for each peer: others wait
        if (to.staging == &r) stage(to, r, record);
        break;
    }
}

void message_engine::help_copy(link& to, message_request& r, send_record& record, bool streaming) noexcept {
    if (record.next.load(std::memory_order_relaxed) >= pieces_of(r.bytes_, piece_bytes(r.bytes_))) return;
    std::byte* const target = record.receiver.target_in_slab != 0
                                  ? to.slab + record.receiver.target
                                  : reinterpret_cast<std::byte*>(record.receiver.target);
    const std::uint64_t copied = copy_pieces(record, target, r.data_, r.bytes_, streaming);
    if (copied == 0) return;
    finish_streams();
    r.pieces_done_ += copied;
    counts_.pieces_sent += copied;
    record.sender_pieces.store(r.pieces_done_, std::memory_order_release);
}

void message_engine::stage(link& to, message_request& r, send_record& record) noexcept {
    constexpr std::uint64_t piece = link_layout::staging_bytes;
    while (r.pieces_done_ < pieces_of(r.bytes_, piece) &&
           r.pieces_done_ < record.next.load(std::memory_order_acquire) + link_layout::staging_pieces) {
        const std::uint64_t start = r.pieces_done_ * piece;
        copy_bytes(staging_of(block_, core_.ranks, to.peer, r.pieces_done_), r.data_ + start,
                   std::min(piece, r.bytes_ - start));
        record.sender_pieces.store(++r.pieces_done_, std::memory_order_release);
    }
}

} // namespace halocline::comm
