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

#include <halocline/base/check.hpp>
#include <halocline/base/checked_pointer.hpp>
#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/halo/detail/exchange_times.hpp>
#include <halocline/halo/detail/field_check.hpp>
#include <halocline/halo/detail/joint_faces.hpp>
#include <halocline/halo/detail/message_seal.hpp>
#include <halocline/halo/detail/message_writer.hpp>
#include <halocline/halo/detail/packing_team.hpp>
#include <halocline/halo/detail/path_watch.hpp>
#include <halocline/halo/detail/sent_field.hpp>
#include <halocline/halo/detail/sticky_status.hpp>
#include <halocline/halo/field_view.hpp>
#include <halocline/halo/plan_options.hpp>
#include <halocline/halo/plan_statistics.hpp>
#include <halocline/halo/team.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace halocline::halo {

class chosen_sites;

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
/// Pointers to fields, as the calls of a plan take them.
template <field_pointers Fields>
auto as_span(const Fields& xs) {
    using field = std::remove_cvref_t<decltype(**std::ranges::data(xs))>;
    return std::span<const field* const>(std::ranges::data(xs), std::ranges::size(xs));
}

/// One rank's part of an exchange with all its neighbours. Every rank of the job makes the same plans in the same
/// order.
/// Lifetime: destroying a plan never blocks. It says farewell to its peers: one that still waits for an exchange, for
/// instance because an exception left this rank between start() and finish(), gets status::aborted. If the plan was
/// misused and no finish() reported that, the destructor writes a line on stderr.
class plan {
  public:
    /// Collective.
    /// Err:  on every rank: input_error (ghosts wider than a local box; ends that disagree, with both values);
    /// slab_full; job_error.
    /// Cost: O(this rank's faces) messages; slab memory of at most 4 x the ghost bytes.
    plan(const comm::job& j, const lattice::decomposition& cut, plan_options options);
    plan(plan&&) noexcept;
    plan& operator=(plan&&) noexcept;
    ~plan();

    /// The messages of this plan: one per exchanged face, each with an arriving counterpart.
    [[nodiscard]] std::span<const plan_message> messages() const { return messages_; }
    /// Index of a face's message in messages(); -1 if the face is not exchanged, because its dimension is not cut or
    /// has no width on either side, or the edge is open.
    [[nodiscard]] int message_of(face f) const {
        (void)*team_; // throws if it was moved from
        return message_of_[f.index()];
    }

