// SPDX-License-Identifier: Apache-2.0
// A table of libibverbs' functions whose one device is this process: writes are copies, completions arrive at once, and
// everything posted is counted. For tests and benches of what transport `verbs` asks of a device.
#pragma once

#include "verbs/library.hpp"
#include "verbs/world.hpp"

#include <halocline/comm/detail/verbs_channel.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory_resource>
#include <string>

namespace halocline_test {

/// What was posted since the last clear.
struct posted_work {
    std::uint64_t send_calls = 0, writes = 0, with_immediate = 0, signalled = 0, inlined = 0, bytes = 0;
    std::uint64_t receive_calls = 0, receives = 0, polls = 0, registered = 0, deregistered = 0;
    std::uint64_t fork_inits = 0;
};
inline posted_work posted;
/// False, for a bench that times only the call: ibv_post_send just counts.
inline bool loop_delivers = true;
/// False: completion queues fail.
inline bool loop_completes = true;
/// How many bytes can be registered at a time, and how many are.
inline constexpr std::size_t any_amount = std::numeric_limits<std::size_t>::max();
inline std::size_t loop_registers = any_amount, loop_registered = 0;
/// False: no completion queue can be made.
inline bool loop_queues = true;
/// How all requests to send complete. Unless that is success, nothing is delivered.
inline ibv_wc_status loop_sends = IBV_WC_SUCCESS;
/// What ibv_fork_init and ibv_is_fork_initialized return.
inline int loop_forks = 0, loop_fork_status = 0;

namespace loop_device {

struct queue : ibv_cq {
    std::size_t room = 0, requests = 0; ///< for completions; work requests of all its queue pairs
    std::deque<ibv_wc> done;
};
struct pair : ibv_qp {
    std::deque<std::uint64_t> receives; ///< ids
    pair* peer = nullptr;
    ibv_qp_attr sends{}; ///< its attributes when it was made ready to send
};
inline ibv_context context{};
inline ibv_device device{};
inline ibv_pd domain{};
inline std::deque<pair> pairs; ///< queue pair n is pairs[n - 1]; they are never removed
inline bool fork_safe = false; ///< since loop_library()
inline int open_queues = 0, open_domains = 0;

inline void complete(ibv_cq* to, std::uint64_t id, ibv_wc_opcode what, std::uint32_t immediate, std::uint32_t bytes,
                     ibv_wc_status how = IBV_WC_SUCCESS) {
    ibv_wc c{};
    c.wr_id = id;
    c.status = how;
    c.opcode = what;
    c.imm_data = immediate;
    c.byte_len = bytes;
    static_cast<queue*>(to)->done.push_back(c);
}

inline int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
    ++posted.send_calls;
    if (!loop_delivers) return 0;
    pair& from = *static_cast<pair*>(qp);
    for (ibv_send_wr* w = first; w != nullptr; w = w->next) {
        if (loop_sends != IBV_WC_SUCCESS) {
            complete(from.send_cq, w->wr_id, IBV_WC_RDMA_WRITE, 0, 0, loop_sends);
            continue;
        }
        ++posted.writes;
        posted.signalled += (w->send_flags & IBV_SEND_SIGNALED) != 0;
        posted.inlined += (w->send_flags & IBV_SEND_INLINE) != 0;
        std::uint32_t bytes = 0;
        for (int i = 0; i < w->num_sge; ++i) {
            const auto* source = reinterpret_cast<const std::byte*>(w->sg_list[i].addr);
            std::copy_n(source, w->sg_list[i].length, reinterpret_cast<std::byte*>(w->wr.rdma.remote_addr));
            bytes += w->sg_list[i].length;
        }
        posted.bytes += bytes;
        if (w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
            ++posted.with_immediate;
            if (from.peer->receives.empty()) { // a real device would wait and retry
                *bad = w;
                return EIO;
            }
            complete(from.peer->recv_cq, from.peer->receives.front(), IBV_WC_RECV_RDMA_WITH_IMM, w->imm_data, bytes);
            from.peer->receives.pop_front();
        }
        if (w->send_flags & IBV_SEND_SIGNALED) complete(from.send_cq, w->wr_id, IBV_WC_RDMA_WRITE, 0, 0);
    }
    return 0;
}

inline int post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr**) {
    ++posted.receive_calls;
    for (ibv_recv_wr* w = first; w != nullptr; w = w->next) {
        ++posted.receives;
        static_cast<pair*>(qp)->receives.push_back(w->wr_id);
    }
    return 0;
}

inline int poll_cq(ibv_cq* cq, int most, ibv_wc* out) {
    ++posted.polls;
    if (!loop_completes) return -1;
    auto& done = static_cast<queue*>(cq)->done;
    int n = 0;
    for (; n < most && !done.empty(); ++n, done.pop_front()) out[n] = done.front();
    return n;
}

