// SPDX-License-Identifier: Apache-2.0
// A halo plan: an exchange of ghost faces that is set up once and then repeated.
// The ghosts lie in the plan's own receive slots: plan.ghost(face) after finish(), never part of a field (for ghosts
// inside a field see shell_plan.hpp).
// Message order: the sites of a face are lexicographic (x fastest) in the sender's coordinates, whatever the site order.
//
// Contract: the sites that are sent are not written between start() and finish(). The ghosts of exchange k are valid
// from finish(k) to start(k+1). start(), test() and finish() are noexcept and neither allocate nor lock; over shared
// memory, with a core for each rank, they make no system call.
#pragma once

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/clock.hpp>
#include <halocline/halo/exchange_times.hpp>
#include <halocline/halo/path_watch.hpp>
#include <halocline/halo/plan_options.hpp>
#include <halocline/halo/plan_statistics.hpp>
#include <halocline/halo/site_copy.hpp>
#include <halocline/halo/team.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace halocline::halo {

/// A caller's own packing, for start(): pack(message, first, last, target).
template <class F>
concept pack_function = std::invocable<F&, int, std::int64_t, std::int64_t, std::byte*>;

/// Lifetime: destroying a plan never blocks. It says farewell to its peers: one that still waits for an exchange, say
/// because an exception was thrown here between start() and finish(), gets status::aborted.
class plan {
  public:
    /// Collective.
    /// Err:  on every rank: input_error (ghosts wider than a local box; ends that disagree, with both values); job_error.
    /// Cost: O(own faces) messages; slab memory of at most 4 x the ghost bytes.
    plan(const comm::job& j, const lattice::decomposition& cut, plan_options options);

    /// The messages of this plan: one per face that is exchanged, and an arriving one for each that is sent.
    [[nodiscard]] std::span<const plan_message> messages() const { return messages_; }
    /// Position of a face's message in messages(); -1 if the face is not exchanged: its dimension is not cut or has no
    /// width on either side, or the edge is open.
    [[nodiscard]] int message_of(face f) const { return message_of_[f.index()]; }

    /// Starts an exchange. pack(message, first, last, target) writes the sites send_sites[first, last) of
    /// messages()[message]. `target` is the start of the whole message: site i of field f goes to
    /// target + (f * send_sites.size() + i) * bytes_per_site. On the direct path that is the neighbour's ghost memory.
    /// Each thread of a team calls pack for a range of its own; nobody calls it for an empty range.
    /// Pre: the last exchange is finished; what pack reads is complete, for all threads of the team; pack does not
    /// throw and writes every byte (bytes that it leaves out are unspecified, because lines may be claimed first:
    /// claim_lines.hpp).
    template <pack_function Pack>
    void start(Pack&& pack, team t = {}) noexcept;
    /// Starts an exchange of a field, with the built-in copy.
    /// Pre: the field covers the local box, and components() * sizeof(T) == bytes_per_site. If not, nothing is sent and
    /// finish() returns misused.
    template <class T>
    void start(const lattice::field<T>& x, team t = {}) noexcept;
    /// Starts an exchange of a field in memory of any kind: bytes_per_site for each site of the local box, x fastest.
    /// Pre: options() has one field and no order. If not, nothing is sent and finish() returns misused.
    void start_bytes(const std::byte* values, team t = {}) noexcept;
    /// The same for options().fields fields.  Shape: all in one site order.
    template <class T>
    void start(std::span<const lattice::field<T>* const> xs, team t = {}) noexcept;
    /// Where the next message through face f is to be written, by callers who fill it piece by piece while they compute
    /// and then call start_filled(). Over shm this is the neighbour's ghost memory: the slot that it is not reading.
    /// Bytes: fields x send_sites x bytes_per_site. Valid until start_filled(); each exchange has another target.
    /// Pre: message_of(f) >= 0; the last exchange is finished.  Cost: O(messages): look it up once per exchange.
    [[nodiscard]] std::byte* target(face f) noexcept;
    /// Starts an exchange whose messages are in their targets already. In a team each member calls it when it has
    /// filled its share.
    void start_filled(team t = {}) noexcept;
    /// True if finish() would not wait. In a team: one thread at a time.
    [[nodiscard]] bool test() noexcept;
    /// Waits until all ghosts are here. In a team it returns when every member has called it, so the interior work of
    /// the whole team is done too.  Err: once the status is bad it stays bad, and start() does nothing.
    [[nodiscard]] comm::status finish(team t = {}) noexcept;
    /// finish(), with a bad status as an exception.
    /// Err: input_error: start() was given fields that it can't send; job_error.
    void finish_or_throw();

