// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/remote_call.hpp>

#include "job/waiting.hpp"
#include "rma_segment.hpp"

#include <atomic>
#include <string>

namespace halocline::comm {
namespace {

constexpr int worked_off = 0; // half of a line: how many of this rank's calls the neighbour has run

} // namespace

/// One call. `number` counts the calls between two ranks from 1, and is stored last. No two share a pair of lines:
/// another rank may be writing the next while this one is read.
struct alignas(128) remote_calls::slot {
    std::uint64_t number = 0; // accessed through atomic references, because slots are also sent
    std::uint32_t function = 0;
    alignas(16) std::byte argument[remote_functions::largest_argument]{};
};

remote_calls::remote_calls(const job& j, std::span<const int> neighbours, remote_functions functions, std::size_t room,
                           const std::string& name)
    : functions_(std::move(functions)), room_(room), segment_("a remote_calls", nullptr), sent_(neighbours.size(), 0),
      done_(neighbours.size(), 0) {
    static_assert(sizeof(slot) == 128);
    j.agree("the functions of '" + name + "'", functions_.shape_ + std::to_string(room) + " calls per neighbour");
    constexpr std::size_t most = std::size_t{1} << 32;
    if (room == 0 || room > most)
        throw input_error("'" + name + "': room for " + std::to_string(room) + " calls; 1 to " + std::to_string(most) +
                          " are possible");
    segment_.pointer() =
        std::make_unique<rma_segment>(j, name, neighbours, neighbours.size() * room * sizeof(slot), functions_.shape_);
    // Zeroed memory is a ring of empty slots.
}

remote_calls::remote_calls(remote_calls&&) noexcept = default;
remote_calls& remote_calls::operator=(remote_calls&&) noexcept = default;
remote_calls::~remote_calls() = default;

bool remote_calls::put(std::size_t n, std::uint32_t function, const void* argument, std::size_t bytes) noexcept {
    if (n >= segment_->neighbours.size()) return false;
    rma_segment::neighbour& peer = segment_->neighbours[n];
    if (sent_[n] - rma_segment::told(peer, worked_off) >= room_) return false;
    const std::size_t place = peer.place * room_ + sent_[n] % room_;
    if (peer.far) {
        slot s{sent_[n] + 1, function, {}};
        std::memcpy(s.argument, argument, bytes);
        if (!segment_->try_write(peer, place * sizeof s, std::as_bytes(std::span(&s, 1)))) return false;
        ++sent_[n];
        return true;
    }
    slot& s = reinterpret_cast<slot*>(peer.payload)[place];
    s.function = function;
    std::memcpy(s.argument, argument, bytes);
    std::atomic_ref(s.number).store(++sent_[n], std::memory_order_release);
    return true;
}

template <class Done>
status remote_calls::wait_until(std::optional<std::size_t> of, Done&& done) {
    const int rank = of ? segment_->neighbours[*of].rank : -1;
    status s = segment_->job.core().failed_for_call();
    for (waiter waiting(segment_->job.core()); s == status::ok && !done();) {
        const std::uint64_t before = of ? done_[*of] : 0;
        if (run() == 0)
            s = waiting.again(rank);
        else if (!of || done_[*of] != before)
            waiting.restart_deadline(); // which limits the silence of whom this rank waits for
        if (s == status::ok) s = segment_->state();
    }
    return s;
}

status remote_calls::call_bytes(std::size_t n, std::uint32_t function, const void* argument, std::size_t bytes) {
    if (n >= segment_->neighbours.size()) return status::misused;
    const rma_segment::neighbour& peer = segment_->neighbours[n];
    bool gone = false;
    const status s = wait_until(n, [&] {
        gone = rma_segment::left(peer);
        return gone || put(n, function, argument, bytes);
    });
    return gone ? segment_->job.core().left_by(peer.rank) : s;
}

std::size_t remote_calls::progress() {
    const std::size_t ran = run();
    if (ran == 0) give_way(segment_->job.core(), fruitless_tests_);
    return ran;
}

std::size_t remote_calls::run() {
    segment_->poll();
    std::size_t ran = 0;
    for (std::size_t n = 0; n < segment_->neighbours.size(); ++n) {
        const rma_segment::neighbour& peer = segment_->neighbours[n];
        while (true) {
            slot& s = reinterpret_cast<slot*>(segment_->payload)[n * room_ + done_[n] % room_];
            if (std::atomic_ref(s.number).load(std::memory_order_acquire) != done_[n] + 1) break;
            alignas(16) std::byte argument[remote_functions::largest_argument];
            std::memcpy(argument, s.argument, sizeof argument);
            const std::uint32_t function = s.function;
            rma_segment::tell(peer, worked_off,
                              ++done_[n]); // its slot is free now: the function may call back
            ++ran;
            if (function >= functions_.table_.size())
                throw input_error("rank " + std::to_string(peer.rank) + " calls function " + std::to_string(function) +
                                  " here, of a table of " + std::to_string(functions_.table_.size()) +
                                  ": it was added to another table");
            functions_.table_[function](n, argument);
        }
    }
    return ran;
}

status remote_calls::progress_until(const std::function<bool()>& done) { return wait_until({}, done); }

} // namespace halocline::comm