/// One device with one active port, 1.
inline void add_device(halocline::comm::verbs_library& l) {
    l.fork_init = [] {
        ++posted.fork_inits;
        fork_safe = loop_forks == 0;
        return loop_forks;
    };
    l.is_fork_initialized = [] {
        fork_safe = fork_safe || loop_fork_status == 2; // IBV_FORK_UNNEEDED
        return loop_fork_status;
    };
    l.get_device_list = [](int* count) {
        static ibv_device* list[] = {&device, nullptr};
        *count = 1;
        return list;
    };
    l.free_device_list = [](ibv_device**) {};
    l.get_device_name = [](ibv_device*) -> const char* { return "loop0"; };
    l.open_device = [](ibv_device*) { return &context; };
    l.close_device = [](ibv_context*) { return 0; };
    l.query_device = [](ibv_context*, ibv_device_attr* a) {
        a->max_qp_wr = 1024;
        a->max_cqe = 1 << 16;
        return 0;
    };
    l.query_port = [](ibv_context*, std::uint8_t number, _compat_ibv_port_attr* old) {
        if (number != 1) return EINVAL;
        auto& a = *reinterpret_cast<ibv_port_attr*>(old);
        a.state = IBV_PORT_ACTIVE;
        a.active_mtu = IBV_MTU_4096;
        a.max_msg_sz = 1u << 31;
        a.lid = 1;
        a.link_layer = IBV_LINK_LAYER_INFINIBAND;
        return 0;
    };
    l.query_gid_ex = [](ibv_context*, std::uint32_t, std::uint32_t, ibv_gid_entry*, std::uint32_t, std::size_t) {
        return ENODATA;
    };
}

/// Queue pairs, whose requests complete at once, and completion queues.
inline void add_queues(halocline::comm::verbs_library& l) {
    l.create_cq = [](ibv_context*, int entries, void*, ibv_comp_channel*, int) -> ibv_cq* {
        if (!loop_queues) {
            errno = ENOMEM;
            return nullptr;
        }
        ++open_queues;
        auto* q = new queue;
        q->room = static_cast<std::size_t>(entries);
        q->context = &context;
        return q;
    };
    l.destroy_cq = [](ibv_cq* q) {
        --open_queues;
        delete static_cast<queue*>(q);
        return 0;
    };
    l.create_qp = [](ibv_pd*, ibv_qp_init_attr* wanted) -> ibv_qp* {
        pair& p = pairs.emplace_back();
        p.context = &context;
        p.send_cq = wanted->send_cq;
        p.recv_cq = wanted->recv_cq;
        p.qp_num = static_cast<std::uint32_t>(pairs.size());
        static_cast<queue*>(p.send_cq)->requests += wanted->cap.max_send_wr;
        static_cast<queue*>(p.recv_cq)->requests += wanted->cap.max_recv_wr;
        return &p;
    };
    l.modify_qp = [](ibv_qp* qp, ibv_qp_attr* a, int mask) {
        if (mask & IBV_QP_DEST_QPN) static_cast<pair*>(qp)->peer = &pairs[a->dest_qp_num - 1];
        if (mask & IBV_QP_RETRY_CNT) static_cast<pair*>(qp)->sends = *a;
        return 0;
    };
    l.destroy_qp = [](ibv_qp*) { return 0; };
    l.wc_status_str = [](ibv_wc_status) -> const char* { return "a status"; };
}

/// Memory, which is registered unless the test forbids it or a child of fork() could take it away.
inline void add_memory(halocline::comm::verbs_library& l) {
    l.alloc_pd = [](ibv_context*) {
        ++open_domains;
        return &domain;
    };
    l.dealloc_pd = [](ibv_pd*) {
        --open_domains;
        return 0;
    };
    l.reg_mr = [](ibv_pd*, void*, std::size_t bytes, int) -> ibv_mr* {
        if (!fork_safe || bytes > loop_registers || loop_registered > loop_registers - bytes) {
            errno = fork_safe ? ENOMEM : EPERM;
            return nullptr;
        }
        ++posted.registered;
        loop_registered += bytes;
        auto* const region = new ibv_mr{};
        region->length = bytes;
        return region;
    };
    l.dereg_mr = [](ibv_mr* region) {
        ++posted.deregistered;
        loop_registered -= region->length;
        delete region;
        return 0;
    };
}

} // namespace loop_device

inline halocline::comm::verbs_library loop_library() {
    using namespace loop_device;
    context.ops.post_send = post_send;
    context.ops.post_recv = post_recv;
    context.ops.poll_cq = poll_cq;
    fork_safe = false;
    halocline::comm::verbs_library l;
    add_device(l);
    add_queues(l);
    add_memory(l);
    return l;
}

/// The link_timeout of every job here.
inline constexpr std::chrono::milliseconds loop_link_timeout{5'000};

/// Two ranks in this process with a channel between them, both ends greeted.
struct loop_pair {
    halocline::comm::verbs_library library = loop_library();
    halocline::comm::verbs_world here, there;
    halocline::comm::verbs_channel to, from;

    loop_pair(std::size_t bytes, const halocline::comm::verbs_options& options, std::uint32_t plan_there = 1)
        : here(options, loop_link_timeout, &library), there(options, loop_link_timeout, &library),
          to(end(here, 0, bytes, 1)), from(end(there, 1, bytes, plan_there)) {
        to.connect(from.card());
        from.connect(to.card());
        for (int look = 0; look < 2; ++look) { // the first one sends the greetings
            static_cast<void>(to.connected());
            static_cast<void>(from.connected());
        }
        posted = {};
    }

  private:
    halocline::comm::verbs_channel end(halocline::comm::verbs_world& world, int rank, std::size_t bytes,
                                       std::uint32_t plan) {
        const std::string addresses[] = {here.address(), there.address()};
        world.connect(addresses, rank);
        halocline::comm::verbs_channel channel(world, *std::pmr::new_delete_resource(), 0, 1 - rank, plan, bytes,
                                               bytes);
        world.complete(plan);
        return channel;
    }
};

} // namespace halocline_test
