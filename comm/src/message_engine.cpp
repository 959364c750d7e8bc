// SPDX-License-Identifier: Apache-2.0
// How messages move: cells, copies, progress, waits.
#include "message_engine.hpp"

#include "waiting.hpp"

#include <halocline/comm/stream_bytes.hpp>
#include <halocline/comm/take_line.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/uio.h>
#include <utility>

namespace halocline::comm {
namespace {

/// The lines of bytes[0, n) come to this core for writing, while it does something else.
void claim(const std::byte* bytes, std::size_t n) noexcept {
#if defined(__x86_64__)
    for (std::size_t i = 0; i < n; i += 64) asm volatile("prefetchw %0" : : "m"(bytes[i]));
#else
    for (std::size_t i = 0; i < n; i += 64) __builtin_prefetch(bytes + i, 1);
#endif
}

/// A piece of a message that both ends copy: an eighth of it, so that neither waits long for the other's last one, but
/// large enough that a piece costs more than the move of the counter's cache line
/// (docs/decisions/0015-matched-messages.md).
std::uint64_t piece_bytes(std::uint64_t bytes) {
    return std::clamp<std::uint64_t>(bytes / 8 / 4096 * 4096, 16 * 1024, 128 * 1024);
}
/// Polls for which a receiver waits for what its sender has begun, or may begin: a microsecond.
constexpr std::uint32_t patience = 100;

std::uint64_t pieces_of(std::uint64_t bytes, std::uint64_t piece) { return (bytes + piece - 1) / piece; }

/// A part of a payload line; most are whole, for which the size is known here.
void copy_part(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    constexpr std::size_t whole = sizeof payload_line::part;
    if (bytes == whole)
        std::memcpy(to, from, whole);
    else
        std::memcpy(to, from, bytes);
}

void publish(message_cell& cell, std::uint64_t number, std::size_t bytes, int tag, std::uint32_t context) noexcept {
    cell.tag = tag;
    cell.context = context;
    cell.bytes = bytes;
    cell.number.store(number, std::memory_order_release);
}

/// Nothing but memcpy: string moves and AVX-512 loops were within 3 % of it, non-temporal stores up to 3 times slower.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    if (bytes > 0) std::memcpy(to, from, bytes);
}

} // namespace

void message_engine::begin(message_request& r, std::byte* data, std::size_t bytes, int peer, int tag,
                           std::uint32_t context) noexcept {
    r.data_ = data;
    r.bytes_ = bytes;
    r.peer_ = peer;
    r.tag_ = tag;
    r.context_ = context;
    r.pieces_done_ = 0;
    r.polls_ = 0;
    r.engine_ = this;
}

void message_engine::isend(message_request& r, std::span<const std::byte> data, int to, int tag,
                           std::uint32_t context) noexcept {
    begin(r, const_cast<std::byte*>(data.data()), data.size(), to, tag, context);
    link& l = links_[static_cast<std::size_t>(to)];
    if (l.queued.first != nullptr || !announce(l, r)) {
        r.state_ = request_state::queued;
        l.queued.push(r);
    }
    if (!l.frames) return;
    if (options_.test_on_init) move_frames(l);
    if (options_.wait_on_send.count() > 0) (void)start_all({&r, 1}, options_.wait_on_send);
}

/// nullptr: the peer has not taken enough yet.
message_cell* message_engine::free_cell(link& to) noexcept {
    if (to.cells_sent - to.cells_credit == link_layout::ring_cells) {
        to.cells_credit = to.here->cells_taken.load(std::memory_order_acquire);
        if (to.cells_sent - to.cells_credit == link_layout::ring_cells) return nullptr;
    }
    return &to.ring_out[to.cells_sent % link_layout::ring_cells];
}

message_slot* message_engine::free_slot(link& to) noexcept {
    if (to.slots_sent - to.slots_credit == link_layout::slots) {
        to.slots_credit = to.here->slots_taken.load(std::memory_order_acquire);
        if (to.slots_sent - to.slots_credit == link_layout::slots) return nullptr;
    }
    return &to.slots_out[to.slots_sent % link_layout::slots];
}

