// SPDX-License-Identifier: Apache-2.0
// A halo plan: an exchange of ghost faces that is set up once and then repeated.
// The ghosts lie in the plan's own receive slots: plan.ghosts<T>(face) after finish(), never part of a field (for
// ghosts inside a field see shell_plan.hpp).
// Message order: the sites of a face are lexicographic (x fastest) in the sender's coordinates, whatever the site
// order.
//
// Contract: the sites that are sent are not written between start() and finish(). The ghosts of exchange k are valid
// from finish(k) to start(k+1). start() before finish() of the previous exchange, and finish() without start(), are
// status::misused. start(), test() and finish() are noexcept and neither allocate nor lock; over shared memory, with a
// core for each rank, they make no system call.
#pragma once

#include <halocline/base/checked_pointer.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/halo/detail/plan_core.hpp>
#include <halocline/halo/field_view.hpp>
#include <halocline/halo/plan_options.hpp>
#include <halocline/halo/plan_statistics.hpp>
#include <halocline/halo/team.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace halocline::halo {

/// A caller's own packing, for start(): pack(message, first, last, target).
template <class F>
concept pack_function = std::invocable<F&, int, std::int64_t, std::int64_t, std::byte*>;

template <class>
inline constexpr bool is_field = false;
template <class T>
inline constexpr bool is_field<lattice::field<T>> = true;
/// A span, an array or a vector of pointers to fields of one type.
template <class Fields>
concept field_pointers =
    std::ranges::contiguous_range<Fields> && std::is_pointer_v<std::ranges::range_value_t<Fields>> &&
    is_field<std::remove_cv_t<std::remove_pointer_t<std::ranges::range_value_t<Fields>>>>;
/// The same of views of fields.
template <class Fields>
concept field_views = std::ranges::contiguous_range<Fields> &&
    (std::is_same_v<std::ranges::range_value_t<Fields>, field_view> ||
     std::is_same_v<std::ranges::range_value_t<Fields>, source_field>);
/// Pointers to fields, or views of them, as the calls of a plan take them.
template <field_pointers Fields>
auto as_span(const Fields& xs) {
    using field = std::remove_cvref_t<decltype(**std::ranges::data(xs))>;
    static_assert(movable_component<std::remove_cvref_t<decltype(*std::declval<field>().data())>>,
                  "the built-in copy moves components of 4 or 8 bytes, or complex ones");
    return std::span<const field* const>(std::ranges::data(xs), std::ranges::size(xs));
}
template <field_views Fields>
auto as_span(const Fields& xs) {
    return std::span<const std::ranges::range_value_t<Fields>>(std::ranges::data(xs), std::ranges::size(xs));
}
template <class Fields>
concept message_fields = field_pointers<Fields> || field_views<Fields>;

/// A pack function that knows which fields it packs: what packer::of() returns.
template <class F>
concept field_pack_function = pack_function<F> && requires(const F& pack) {
    as_span(pack.sources());
    { pack.packed_by() } -> std::same_as<std::uint64_t>;
};

/// One rank's part of an exchange with all its neighbours. Every rank of the job makes the same plans in the same
/// order.
/// Lifetime: destroying a plan never blocks. It says farewell to its peers: one that still waits for an exchange, for
/// instance because an exception left this rank between start() and finish(), gets status::aborted. If the plan was
/// misused and no finish() reported that, the destructor writes a line on stderr. A field in the job's memory must be
/// freed after the plan, or not between start() and finish(), also by an exception: until the plan is destroyed
/// neighbours may copy from it (path::joint). So declare it first.
class plan {
  public:
    /// Collective.
    /// Err:  on every rank: input_error (ghosts wider than a local box; ends that disagree, with both values);
    /// slab_full; job_error.
    /// Cost: O(this rank's faces) messages; slab memory of at most 4 x the ghost bytes.
    plan(const comm::job& j, const lattice::decomposition& cut, plan_options options)
        : core_("a halo::plan", std::make_unique<plan_core>(j, cut, std::move(options))) {}