    /// The faces whose ghosts have arrived since the last call, each once per exchange. Their ghosts may be read at
    /// once, while others still travel: `while (!plan.test()) for (face f : plan.completed()) …` between start() and
    /// finish(), and once more after finish(). The loop needs test(), which is also true when somebody has died; without
    /// it only the rank's watchdog would end the process. The list is valid until the next call.
    [[nodiscard]] std::span<const face> completed() noexcept;

    /// Exchanges x unless is_fresh(x). Every rank must come to the same answer, so mark the same fields everywhere.
    template <class T>
    [[nodiscard]] comm::status ensure_halo(const lattice::field<T>& x) noexcept;
    /// True if the last exchange was of x, and x.mark_written() has not been called since.
    template <class T>
    [[nodiscard]] bool is_fresh(const lattice::field<T>& x) const noexcept {
        return fresh_ == sent_field{x.data(), x.version(), epoch_};
    }
    /// A check before ghosts of x are used; does nothing if options().checks is below normal.
    /// Err: error if !is_fresh(x), or if a site that was sent has another value now, marked or not.
    /// Cost: one read of the faces.
    template <class T>
    void require_fresh(const lattice::field<T>& x) const;

    /// The ghosts behind face f, in message order; of several fields, those of field `field`. Valid from finish(k) to
    /// start(k+1). ghost(f) is nullptr if the face is not exchanged.
    /// Bytes: messages()[message_of(f)].ghost_sites x bytes_per_site, aligned to 64 (of up to 16 bytes: to 16).
    /// Pre: for ghost(f, field): message_of(f) >= 0, 0 <= field < options().fields.
    [[nodiscard]] const std::byte* ghost(face f) const noexcept { return ghosts_[f.index()]; }
    [[nodiscard]] const std::byte* ghost(face f, int field) const noexcept {
        const plan_message& m = messages_[static_cast<std::size_t>(message_of(f))];
        return ghosts_[f.index()] + static_cast<std::size_t>(field * m.ghost_sites) * options_.bytes_per_site;
    }

    /// Finished exchanges.
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    [[nodiscard]] const plan_options& options() const { return options_; }
    [[nodiscard]] const comm::job& owner() const { return job_; }
    [[nodiscard]] plan_statistics statistics() const;
    void reset_statistics();
    /// Bytes of the slab that the plan takes: slots and control lines.
    [[nodiscard]] std::size_t slab_bytes() const { return channels_.memory_bytes(); }
    /// A table for people: face, peer, transport, path, sites, bytes; the reason for each path, and why transports that
    /// are preferred were not used.
    [[nodiscard]] std::string describe() const;

  private:
    /// Where a team meets: counters of the plan's own, because an OpenMP barrier costs a futex call. Who counts releases
    /// what it wrote, who goes on acquires it:
    ///   packed     what members packed, by the last of them, who sends it
    ///   started    what the last one did to the channels, by member 0 before it waits on them
    ///   waiting    the members' interior work, by member 0
    ///   released   ghosts_ and status_, which member 0 wrote, by the others
    struct meeting_point {
        alignas(64) std::atomic<int> packed{0};             // members done with their share of this exchange
        alignas(64) std::atomic<std::uint64_t> started{0};  // epoch that was sent last
        alignas(64) std::atomic<int> waiting{0};            // members in finish()
        alignas(64) std::atomic<std::uint64_t> released{0}; // times that a team left finish()
    };
    // Set-up (plan_setup.cpp).
    void prepare_messages(const lattice::decomposition& cut);
    void prepare_copies();