bool message_engine::publish_immediate(link& to, std::span<const std::byte> data, int tag,
                                       std::uint32_t context) noexcept {
    constexpr std::size_t in_cell = sizeof message_cell::payload;
    const std::byte* from = data.data();
    std::size_t left = data.size();
    if (left <= in_cell) {
        message_cell* const cell = free_cell(to);
        if (cell == nullptr) return false;
        if (left > 0) std::memcpy(cell->payload, from, left);
        publish(*cell, to.cells_sent++ + to.slots_sent + 1, left, tag, context);
        return true;
    }
    message_slot* const slot = free_slot(to);
    if (slot == nullptr) return false;
    const std::uint64_t number = to.cells_sent + ++to.slots_sent;
    std::memcpy(slot->cell.payload, from, in_cell);
    publish(slot->cell, number, left, tag, context);
    from += in_cell;
    left -= in_cell;
    payload_line* line = slot->line;
    for (; left > 0; ++line) {
        const std::size_t n = std::min(left, sizeof line->part);
        copy_part(line->part, from, n);
        line->number.store(number, std::memory_order_release);
        from += n;
        left -= n;
    }
    // The next one often has this one's size. Not its cell, at which the peer is looking.
    const std::size_t lines = static_cast<std::size_t>(line - slot->line);
    claim(to.slots_out[to.slots_sent % link_layout::slots].line[0].part, lines * sizeof *line);
    return true;
}

/// Line by line, as they come: looking for the last one first would take lines away from the sender that fills them.
bool message_engine::copy_lines(std::byte* to, const incoming& m) noexcept {
    const message_slot& slot = *m.slot;
    const std::uint64_t number = slot.cell.number.load(std::memory_order_relaxed);
    constexpr std::size_t in_cell = sizeof message_cell::payload;
    std::memcpy(to, slot.cell.payload, in_cell);
    std::size_t at = in_cell;
    for (const payload_line* line = slot.line; at < m.bytes; ++line) {
        for (std::uint32_t polls = 0; line->number.load(std::memory_order_acquire) != number; ++polls)
            if (polls == patience) return false; // interrupted: whoever is left looks again
        const std::size_t n = std::min<std::size_t>(m.bytes - at, sizeof line->part);
        copy_part(to + at, line->part, n);
        at += n;
    }
    return true;
}

bool message_engine::send_now(std::span<const std::byte> data, int to, int tag, std::uint32_t context) noexcept {
    link& l = links_[static_cast<std::size_t>(to)];
    if (data.size() > options_.immediate_bytes || l.queued.first != nullptr || to == core_.rank || l.frames)
        return false;
    return publish_immediate(l, data, tag, context);
}

bool message_engine::announce(link& to, message_request& r) noexcept {
    if (to.peer == core_.rank) return to_self(to, r);
    if (to.frames) return frame_message(to, r);
    if (r.bytes_ <= options_.immediate_bytes) {
        if (!publish_immediate(to, {r.data_, r.bytes_}, r.tag_, r.context_)) return false;
        finish(r);
        return true;
    }
    message_cell* const cell = free_cell(to);
    if (cell == nullptr || to.free_count == 0) return false;
    announcement a;
    a.record = r.record_ = to.free_records[--to.free_count];
    a.generation = r.number_ = ++to.generation;
    a.in_slab = core_.memory->contains(r.data_);
    a.address = a.in_slab ? static_cast<std::uint64_t>(r.data_ - core_.memory->base())
                          : reinterpret_cast<std::uint64_t>(r.data_);
    to.records[a.record].sender_pieces.store(0, std::memory_order_relaxed);
    std::memcpy(cell->payload, &a, sizeof a);
    r.state_ = request_state::announced;
    to.announced.push(r);
    publish(*cell, to.cells_sent++ + to.slots_sent + 1, r.bytes_, r.tag_, r.context_);
    return true;
}