    /// The messages of this plan: one per exchanged face, each with an arriving counterpart. Over a network two of one
    /// neighbour travel as one if they are short (decision 0053).
    [[nodiscard]] std::span<const plan_message> messages() const { return core_->messages(); }
    /// Index of a face's message in messages(); -1 if the face is not exchanged, because its dimension is not cut or
    /// has no width on either side, or the edge is open.
    [[nodiscard]] int message_of(face f) const { return core_->message_of(f); }

    /// The sites of which the ghosts behind f are copies: their global coordinates, in message order. Ghost i is that
    /// of site i. Empty if the face is not exchanged.
    /// Err:  whatever options().select throws.
    /// Cost: O(sites of the face), computed anew by each call.
    [[nodiscard]] std::vector<lattice::coordinate> ghost_sites(face f) const { return core_->ghost_sites(f); }

    /// Starts an exchange. pack(message, first, last, target) writes the sites send_sites[first, last) of
    /// messages()[message]. `target` is the start of the whole message: site i of field f goes to
    /// target + (f * send_sites.size() + i) * bytes_per_site. On the direct path that is the neighbour's ghost memory.
    /// Each thread of a team calls pack for its own range; it is never called for an empty range. A message is sent, by
    /// any of the threads, as soon as all of it is packed, and of one that travels with it, but not before all threads
    /// have called start(). If a message goes over a network, member 0 sends them all: it leaves start() when all
    /// threads have packed.
    /// Pre: the last exchange is finished; what pack reads is complete, for all threads of the team; pack does not
    /// throw and writes every byte (bytes that it leaves out are unspecified, because lines may be claimed first:
    /// claim_lines.hpp).
    template <pack_function Pack>
    void start(Pack&& pack, team t = {}) noexcept {
        if constexpr (requires { pack.fits(*this); })
            if (!pack.fits(*this))
                return refuse_start("start() was given the pack function of a packer that was made for a plan with "
                                    "other messages");
        core_->start_packed(pack, t);
    }
    /// Starts an exchange of a field, with the built-in copy.
    /// Pre: the field covers the local box, and components() * sizeof(T) == bytes_per_site. Otherwise nothing is sent
    /// and finish() returns misused.
    template <class T>
    void start(const lattice::field<T>& x, team t = {}) noexcept {
        core_->start(as_span(std::array{&x}), t);
    }
    /// Starts an exchange of memory of your own, in any site order: start(halo::view(values, order, components)).
    /// Pre: as for a field, and `values` is not null. With options().element told, the view is of that type, or of one
    /// of its size that is neither float nor double.
    void start(const field_view& x, team t = {}) noexcept { core_->start(std::span(&x, 1), t); }
    /// start() of a view, for callers that count no references between start() and finish().
    void start(const source_field& x, team t = {}) noexcept { core_->start(std::span(&x, 1), t); }
    /// Starts an exchange of a field in memory of any kind: bytes_per_site for each site of the local box, x fastest.
    /// Pre: options() has one field and no order, or a lexicographic one, and `values` is not null. Otherwise nothing
    /// is sent and finish() returns misused.
    void start_bytes(const std::byte* values, team t = {}) noexcept { core_->start_bytes(std::span(&values, 1), t); }
    /// start_bytes() of options().fields fields at once.
    void start_bytes(std::span<const std::byte* const> fields, team t = {}) noexcept { core_->start_bytes(fields, t); }
    /// Starts an exchange of options().fields fields, or views, at once, e.g. start(std::array{&x, &y}).
    /// Shape: all in one site order.  Pre: as for one field.
    template <message_fields Fields>
    void start(const Fields& xs, team t = {}) noexcept {
        core_->start(as_span(xs), t);
    }
    /// Where to write the next message through face f, for callers who fill it piece by piece while they compute and
    /// then call start_filled(). Over shm this is the neighbour's ghost memory: the slot that it is not reading.
    /// Bytes: fields x send_sites x bytes_per_site. Valid until start_filled(); each exchange has another target.
    /// nullptr once an exchange of the plan has failed.
    /// Pre: message_of(f) >= 0; the last exchange is finished.  Cost: O(messages): look it up once per exchange.
    [[nodiscard]] std::byte* target(face f) noexcept { return core_->target(f); }
    /// Starts an exchange whose messages are already in their targets. In a team each member calls it when it has
    /// filled its share.
    void start_filled(team t = {}) noexcept { core_->start_filled(t); }
    /// Makes the plan misused, unless its status is bad already: for interfaces that check what start() would be given.
    /// `why`: a literal, which finish_or_throw() will say.
    void refuse_start(const char* why) noexcept { core_->refuse_start(why); }
    /// True if finish() would not wait, for ghosts or for members of the team that are still packing. Copies what a
    /// waiting receiver can (path joint). In a team member 0 alone calls it.
    [[nodiscard]] bool test() noexcept { return core_->test(); }
    /// Waits until all ghosts are here. In a team it returns when every member has called it, so the interior work of
    /// the whole team is done too.
    /// Err: once the status is bad it stays bad, start() does nothing, and peers that wait for this rank in the plan get
    ///      aborted. misused, for the whole team, if a member doesn't call before the job's deadline, or two call with
    ///      the same index. aborted, usually within 0.1 s, if a peer of this node waits for another plan or sum, and
    ///      neither rank has begun what the other waits for; in a process with other threads at nine tenths of the
    ///      deadline, because one of them might begin it.
    [[nodiscard]] comm::status finish(team t = {}) noexcept { return core_->finish(t); }
    /// finish() that throws on a bad status. Not for members of a team: they call finish(t). If that is not ok, one
    /// thread calls this afterwards, and it throws the reason.
    /// Err: input_error: start() was given fields that it can't send, a call came at the wrong time, or a member of a
    ///      team was missing; job_error.
    void finish_or_throw() { core_->finish_or_throw(); }