    // How messages are written where the peer shares its memory (plan_paths.cpp).
    void choose_paths(const std::vector<comm::channel_request>& requests);
    /// Looks where messages of the next exchange go, and changes their paths.  Pre: no thread of a team is in start().
    void look_at_paths() noexcept;
    [[nodiscard]] bool streams(std::size_t message) const noexcept { return messages_[message].path == path::streamed; }
    /// Are lines of the message claimed before they are filled (claim_lines.hpp)?
    [[nodiscard]] bool claims(std::size_t message) const noexcept {
        return claims_ && messages_[message].path == path::direct && watches_[message].claims();
    }
    /// claim_lines() of these sites of all fields, which a caller's pack function is about to fill, if claims().
    void claim_sites(std::size_t message, std::int64_t first, std::int64_t last, std::byte* target) const noexcept;

    // Copies, of sites [first, last) of a message that starts at target (plan_copies.cpp).
    /// Can a field of this kind be sent?
    [[nodiscard]] bool fits(const lattice::site_order& order, const site_shape& shape) const noexcept;
    /// Are copies_ for fields in this order?  Pre: not null, unless the plan was made without one.
    [[nodiscard]] bool is_prepared_for(const lattice::site_order* order) const noexcept {
        const lattice::site_order* const prepared = options_.order.get();
        return order == prepared || (order->is_lexicographic() && (!prepared || prepared->is_lexicographic()));
    }
    /// From a field.
    void copy_sites(const std::byte* values, const lattice::site_order* order, const site_shape& shape,
                    std::size_t message, std::int64_t first, std::int64_t last, std::byte* target) const noexcept {
        if (is_prepared_for(order)) return copies_[message].copy(values, target, shape, first, last);
        copy_one_by_one(values, *order, shape, message, first, last, target);
    }
    void copy_one_by_one(const std::byte* values, const lattice::site_order& order, const site_shape& shape,
                         std::size_t message, std::int64_t first, std::int64_t last, std::byte* target) const noexcept;
    /// The same, with lines claimed first if claims(): by blocks, which are still in the first-level cache when they are
    /// filled.
    void fill_sites(const std::byte* values, const lattice::site_order* order, const site_shape& shape,
                    std::size_t message, std::int64_t first, std::int64_t last, std::byte* target) const noexcept;
    /// The same past the cache, in blocks that are gathered in the first-level cache first.
    void stream_sites(const std::byte* values, const lattice::site_order* order, const site_shape& shape,
                      std::size_t message, std::int64_t first, std::int64_t last, std::byte* target) const noexcept;
    static constexpr std::size_t stream_block_bytes = 8192;
    /// From staging_, where a caller has packed them, past the cache.
    void stream_staged(std::size_t message, std::int64_t first, std::int64_t last, std::byte* target) const noexcept;
    /// Of all sites that are sent.
    [[nodiscard]] std::uint64_t checksum(const std::byte* values, const lattice::site_order& order,
                                         const site_shape& shape) const noexcept;
    /// Of one field in a message.
    [[nodiscard]] std::size_t field_bytes(std::size_t message) const noexcept {
        return messages_[message].send_sites.size() * options_.bytes_per_site;
    }

