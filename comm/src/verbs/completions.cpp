// SPDX-License-Identifier: Apache-2.0
// Completions, arrivals, and failures.
#include "end.hpp"
#include "port.hpp"
#include "tags.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <new>

namespace halocline::comm {

void verbs_world::poll(verbs_end& end) noexcept { take_completions(*connected(end).plan); }

void verbs_world::take_completions(verbs_plan& plan) noexcept {
    constexpr int most = 16;
    ibv_wc done[most];
    int n = most;
    while (n == most) {
        n = ibv_poll_cq(plan.queue, most, done);
        for (int i = 0; i < n; ++i) take(done[i]);
    }
    if (n >= 0) return;
    for (auto& e : ends_) {
        if (e->plan.get() == &plan) fail(*e, -EIO, "ibv_poll_cq"); // it sets no errno
    }
}

void verbs_world::take(const ibv_wc& c) noexcept {
    connected_end& e = connected_end::of(c.wr_id);
    if (e.closed) return; // requests that were flushed when it failed
    ++e.completions;
    if (c.status != IBV_WC_SUCCESS) {
        if (e.error == 0) e.vendor_error = c.vendor_err;
        fail(e, c.status, nullptr);
        return;
    }
    switch (c.wr_id & (connected_end::kinds - 1)) {
    // Sends complete in order, so those before it are done, too.
    case connected_end::message: e.done += e.messages_per_signal; return;
    case connected_end::values_of: ++e.values_done; return;
    case connected_end::greeting: e.greeting_delivered = true; return;
    case connected_end::farewell: e.farewell_delivered = true; return;
    default: break;
    }
    // Otherwise a write of the peer has consumed a receive.
    arrive(e, ntohl(c.imm_data), c.byte_len);
    if (++e.consumed == connected_end::batch) {
        e.consumed = 0;
        replenish(e);
    }
}

void verbs_world::arrive(connected_end& e, std::uint32_t immediate, std::uint32_t bytes) noexcept {
    switch (immediate & verbs_tags::mask) {
    case verbs_tags::payload: {
        // Reconstructs the label that the peer would have sent; the plan is that of the queue pair, as the greeting has
        // proved.
        const std::uint64_t epoch = verbs_tags::number_near(e.came + 1, immediate);
        std::byte* const place = e.slot(epoch & 1) + message_slots::label_at;
        auto& label = *std::launder(reinterpret_cast<message_label*>(place));
        label.fill(e.plan->id, 0, bytes, 0);
        label.epoch.store(epoch, std::memory_order_relaxed);
        ++e.came;
        break;
    }
    case verbs_tags::labelled: ++e.came; break;
    case verbs_tags::parts: ++e.parts_came[verbs_tags::number_near(0, immediate) & 1]; break;
    case verbs_tags::values: ++e.values_came[verbs_tags::number_near(0, immediate) & 1]; break;
    case verbs_tags::greeting:
        if (verbs_tags::number_near(e.plan->id, immediate) != e.plan->id)
            fail(e, -EPROTO, "a greeting of another plan");
        e.greeted = true;
        break;
    default: e.farewell_came = true; break;
    }
}

void verbs_world::fail(connected_end& e, int code, const char* call) noexcept {
    if (e.error != 0) return; // later errors are consequences of the first
    e.error = code;
    e.failed_call = call;
}

std::string verbs_world::describe(const verbs_end& end) const {
    const auto& e = static_cast<const connected_end&>(end);
    return port_->explain(e.error, e.failed_call, e.vendor_error, e.peer);
}

} // namespace halocline::comm
