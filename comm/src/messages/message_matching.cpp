// SPDX-License-Identifier: Apache-2.0
// Which message meets which receive: MPI's rule, kept by plain lists in order of arrival and of posting.
#include "message_engine.hpp"

#include "job/waiting.hpp"

#include <cstring>

namespace halocline::comm {
namespace {

bool matches(int tag, std::uint32_t context, int message_tag, std::uint32_t message_context) {
    return context == message_context && (tag == any_tag || tag == message_tag);
}

} // namespace

unexpected_message* unexpected_store::push() noexcept {
    unexpected_message* m = free_;
    if (m != nullptr) {
        free_ = m->next;
    } else if (used_ < room_) {
        m = reinterpret_cast<unexpected_message*>(&all_[used_++ * stride_]);
    } else {
        return nullptr;
    }
    ++size_;
    m->next = nullptr;
    m->before = last_;
    (last_ ? last_->next : first_) = m;
    last_ = m;
    return m;
}

void unexpected_store::remove(unexpected_message& m) noexcept {
    --size_;
    (m.before ? m.before->next : first_) = m.next;
    (m.next ? m.next->before : last_) = m.before;
    m.next = free_;
    free_ = &m;
}

void message_engine::irecv(message_request& r, std::span<std::byte> into, int from, int tag,
                           std::uint32_t context) noexcept {
    if (!can_come(from, tag)) return misuse(false, from, tag);
    begin(r, into.data(), into.size(), from, tag, context);
    r.posted_as_ = ++posted_count_;
    link* owner = nullptr;
    if (unexpected_message* m = message_for(from, tag, context, owner)) {
        const incoming early{owner->peer, m->tag, m->context, m->bytes, m->payload(), m->own};
        deliver(*owner, r, early);
        owner->early.remove(*m);
        return;
    }
    r.state_ = request_state::posted;
    if (from == any_source) {
        posted_any_.push(r);
        return;
    }
    link& l = links_[static_cast<std::size_t>(from)];
    l.posted.push(r);
    if (l.frames && options_.test_on_init) move_frames(l);
}

bool message_engine::recv_now(std::span<std::byte> into, int from, int tag, std::uint32_t context,
                              message_info& info) noexcept {
    if (!is_rank(from) || status_ != status::ok || unattended_ == most_unattended) return false;
    link& l = links_[static_cast<std::size_t>(from)];
    if (!l.in.is_open() || l.posted.first != nullptr || posted_any_.first != nullptr || l.early.first() != nullptr)
        return false;
    const int patience =
        core_.spin.has_own_core() ? 200 : 1; // polls, some microseconds: others may need progress() then
    const ring_reader::awaited next = l.in.await();
    ring_reader::place p = next.look();
    for (int polls = 1; p.cell == nullptr && polls < patience; ++polls) {
        pause();
        p = next.look();
    }
    if (p.cell == nullptr || !matches(tag, context, p.cell->tag, p.cell->context)) return false;
    const std::uint32_t bytes = p.cell->bytes;
    if (bytes == message_cell::announced || bytes > into.size()) return false;
    copy_payload(into.data(), p, bytes);
    info = {from, p.cell->tag, bytes};
    take(l, p);
    ++counts_.arrived;
    ++counts_.immediate;
    ++unattended_;
    return true;
}

unexpected_message* message_engine::message_for(int from, int tag, std::uint32_t context, link*& owner) noexcept {
    unexpected_message* oldest = nullptr;
    const auto look = [&](link& l) {
        for (unexpected_message* m = l.early.first(); m != nullptr; m = m->next) {
            if (!matches(tag, context, m->tag, m->context)) continue;
            if (oldest == nullptr || m->arrival < oldest->arrival) {
                oldest = m;
                owner = &l;
            }
            return;
        }
    };
    if (from != any_source) {
        look(links_[static_cast<std::size_t>(from)]);
    } else {
        for (link& l : links_) look(l);
    }
    return oldest;
}

message_request* message_engine::receive_for(link& from, const incoming& m) noexcept {
    const auto first = [&](const request_list& list) {
        message_request* r = list.first;
        while (r != nullptr && !matches(r->tag_, r->context_, m.tag, m.context)) r = r->next_;
        return r;
    };
    message_request* const one = first(from.posted);
    message_request* const any = first(posted_any_);
    return any == nullptr || (one != nullptr && one->posted_as_ < any->posted_as_) ? one : any;
}

bool message_engine::arrive(link& from, const incoming& m) noexcept {
    if (message_request* r = receive_for(from, m)) {
        (r->peer_ == any_source ? posted_any_ : from.posted).remove(*r);
        ++counts_.arrived;
        deliver(from, *r, m);
        return true;
    }
    unexpected_message* const early = from.early.push();
    if (early == nullptr) return false;
    ++counts_.arrived;
    early->arrival = ++arrivals_;
    early->tag = m.tag;
    early->context = m.context;
    early->bytes = m.bytes;
    early->own = m.own;
    if (m.slot != nullptr) {
        copy_from_slot(early->payload(), *m.slot, m.bytes);
    } else if (m.own == nullptr) {
        const bool immediate = m.bytes <= options_.immediate_bytes;
        const std::size_t kept = immediate ? m.bytes : sizeof(announcement);
        if (kept > 0) std::memcpy(early->payload(), m.payload, kept);
        if (!immediate && from.frames) {
            announcement a;
            std::memcpy(&a, m.payload, sizeof a);
            from.frames->keep(a, m.bytes);
            std::memcpy(early->payload(), &a, sizeof a);
        }
    }
    ++counts_.unexpected;
    return true;
}

void message_engine::drain(link& from) noexcept {
    for (ring_reader::place p = from.in.next(); p.cell != nullptr; p = from.in.next()) {
        const message_cell& cell = *p.cell;
        const incoming m{from.peer, cell.tag, cell.context, cell.message_bytes(), cell.payload, nullptr, p.slot};
        if (!arrive(from, m)) return;
        take(from, p);
    }
}

bool message_engine::probe(int from, int tag, std::uint32_t context, message_info& info) noexcept {
    if (!can_come(from, tag)) {
        misuse(false, from, tag);
        return false;
    }
    if (status_ == status::misused) return false;
    progress();
    link* owner = nullptr;
    const unexpected_message* m = message_for(from, tag, context, owner);
    if (m == nullptr) {
        if (status_ != status::ok) return false;
        status_ = broken_ != status::ok ? broken_ : found_nothing(core_, calls_for_nothing_, from);
        if (status_ != status::ok) failed_ = {false, from, tag, 0, 0, 0};
        return false;
    }
    info = {owner->peer, m->tag, m->bytes};
    return true;
}

void message_engine::withdraw(message_request& r) noexcept {
    link* const l = r.peer_ >= 0 ? &links_[static_cast<std::size_t>(r.peer_)] : nullptr;
    switch (r.state_) {
    case request_state::done: break;
    case request_state::queued: l->queued.remove(r); break;
    case request_state::announced:
        l->announced.remove(r);
        if (l->frames) l->frames->announced[r.record_] = nullptr;
        for (unexpected_message* m = l->early.first(); m != nullptr; m = m->next) {
            if (m->own != &r) continue;
            l->early.remove(*m);
            break;
        }
        if (l->staging == &r) l->staging = nullptr;
        break; // the record stays with the receiver
    case request_state::posted: (l ? l->posted : posted_any_).remove(r); break;
    case request_state::framed: l->frames->framed.remove(r); break;
    case request_state::streaming: l->frames->streaming.remove(r); break;
    case request_state::streamed: l->frames->receiving[r.record_] = nullptr; break;
    case request_state::invited:
    case request_state::admitted:
    case request_state::writing: leave_bulk(*l, r); break;
    case request_state::synergistic:
    case request_state::calling:
    case request_state::staged: active_.remove(r); break;
    }
    finish(r);
}

} // namespace halocline::comm