    // The exchange (plan.cpp).
    comm::status wait() noexcept;
    /// Ticks from then until the last peer of this host had started.  Pre: all has arrived.
    [[nodiscard]] std::uint64_t lateness(std::uint64_t epoch, std::uint64_t waiting_since) const noexcept;
    /// Bytes of the checksum behind the last site of each message.
    [[nodiscard]] std::size_t seal_bytes() const { return options_.checksums ? sizeof(std::uint32_t) : 0; }
    void seal(std::byte* message, std::size_t sites, std::uint64_t epoch) noexcept;
    [[nodiscard]] bool is_sealed(const std::byte* message, std::size_t sites, std::uint64_t epoch) const noexcept;
    [[noreturn]] void throw_stale(const char* why) const;
    [[noreturn]] void throw_unfit() const;
    /// Sites [first, last) of a message that a member packs: an equal share; of a message too short for that all, by
    /// one member, message by message another one.
    [[nodiscard]] std::pair<std::int64_t, std::int64_t> share_of(std::size_t message, team t) const noexcept {
        constexpr std::size_t least_bytes = 4096;
        const std::size_t count = messages_[message].send_sites.size();
        const auto sites = static_cast<std::int64_t>(count);
        if (count * options_.bytes_per_site * static_cast<std::size_t>(options_.fields) <
            least_bytes * static_cast<std::size_t>(t.size))
            return {0, static_cast<int>(message) % t.size == t.index ? sites : 0};
        return {sites * t.index / t.size, sites * (t.index + 1) / t.size};
    }
    /// All of start() but the packing, which is fill(channel, epoch, first, last) of sites of its message.
    template <class Fill>
    void start_by(Fill&& fill, team t) noexcept;

    /// What an exchange was of: a field's place and version, and the exchange.
    struct sent_field {
        const void* values = nullptr;
        std::uint64_t version = 0, epoch = 0;
        friend bool operator==(const sent_field&, const sent_field&) = default;
    };

    comm::job job_;
    plan_options options_;
    lattice::coordinate extents_{}; // of the local box
    std::vector<plan_message> messages_;
    std::array<int, lattice::faces> message_of_{};
    std::vector<site_copy> copies_; // by message; of fields in options_.order
    std::vector<bool> same_clock_;  // by message: the peer's stamps can be compared with ours
    comm::channel_set channels_;

    // The running exchange, and the last one.
    std::uint64_t epoch_ = 0; // finished exchanges; written by team member 0 while the others wait for it
    comm::status status_ = comm::status::ok;
    int broken_seal_ = -1; // message whose checksum was wrong
    struct unfit_field {   // one of those that start() was given
        std::size_t fields = 0, bytes_per_site = 0;
        lattice::coordinate extents{};
    };
    std::optional<unfit_field> unfit_; // could not be sent; or there were too many, too few
    std::array<const std::byte*, lattice::faces> ghosts_{};
    std::array<face, lattice::faces> completed_{};         // room for completed()
    std::array<std::uint64_t, lattice::faces> reported_{}; // by face: exchange that completed() said last
    sent_field fresh_;                                     // of the last start(field)
    std::uint64_t fresh_sum_ = 0;                          // of what it sent; checks normal
    std::unique_ptr<meeting_point> team_;

    // Paths.
    bool claims_ = false;             // lines of direct messages before they are filled
    std::vector<path_watch> watches_; // by message
    look_times looks_;
    struct alignas(64) cache_line {
        std::byte bytes[64];
    };
    std::vector<std::size_t> staged_at_;    // by message: its first line in staging_
    std::unique_ptr<cache_line[]> staging_; // what callers pack before it is streamed

    // Statistics.
    std::uint64_t timed_at_ = 0; // start of the last timed exchange, in ticks, by member 0 of a team
    std::uint64_t path_changes_ = 0;
    exchange_times times_;
};

template <pack_function Pack>
void plan::start(Pack&& pack, team t) noexcept {
    start_by(
        [&](auto& channel, std::uint64_t epoch, std::int64_t first, std::int64_t last) noexcept {
            const std::size_t message = channel.index();
            std::byte* const target = channel.target(epoch);
            if (streams(message)) {
                pack(static_cast<int>(message), first, last, staging_[staged_at_[message]].bytes);
                stream_staged(message, first, last, target);
            } else {
                claim_sites(message, first, last, target);
                pack(static_cast<int>(message), first, last, target);
            }
        },
        t);
}

