// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <halocline/comm/messenger.hpp>

namespace halocline::comm {

/// Requests in the order in which they came. The links are in the requests.
struct request_list {
    message_request *first = nullptr, *last = nullptr;

    void push(message_request& r) noexcept {
        r.next_ = nullptr;
        r.before_ = last;
        (last ? last->next_ : first) = &r;
        last = &r;
    }
    void push_front(message_request& r) noexcept {
        r.before_ = nullptr;
        r.next_ = first;
        (first ? first->before_ : last) = &r;
        first = &r;
    }
    void remove(message_request& r) noexcept {
        (r.before_ ? r.before_->next_ : first) = r.next_;
        (r.next_ ? r.next_->before_ : last) = r.before_;
    }
    /// visit may remove the request that it gets.
    template <class Visit>
    void for_each(Visit&& visit) {
        for (message_request *r = first, *next; r != nullptr; r = next) {
            next = r->next_;
            visit(*r);
        }
    }
};

} // namespace halocline::comm
