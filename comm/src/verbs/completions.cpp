// SPDX-License-Identifier: Apache-2.0
// Completions, arrivals, and failures.
#include "end.hpp"
#include "port.hpp"
#include "tags.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <new>

namespace halocline::comm {

void verbs_world::poll(verbs_end& end) noexcept { take_completions(*linked(end).plan); }

void verbs_world::take_completions(verbs_plan& plan) noexcept {
    constexpr int most = 16;
    ibv_wc done[most];
    int n = most;
    while (n == most) {
        n = ibv_poll_cq(plan.queue, most, done);
        for (int i = 0; i < n; ++i) take(done[i]);
    }
    if (n >= 0) return;
    for (auto& l : links_) {
        if (l->plan.get() == &plan) fail(*l, -EIO, "ibv_poll_cq"); // it sets no errno
    }
}

void verbs_world::take(const ibv_wc& c) noexcept {
    link& l = link::of(c.wr_id);
    if (l.closed) return; // requests that were flushed when it failed
    ++l.completions;
    if (c.status != IBV_WC_SUCCESS) {
        if (l.error == 0) l.vendor_error = c.vendor_err;
        fail(l, c.status, nullptr);
        return;
    }
    switch (c.wr_id & (link::kinds - 1)) {
    case link::message: l.done += l.signal_every; return; // sends complete in order, so those before it are done, too
    case link::values_of: ++l.values_done; return;
    case link::greeting: l.greeting_delivered = true; return;
    case link::farewell: l.farewell_delivered = true; return;
    default: break;
    }
    // Otherwise a write of the peer has consumed a receive.
    arrive(l, ntohl(c.imm_data), c.byte_len);
    if (++l.consumed == link::batch) {
        l.consumed = 0;
        replenish(l);
    }
}

void verbs_world::arrive(link& l, std::uint32_t immediate, std::uint32_t bytes) noexcept {
    switch (immediate & verbs_tags::mask) {
    case verbs_tags::payload: {
        // Reconstructs the label that the peer would have sent; the plan is that of the queue pair, as the greeting has
        // proved.
        const std::uint64_t epoch = verbs_tags::number_near(l.came + 1, immediate);
        std::byte* const place = l.slot(epoch & 1) + message_slots::label_at;
        auto& label = *std::launder(reinterpret_cast<message_label*>(place));
        label.fill(l.plan->id, 0, bytes, 0);
        label.epoch.store(epoch, std::memory_order_relaxed);
        ++l.came;
        break;
    }
    case verbs_tags::labelled: ++l.came; break;
    case verbs_tags::parts: ++l.parts_came[verbs_tags::number_near(0, immediate) & 1]; break;
    case verbs_tags::values: ++l.values_came[verbs_tags::number_near(0, immediate) & 1]; break;
    case verbs_tags::greeting:
        if (verbs_tags::number_near(l.plan->id, immediate) != l.plan->id)
            fail(l, -EPROTO, "a greeting of another plan");
        l.greeted = true;
        break;
    default: l.farewell_came = true; break;
    }
}

void verbs_world::fail(link& l, int code, const char* call) noexcept {
    if (l.error != 0) return; // later errors are consequences of the first
    l.error = code;
    l.failed_call = call;
}

std::string verbs_world::describe(const verbs_end& end) const {
    const auto& l = static_cast<const link&>(end);
    return port_->explain(l.error, l.failed_call, l.vendor_error, l.peer);
}

} // namespace halocline::comm