    /// The faces whose ghosts have arrived since the last call, each once per exchange. Their ghosts may be read at
    /// once, while others still travel: `while (!plan.test()) for (face f : plan.completed()) …` between start() and
    /// finish(), and once more after finish(). The loop needs test(), which is also true when some rank has died;
    /// without it only the rank's watchdog would end the process. The list is valid until the next call. In a team
    /// member 0 alone calls it; nothing is listed before all members have packed.
    [[nodiscard]] std::span<const face> completed() noexcept { return core_->completed(); }

    // Fields, views and what a packer packs are tracked. After the start of an exchange that the caller packs (a pack
    // function of your own, start_bytes(), start_filled()) no field is fresh. Views without a version (memory of your
    // own) are never fresh, because nothing can be marked; require_fresh() goes by their values alone.

    /// Exchanges x unless is_fresh(x) and the last exchange copied it. All ranks must come to the same answer, so mark
    /// the same fields everywhere. With checks normal or above, a field that was written but not marked is misused.
    /// Teams: all members call it, and leave it together; x is not marked before all have.
    /// Pre:  the last exchange is finished; options().fields == 1, and as for start(x); otherwise misused.
    /// Cost: a comparison, with checks normal or above also a read of the faces; or an exchange.
    template <class T>
    [[nodiscard]] comm::status ensure_halo(const lattice::field<T>& x, team t = {}) noexcept {
        return ensure_halo(std::array{&x}, t);
    }
    [[nodiscard]] comm::status ensure_halo(const field_view& x, team t = {}) noexcept {
        return ensure_halo(std::span(&x, 1), t);
    }
    /// Exchanges these fields unless is_fresh(xs) and the last exchange copied them.  Pre: as for start(xs); otherwise
    /// misused.
    template <message_fields Fields>
    [[nodiscard]] comm::status ensure_halo(const Fields& xs, team t = {}) noexcept {
        if (is_fresh(xs) && core_->was_packed_by(0)) return core_->told_fresh(as_span(xs), t);
        start(xs, t);
        return finish(t);
    }
    /// Exchanges what a packer packs unless is_fresh(pack): ensure_halo(packer.of(x)).  Pre: as for start(pack).
    template <field_pack_function Pack>
    [[nodiscard]] comm::status ensure_halo(const Pack& pack, team t = {}) noexcept {
        if (is_fresh(pack)) return core_->told_fresh(as_span(pack.sources()), t);
        start(pack, t);
        return finish(t);
    }
    /// True if the last exchange was of x, alone or among others, copied or packed by a packer, and x.mark_written()
    /// has not been called since. Any member of a team may ask, between finish() and its next start().
    template <class T>
    [[nodiscard]] bool is_fresh(const lattice::field<T>& x) const noexcept {
        return core_->is_fresh(&x);
    }
    [[nodiscard]] bool is_fresh(const field_view& x) const noexcept { return core_->is_fresh(x); }
    /// True if the last exchange was of these fields, in this order, and none of them was marked since.
    template <message_fields Fields>
    [[nodiscard]] bool is_fresh(const Fields& xs) const noexcept {
        return core_->is_fresh(as_span(xs));
    }
    /// True if the last exchange was of these fields, packed by the same packer (or a copy of it), and none of them was
    /// marked since.
    template <field_pack_function Pack>
    [[nodiscard]] bool is_fresh(const Pack& pack) const noexcept {
        return core_->was_packed_by(pack.packed_by()) && core_->is_fresh(as_span(pack.sources()));
    }
    /// A check before ghosts of x are used, copied or packed by a packer; does nothing if options().checks is below
    /// normal.
    /// Err: error if the last exchange was not of x, or is not finished, if x was marked since, or if a site that was
    ///      sent has another value now, marked or not.
    /// Cost: one read of the faces.
    template <class T>
    void require_fresh(const lattice::field<T>& x) const {
        core_->require_fresh(&x);
    }
    void require_fresh(const field_view& x) const { core_->require_fresh(x); }
    void require_fresh(const source_field& x) const { core_->require_fresh(x); }
    /// require_fresh() of all fields of a message, in this order.
    /// Err: input_error unless there are options().fields of them.
    template <message_fields Fields>
    void require_fresh(const Fields& xs) const {
        core_->require_fresh(as_span(xs));
    }