template <class Fill>
void plan::start_by(Fill&& fill, team t) noexcept {
    if (status_ != comm::status::ok) return;
    const std::uint64_t epoch = epoch_ + 1, stamp = exchange_times::timed(epoch) ? comm::ticks() : 0;
    if (t.index == 0) channels_.prepare(epoch);
    if (t.size == 1) {
        channels_.for_each([&](auto& channel) {
            const auto sites = static_cast<std::int64_t>(messages_[channel.index()].send_sites.size());
            if (sites > 0) fill(channel, epoch, 0, sites);
            if (seal_bytes() > 0) seal(channel.target(epoch), messages_[channel.index()].send_sites.size(), epoch);
            channel.send(epoch, stamp); // before the next message is packed: the peer may read on
        });
        team_->started.store(epoch, std::memory_order_relaxed);
    } else {
        channels_.for_each([&](auto& channel) {
            const auto [first, last] = share_of(channel.index(), t);
            if (first < last) fill(channel, epoch, first, last);
        });
        if (team_->packed.fetch_add(1, std::memory_order_acq_rel) == t.size - 1) { // the last one publishes for all
            team_->packed.store(0, std::memory_order_relaxed);
            channels_.for_each([&](auto& channel) {
                if (seal_bytes() > 0) seal(channel.target(epoch), messages_[channel.index()].send_sites.size(), epoch);
                channel.send(epoch, stamp);
            });
            team_->started.store(epoch, std::memory_order_release);
        }
    }
    if (t.index == 0 && stamp != 0) {
        timed_at_ = stamp;
        times_.packed(comm::ticks() - stamp);
    }
}

template <class T>
void plan::start(const lattice::field<T>& x, team t) noexcept {
    const lattice::field<T>* const one = &x;
    start(std::span<const lattice::field<T>* const>(&one, 1), t);
}

template <class T>
void plan::start(std::span<const lattice::field<T>* const> xs, team t) noexcept {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "the built-in copy moves components of 4 or 8 bytes");
    const auto shape_of = [](const lattice::field<T>& x) {
        return site_shape{.components = x.components(), .component_bytes = sizeof(T)};
    };
    const auto bytes_of = [](const lattice::field<T>& x) { return reinterpret_cast<const std::byte*>(x.data()); };
    const auto unfit = std::find_if(xs.begin(), xs.end(), [&](const lattice::field<T>* x) {
        return !x->shared_order() || !fits(x->order(), shape_of(*x));
    });
    if (unfit != xs.end() || xs.size() != static_cast<std::size_t>(options_.fields)) {
        if (t.index != 0) return;
        unfit_ = unfit_field{.fields = xs.size()};
        if (unfit != xs.end()) unfit_->bytes_per_site = shape_of(**unfit).bytes();
        if (unfit != xs.end() && (*unfit)->shared_order()) unfit_->extents = (*unfit)->order().extents();
        status_ = comm::status::misused;
        return;
    }
    if (t.index == 0) {
        fresh_ = {xs.front()->data(), xs.front()->version(), epoch_ + 1};
        if (options_.checks >= check_level::normal)
            fresh_sum_ = checksum(bytes_of(*xs.front()), xs.front()->order(), shape_of(*xs.front()));
    }
    start_by(
        [&](auto& channel, std::uint64_t epoch, std::int64_t first, std::int64_t last) noexcept {
            const std::size_t message = channel.index();
            std::byte* target = channel.target(epoch);
            for (const lattice::field<T>* x : xs) {
                if (streams(message))
                    stream_sites(bytes_of(*x), &x->order(), shape_of(*x), message, first, last, target);
                else
                    fill_sites(bytes_of(*x), &x->order(), shape_of(*x), message, first, last, target);
                target += field_bytes(message);
            }
        },
        t);
}

template <class T>
comm::status plan::ensure_halo(const lattice::field<T>& x) noexcept {
    if (is_fresh(x)) return status_;
    start(x);
    return finish();
}

template <class T>
void plan::require_fresh(const lattice::field<T>& x) const {
    if (options_.checks < check_level::normal) return;
    if (fresh_.values != x.data() || fresh_.epoch != epoch_) throw_stale("is not what the last finished exchange sent");
    if (fresh_.version != x.version()) throw_stale("was marked as written since");
    if (checksum(reinterpret_cast<const std::byte*>(x.data()), x.order(),
                 {.components = x.components(), .component_bytes = sizeof(T)}) != fresh_sum_)
        throw_stale("was written since");
}

} // namespace halocline::halo
