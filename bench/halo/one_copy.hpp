// SPDX-License-Identifier: Apache-2.0
// The limit: each face is copied once, by a plain loop, straight to where the neighbour reads it, in memory that both
// map, with the flag protocol of the layout. Written for this case alone.
//   appended  two slots in turn and an epoch per slot
//   padded    one place only: the receiver says "free" when it is done with its ghosts, and the sender waits for that
#pragma once

#include "halo/timed_slice.hpp"
#include "support/flag_probe.hpp"
#include "support/huge_pages.hpp"
#include "support/shared_pages.hpp"

namespace halocline::bench {

class one_copy {
  public:
    /// Collective.
    one_copy(const comm::job& j, const point& p)
        : box_(p, j.rank()), area_(j, flag_bytes + memory_bytes(box_)), spins_(spins_of(j)),
          source_(box_, p.padded ? memory(j.rank()) : own_.take(apart + box_.bytes()) + apart) {
        for (const box_face& f : box_.faces) copies_.emplace_back(f.send, box_.faces[at_peer(copies_.size())].ghosts);
        slot_bytes_ = p.padded ? 0 : slot_bytes(box_);
    }
    one_copy(const one_copy&) = delete;
    one_copy& operator=(const one_copy&) = delete;

    [[nodiscard]] tracked_field& source() { return source_; }
    [[nodiscard]] const std::byte* ghosts(std::size_t f) const { return place(box_.rank, f); }
    void exchange() {
        ++epoch_;
        if (box_.of.padded)
            for (std::size_t f = 0; f < copies_.size(); ++f)
                flag(box_.faces[f].peer, freed, at_peer(f)).store(epoch_, std::memory_order_release);
        for (std::size_t f = 0; f < copies_.size(); ++f) {
            const int peer = box_.faces[f].peer;
            if (box_.of.padded) await(flag(box_.rank, freed, f), epoch_, spins_);
            copies_[f](place(peer, at_peer(f)), source_.data());
            flag(peer, arrived + (epoch_ & 1), at_peer(f)).store(epoch_, std::memory_order_release);
        }
        for (std::size_t f = 0; f < copies_.size(); ++f)
            await(flag(box_.rank, arrived + (epoch_ & 1), f), epoch_, spins_);
    }

  private:
    static constexpr std::size_t arrived = 0, freed = 2, flags_per_face = 3, flag_bytes = 4096;
    /// Source and target of a copy at the same offset in their pages would make loads wait for stores.
    static constexpr std::size_t apart = 1024;
    static std::size_t slot_bytes(const local_box& box) {
        std::size_t most = 0;
        for (const box_face& f : box.faces) most = std::max(most, f.send.bytes());
        return (most + 127) / 128 * 128;
    }
    static std::size_t memory_bytes(const local_box& box) {
        return box.of.padded ? box.bytes() : 2 * box.faces.size() * slot_bytes(box);
    }
    static std::size_t at_peer(std::size_t f) { return local_box::opposite(f); }
    [[nodiscard]] std::byte* memory(int rank) const { return area_.of(rank) + flag_bytes; }
    [[nodiscard]] std::byte* place(int rank, std::size_t f) const {
        return memory(rank) + slot_bytes_ * (2 * f + (epoch_ & 1));
    }
    [[nodiscard]] std::atomic<std::uint64_t>& flag(int rank, std::size_t kind, std::size_t f) const {
        return *reinterpret_cast<std::atomic<std::uint64_t>*>(area_.of(rank) + 128 * (flags_per_face * f + kind));
    }

    local_box box_;
    shared_pages area_;
    int spins_;
    huge_memory own_; // of the field, if nobody else writes to it
    tracked_field source_;
    std::vector<strided_copy> copies_;
    std::size_t slot_bytes_ = 0;
    std::uint64_t epoch_ = 0;
};
static_assert(exchanger<one_copy>);

} // namespace halocline::bench
