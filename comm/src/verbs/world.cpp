// SPDX-License-Identifier: Apache-2.0
#include "../verbs_world.hpp"

#include "../wire.hpp"
#include "end.hpp"
#include "port.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <new>
#include <sched.h>
#include <sys/random.h>
#include <sys/resource.h>

namespace halocline::comm {
namespace {

// The immediate that comes with a write.
constexpr std::uint32_t message_tag = 0, greeting_tag = 1, farewell_tag = 2;

constexpr std::size_t round_up(std::size_t n) { return (n + 63) / 64 * 64; }

/// What the kernel lets this process lock, for the error of a registration.
std::string memlock_advice() {
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY)
        return "this process may lock any amount (ulimit -l): the device or the memory has no more";
    return "this process may lock " + std::to_string(limit.rlim_cur / 1024) +
           " KiB (ulimit -l), and other plans share that; raise it: ulimit -l unlimited, or memlock in "
           "/etc/security/limits.conf";
}

std::uint32_t random_psn() {
    std::uint32_t n = 0;
    if (getrandom(&n, sizeof n, 0) != sizeof n) throw error("getrandom gives no packet sequence number");
    return n & 0xffffff;
}

} // namespace

bool verbs_is_built() { return true; }

std::string verbs_present() {
    const verbs_library& lib = verbs_library::loaded();
    if (!lib.why_not.empty()) return "built in, but " + lib.why_not;
    const std::string names = device_names(lib);
    return names == "none" ? "built in, but this machine has no RDMA device (ibv_devices)" : names;
}

verbs_world::verbs_world(const verbs_options& options, const verbs_library* library)
    : at_(std::make_unique<port>(options, library != nullptr ? *library : verbs_library::loaded())) {}

verbs_world::~verbs_world() {
    for (auto& l : links_) close(*l);
}

std::string verbs_world::kind() const {
    const bool roce = at_->address.link_layer == IBV_LINK_LAYER_ETHERNET;
    return roce ? "RoCE" : at_->address.global ? "InfiniBand with GIDs" : "InfiniBand";
}

std::string verbs_world::address() const { return wire_writer().number(at_->address).take(); }

void verbs_world::connect(std::span<const std::string> addresses, int own_rank) {
    at_->own_rank = own_rank;
    at_->peers.clear();
    for (const std::string& bytes : addresses) at_->peers.push_back(wire_reader(bytes).number<verbs_address>());
}

verbs_world::link& verbs_world::linked(verbs_end& end) noexcept { return static_cast<link&>(end); }

verbs_end& verbs_world::open(std::pmr::memory_resource& memory, int peer, std::uint32_t plan_id, std::size_t send_bytes,
                             std::size_t receive_bytes) {
    sweep();
    auto made = std::make_unique<link>();
    link& l = *made;
    l.memory = &memory;
    l.peer = peer;
    l.message_bytes = sizeof(message_header) + send_bytes;
    l.receive_stride = round_up(sizeof(message_header) + receive_bytes);
    l.send_stride = round_up(l.message_bytes);
    l.block_bytes = 2 * l.receive_stride + l.send_stride;
    l.pieces = static_cast<std::uint32_t>((l.message_bytes - 1) / at_->largest_write + 1);
    if (l.pieces + 2 > static_cast<std::uint32_t>(at_->device.max_qp_wr)) {
        throw job_error("verbs (" + at_->name + "): a message of " + std::to_string(l.message_bytes) +
                        " bytes to rank " + std::to_string(peer) + " is " + std::to_string(l.pieces) +
                        " writes of at most " + std::to_string(at_->largest_write) +
                        " bytes (verbs_largest_write), the device queues " + std::to_string(at_->device.max_qp_wr));
    }
    if (!building_ || building_->id != plan_id) building_ = std::make_shared<verbs_plan>(plan_id, at_->lib);
    l.plan = building_;
    links_.push_back(std::move(made));
    try {
        make_memory(l);
    } catch (...) {
        links_.pop_back();
        throw;
    }
    return l;
}

