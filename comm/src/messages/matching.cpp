// SPDX-License-Identifier: Apache-2.0
#include "matching.hpp"

namespace halocline::comm {

unexpected_message* unexpected_queue::push() noexcept {
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

void unexpected_queue::remove(unexpected_message& m) noexcept {
    --size_;
    (m.before ? m.before->next : first_) = m.next;
    (m.next ? m.next->before : last_) = m.before;
    m.next = free_;
    free_ = &m;
}

void matching::reserve(int ranks, std::size_t room, std::size_t largest_payload) {
    peers_.reserve(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r) peers_.push_back({{}, {room, largest_payload}});
}

unexpected_message* matching::find(int from, int tag, std::uint32_t context) const noexcept {
    const auto first = [&](const peer& p) {
        unexpected_message* m = p.unexpected.first();
        while (m != nullptr && !matches(tag, context, m->tag, m->context)) m = m->next;
        return m;
    };
    if (from != any_source) return first(of(from));
    unexpected_message* oldest = nullptr;
    for (const peer& p : peers_) {
        unexpected_message* const m = first(p);
        if (m != nullptr && (oldest == nullptr || m->arrival < oldest->arrival)) oldest = m;
    }
    return oldest;
}

void matching::post(message_operation& receive) noexcept {
    receive.state = operation_state::posted;
    posted_for(receive).push(receive);
}

void matching::post_again(message_operation& receive) noexcept {
    receive.state = operation_state::posted;
    operation_list& list = posted_for(receive);
    message_operation* later = list.first;
    while (later != nullptr && later->posted_as < receive.posted_as) later = later->next;
    list.insert(receive, later);
}

void matching::abandon() noexcept {
    for (peer& p : peers_) p.posted.finish_all();
    posted_any_.finish_all();
}

message_operation* matching::match(const envelope& m) noexcept {
    const auto first = [&](const operation_list& list) {
        message_operation* r = list.first;
        while (r != nullptr && !matches(r->tag, r->context, m.tag, m.context)) r = r->next;
        return r;
    };
    peer& from = of(m.source);
    message_operation* const one = first(from.posted);
    message_operation* const any = first(posted_any_);
    const bool one_is_older = one != nullptr && (any == nullptr || one->posted_as < any->posted_as);
    message_operation* const oldest = one_is_older ? one : any;
    if (oldest == nullptr) return nullptr;
    (one_is_older ? from.posted : posted_any_).remove(*oldest);
    ++counts_.arrived;
    return oldest;
}

unexpected_message* matching::keep(const envelope& m) noexcept {
    unexpected_message* const kept = of(m.source).unexpected.push();
    if (kept == nullptr) return nullptr;
    kept->source = m.source;
    kept->tag = m.tag;
    kept->context = m.context;
    kept->bytes = m.bytes;
    kept->arrival = ++arrivals_;
    ++counts_.arrived;
    ++counts_.unexpected;
    return kept;
}

} // namespace halocline::comm
