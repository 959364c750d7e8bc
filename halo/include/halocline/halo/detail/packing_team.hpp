// SPDX-License-Identifier: Apache-2.0
// The threads that pack a plan's messages together: each packs a fixed share of every message, the last one sends them
// all, and member 0 waits for the ghosts (docs/decisions/0007-no-openmp-barrier.md).
#pragma once

#include <halocline/halo/detail/rendezvous.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace halocline::halo {

/// Sites [first, last) of a message that member t packs: an equal share. Messages too short to share are packed by one
/// member each, in turn.
[[nodiscard]] inline std::pair<std::int64_t, std::int64_t> share_of(std::size_t message, std::int64_t sites,
                                                                    std::size_t bytes, team t) noexcept {
    constexpr std::size_t least_bytes = 4096; // of a share
    if (bytes < least_bytes * static_cast<std::size_t>(t.size))
        return {0, static_cast<int>(message) % t.size == t.index ? sites : 0};
    return {sites * t.index / t.size, sites * (t.index + 1) / t.size};
}

/// How far the team is with an exchange. Each counter is released by who advances it and acquired by who reads it: the
/// last packer sees what all packed before it sends, and member 0 sees the channels as the sender left them.
class packing_team {
  public:
    /// Has an exchange been started, other than the `finished` ones?
    [[nodiscard]] bool in_flight(std::uint64_t finished) const noexcept {
        return started_.load(std::memory_order_acquire) != finished;
    }
    /// All messages of this exchange are sent.
    void note_started(std::uint64_t epoch) noexcept { started_.store(epoch, std::memory_order_release); }
    /// A member has packed its share. True for the last one, who sends the messages and then calls note_started().
    [[nodiscard]] bool note_packed(team t) noexcept {
        if (packed_.fetch_add(1, std::memory_order_acq_rel) != t.size - 1) return false;
        packed_.store(0, std::memory_order_relaxed);
        return true;
    }
    /// Member 0 may reach finish() before the others have packed: waits until the last packer has sent.
    void await_start(std::uint64_t finished) const noexcept {
        await_team([&] { return in_flight(finished) || leave_.is_disbanded(); });
    }
    /// finish(): member 0 calls wait() at once; everybody leaves when that is done and all have come.  Pre: t.size > 1.
    template <class Wait>
    void finish(team t, Wait&& wait) noexcept {
        leave_.finish(t, wait, [] {});
    }
    /// A thread that is no member: nobody waits for the one that is missing.
    void disband() noexcept { leave_.disband(); }

  private:
    alignas(64) std::atomic<int> packed_{0};            // members done with their share of this exchange
    alignas(64) std::atomic<std::uint64_t> started_{0}; // exchange that was sent last
    rendezvous leave_;
};

} // namespace halocline::halo
