// SPDX-License-Identifier: Apache-2.0
// The halo of fields that hold their ghosts themselves: around the owned sites (padded) or after them (appended), with
// edges and corners if asked for. For ghosts in slots of the plan, packed as the caller likes, see plan.hpp.
//
// Contract: between start() and finish() the field's sites are not written and its ghosts not read. The ghosts of
// exchange k are valid from finish(k) to start(k+1) of the same field. Both calls are noexcept and neither allocate nor
// lock.
#pragma once

#include <halocline/base/checked_pointer.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/halo/plan_statistics.hpp>
#include <halocline/halo/region_plan.hpp>
#include <halocline/halo/shell.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace halocline::halo {

/// Ghosts that arrive together, as one region of the field.
struct ghost_region {
    lattice::coordinate direction{}; ///< -1, 0 or +1 along each dimension
    lattice::box sites; ///< in coordinates that count from the first site of the grown box, in either layout
    int peer = 0;       ///< the rank that sends them
};

/// One rank's part of an exchange of the ghosts around, or behind, the sites of its fields. Every rank of the job makes
/// the same plans in the same order.
class shell_plan {
  public:
    /// Collective. bind(x, …) makes a binding: the fields that travel in one message. start() chooses among the
    /// bindings.
    /// Shape: padded: every field covers grown(cut.local_box(rank), widths), in any site order. Appended: its order is
    ///        appended_sites::order().
    /// Err:   on every rank: input_error (ghosts wider than a local box; a field of another shape; ends that disagree;
    ///        corners by dimension of a field that is not its own destination); slab_full; job_error.
    /// Cost:  see region_plan.
    shell_plan(const comm::job& j, const lattice::decomposition& cut, shell_options options,
               std::vector<binding> bindings);
    shell_plan(shell_plan&&) noexcept;
    shell_plan& operator=(shell_plan&&) noexcept;
    ~shell_plan();

    /// Starts an exchange of bindings[which]. Teams: see region_plan.  Pre: the last exchange is finished.
    void start(int which = 0, team t = {}) noexcept;
    /// Starts the adjoint: the values in the ghosts are added, in a fixed order, to the sites of which they are copies;
    /// the ghosts keep their values. If start() is y = H x, from the box to the grown box, this is x = H^T y.
    /// Pre: options().reverse; the last exchange is finished.
    void start_reverse(int which = 0, team t = {}) noexcept;
    /// Moves what can be moved now. True if finish() would not wait.
    [[nodiscard]] bool test() noexcept;
    /// Waits until all ghosts (of a reverse exchange: all sums) are in place.
    /// Err: a bad status stays bad. aborted, usually within 0.1 s, if a peer of this node waits for the other direction,
    ///      or for another plan or sum, and neither rank has begun what the other waits for: finish_or_throw() names
    ///      both. In a process with other threads, which might begin it, at nine tenths of the deadline. For what
    ///      then holds for the fields see region_plan.
    [[nodiscard]] comm::status finish(team t = {}) noexcept;
    /// finish() that throws on a bad status. Not for members of a team: they call finish(t). If that is not ok, one
    /// thread calls this afterwards, and it throws the reason.
    /// Err: input_error: a binding that does not exist, start_reverse() without options().reverse, start() before
    ///      finish(), finish() without start() (finish() returns misused); job_error.
    void finish_or_throw();

    /// Exchanges bindings[which] unless is_fresh(which). All ranks must come to the same answer, so mark the same
    /// fields everywhere. With checks normal or above, a field or ghosts that were written but not marked are misused.
    /// Teams: all members call it, and leave it together; no field is marked before all have.
    /// Pre: the last exchange is finished.  Cost: a comparison per field, with checks normal or above also a read of what
    /// is exchanged; or an exchange.
    [[nodiscard]] comm::status ensure_halo(int which = 0, team t = {}) noexcept;
    /// True if bindings[which] was exchanged, and none of its fields was marked since (lattice::field::mark_written()).
    /// Each binding is fresh or stale independently; an exchange of another one makes it stale only if that writes the
    /// same destination from another source. Another plan's exchange does so only if its destination is not its source,
    /// because then it marks the destination: two plans over bind(x), with other phases or formats, take no notice of
    /// each other. A reverse exchange marks the fields that it adds to. Always false for a field_view without a
    /// version. Any member of a team may ask, between finish() and its next start().
    [[nodiscard]] bool is_fresh(int which = 0) const noexcept;
    /// A check before ghosts of bindings[which] are used; does nothing if options().checks is below normal.
    /// Err: error if no finished exchange filled them, another binding overwrote them, a field was marked since, or a
    ///      site that was sent, or a ghost that arrived, has another value now. So for views without a version,
    ///      although is_fresh() is false, it passes as long as these sites are unchanged. Whoever wrote a ghost, also
    ///      another plan with another phase or format, it must have the value that this plan brought.
    /// Cost: one read of the sites that are sent and of the ghosts, which finish() reads once more, too.
    void require_fresh(int which = 0) const;
    /// Why require_fresh(which) would throw an error; empty if it would not.
    [[nodiscard]] std::string why_stale(int which = 0) const;
    /// The same for one field of the binding, 0 being its first.
    /// Err: input_error: no such binding or field.
    [[nodiscard]] std::string why_stale(int which, int field) const;

    /// Indices in ghosts() of regions that have been filled since the last call, each once per exchange. A loop around
    /// this must also call test(), which ends the loop when some rank has died. The list is valid until the next call.
    [[nodiscard]] std::span<const int> completed() noexcept;

    /// All regions of ghosts that an exchange fills.
    [[nodiscard]] std::span<const ghost_region> ghosts() const;
    /// Number of finished exchanges, not counting reverse ones.
    [[nodiscard]] std::uint64_t epoch() const;
    [[nodiscard]] const shell_options& options() const;
    [[nodiscard]] const comm::job& job() const;
    /// The binding whose first field has this memory now; -1: none. start(binding_of(u)) follows a field that was
    /// swapped, as the plan itself does not.
    [[nodiscard]] int binding_of(const void* values) const noexcept;
    template <class T>
    [[nodiscard]] int binding_of(const lattice::field<T>& x) const noexcept {
        return binding_of(x.data());
    }
    /// The route that edges and corners take; describe() gives the reason.
    [[nodiscard]] corner_route route() const;
    [[nodiscard]] plan_statistics statistics() const;
    void reset_statistics();
    /// Bytes of the slab that the plan occupies in addition to the fields: slots and control lines.
    [[nodiscard]] std::size_t slab_bytes() const;
    /// The chosen route and paths, and why; whether messages carry checksums.
    [[nodiscard]] std::string describe() const;

  private:
    struct state;
    checked_pointer<std::unique_ptr<state>> s_;
};

} // namespace halocline::halo