bool message_engine::to_self(link& self, message_request& r) noexcept {
    const bool immediate = r.bytes_ <= options_.immediate_bytes;
    r.state_ = request_state::announced;
    self.announced.push(r);
    const incoming m{core_.rank, r.tag_, r.context_, r.bytes_, immediate ? r.data_ : nullptr, immediate ? nullptr : &r};
    const bool room = arrive(self, m);
    if (r.done()) return true;
    if (room && !immediate) return true;
    self.announced.remove(r);
    if (room) finish(r);
    return room;
}

void message_engine::deliver(link& from, message_request& r, const incoming& m) noexcept {
    r.info_ = {m.source, m.tag, m.bytes};
    const bool fits = m.bytes <= r.bytes_;
    if (!fits && status_ == status::ok) fail(status::wrong_data, r, 0, m.bytes);
    if (m.own != nullptr) {
        if (fits) copy_bytes(r.data_, m.own->data_, m.bytes);
        ++counts_.direct;
        from.announced.remove(*m.own);
        finish(*m.own);
        finish(r);
    } else if (m.bytes <= options_.immediate_bytes) {
        if (fits && m.bytes > 0 && m.slot == nullptr) std::memcpy(r.data_, m.payload, m.bytes); // else arrive() did
        ++counts_.immediate;
        finish(r);
    } else {
        announcement a;
        std::memcpy(&a, m.payload, sizeof a);
        fetch(from, r, fits ? m.bytes : 0, a);
    }
}

void message_engine::fetch(link& from, message_request& r, std::uint64_t bytes, const announcement& a) noexcept {
    if (from.frames) {
        ++counts_.called;
        r.peer_ = from.peer;
        r.record_ = a.record;
        r.number_ = bytes;
        r.state_ = request_state::calling;
        active_.push(r);
        call_for(from, r);
        return;
    }
    send_record& record = from.their_records[a.record];
    const std::byte* const source = a.in_slab           ? from.slab + a.address
                                    : from.same_process ? reinterpret_cast<const std::byte*>(a.address)
                                                        : nullptr;
    const bool target_in_slab = core_.memory->contains(r.data_);
    if (bytes >= least_pushed) {
        if (const std::uint64_t now = ticks(); from.pushed.due(now))
            from.pushed.read(ticks_to_take(&record.receiver.looked_at), now);
    }
    const bool push = wants_push(from, bytes);
    if (source != nullptr && (push || bytes >= options_.synergistic_bytes) && (target_in_slab || from.same_process)) {
        record.receiver.target = target_in_slab ? static_cast<std::uint64_t>(r.data_ - core_.memory->base())
                                                : reinterpret_cast<std::uint64_t>(r.data_);
        record.receiver.target_in_slab = target_in_slab;
        record.next.store(0, std::memory_order_relaxed);
        record.receiver.state.store(send_record::phases * a.generation +
                                        (push ? send_record::pushed : send_record::shared),
                                    std::memory_order_release);
        r.source_ = push ? source : nullptr;
        if (!push) r.pieces_done_ = copy_pieces(record, r.data_, source, bytes, false);
        ++counts_.synergistic;
        counts_.pushed += push;
        r.state_ = request_state::synergistic;
    } else if (source != nullptr) {
        copy_bytes(r.data_, source, bytes);
        ++counts_.direct;
    } else if (from.readable && read_process(from, r.data_, a.address, bytes)) {
        ++counts_.direct;
        ++counts_.read;
    } else {
        record.next.store(0, std::memory_order_relaxed);
        record.receiver.state.store(send_record::phases * a.generation + send_record::wants_staging,
                                    std::memory_order_release);
        ++counts_.staged;
        r.state_ = request_state::staged;
    }
    if (r.state_ == request_state::synergistic || r.state_ == request_state::staged) {
        r.peer_ = from.peer;
        r.record_ = a.record;
        r.number_ = a.generation;
        active_.push(r);
        go_on(r);
        return;
    }
    record.receiver.state.store(send_record::phases * a.generation + send_record::received, std::memory_order_release);
    finish(r);
}