    /// The ghosts behind face f, in message order; with several fields, those of field `field`. Valid from finish(k) to
    /// start(k+1). nullptr if the face is not exchanged, or before its first message has arrived.
    /// Bytes: messages()[message_of(f)].ghost_sites x bytes_per_site. Those of field 0 are aligned to 64 (to 16, if up
    /// to 16 bytes); those of other fields follow without a gap.
    /// Pre: for ghost(f, field): message_of(f) >= 0, 0 <= field < options().fields.
    [[nodiscard]] const std::byte* ghost(face f) const noexcept { return core_->ghost(f); }
    [[nodiscard]] const std::byte* ghost(face f, int field) const noexcept { return core_->ghost(f, field); }
    /// The ghosts behind face f as numbers: component c of ghost site i is ghosts<T>(f)[i * components + c]. Empty if
    /// the face is not exchanged, or before its first message has arrived.
    /// Pre: messages hold numbers of this type; 0 <= field < options().fields.
    template <class T>
    [[nodiscard]] std::span<const T> ghosts(face f, int field = 0) const noexcept {
        static_assert(std::is_trivially_copyable_v<T>, "messages hold bytes");
        const std::byte* const first = core_->ghost(f, field);
        if (first == nullptr) return {};
        return {reinterpret_cast<const T*>(first), core_->ghost_bytes(f) / sizeof(T)};
    }

    /// Number of finished exchanges.
    [[nodiscard]] std::uint64_t epoch() const { return core_->epoch(); }
    [[nodiscard]] const plan_options& options() const { return core_->options(); }
    [[nodiscard]] const lattice::decomposition& cut() const { return core_->cut(); }
    [[nodiscard]] const comm::job& job() const { return core_->job(); }
    [[nodiscard]] plan_statistics statistics() const { return core_->statistics(); }
    void reset_statistics() { core_->reset_statistics(); }
    /// Bytes of the slab that the plan occupies: slots and control lines.
    [[nodiscard]] std::size_t slab_bytes() const { return core_->slab_bytes(); }
    /// Bytes outside the slab in which messages packed by callers are assembled before they are streamed: the size of
    /// the messages that are, or may later be, streamed. Memory that nobody packs into is not touched.
    [[nodiscard]] std::size_t staging_bytes() const { return core_->staging_bytes(); }
    /// A table for human readers: face, peer, transport, path ("none": not exchanged), sites, bytes; the reason for each
    /// path, and why preferred transports were not used.
    [[nodiscard]] std::string describe() const { return core_->describe(); }

  private:
    checked_pointer<std::unique_ptr<plan_core>> core_;
};

} // namespace halocline::halo
