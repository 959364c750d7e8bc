// SPDX-License-Identifier: Apache-2.0
#include "near_window_end.hpp"

#include "control/wire_format.hpp"
#include "node/peer_stores.hpp"

#include <halocline/comm/detail/claim_lines.hpp>
#include <halocline/comm/detail/shared_copy.hpp>

#include <new>
#include <utility>

namespace halocline::comm {
namespace {

/// From this size on, help from a waiting receiver saves more than it costs: the counter's line or, where the receiver
/// reads the source by a system call, that call (docs/decisions/0044-windows-copied-by-both.md,
/// 0047-ordinary-memory.md).
constexpr std::size_t least_helped = 16 * 1024, least_helped_by_system = 64 * 1024;

struct near_window_card {
    std::uint64_t block = 0; // where it is in the writer's slab
    buffer_place buffer;
    memory_probe::told probe;
};

} // namespace

near_window_end::near_window_end(job_core& core, const window_request& r, keyed_letters::name never_connected)
    : core_(core), request_(r), never_connected_(std::move(never_connected)),
      peer_accesses_buffer_(r.bytes() >= (r.sends ? least_helped : largest_in_slot + 1) &&
                            core.memory->contains(r.buffer)),
      block_(core, shm_channel::block_bytes(peer_accesses_buffer_ ? 0 : r.bytes_in()) +
                       (peer_accesses_buffer_ && !r.sends ? sizeof(helped_copy) : 0)) {
    new (block_.start()) control_line;
    if (!peer_accesses_buffer_) return;
    if (!r.sends) new (block_.start() + sizeof(control_line)) helped_copy;
    core.memory->pin(r.buffer);
}

near_window_end::~near_window_end() {
    if (core_.in_forked_child()) return;
    const closing_scope closing(core_.own_activity);
    if (channel_) channel_->close();
    if (peer_never_connects_) { // nobody will say farewell
        if (peer_accesses_buffer_) core_.memory->unpin(request_.buffer);
        return;
    }
    parked_block until{.lines = {reinterpret_cast<const control_line*>(block_.start())},
                       .or_letter = std::move(never_connected_)};
    if (peer_accesses_buffer_) until.pinned.push_back(request_.buffer);
    block_.park(std::move(until));
}

void near_window_end::tell(wire_writer& card) const {
    const std::uint64_t block = place_of(core_, block_.start()).address;
    write_fields(card, near_window_card{block, place_of(core_, request_.buffer), probe_.card()});
}

void near_window_end::connect(wire_reader& card, int peer, std::uint32_t id) {
    std::byte* const base = core_.peer_base[peer];
    const auto [block, theirs, probe] = read_fields<near_window_card>(card);
    std::byte* const remote_block = base + block;
    const buffer_place own = place_of(core_, request_.buffer);
    const std::size_t bytes = request_.bytes();
    const buffer_place& source = request_.sends ? own : theirs;
    const buffer_place& target = request_.sends ? theirs : own;
    into_receivers_buffer_ = bytes > largest_in_slot && target.in_slab != 0;
    const std::size_t out = into_receivers_buffer_ ? 0 : request_.bytes_out(),
                      in = into_receivers_buffer_ ? 0 : request_.bytes_in();
    channel_.emplace(std::size_t{0}, peer, id, out, in, remote_block, block_.start());
    helped_from_ = source.in_slab != 0 ? least_helped : least_helped_by_system;
    if (into_receivers_buffer_ && source.address != 0 && bytes >= helped_from_)
        helped_ =
            reinterpret_cast<helped_copy*>((request_.sends ? remote_block : block_.start()) + sizeof(control_line));
    if (!request_.sends) {
        if (helped_ != nullptr) reach_source(peer_memory(core_, peer, probe, source.in_slab == 0), source);
        return;
    }
    if (into_receivers_buffer_) remote_ = base + target.address;
    const path wish = core_.options.path;
    const costs c = leaves_streaming(wish) && core_.measured ? *core_.measured : unmeasured_costs();
    streaming_ = streaming_watch(c, bytes, streaming_pays(wish, c, bytes));
    if (c.claims_pay() && bytes > largest_in_slot && bytes <= largest_claimed()) unstreamed_ = peer_stores::claimed;
}

/// Memory outside slabs is reached only through the system, which notices if it has been freed meanwhile; so the memory
/// of another thread of this process is not.
void near_window_end::reach_source(const peer_memory& memory, buffer_place source) {
    if (source.in_slab != 0 || !memory.is_same_process()) source_ = memory.at(source);
    if (!source_.is_reachable()) helped_ = nullptr;
}

void near_window_end::look_for_peer(std::uint64_t step, std::byte* to, std::size_t bytes) noexcept {
    if (bytes > 0) comm::look_for_peer(streaming_, to, bytes, stamp_, channel_->looked_at(step));
}

void near_window_end::write(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    copy_to_peer(streaming_.streamed() ? peer_stores::streamed : unstreamed_, to, from, bytes);
}

void near_window_end::copy(std::uint64_t step, const std::byte* from, std::size_t bytes) noexcept {
    std::byte* const to = target(step);
    // Streamed messages are left to the sender: a receiver would pull in lines that are far away.
    if (helped_ == nullptr || bytes < helped_from_ || streaming_.streamed()) return write(to, from, bytes);
    // Nobody looks at the previous step's counter any more: the receiver has begun this step.
    helped_->next.store(0, std::memory_order_relaxed);
    helped_->offered.bytes = bytes;
    helped_->offered.step.store(step, std::memory_order_release);
    const std::uint64_t own = copy_pieces(
        helped_->next, bytes, [&](std::uint64_t start, std::uint64_t n) { write(to + start, from + start, n); });
    copied_by_peer_ += pieces_of(bytes) - own;
}

void near_window_end::copy_offered(std::uint64_t step) noexcept {
    last_helped_ = step;
    const auto read = [this](std::uint64_t start, std::uint64_t n) {
        // After its sender closed, the source may have been changed, or freed, before it was read. The fence: look only
        // after the copy, as with a sequence lock.
        const bool copied = source_.read(request_.buffer + start, start, n);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (!copied || channel_->line()->closed()) refused_ = true;
    };
    copied_here_ += copy_pieces(helped_->next, helped_->offered.bytes, read);
    helped_->received.store(copied_here_ | (refused_ ? helped_copy::refused : 0), std::memory_order_release);
}

void near_window_end::mend(std::uint64_t step, std::size_t bytes) noexcept {
    write(target(step), request_.buffer, bytes);
    helped_->offered.mended.store(true, std::memory_order_release);
    copied_by_peer_ = 0;
    helped_ = nullptr;
}

std::string near_window_end::describe() const {
    std::string how = into_receivers_buffer_ ? "into the receiver's buffer" : "into the receiver's slot";
    if (helped_ != nullptr) how += ", pieces by the receiver while that waits";
    if (helped_ != nullptr && helped_from_ == least_helped_by_system) how += ", by process_vm_readv if it may";
    if (copied_here_ > 0) how += " (" + std::to_string(copied_here_) + " so far)";
    if (refused_) how += ", none since the system refused one";
    if (!request_.sends && !into_receivers_buffer_ && request_.buffer != nullptr) how += ", copied from there";
    if (streaming_.streamed()) how += ", past the sender's cache";
    if (const std::string when = streaming_.describe(); !when.empty()) how += "; " + when;
    return how;
}

} // namespace halocline::comm