void verbs_world::make_memory(link& l) {
    l.block = static_cast<std::byte*>(l.memory->allocate(l.block_bytes, alignof(message_header)));
    for (std::byte* message : {l.slots(), l.slots() + l.receive_stride, l.send_buffer()}) new (message) message_header;
    l.region = at_->lib.reg_mr(at_->domain, l.block, l.block_bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (l.region == nullptr) {
        const int why = errno;
        l.memory->deallocate(l.block, l.block_bytes, alignof(message_header));
        throw job_error("verbs (" + at_->name + "): registering " + std::to_string(l.block_bytes) + " bytes for rank " +
                        std::to_string(l.peer) + " (ibv_reg_mr): " + std::strerror(why) +
                        (why == ENOMEM || why == EAGAIN ? "; " + memlock_advice() : ""));
    }
}

void verbs_world::complete(std::uint32_t plan_id) {
    if (!building_ || building_->id != plan_id) return;
    std::vector<link*> links;
    for (const auto& l : links_) {
        if (l->plan == building_) links.push_back(l.get());
    }
    const auto entries = static_cast<std::size_t>(link::most_completions) * links.size();
    if (entries > static_cast<std::size_t>(at_->device.max_cqe)) {
        throw job_error("verbs (" + at_->name + "): a plan of " + std::to_string(links.size()) +
                        " channels needs a queue of " + std::to_string(entries) + " completions, the device has " +
                        std::to_string(at_->device.max_cqe));
    }
    building_->queue = at_->lib.create_cq(at_->context, static_cast<int>(entries), nullptr, nullptr, 0);
    if (building_->queue == nullptr) {
        throw job_error("verbs (" + at_->name + "): ibv_create_cq of " + std::to_string(entries) +
                        " entries: " + std::strerror(errno));
    }
    for (link* l : links) make_queue_pair(*l);
    building_ = nullptr;
}

void verbs_world::make_queue_pair(link& l) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = l.plan->queue;
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap.max_recv_wr = link::receive_depth;
    wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
    const bool small = l.pieces == 1 && l.message_bytes <= static_cast<std::size_t>(at_->options.inline_bytes);
    for (const bool inlined : {small, false}) {
        l.signal_every = inlined ? link::told_every : 1;
        l.room = inlined ? 2 * link::told_every : 1;
        wanted.cap.max_inline_data = inlined ? static_cast<std::uint32_t>(l.message_bytes) : 0;
        wanted.cap.max_send_wr = l.pieces * static_cast<std::uint32_t>(l.room) + 2;
        ibv_qp_init_attr given = wanted;
        l.queue_pair = at_->lib.create_qp(at_->domain, &given);
        // A device that can't take that much inline says so here, and only here.
        if (l.queue_pair != nullptr || !inlined) break;
    }
    const auto require = [&](bool fine, const char* call, int why) {
        if (fine) return;
        throw job_error("verbs (" + at_->name + "): " + call + " for rank " + std::to_string(l.peer) + ": " +
                        std::strerror(why) + (why == ENOMEM ? "; " + memlock_advice() : ""));
    };
    require(l.queue_pair != nullptr, "ibv_create_qp", errno);

    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = static_cast<std::uint8_t>(at_->options.port);
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    const int code =
        at_->lib.modify_qp(l.queue_pair, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    require(code == 0, "ibv_modify_qp to INIT", code);

    for (std::uint32_t i = 0; i < link::batch; ++i) {
        l.receives_chained[i].wr_id = l.id(link::receive);
        l.receives_chained[i].next = i + 1 < link::batch ? &l.receives_chained[i + 1] : nullptr;
    }
    for (std::uint32_t i = 0; i < link::receive_depth / link::batch; ++i) replenish(l);
    require(l.error == 0, "ibv_post_recv", -l.error);
    l.first_psn = random_psn();
}

std::string verbs_world::card(const verbs_end& end) const {
    const auto& l = static_cast<const link&>(end);
    return wire_writer()
        .number(l.queue_pair->qp_num)
        .number(l.first_psn)
        .number(l.region->rkey)
        .number(reinterpret_cast<std::uintptr_t>(l.block))
        .take();
}

void verbs_world::connect(verbs_end& end, const std::string& peer_card) {
    link& l = linked(end);
    wire_reader reader(peer_card);
    const auto peer_queue_pair = reader.number<std::uint32_t>();
    const auto peer_psn = reader.number<std::uint32_t>();
    l.peer_key = reader.number<std::uint32_t>();
    l.peer_block = reader.number<std::uint64_t>();
    const verbs_address& there = at_->peers.at(static_cast<std::size_t>(l.peer));

    const auto modify = [&](ibv_qp_attr& a, int mask, const char* state) {
        const int code = at_->lib.modify_qp(l.queue_pair, &a, mask);
        if (code == 0) return;
        throw job_error("verbs (" + at_->name + "): the queue pair for rank " + std::to_string(l.peer) +
                        " can't be made ready to " + state + " (ibv_modify_qp): " + std::strerror(code));
    };
    ibv_qp_attr to_receive{};
    to_receive.qp_state = IBV_QPS_RTR;
    to_receive.path_mtu = static_cast<ibv_mtu>(std::min(at_->address.mtu, there.mtu));
    to_receive.dest_qp_num = peer_queue_pair;
    to_receive.rq_psn = peer_psn;
    to_receive.min_rnr_timer = 12; // 0.64 ms
    to_receive.ah_attr.dlid = there.lid;
    to_receive.ah_attr.port_num = static_cast<std::uint8_t>(at_->options.port);
    to_receive.ah_attr.is_global = at_->address.global;
    to_receive.ah_attr.grh.dgid = there.gid;
    to_receive.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(at_->gid_index);
    to_receive.ah_attr.grh.hop_limit = 64;
    modify(to_receive,
           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
               IBV_QP_MIN_RNR_TIMER,
           "receive");
    ibv_qp_attr to_send{};
    to_send.qp_state = IBV_QPS_RTS;
    to_send.sq_psn = l.first_psn;
    to_send.timeout = 14; // 67 ms per try
    to_send.retry_cnt = 7;
    to_send.rnr_retry = 7; // without end: receives are there before they are needed, and waits have deadlines
    modify(to_send,
           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
               IBV_QP_MAX_QP_RD_ATOMIC,
           "send");

    for (std::uint32_t i = 0; i < 2; ++i) {
        l.slot[i].pieces.resize(l.pieces);
        l.slot[i].places.resize(l.pieces);
        shape(l, i, l.message_bytes);
    }
    l.joined = true;
}

void verbs_world::shape(link& l, std::size_t slot, std::size_t bytes) noexcept {
    link::message_writes& m = l.slot[slot];
    m.bytes = bytes;
    m.count = static_cast<std::uint32_t>((bytes - 1) / at_->largest_write + 1);
    const unsigned flags = l.room > 1 ? IBV_SEND_INLINE : 0;
    for (std::uint32_t i = 0; i < m.count; ++i) {
        const std::size_t start = i * at_->largest_write;
        const bool last = i + 1 == m.count;
        m.places[i] = {reinterpret_cast<std::uintptr_t>(l.send_buffer() + start),
                       static_cast<std::uint32_t>(std::min(at_->largest_write, bytes - start)), l.region->lkey};
        ibv_send_wr& w = m.pieces[i];
        w = {};
        w.wr_id = l.id(link::message);
        w.next = last ? nullptr : &m.pieces[i + 1];
        w.sg_list = &m.places[i];
        w.num_sge = 1;
        // Writes of a queue pair are placed in order: the last one announces all.
        w.opcode = last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
        w.send_flags = flags | (last && l.signal_every == 1 ? IBV_SEND_SIGNALED : 0);
        w.imm_data = htonl(message_tag);
        // The peer's slots are as large as what this end sends at most.
        w.wr.rdma.remote_addr = l.peer_block + slot * l.send_stride + start;
        w.wr.rdma.rkey = l.peer_key;
    }
}

void verbs_world::greet(verbs_end& end) noexcept {
    end.greeting_said = true;
    post_letter(linked(end), link::greeting, greeting_tag);
}

void verbs_world::say_farewell(verbs_end& end) noexcept {
    end.farewell_said = true;
    post_letter(linked(end), link::farewell, farewell_tag);
}

void verbs_world::post_letter(link& l, std::uint64_t kind, std::uint32_t tag) noexcept {
    ibv_send_wr w{};
    w.wr_id = l.id(static_cast<link::kind>(kind));
    w.opcode = IBV_WR_RDMA_WRITE_WITH_IMM; // of no bytes
    w.send_flags = IBV_SEND_SIGNALED;
    w.imm_data = htonl(tag);
    ibv_send_wr* bad = nullptr;
    const int code = ibv_post_send(l.queue_pair, &w, &bad);
    ++l.writes;
    if (code != 0) fail(l, -code, "ibv_post_send");
}

void verbs_world::send(verbs_end& end, std::uint64_t epoch, std::size_t bytes) noexcept {
    link& l = linked(end);
    link::message_writes& m = l.slot[epoch & 1];
    if (m.bytes != bytes) shape(l, epoch & 1, bytes);
    ++l.posted;
    if (l.signal_every > 1) { // then it is one piece
        m.pieces[0].send_flags =
            IBV_SEND_INLINE | (l.posted % link::told_every == 0 ? unsigned{IBV_SEND_SIGNALED} : 0U);
    }
    ibv_send_wr* bad = nullptr;
    const int code = ibv_post_send(l.queue_pair, m.pieces.data(), &bad);
    l.writes += m.count;
    if (code != 0) fail(l, -code, "ibv_post_send");
}

void verbs_world::replenish(link& l) noexcept {
    ibv_recv_wr* bad = nullptr;
    const int code = ibv_post_recv(l.queue_pair, l.receives_chained.data(), &bad);
    l.receives += link::batch;
    if (code != 0) fail(l, -code, "ibv_post_recv");
}

void verbs_world::poll(verbs_end& end) noexcept { take_completions(*linked(end).plan); }

void verbs_world::take_completions(verbs_plan& plan) noexcept {
    constexpr int most = 16;
    ibv_wc done[most];
    int n = most;
    while (n == most) {
        n = ibv_poll_cq(plan.queue, most, done);
        for (int i = 0; i < n; ++i) take(done[i].wr_id, done[i].status, done[i].imm_data, done[i].vendor_err);
    }
    if (n >= 0) return;
    for (auto& l : links_) {
        if (l->plan.get() == &plan) fail(*l, n, "ibv_poll_cq");
    }
}

void verbs_world::take(std::uint64_t id, int status, std::uint32_t immediate, std::uint32_t vendor_error) noexcept {
    link& l = link::of(id);
    ++l.completions;
    if (status != IBV_WC_SUCCESS) {
        if (l.error == 0) l.vendor_error = vendor_error;
        fail(l, status, nullptr);
        return;
    }
    switch (id & (link::kinds - 1)) {
    case link::message: l.done += l.signal_every; return;
    case link::greeting: l.greeting_done = true; return;
    case link::farewell: l.farewell_done = true; return;
    default: break;
    }
    switch (ntohl(immediate)) {
    case message_tag: ++l.came; break;
    case greeting_tag: l.greeted = true; break;
    case farewell_tag: l.farewell_came = true; break;
    default: fail(l, -EPROTO, "an immediate"); break;
    }
    if (++l.consumed == link::batch) {
        l.consumed = 0;
        replenish(l);
    }
}

void verbs_world::fail(link& l, int code, const char* call) noexcept {
    if (l.error != 0) return; // what follows the first is its consequence
    l.error = code;
    l.failed_call = call;
}

std::string verbs_world::describe(const verbs_end& end) const {
    const auto& l = static_cast<const link&>(end);
    const std::string where = "verbs (" + at_->name + "): ";
    if (l.failed_call != nullptr) return where + l.failed_call + ": " + std::strerror(-l.error);
    return where + at_->lib.wc_status_str(static_cast<ibv_wc_status>(l.error)) + " (vendor error " +
           std::to_string(l.vendor_error) + ")";
}

void verbs_world::release(verbs_end& end) noexcept { end.released = true; }

void verbs_world::close(link& l) noexcept {
    // The queue pair first: then nothing is written here any more.
    if (l.queue_pair != nullptr) at_->lib.destroy_qp(l.queue_pair);
    at_->lib.dereg_mr(l.region);
    l.memory->deallocate(l.block, l.block_bytes, alignof(message_header));
}

void verbs_world::sweep() noexcept {
    std::erase_if(links_, [&](const std::unique_ptr<link>& l) {
        if (!l->released) return false;
        if (l->joined) {
            take_completions(*l->plan);
            if (!l->ended()) return false;
        }
        close(*l);
        return true;
    });
}

void verbs_world::finish(const std::function<bool()>& give_up) noexcept {
    constexpr double most = 2; // seconds
    const auto done = [&](const std::unique_ptr<link>& l) {
        if (!l->joined) return true;
        take_completions(*l->plan);
        return l->ended();
    };
    const std::uint64_t since = ticks();
    while (!std::all_of(links_.begin(), links_.end(), done) && seconds(ticks() - since) < most && !give_up())
        sched_yield();
}

} // namespace halocline::comm