    /// Starts an exchange. pack(message, first, last, target) writes the sites send_sites[first, last) of
    /// messages()[message]. `target` is the start of the whole message: site i of field f goes to
    /// target + (f * send_sites.size() + i) * bytes_per_site. On the direct path that is the neighbour's ghost memory.
    /// Each thread of a team calls pack for its own range; it is never called for an empty range. A message is sent, by
    /// any of the threads, as soon as all of it is packed, but not before all threads have called start(). If a message
    /// goes over a network, member 0 sends them all: it leaves start() when all threads have packed.
    /// Pre: the last exchange is finished; what pack reads is complete, for all threads of the team; pack does not
    /// throw and writes every byte (bytes that it leaves out are unspecified, because lines may be claimed first:
    /// claim_lines.hpp).
    template <pack_function Pack>
    void start(Pack&& pack, team t = {}) noexcept;
    /// Starts an exchange of a field, with the built-in copy.
    /// Pre: the field covers the local box, and components() * sizeof(T) == bytes_per_site. Otherwise nothing is sent
    /// and finish() returns misused.
    template <class T>
    void start(const lattice::field<T>& x, team t = {}) noexcept;
    /// Starts an exchange of a field in memory of any kind: bytes_per_site for each site of the local box, x fastest.
    /// Pre: options() has one field and no order, or a lexicographic one, and `values` is not null. Otherwise nothing
    /// is sent and finish() returns misused.
    void start_bytes(const std::byte* values, team t = {}) noexcept;
    /// Starts an exchange of options().fields fields at once, e.g. start(std::array{&x, &y}).
    /// Shape: all in one site order.  Pre: as for one field.
    template <class T>
    void start(std::span<const lattice::field<T>* const> xs, team t = {}) noexcept;
    template <field_pointers Fields>
    void start(const Fields& xs, team t = {}) noexcept {
        start(as_span(xs), t);
    }
    /// Where to write the next message through face f, for callers who fill it piece by piece while they compute and
    /// then call start_filled(). Over shm this is the neighbour's ghost memory: the slot that it is not reading.
    /// Bytes: fields x send_sites x bytes_per_site. Valid until start_filled(); each exchange has another target.
    /// Pre: message_of(f) >= 0; the last exchange is finished.  Cost: O(messages): look it up once per exchange.
    [[nodiscard]] std::byte* target(face f) noexcept;
    /// Starts an exchange whose messages are already in their targets. In a team each member calls it when it has
    /// filled its share.
    void start_filled(team t = {}) noexcept;
    /// Makes the plan misused, unless its status is bad already: for interfaces that check what start() would be given.
    /// `why`: a literal, which finish_or_throw() will say.
    void refuse_start(const char* why) noexcept { status_.misuse(why); }
    /// True if finish() would not wait, for ghosts or for members of the team that are still packing. Copies what a
    /// waiting receiver can (path joint). In a team member 0 alone calls it.
    [[nodiscard]] bool test() noexcept;
    /// Waits until all ghosts are here. In a team it returns when every member has called it, so the interior work of
    /// the whole team is done too.
    /// Err: once the status is bad it stays bad, and start() does nothing. misused, for the whole team, if a member
    ///      doesn't call before the job's deadline, or two call with the same index. aborted, usually within 0.1 s, if a
    ///      peer of this node waits for another plan or sum, and neither rank has begun what the other waits for; in a
    ///      process with other threads at nine tenths of the deadline, because one of them might begin it.
    [[nodiscard]] comm::status finish(team t = {}) noexcept;
    /// finish() that throws on a bad status. Not for members of a team: they call finish(t). If that is not ok, one
    /// thread calls this afterwards, and it throws the reason.
    /// Err: input_error: start() was given fields that it can't send, a call came at the wrong time, or a member of a
    ///      team was missing; job_error.
    void finish_or_throw();

    /// The faces whose ghosts have arrived since the last call, each once per exchange. Their ghosts may be read at
    /// once, while others still travel: `while (!plan.test()) for (face f : plan.completed()) …` between start() and
    /// finish(), and once more after finish(). The loop needs test(), which is also true when some rank has died;
    /// without it only the rank's watchdog would end the process. The list is valid until the next call. In a team
    /// member 0 alone calls it; nothing is listed before all members have packed.
    [[nodiscard]] std::span<const face> completed() noexcept;

    // Only fields that were passed to start() are tracked. After the start of an exchange that the caller packs (a pack
    // function, start_bytes(), start_filled()) no field is fresh.

    /// Exchanges x unless is_fresh(x). All ranks must come to the same answer, so mark the same fields everywhere.
    /// Pre: options().fields == 1, and as for start(x); otherwise misused.
    template <class T>
    [[nodiscard]] comm::status ensure_halo(const lattice::field<T>& x) noexcept;
    /// Exchanges these fields unless is_fresh(xs).  Pre: as for start(xs); otherwise misused.
    template <class T>
    [[nodiscard]] comm::status ensure_halo(std::span<const lattice::field<T>* const> xs) noexcept;
    template <field_pointers Fields>
    [[nodiscard]] comm::status ensure_halo(const Fields& xs) noexcept {
        return ensure_halo(as_span(xs));
    }
    /// True if the last exchange was of x, alone or among others, and x.mark_written() has not been called since.
    template <class T>
    [[nodiscard]] bool is_fresh(const lattice::field<T>& x) const noexcept {
        const auto is_x = [&](const sent_field& sent) { return sent.is_fresh(x.data(), x.version(), epoch_); };
        return std::ranges::any_of(sent_, is_x) && !team_->in_flight(epoch_);
    }
    /// True if the last exchange was of these fields, in this order, and none of them was marked since.
    template <class T>
    [[nodiscard]] bool is_fresh(std::span<const lattice::field<T>* const> xs) const noexcept {
        const auto is_of = [&](const sent_field& sent, const lattice::field<T>* x) {
            return x != nullptr && sent.is_fresh(x->data(), x->version(), epoch_);
        };
        return std::ranges::equal(sent_, xs, is_of) && !team_->in_flight(epoch_);
    }
    /// A check before ghosts of x are used; does nothing if options().checks is below normal.
    /// Err: error if !is_fresh(x), or if a site that was sent has another value now, marked or not.
    /// Cost: one read of the faces.
    template <class T>
    void require_fresh(const lattice::field<T>& x) const;
    /// require_fresh() of all fields of a message, in this order.
    /// Err: input_error unless there are options().fields of them.
    template <class T>
    void require_fresh(std::span<const lattice::field<T>* const> xs) const;

