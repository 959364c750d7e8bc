// SPDX-License-Identifier: Apache-2.0
// The queue pair of a link for large messages: making it, posting work, polling completions, closing it.
#include "bulk.hpp"
#include "locked_memory.hpp"

#include <halocline/base/error.hpp>

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>

namespace halocline::comm {

verbs_world::bulk_pair::bulk_pair(port& port_here, int peer) : own_port(port_here) {
    constexpr std::size_t entries = 2 * depth + 1; // receives, writes, the farewell
    const std::string what_for = "for large messages to and from rank " + std::to_string(peer);
    completions = own_port.make_queue(entries, what_for);
    queue_pair = own_port.with_room([&] {
        ibv_qp_init_attr wanted{};
        wanted.send_cq = wanted.recv_cq = completions;
        wanted.qp_type = IBV_QPT_RC;
        wanted.cap = {
            .max_send_wr = depth + 1, .max_recv_wr = depth, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
        return own_port.lib.create_qp(own_port.domain, &wanted);
    });
    if (queue_pair == nullptr) {
        const int why = errno;
        own_port.lib.destroy_cq(completions);
        throw job_error("verbs (" + own_port.name + "): a queue pair of " + std::to_string(depth) + " writes " +
                        what_for + " (ibv_create_qp): " + std::strerror(why) + memlock_advice_if(why));
    }
    try {
        own_port.initialise(queue_pair, peer);
        receive(depth);
        if (error != 0) throw job_error(own_port.explain(error, failed_call, vendor_error, peer));
    } catch (...) {
        close();
        own_port.lib.destroy_cq(completions);
        throw;
    }
}

verbs_world::bulk_pair::~bulk_pair() {
    close();
    own_port.lib.destroy_cq(completions);
}

void verbs_world::bulk_pair::close() noexcept {
    if (queue_pair == nullptr) return;
    // If that fails, the destructor tries again.
    if (own_port.lib.destroy_qp(queue_pair) == 0) queue_pair = nullptr;
    fail(-ECANCELED, "the job has ended, or the device didn't let go of memory");
}

void verbs_world::bulk_pair::write(std::uint32_t record, ibv_sge from, std::uint64_t to, std::uint32_t key) noexcept {
    if (error != 0) return;
    ibv_send_wr w{};
    w.wr_id = record;
    w.sg_list = &from;
    w.num_sge = from.length > 0 ? 1 : 0;
    w.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    w.send_flags = IBV_SEND_SIGNALED;
    w.imm_data = htonl(record);
    w.wr.rdma.remote_addr = to;
    w.wr.rdma.rkey = key;
    ibv_send_wr* bad = nullptr;
    if (const int code = ibv_post_send(queue_pair, &w, &bad); code != 0) fail(-code, "ibv_post_send");
}

/// Each write of the peer consumes a receive; without one the device makes the peer wait and retry.
void verbs_world::bulk_pair::receive(std::uint32_t count) noexcept {
    for (ibv_recv_wr w{}, *bad = nullptr; count > 0 && error == 0; --count)
        if (const int code = ibv_post_recv(queue_pair, &w, &bad); code != 0) fail(-code, "ibv_post_recv");
}

void verbs_world::bulk_pair::poll() noexcept {
    constexpr int most = 16;
    ibv_wc done[most];
    for (int n = most; n == most && queue_pair != nullptr;) {
        n = ibv_poll_cq(completions, most, done);
        for (int i = 0; i < n; ++i) take(done[i]);
        if (n < 0) fail(-EIO, "ibv_poll_cq"); // it sets no errno
    }
}

void verbs_world::bulk_pair::take(const ibv_wc& c) noexcept {
    if (c.status != IBV_WC_SUCCESS) {
        if (error == 0) vendor_error = c.vendor_err;
        return fail(c.status, nullptr);
    }
    const bool came = (c.opcode & IBV_WC_RECV) != 0;
    const auto record = came ? ntohl(c.imm_data) : static_cast<std::uint32_t>(c.wr_id);
    if (came) receive(1);
    if (record == farewell) {
        (came ? farewell_came : farewell_delivered) = true;
    } else if (record > farewell) {
        fail(-EPROTO, "an immediate");
    } else if (link != nullptr) {
        came ? link->arrived(record) : link->delivered(record);
    }
}

void verbs_world::bulk_pair::fail(int code, const char* call) noexcept {
    if (error != 0) return; // later errors are consequences of the first
    error = code;
    failed_call = call;
}

} // namespace halocline::comm
