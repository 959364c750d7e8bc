// SPDX-License-Identifier: Apache-2.0
#include "shm_link.hpp"

#include <halocline/comm/detail/copy_bytes.hpp>

#include <cstring>

namespace halocline::comm {
namespace {

/// How often a send in a stream looks for room for its copy: some microseconds.
constexpr std::uint32_t patience = 1000;

} // namespace

shm_link::shm_link(messenger_core& core, matching& m, int peer, message_place own, message_place theirs,
                   const peer_memory& memory, const receiving_policy& receiving, const sending_policy& sending)
    : in_(*own.link, *theirs.link, theirs.in_one_piece), out_(*theirs.link, *own.link, own.in_one_piece), core_(core),
      matching_(m), peer_(peer), bell_(theirs.bell), own_line_(&own.link->farewell),
      their_line_(&theirs.link->farewell), incoming_(core, peer, theirs, memory, receiving),
      outgoing_(core, peer, own, memory, sending) {}

bool shm_link::try_send_without_bell(message_operation& s) noexcept {
    if (core_.is_immediate(s.bytes)) {
        if (!try_send_immediate({s.data, s.bytes}, s.tag, s.context)) return false;
        s.finish();
        return true;
    }
    if (outgoing_.is_full() || !out_.has_cell()) return false;
    message_operation* const announced = copied_if_quicker(s);
    if (announced == nullptr) return false;
    if (announced != &s) s.finish();
    out_.announce([&] { return outgoing_.announce(*announced); }, label_for(s.tag, s.context));
    taken_at_announcement_ = in_.taken();
    return true;
}

message_operation* shm_link::copied_if_quicker(message_operation& s) noexcept {
    if (s.bytes > most_copied) return &s;
    const bool is_mapped = outgoing_.is_mapped_there(s.data);
    if (is_in_stream(s) && (!is_mapped || s.bytes <= most_freed)) {
        message_operation* const copy = outgoing_.copy(s);
        // The receiver may want this message before those whose copies it has not read.
        return copy != nullptr || ++s.fruitless_polls < patience ? copy : &s;
    }
    // Reading the original would take the receiver a system call, or bring lines that this rank has to get back.
    if (is_mapped && !outgoing_.copying_pays(s)) return &s;
    message_operation* const copy = outgoing_.copy(s);
    return copy != nullptr ? copy : &s;
}

bool shm_link::arrive(ring_reader::place p) noexcept {
    const message_cell& cell = *p.cell;
    if (cell.bytes == message_cell::withdrawn) {
        take_withdrawal(announcement_in(cell.payload));
        take(p);
        return true;
    }
    const envelope m{peer_, cell.tag, cell.context, cell.message_bytes()};
    const bool immediate = core_.is_immediate(m.bytes);
    if (!immediate && is_withdrawn(p)) {
        incoming_.discard(announcement_in(cell.payload));
        ++core_.counts.withdrawn;
        take(p);
        return true;
    }
    if (message_operation* const r = matching_.match(m)) {
        if (immediate) {
            in_.copy(r->data, p, core_.begin_receive(*r, m));
            ++core_.counts.immediate;
            r->finish();
        } else {
            receive_announced(*r, m, cell.payload);
        }
    } else {
        unexpected_message* kept = matching_.keep(m);
        if (kept == nullptr && discard_withdrawn()) kept = matching_.keep(m); // the notices may be behind this message
        if (kept == nullptr) return false;
        if (immediate)
            in_.copy(kept->payload(), p, m.bytes);
        else
            std::memcpy(kept->payload(), cell.payload, sizeof(announcement));
    }
    take(p);
    return true;
}

void shm_link::receive_kept(message_operation& r, unexpected_message& m) noexcept {
    if (!core_.is_immediate(m.bytes)) return receive_announced(r, m.what(), m.payload());
    core_.deliver_immediate(r, m.what(), m.payload());
}

void shm_link::receive_announced(message_operation& r, const envelope& m, const std::byte* payload) noexcept {
    // Even if it wants no bytes, so that the send ends.
    incoming_.receive(r, core_.begin_receive(r, m), announcement_in(payload), outgoing_.is_sending());
}

bool shm_link::take_announced_alone(ring_reader::place p, std::span<std::byte> into, message_info& info) noexcept {
    if (p.cell->bytes != message_cell::announced) return false;
    const announcement a = announcement_in(p.cell->payload);
    if (a.bytes > into.size() || is_withdrawn(p) || !incoming_.try_receive_alone(into.data(), a)) return false;
    info = {peer_, p.cell->tag, a.bytes};
    take(p);
    ++core_.counts.arrived;
    return true;
}

void shm_link::tell_withdrawn() noexcept {
    while (outgoing_.has_untold() && out_.has_cell())
        out_.announce([&] { return outgoing_.take_untold(); }, label_for(0, 0), message_cell::withdrawn);
}

void shm_link::take_withdrawal(const announcement& a) noexcept {
    const auto is_it = [&](unexpected_message& m) {
        return is_announced(m) && announcement_in(m.payload()).generation == a.generation;
    };
    if (unexpected_message* const m = matching_.find_kept(peer_, is_it))
        discard(*m);
    else
        incoming_.progress(); // a receive has met it, and must be posted again before the next message asks for one
}

bool shm_link::discard_withdrawn() noexcept {
    bool any = false;
    for (unexpected_message *m = matching_.first_kept(peer_), *next; m != nullptr; m = next) {
        next = m->next;
        any |= discard_if_withdrawn(*m);
    }
    return any;
}

void shm_link::discard(unexpected_message& m) noexcept {
    incoming_.discard(announcement_in(m.payload()));
    matching_.remove(m);
    ++core_.counts.withdrawn;
}

} // namespace halocline::comm
