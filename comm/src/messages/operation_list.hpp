// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <halocline/comm/message_operation.hpp>

namespace halocline::comm {

/// Operations in order of insertion. The links are stored in the operations, so each is in at most one list.
struct operation_list {
    message_operation *first = nullptr, *last = nullptr;

    [[nodiscard]] bool empty() const noexcept { return first == nullptr; }
    void push(message_operation& o) noexcept {
        o.next = nullptr;
        o.before = last;
        (last ? last->next : first) = &o;
        last = &o;
    }
    void push_front(message_operation& o) noexcept { insert(o, first); }
    /// Puts it in front of `later`, or at the end if that is nullptr.
    void insert(message_operation& o, message_operation* later) noexcept {
        o.next = later;
        o.before = later ? later->before : last;
        (o.before ? o.before->next : first) = &o;
        (later ? later->before : last) = &o;
    }
    void remove(message_operation& o) noexcept {
        (o.before ? o.before->next : first) = o.next;
        (o.next ? o.next->before : last) = o.before;
    }
    /// visit may remove the operation that it is given.
    template <class Visit>
    void for_each(Visit&& visit) {
        for (message_operation *o = first, *next; o != nullptr; o = next) {
            next = o->next;
            visit(*o);
        }
    }
    void finish_all() noexcept {
        for_each([](message_operation& o) { o.finish(); });
        *this = {};
    }
};

} // namespace halocline::comm