    /// The ghosts behind face f, in message order; with several fields, those of field `field`. Valid from finish(k) to
    /// start(k+1). nullptr if the face is not exchanged, or before its first message has arrived.
    /// Bytes: messages()[message_of(f)].ghost_sites x bytes_per_site. Those of field 0 are aligned to 64 (to 16, if up
    /// to 16 bytes); those of other fields follow without a gap.
    /// Pre: for ghost(f, field): message_of(f) >= 0, 0 <= field < options().fields.
    [[nodiscard]] const std::byte* ghost(face f) const noexcept {
        const int message = message_of_[f.index()];
        return message < 0 || messages_.empty() ? nullptr : ghosts_[message]; // no messages: perhaps moved from
    }
    [[nodiscard]] const std::byte* ghost(face f, int field) const noexcept {
        const std::byte* const first = ghost(f);
        if (first == nullptr) return nullptr;
        const plan_message& m = messages_[message_of_[f.index()]];
        return first + static_cast<std::size_t>(field * m.ghost_sites) * options_.bytes_per_site;
    }
    /// The ghosts behind face f as numbers: component c of ghost site i is ghosts<T>(f)[i * components + c]. Empty if
    /// the face is not exchanged, or before its first message has arrived.
    /// Pre: messages hold numbers of this type; 0 <= field < options().fields.
    template <class T>
    [[nodiscard]] std::span<const T> ghosts(face f, int field = 0) const noexcept;

    /// Number of finished exchanges.
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    [[nodiscard]] const plan_options& options() const { return options_; }
    [[nodiscard]] const lattice::decomposition& cut() const { return cut_; }
    [[nodiscard]] const comm::job& job() const { return job_; }
    [[nodiscard]] plan_statistics statistics() const;
    void reset_statistics();
    /// Bytes of the slab that the plan occupies: slots and control lines.
    [[nodiscard]] std::size_t slab_bytes() const {
        (void)*team_;
        return channels_.memory_bytes();
    }
    /// Bytes outside the slab in which messages packed by callers are assembled before they are streamed: the size of
    /// the messages that are, or may later be, streamed. Memory that nobody packs into is not touched.
    [[nodiscard]] std::size_t staging_bytes() const;
    /// A table for human readers: face, peer, transport, path, sites, bytes; the reason for each path, and why
    /// preferred transports were not used.
    [[nodiscard]] std::string describe() const;

  private:
    // Set-up (plan_setup.cpp, plan_paths.cpp).
    /// Err: input_error, on every rank.
    void check_options(const lattice::decomposition& cut) const;
    /// Err: whatever options_.select throws.
    void prepare_messages(const lattice::decomposition& cut, chosen_sites& chosen);
    /// Err: input_error: the size of a message would overflow.
    void refuse_wrapping_sizes() const;
    void prepare_writers(const lattice::coordinate& extents);
    /// What channels are asked to carry, by message; decides which messages both ends copy.
    [[nodiscard]] std::vector<comm::channel_request> make_requests(const comm::costs& costs);
    /// Collective.
    void make_channels(const std::vector<comm::channel_request>& requests);
    /// The costs by which paths are chosen; not measured if the choice depends on no time. Collective the first time.
    [[nodiscard]] comm::costs path_costs() const;
    [[nodiscard]] path wished_path() const;
    /// Decides whether both ends copy this message, and says so in its request.
    void choose_joint(std::size_t message, const comm::costs& costs, comm::channel_request& request);
    void choose_paths(const comm::costs& costs);
    /// How a message travels now.
    [[nodiscard]] path path_now(std::size_t message) noexcept;

