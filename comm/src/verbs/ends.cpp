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
    auto made = std::make_unique<link>();
    link& l = *made;
    l.peer = peer;
    const std::size_t pieces = (message_slots::message_bytes(send_bytes) - 1) / port_->largest_write + 1;
    if (pieces + 2 > static_cast<std::size_t>(port_->device.max_qp_wr)) {
        throw job_error("verbs (" + port_->name + "): a message of " +
                        std::to_string(message_slots::message_bytes(send_bytes)) + " bytes to rank " +
                        std::to_string(peer) + " is " + std::to_string(pieces) + " writes of at most " +
                        std::to_string(port_->largest_write) + " bytes (verbs_largest_write), the device queues " +
                        std::to_string(port_->device.max_qp_wr));
    }
    l.pieces = static_cast<std::uint32_t>(pieces);
    if (!building_ || building_->id != plan_id) building_ = std::make_shared<verbs_plan>(plan_id, port_->lib);
    l.plan = building_;
    l.allocate(memory, send_bytes, receive_bytes);
    l.travel_inline(pieces == 1 && l.send_message <= static_cast<std::size_t>(port_->options.inline_bytes));
    links_.push_back(std::move(made));
    try {
        l.region = port_->register_for_peers({l.block, l.block_bytes}, "for rank " + std::to_string(peer));
    } catch (...) {
        l.deallocate();
        links_.pop_back();
        throw;
    }
    ++l.plan->open_links;
    return l;
}

void verbs_world::open_values(verbs_end& end, std::span<const direct_write> writes) {
    link& l = linked(end);
    l.values.writes = direct_values::split(writes, port_->largest_write);
    const std::size_t count = l.values.writes.size();
    if (count + l.send_depth() > static_cast<std::size_t>(port_->device.max_qp_wr))
        throw job_error("verbs (" + port_->name + "): a direct message to rank " + std::to_string(l.peer) + " is " +
                        std::to_string(count) + " writes, the device queues " +
                        std::to_string(port_->device.max_qp_wr));
    l.chain_values();
}

/// Makes the work requests for values.writes, the last of which announces them all. Allocates only if there are more
/// than ever before.
void verbs_world::link::chain_values() {
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

void verbs_world::close(link& l) noexcept {
    if (std::exchange(l.closed, true)) return;
    --l.plan->open_links;
    // The queue pair first: after that nothing is written here any more.
    l.holds_memory =
        (l.queue_pair != nullptr && port_->lib.destroy_qp(l.queue_pair) != 0) || port_->lib.dereg_mr(l.region) != 0;
    if (!l.holds_memory) {
        l.deallocate();
        l.kept = nullptr;
    }
}

void verbs_world::sweep() noexcept {
    std::erase_if(bulk_pairs_, [](const std::unique_ptr<bulk_pair>& p) {
        if (p->link != nullptr) return false;
        p->poll();
        return p->ended();
    });
    for (const std::unique_ptr<link>& l : links_) {
        if (!l->released || l->closed) continue;
        if (l->joined) take_completions(*l->plan);
        if (!l->joined || l->ended()) close(*l);
    }
    // With the last of them the plan's queue goes, and with that whatever named them.
    std::erase_if(links_, [](const std::unique_ptr<link>& l) {
        return l->closed && !l->holds_memory && l->plan->open_links == 0;
    });
}

} // namespace halocline::comm
