// SPDX-License-Identifier: Apache-2.0
// The general exchange: any sites of any rank go to any sites of others, in place, any number of times. Halos with a
// shell in the field (shell_plan), transposes, irregular unions of boxes are lists of transfers.
// A rank names its own ends only; both ends of a transfer list its sites in the same order. One message per peer.
//
// Contract: sources are not written, destinations neither read nor written, between start() and finish(). Both halves
// are noexcept, free of allocation and lock; from one thread, or from every member of a team, which shares the copies
// of what is large enough (an OpenMP barrier is not involved). All else, test() and completed() too, is for member 0.
// Values for a peer on the direct path leave once the peer has said that its field is free: in start(), test(),
// finish(), or in any other wait of this rank's job.
// Destinations of exchange k keep their values until start(k+1) with that binding.
#pragma once

#include <halocline/comm/channel_set.hpp>
#include <halocline/halo/field_view.hpp>
#include <halocline/halo/path.hpp>
#include <halocline/halo/plan_statistics.hpp>
#include <halocline/halo/team.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace halocline::halo {

class crew;

/// One end of what goes from one rank to another (or to itself).
struct transfer {
    int peer = 0;
    std::uint32_t tag = 0;           ///< the same at both ends; names it among all from one rank to the other
    std::vector<std::int32_t> sites; ///< lexicographic indices in the field's box, in message order
};

/// The sites of `part`, x fastest, as indices of a box of these extents.
/// Pre: part lies in it; its origin counts from the box's first site.
std::vector<std::int32_t> sites_of(const lattice::box& part, const lattice::coordinate& extents);

/// What one exchange moves: sites of source[i] go to sites of destination[i] of the peers, for all i in one message.
/// Where they are the same fields (halos) no site may be both sent and received.
struct binding {
    std::vector<field_view> source;
    std::vector<field_view> destination;
};
/// A binding of one field to itself.
template <class T>
binding bind(lattice::field<T>& x) {
    return {{view(x)}, {view(x)}};
}
/// A binding of several fields to themselves.
template <class T, class... More>
binding bind(lattice::field<T>& x, lattice::field<More>&... more) {
    return {{view(x), view(more)...}, {view(x), view(more)...}};
}

struct region_plan_options {
    std::string name = "regions";
    /// The same on every rank. direct and streamed: straight to the peer's destination, fields in slabs.
    /// Err: input_error if direct or streamed is asked for and can't be had.
    path way = path::automatic;
    /// Add what arrives to the destinations, by peer and tag, when all is here: the same bits each time. Always packed.
    bool add = false;
};

/// Lifetime: the fields outlive the plan. Destroying a plan never blocks; a peer that still waits for it gets
/// status::aborted.
class region_plan {
  public:
    /// Collective. Rebinding chooses one of `bindings` (at least one; all of one shape and site order): ranks choose
    /// alike in meaning, their numbers of bindings may differ.
    /// Err: input_error on every rank: the ends of a transfer disagree (both values are named), a site that the field
    /// does not have, a destination that is filled twice; job_error.
    /// Cost: O(own transfers) messages, time and memory, and one sum over the job.
    region_plan(const comm::job& j, std::vector<transfer> sends, std::vector<transfer> receives,
                std::vector<binding> bindings, region_plan_options options = {});
    region_plan(region_plan&&) noexcept;
    region_plan& operator=(region_plan&&) noexcept;
    ~region_plan();

    /// Starts an exchange of bindings[which].  Pre: 0 <= which < bindings; the last exchange is finished; the sources
    /// are complete for every member. With a team: nobody sends before every member has called it.
    void start(int which = 0, team t = {}) noexcept;
    /// Moves what can be moved now; true when finish() would not wait.
    [[nodiscard]] bool test() noexcept;
    /// Waits until everything is in place here and what was sent has left. With a team: returns when every member has
    /// called it.
    [[nodiscard]] comm::status finish(team t = {}) noexcept;
    /// finish(), and the typed exception if it failed: for code outside hot loops.
    /// Err: input_error: start() of a binding that there isn't (finish() says misused); job_error.
    void finish_or_throw();
    /// Positions in `receives` that came into place since the last call, each once per exchange: work on them can go on
    /// while others travel. Moves what can be moved, as test() does. The list is valid until the next call.
    [[nodiscard]] std::span<const int> completed() noexcept;

    /// Finished exchanges.
    [[nodiscard]] std::uint64_t epoch() const;
    [[nodiscard]] const region_plan_options& options() const;
    [[nodiscard]] plan_statistics statistics() const;
    void reset_statistics();
    /// Bytes of slab beyond the fields: slots and control lines.
    [[nodiscard]] std::size_t slab_bytes() const;
    /// A table: peer, transport, path and why, transfers, sites, bytes.
    [[nodiscard]] std::string describe() const;

  private:
    friend class shell_plan;
    /// Another plan drives this one, with its team: it calls begin() and complete() as member 0.
    void join(std::shared_ptr<crew> threads);
    void begin(int which) noexcept;
    comm::status complete() noexcept;
    /// Is a message large enough to be shared by a team?
    [[nodiscard]] bool shares() const;
    /// While an exchange is under way and finish() is not running, step(object) is called in every wait of the thread
    /// that started it. Step may finish this plan; it never waits.
    void work_in_every_wait(void* object, void (*step)(void* object));

    struct state;
    std::unique_ptr<state> s_;
};

} // namespace halocline::halo