    // An exchange (detail/plan_start.hpp, and plan.cpp).
    /// All of start() except the packing, which is fill(channel, epoch, first, last) for sites of the channel's
    /// message. False if nothing was started.
    /// `whose`: which members of a team pack a message.
    enum class packing : std::uint8_t { by_share, by_caller };
    /// `source`: where receivers find what fill copies; null: they can't help with it.
    template <class Fill>
    bool start_with(Fill&& fill, team t, packing whose = packing::by_share,
                    const comm::joint_source* source = nullptr) noexcept;
    /// Fills a message alone, or together with its receiver.
    template <class Channel, class Fill>
    void fill_message(Channel& channel, std::uint64_t epoch, Fill& fill) noexcept;
    /// Offers the messages to their receivers, before any is filled: they may be waiting.
    void offer(const comm::joint_source& source, std::uint64_t epoch) noexcept;
    /// Copies pieces of messages that are on their way to this rank.
    void help(std::uint64_t epoch) noexcept;
    /// start_with() that lets receivers help if both ends copy messages: offer(source) says where what fill copies lies,
    /// or returns false if they can't be told.
    template <class Fill, class Offer>
    bool start_offering(Fill& fill, team t, Offer&& offer) noexcept;
    /// start_with() for a member of a team of several.
    template <class Fill>
    bool start_as_member(Fill&& fill, team t, packing whose, std::uint64_t stamp) noexcept;
    template <class Channel>
    void seal(Channel& channel, std::uint64_t epoch) noexcept {
        seal_.put(channel.target(epoch), writers_[channel.index()].bytes(), epoch);
    }
    /// Refuses the input of start(), if it can't be sent; it may come from any member of a team.
    void refuse_fields(std::size_t fields, const source_field* unfit) noexcept;
    /// Refuses a call by a thread that is not a member, or a member's fault; nobody waits for the missing member.
    void refuse_thread(const comm::wrong_call& call) noexcept {
        status_.misuse(call);
        team_->disband();
    }
    template <class T>
    [[nodiscard]] bool is_prepared_for(const lattice::field<T>& x) const noexcept {
        return writers_.empty() || writers_.front().is_prepared_for(&x.order());
    }
    /// The status, which any member of a team may have made bad.
    [[nodiscard]] comm::status state() const noexcept { return status_.load(); }
    static constexpr const char* needs_thread_level =
        "member 0 of a team sends over transport mpi, but another thread initialised MPI, with less than "
        "MPI_THREAD_SERIALIZED; initialise it by MPI_Init_thread with that level, or by the thread that is member 0";
    comm::status wait() noexcept;
    [[nodiscard]] std::string why_misused() const;
    template <class Channel>
    [[nodiscard]] bool is_intact(const Channel& channel, std::uint64_t epoch) const noexcept;
    /// Checks the targets of the next exchange's messages, and changes their paths.  Pre: no team member is in start().
    void review_paths() noexcept;
    /// The checksum over all sites of a field that are sent.
    [[nodiscard]] std::uint64_t checksum(const source_field& x) const noexcept;
    /// Err: error unless the ghosts of one of the fields [first, last) of the messages match x as it is now.
    void require_fresh(const source_field& x, std::uint64_t version, std::size_t first, std::size_t last) const;
    [[noreturn]] void throw_other_number(std::size_t fields) const;

    comm::job job_;
    lattice::decomposition cut_;
    plan_options options_;
    std::vector<plan_message> messages_;
    std::array<int, lattice::faces> message_of_{};
    field_check accepted_;                // what start() may be given
    std::vector<message_writer> writers_; // by message
    message_seal seal_;
    comm::channel_set channels_;
    joint_faces joint_;
    checked_pointer<std::unique_ptr<packing_team>> team_; // at a fixed address, so that plans can be moved

    // The running exchange, and the last one.
    std::uint64_t epoch_ = 0;      // finished exchanges; written by team member 0 while the others wait for it
    sticky_status status_;         // state()
    int broken_seal_ = -1;         // the message whose values did not match its seal
    std::vector<sent_field> sent_; // by field: as passed to the last start() of fields
    bool order_prepared_ = true;   // whether those fields are copied as prepared rather than site by site
    std::array<const std::byte*, lattice::faces> ghosts_{}; // by message
    std::array<face, lattice::faces> completed_{};          // room for completed()
    std::array<std::uint64_t, lattice::faces> reported_{};  // by face: the exchange that completed() last reported
    look_times looks_;                                      // for reviewing paths
    exchange_times times_;                                  // of member 0 of a team
};

} // namespace halocline::halo

#include <halocline/halo/detail/plan_start.hpp> // IWYU pragma: export
