// SPDX-License-Identifier: Apache-2.0
// The status of a plan: ok until something goes wrong, then the first bad one, for good; and the call that was wrong,
// if it is misused.
#pragma once

#include <halocline/comm/status.hpp>
#include <halocline/comm/wrong_call.hpp>

#include <atomic>

namespace halocline::halo {

/// Any member of a team may make it bad, while others read it. Can be moved while no thread uses it.
class sticky_status {
  public:
    [[nodiscard]] comm::status load() const noexcept { return std::atomic_ref(now_).load(std::memory_order_acquire); }
    [[nodiscard]] bool is_ok() const noexcept { return load() == comm::status::ok; }
    /// load(), for a call that returns it to the program.
    [[nodiscard]] comm::status tell() noexcept {
        const comm::status now = load();
        if (now != comm::status::ok) std::atomic_ref(told_).store(true, std::memory_order_relaxed);
        return now;
    }
    /// Was it misused, and no call has said so?  Pre: no other thread uses it.
    [[nodiscard]] bool is_untold_misuse() const noexcept { return now_ == comm::status::misused && !told_; }
    /// An operation ended with this status, which counts unless another one was bad before. Returns what counts.
    comm::status end(comm::status result) noexcept {
        comm::status was = comm::status::ok;
        if (result != comm::status::ok)
            std::atomic_ref(now_).compare_exchange_strong(was, result, std::memory_order_acq_rel);
        return load();
    }
    /// Makes it misused, unless it was bad before. True if so: the caller then notes why, alone.
    [[nodiscard]] bool misuse() noexcept { return comm::wrong_call::becomes_misused(now_); }
    /// Makes it misused by this call, unless it was bad before.
    void misuse(const comm::wrong_call& call) noexcept { wrong_call_.note_first(call, now_); }
    /// The call that made it misused; none if it is not, or if misuse() was called without one.
    [[nodiscard]] const comm::wrong_call& wrong_call() const noexcept { return wrong_call_; }

  private:
    mutable comm::status now_ = comm::status::ok; // mutable because std::atomic_ref needs that, even to read
    bool told_ = false;
    comm::wrong_call wrong_call_;
};

} // namespace halocline::halo
