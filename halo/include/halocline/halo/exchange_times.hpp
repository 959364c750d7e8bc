// SPDX-License-Identifier: Apache-2.0
// The clock readings of a plan. A reading costs as much as a small message, so only every seventh exchange is timed and
// stands for the others; waits of more than a microsecond are always timed. Seven, because what programs do in turn seldom
// repeats by sevens.
#pragma once

#include <halocline/comm/clock.hpp>
#include <halocline/halo/plan_statistics.hpp>

#include <algorithm>
#include <cstdint>

namespace halocline::halo {

class exchange_times {
  public:
    /// True if this exchange is timed; its messages then carry the time of start(). The same on all ranks.
    [[nodiscard]] static constexpr bool timed(std::uint64_t epoch) noexcept { return epoch % timed_every == 1; }

    /// All has been packed.  Pre: timed(epoch).
    void packed(std::uint64_t ticks) noexcept {
        pack_ += ticks;
        ++packs_;
    }
    /// Calls poll(), which waits for a microsecond at most.
    template <class Poll>
    bool polled(std::uint64_t epoch, Poll&& poll) noexcept {
        if (!timed(epoch)) return poll();
        const std::uint64_t before = comm::ticks();
        const bool result = poll();
        poll_ += comm::ticks() - before;
        ++polls_;
        return result;
    }
    void waited(std::uint64_t ticks) noexcept { wait_ += ticks; }
    void unpacked(std::uint64_t ticks) noexcept { unpack_ += ticks; }
    /// Part of a wait before the last peer had started.  Pre: timed(epoch).
    void was_late(std::uint64_t ticks) noexcept { imbalance_ += ticks; }
    void finished() noexcept { ++exchanges_; }

    /// Since make; all but lanes and changes of paths.
    [[nodiscard]] plan_statistics statistics() const {
        const auto of_all = [&](std::uint64_t ticks, std::uint64_t times) {
            return times == 0 ? 0.0
                              : comm::seconds(ticks) * static_cast<double>(exchanges_) / static_cast<double>(times);
        };
        const double wait_seconds = of_all(poll_, polls_) + comm::seconds(wait_);
        return {.exchanges = exchanges_,
                .pack_seconds = of_all(pack_, packs_),
                .wait_seconds = wait_seconds,
                .unpack_seconds = comm::seconds(unpack_),
                .imbalance_seconds = std::min(of_all(imbalance_, polls_), wait_seconds),
                .path_changes = 0,
                .lanes = {}};
    }

  private:
    static constexpr std::uint64_t timed_every = 7;
    std::uint64_t exchanges_ = 0, packs_ = 0, polls_ = 0; // the last two: of timed exchanges
    std::uint64_t pack_ = 0, poll_ = 0, imbalance_ = 0;   // ticks, of timed exchanges
    std::uint64_t wait_ = 0, unpack_ = 0;                 // of all
};

} // namespace halocline::halo
