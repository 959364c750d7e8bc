// SPDX-License-Identifier: Apache-2.0
// A halo plan: everything needed to repeat one exchange of ghost faces, made once.
// Ghosts are the plan's own receive slots (appended layout): plan.ghost(face) after finish(), never part of a field.
// Message order: sites of a face region lexicographic (x fastest) in the sender's coordinates; independent of site order.
//
// Contract: source sites are not written between start() and finish(); ghosts of exchange k are valid from finish(k) to
// start(k+1). Both halves are noexcept, free of allocation, lock and (shared memory, ranks <= cores) system calls.
#pragma once

#include <halocline/comm/channel_set.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace halocline::halo {

using lattice::face;

/// Ghost layers per dimension and side: low[mu] layers behind the low face, high[mu] behind the high one.
struct ghost_widths {
    lattice::coordinate low{1, 1, 1, 1};
    lattice::coordinate high{1, 1, 1, 1};
    friend bool operator==(const ghost_widths&, const ghost_widths&) = default;
};

/// Which of the calling threads this is; the team shares the packing. Default: one thread.
struct team {
    int index = 0;
    int size = 1;
};

struct plan_options {
    std::string name = "halo";
    ghost_widths widths{};
    std::array<lattice::boundary, lattice::dimensions> boundaries{};
    std::size_t bytes_per_site = 0;
    /// Exchange undivided periodic dimensions with oneself instead of wrapping locally (tests on one rank).
    bool self_exchange = false;
    /// Only source sites (global coordinates) for which this holds are sent; e.g. one parity or one colour of blocks.
    std::function<bool(const lattice::coordinate& global_site)> select;
};

/// Where time and bytes went, since make or reset; seconds are this rank's.
struct plan_statistics {
    std::uint64_t exchanges = 0;
    double pack_seconds = 0;      ///< in start(): packing (over shm: also moving)
    double wait_seconds = 0;      ///< in finish() and test()
    double unpack_seconds = 0;    ///< 0 for appended ghosts
    double imbalance_seconds = 0; ///< part of the wait before the peer had even started: it was late
    std::vector<comm::lane_counts> lanes;
};

/// One message of the plan, as seen from this rank.
struct plan_message {
    face where;                    ///< the face at which sites are sent and behind which ghosts arrive
    int peer = 0;
    std::vector<std::int32_t> send_sites; ///< local lexicographic indices, in message order
    std::int64_t ghost_sites = 0;  ///< that arrive behind this face
};

class plan {
  public:
    /// Collective.  Err: input_error on every rank (a halo wider than a local box with the numbers, disagreement of
    /// the ends); job_error.  Cost: O(own faces) messages and memory, <= 4 x ghost bytes.
    plan(const comm::job& j, const lattice::decomposition& cut, plan_options options);

    /// Messages of this plan: one per face that has a neighbour through which it is exchanged.
    [[nodiscard]] std::span<const plan_message> messages() const { return messages_; }
    /// Position in messages(), or -1: the face is not exchanged (undivided dimension, open edge).
    [[nodiscard]] int message_of(face f) const { return message_of_[f.index()]; }

    /// Starts an exchange. pack(message, first, last, target) writes sites [first, last) of messages()[message] to
    /// target, which is the start of the whole message: over shm that is the neighbour's ghost memory itself.
    /// Called once per thread of the team with disjoint ranges.
    template <class Pack>
    void start(Pack&& pack, team t = {}) noexcept;
    /// The same with the built-in copy of a field's components.  Pre: x.components() * sizeof(T) == bytes_per_site.
    template <class T>
    void start(const lattice::field<T>& x, team t = {}) noexcept;
    /// True when finish() would not wait.
    [[nodiscard]] bool test() noexcept;
    [[nodiscard]] comm::status finish(team t = {}) noexcept;
    /// finish(), and the typed exception if it failed: for code outside hot loops.
    void finish_or_throw();

    /// Ghosts behind face f: messages()[message_of(f)].ghost_sites x bytes_per_site, 64-byte aligned.
    /// Valid from finish(k) to start(k+1).  Pre: message_of(f) >= 0.
    [[nodiscard]] const std::byte* ghost(face f) const noexcept { return ghosts_[f.index()]; }

    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    [[nodiscard]] const plan_options& options() const { return options_; }
    [[nodiscard]] const comm::job& owner() const { return job_; }
    [[nodiscard]] plan_statistics statistics() const;
    void reset_statistics();
    /// A table: face, peer, transport, path, sites, bytes.
    [[nodiscard]] std::string describe() const;

  private:
    // (HALO owns this part)
    comm::job job_;
    plan_options options_;
    std::vector<plan_message> messages_;
    std::array<int, lattice::faces> message_of_{};
    std::array<const std::byte*, lattice::faces> ghosts_{};
    comm::channel_set channels_;
    std::uint64_t epoch_ = 0;
};

} // namespace halocline::halo
