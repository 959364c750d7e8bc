// SPDX-License-Identifier: Apache-2.0
// An end's memory, its registration, and how long it lives.
#include "bulk.hpp"
#include "end.hpp"
#include "port.hpp"

#include <halocline/base/error.hpp>

#include <utility>

namespace halocline::comm {

verbs_end& verbs_world::open(std::pmr::memory_resource& memory, int peer, std::uint32_t plan_id, std::size_t send_bytes,
                             std::size_t receive_bytes) {
    sweep();
    auto made = std::make_unique<connected_end>();
    connected_end& e = *made;
    e.peer = peer;
    const std::size_t pieces = (message_slots::message_bytes(send_bytes) - 1) / port_->largest_write + 1;
    if (pieces + 2 > static_cast<std::size_t>(port_->device.max_qp_wr)) {
        throw job_error("verbs (" + port_->name + "): a message of " +
                        std::to_string(message_slots::message_bytes(send_bytes)) + " bytes to rank " +
                        std::to_string(peer) + " is " + std::to_string(pieces) + " writes of at most " +
                        std::to_string(port_->largest_write) + " bytes (verbs_largest_write), the device queues " +
                        std::to_string(port_->device.max_qp_wr));
    }
    e.pieces = static_cast<std::uint32_t>(pieces);
    if (!building_ || building_->id != plan_id) building_ = std::make_shared<verbs_plan>(plan_id, port_->lib);
    e.plan = building_;
    e.allocate(memory, send_bytes, receive_bytes);
    e.travel_inline(pieces == 1 && e.send_message <= static_cast<std::size_t>(port_->options.inline_bytes));
    ends_.push_back(std::move(made));
    try {
        e.region = port_->register_for_peers({e.block, e.block_bytes}, "for rank " + std::to_string(peer));
    } catch (...) {
        e.deallocate();
        ends_.pop_back();
        throw;
    }
    ++e.plan->open_ends;
    return e;
}

void verbs_world::open_values(verbs_end& end, std::span<const direct_write> writes) {
    connected_end& e = connected(end);
    e.values.writes = direct_values::split(writes, port_->largest_write);
    const std::size_t count = e.values.writes.size();
    if (count + e.send_depth() > static_cast<std::size_t>(port_->device.max_qp_wr))
        throw job_error("verbs (" + port_->name + "): a direct message to rank " + std::to_string(e.peer) + " is " +
                        std::to_string(count) + " writes, the device queues " +
                        std::to_string(port_->device.max_qp_wr));
    e.chain_values();
}

/// Makes the work requests for values.writes, the last of which announces them all. Allocates only if there are more
/// than ever before.
void verbs_world::connected_end::chain_values() {
    const std::size_t count = values.writes.size();
    value_writes.resize(count);
    value_places.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        const bool last = i + 1 == count;
        ibv_send_wr& w = value_writes[i];
        w = {};
        w.wr_id = id(values_of);
        w.next = last ? nullptr : &value_writes[i + 1];
        w.sg_list = &value_places[i];
        w.num_sge = 1;
        w.opcode = last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
        w.send_flags = last ? unsigned{IBV_SEND_SIGNALED} : 0U;
    }
}

void verbs_world::close(connected_end& e) noexcept {
    if (std::exchange(e.closed, true)) return;
    --e.plan->open_ends;
    // The queue pair first: after that nothing is written here any more.
    e.holds_memory =
        (e.queue_pair != nullptr && port_->lib.destroy_qp(e.queue_pair) != 0) || port_->lib.dereg_mr(e.region) != 0;
    if (!e.holds_memory) {
        e.deallocate();
        e.kept = nullptr;
    }
}

void verbs_world::sweep() noexcept {
    std::erase_if(bulk_pairs_, [](const std::unique_ptr<bulk_pair>& p) {
        if (p->link != nullptr) return false;
        p->poll();
        return p->ended();
    });
    for (const std::unique_ptr<connected_end>& e : ends_) {
        if (!e->released || e->closed) continue;
        if (e->joined) take_completions(*e->plan);
        if (!e->joined || e->ended()) close(*e);
    }
    // With the last of them the plan's queue goes, and with that whatever named them.
    std::erase_if(ends_, [](const std::unique_ptr<connected_end>& e) {
        return e->closed && !e->holds_memory && e->plan->open_ends == 0;
    });
}

} // namespace halocline::comm
