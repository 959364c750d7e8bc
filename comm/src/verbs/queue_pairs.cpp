// SPDX-License-Identifier: Apache-2.0
// A plan's completion queue and its queue pairs, from creation to ready to send.
#include "control/random_value.hpp"
#include "control/wire_format.hpp"
#include "end.hpp"
#include "locked_memory.hpp"
#include "port.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace halocline::comm {

std::uint32_t random_psn() { return random_value<std::uint32_t>() & 0xffffff; }

void verbs_world::complete(std::uint32_t plan_id) {
    if (!building_ || building_->id != plan_id) return;
    std::vector<connected_end*> ends;
    std::size_t entries = 0;
    for (const auto& e : ends_) {
        if (e->plan != building_) continue;
        ends.push_back(e.get());
        entries += e->most_completions();
    }
    if (entries > static_cast<std::size_t>(port_->device.max_cqe)) {
        throw job_error("verbs (" + port_->name + "): a plan of " + std::to_string(ends.size()) +
                        " channels needs a queue of " + std::to_string(entries) + " completions, the device has " +
                        std::to_string(port_->device.max_cqe));
    }
    building_->queue = port_->make_queue(entries, "for a plan of " + std::to_string(ends.size()) + " channels");
    for (connected_end* e : ends) make_queue_pair(*e);
    building_ = nullptr;
}

void verbs_world::make_queue_pair(connected_end& e) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = e.plan->queue;
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap.max_recv_wr = connected_end::receive_depth;
    wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
    for (const bool inlined : {e.room > 1, false}) {
        e.travel_inline(inlined);
        wanted.cap.max_inline_data = inlined ? static_cast<std::uint32_t>(e.send_message) : 0;
        wanted.cap.max_send_wr = e.send_depth();
        const auto create = [&] {
            ibv_qp_init_attr given = wanted;
            return port_->lib.create_qp(port_->domain, &given);
        };
        e.queue_pair = inlined ? create() : port_->with_room(create);
        // A device that can't take that much inline data says so here, and only here.
        if (e.queue_pair != nullptr || !inlined) break;
    }
    const auto require = [&](bool fine, const char* call, int why) {
        if (fine) return;
        throw job_error("verbs (" + port_->name + "): " + call + " for rank " + std::to_string(e.peer) + ": " +
                        std::strerror(why) + memlock_advice_if(why));
    };
    require(e.queue_pair != nullptr, "ibv_create_qp", errno);

    port_->initialise(e.queue_pair, e.peer);

    for (std::uint32_t i = 0; i < connected_end::batch; ++i) {
        e.receives_chained[i].wr_id = e.id(connected_end::receive);
        e.receives_chained[i].next = i + 1 < connected_end::batch ? &e.receives_chained[i + 1] : nullptr;
    }
    for (std::uint32_t i = 0; i < connected_end::receive_depth / connected_end::batch; ++i) replenish(e);
    require(e.error == 0, "ibv_post_recv", -e.error);
    e.first_psn = random_psn();
}

void verbs_world::port::initialise(ibv_qp* queue_pair, int peer) const {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = static_cast<std::uint8_t>(options.port);
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    const int code =
        lib.modify_qp(queue_pair, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (code == 0) return;
    throw job_error("verbs (" + name + "): ibv_modify_qp to INIT for rank " + std::to_string(peer) + ": " +
                    std::strerror(code));
}

void verbs_world::port::connect(ibv_qp* queue_pair, int peer, std::uint32_t peer_queue_pair, std::uint32_t peer_psn,
                                std::uint32_t own_psn) const {
    const verbs_address& there = peers.at(static_cast<std::size_t>(peer));

    const auto modify = [&](ibv_qp_attr& a, int mask, const char* state) {
        const int code = lib.modify_qp(queue_pair, &a, mask);
        if (code == 0) return;
        throw job_error("verbs (" + name + "): the queue pair for rank " + std::to_string(peer) +
                        " can't be made ready to " + state + " (ibv_modify_qp): " + std::strerror(code));
    };
    ibv_qp_attr to_receive{};
    to_receive.qp_state = IBV_QPS_RTR;
    to_receive.path_mtu = static_cast<ibv_mtu>(std::min(address.mtu, there.mtu));
    to_receive.dest_qp_num = peer_queue_pair;
    to_receive.rq_psn = peer_psn;
    to_receive.min_rnr_timer = 12; // 0.64 ms
    to_receive.ah_attr.dlid = there.lid;
    to_receive.ah_attr.port_num = static_cast<std::uint8_t>(options.port);
    to_receive.ah_attr.is_global = address.global;
    to_receive.ah_attr.grh.dgid = there.gid;
    to_receive.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index);
    to_receive.ah_attr.grh.hop_limit = 64;
    modify(to_receive,
           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
               IBV_QP_MIN_RNR_TIMER,
           "receive");
    ibv_qp_attr to_send{};
    to_send.qp_state = IBV_QPS_RTS;
    to_send.sq_psn = own_psn;
    to_send.timeout = retries.exponent;
    to_send.retry_cnt = verbs_retries::tries - 1;
    // 7 means no limit. A write of a plan always finds a receive, by protocol. One of a large message may not: receives
    // are replaced when the peer polls, and it may compute for as long as it likes. Waits have deadlines, and a dead
    // rank sends no "not ready", so retry_cnt ends the write.
    to_send.rnr_retry = 7;
    modify(to_send,
           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
               IBV_QP_MAX_QP_RD_ATOMIC,
           "send");
}

namespace {

struct end_card {
    std::uint32_t queue_pair = 0, first_psn = 0;
    std::uint64_t key = 0, block = 0; // its address at the writer
};

} // namespace

std::string verbs_world::card(const verbs_end& end) const {
    const auto& e = static_cast<const connected_end&>(end);
    return to_wire(
        end_card{e.queue_pair->qp_num, e.first_psn, e.region->rkey, reinterpret_cast<std::uintptr_t>(e.block)});
}

void verbs_world::connect(verbs_end& end, const std::string& peer_card) {
    connected_end& e = connected(end);
    const auto theirs = from_wire<end_card>(peer_card);
    e.peer_key = static_cast<std::uint32_t>(theirs.key);
    e.peer_block = theirs.block;
    port_->connect(e.queue_pair, e.peer, theirs.queue_pair, theirs.first_psn, e.first_psn);
    for (std::uint32_t i = 0; i < 2; ++i) {
        e.prepared[i].pieces.resize(e.pieces);
        e.prepared[i].places.resize(e.pieces);
        shape(e, i, 0, e.send_message);
    }
}

} // namespace halocline::comm