bool message_engine::read_process(link& from, std::byte* to, std::uint64_t address, std::uint64_t bytes) noexcept {
    while (bytes > 0) { // the system moves at most 2 GiB a call
        const iovec here{to, bytes};
        const iovec there{reinterpret_cast<void*>(address), bytes};
        const ssize_t n = process_vm_readv(from.pid, &here, 1, &there, 1, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        to += n;
        address += static_cast<std::uint64_t>(n);
        bytes -= static_cast<std::uint64_t>(n);
    }
    return true;
}

std::uint64_t message_engine::copy_pieces(send_record& record, std::byte* to, const std::byte* from,
                                          std::uint64_t bytes, bool streaming) noexcept {
    const std::uint64_t piece = piece_bytes(bytes), pieces = pieces_of(bytes, piece);
    std::uint64_t copied = 0;
    while (true) {
        const std::uint64_t i = record.next.fetch_add(1, std::memory_order_relaxed);
        if (i >= pieces) return copied;
        (streaming ? stream_bytes : copy_bytes)(to + i * piece, from + i * piece, std::min(piece, bytes - i * piece));
        ++copied;
    }
}

/// A receive that needs its sender.
void message_engine::go_on(message_request& r) noexcept {
    link& from = links_[static_cast<std::size_t>(r.peer_)];
    if (from.frames) return call_for(from, r);
    send_record& record = from.their_records[r.record_];
    const std::uint64_t bytes = r.info_.bytes <= r.bytes_ ? r.info_.bytes : 0;
    const std::uint64_t theirs = record.sender_pieces.load(std::memory_order_acquire);
    if (r.state_ == request_state::synergistic) {
        if (r.pieces_done_ + theirs < pieces_of(bytes, piece_bytes(bytes))) {
            // A sender that doesn't begin to push computes, or waits elsewhere: then this end copies.
            if (r.source_ == nullptr || ++r.polls_ < patience || record.next.load(std::memory_order_relaxed) > 0)
                return;
            r.pieces_done_ = copy_pieces(record, r.data_, std::exchange(r.source_, nullptr), bytes, false);
            return;
        }
    } else {
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
    record.receiver.state.store(send_record::phases * r.number_ + send_record::received, std::memory_order_release);
    finish(r);
}

/// A send that its receiver may be copying, or have copied.
void message_engine::follow(link& to, message_request& r) noexcept {
    if (to.peer == core_.rank || to.frames) return;
    send_record& record = to.records[r.record_];
    const std::uint64_t state = record.receiver.state.load(std::memory_order_acquire);
    if (state == send_record::phases * r.number_ + send_record::received) {
        to.announced.remove(r);
        to.free_records[to.free_count++] = r.record_;
        if (to.staging == &r) to.staging = nullptr;
        finish(r);
    } else if (state == send_record::phases * r.number_ + send_record::shared ||
               state == send_record::phases * r.number_ + send_record::pushed) {
        const std::uint64_t pieces = pieces_of(r.bytes_, piece_bytes(r.bytes_));
        if (record.next.load(std::memory_order_relaxed) >= pieces) return;
        std::byte* const target = record.receiver.target_in_slab != 0
                                      ? to.slab + record.receiver.target
                                      : reinterpret_cast<std::byte*>(record.receiver.target);
        const std::uint64_t copied =
            copy_pieces(record, target, r.data_, r.bytes_, state % send_record::phases == send_record::pushed);
        if (copied == 0) return;
        finish_streams();
        r.pieces_done_ += copied;
        counts_.pieces_sent += copied;
        record.sender_pieces.store(r.pieces_done_, std::memory_order_release);
    } else if (state == send_record::phases * r.number_ + send_record::wants_staging) {
        if (to.staging == nullptr) to.staging = &r;
        if (to.staging == &r) stage(to, r, record);
    }
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

void message_engine::progress() noexcept {
    for (link& l : links_) {
        if (l.ring_in != nullptr) drain(l);
        if (l.frames) move_frames(l);
        if (l.announced.first != nullptr) l.announced.for_each([&](message_request& r) { follow(l, r); });
        while (l.queued.first != nullptr) {
            message_request& r = *l.queued.first;
            l.queued.remove(r);
            if (announce(l, r)) continue;
            // No room: it stays the first.
            r.state_ = request_state::queued;
            r.before_ = nullptr;
            r.next_ = l.queued.first;
            (r.next_ ? r.next_->before_ : l.queued.last) = &r;
            l.queued.first = &r;
            break;
        }
    }
    if (active_.first != nullptr) active_.for_each([&](message_request& r) { go_on(r); });
}

bool message_engine::gone(int peer) const noexcept {
    if (peer < 0 || peer == core_.rank) return false;
    const link& l = links_[static_cast<std::size_t>(peer)];
    return l.frames ? l.frames->closed : shm_channel::closed(*l.farewell->line());
}

template <class Who, class Fine>
status message_engine::wait(std::size_t count, Who&& who, Fine&& fine,
                            std::optional<std::chrono::nanoseconds> longest) noexcept {
    if (status_ != status::ok) return status_;
    std::size_t i = 0;
    const auto done = [&] {
        while (i < count && fine(who(i))) ++i;
        return i == count;
    };
    const std::uint64_t begin = longest ? ticks() : 0;
    std::uint64_t moved = moved_;
    std::optional<waiter> waiting(core_);
    for (std::uint64_t polls = 0; !done(); ++polls) {
        progress();
        if (status_ != status::ok || done()) break;
        if (polls % polls_per_pause_ != 0) continue;
        const int peer = who(i).peer_;
        // As long as something comes or goes, a large message may take longer than the deadline.
        if (std::exchange(moved, moved_) != moved_) waiting.emplace(core_);
        status_ = broken_ != status::ok ? broken_ : waiting->again(peer);
        if (status_ == status::ok && polls % 4096 == 0 && gone(peer)) {
            progress(); // what it did before it left
            if (done()) break;
            status_ = status::aborted;
        }
        if (status_ != status::ok) {
            std::size_t more = 0;
            for (std::size_t k = i + 1; k < count; ++k) more += !fine(who(k));
            fail(status_, who(i), more);
        } else if (longest && seconds(ticks() - begin) > std::chrono::duration<double>(*longest).count()) {
            return status::timed_out;
        }
    }
    return status_;
}

namespace {

constexpr auto is_done = [](const message_request& r) { return r.done(); };

} // namespace

status message_engine::wait_one(message_request& r) noexcept {
    return wait(
        1, [&](std::size_t) -> message_request& { return r; }, is_done);
}

status message_engine::wait_all(std::span<message_request> all,
                                std::optional<std::chrono::nanoseconds> longest) noexcept {
    return wait(
        all.size(), [&](std::size_t i) -> message_request& { return all[i]; }, is_done, longest);
}

status message_engine::wait_all(std::span<message_request* const> all) noexcept {
    return wait(
        all.size(), [&](std::size_t i) -> message_request& { return *all[i]; }, is_done);
}

/// Will it end without this rank?
bool message_engine::has_started(const message_request& r) const noexcept {
    switch (r.state_) {
    case request_state::queued:
    case request_state::framed:
    case request_state::streaming:
    case request_state::writing: return false;
    case request_state::announced: return !links_[static_cast<std::size_t>(r.peer_)].frames;
    default: return true;
    }
}

status message_engine::start_all(std::span<message_request> all, std::chrono::nanoseconds longest) noexcept {
    return wait(
        all.size(), [&](std::size_t i) -> message_request& { return all[i]; },
        [this](const message_request& r) { return has_started(r); }, longest);
}

void message_engine::fail(status why, const message_request& r, std::size_t more,
                          std::uint64_t message_bytes) noexcept {
    status_ = why;
    const bool is_send = r.state_ == request_state::announced || !has_started(r);
    failed_ = {is_send, r.peer_, r.tag_, r.bytes_, message_bytes, more};
}

bool message_engine::test(message_request& r) noexcept {
    if (r.done()) return true;
    progress();
    if (r.done() || status_ != status::ok) return true;
    // A loop around test() has to end, too, when somebody died. Its deadline is the caller's.
    status s = broken_;
    if (s == status::ok && ++fruitless_tests_ % 4096 == 0) s = core_.check(r.peer_, ticks(), -1);
    if (s != status::ok) fail(s, r, 0);
    return status_ != status::ok;
}

} // namespace halocline::comm
