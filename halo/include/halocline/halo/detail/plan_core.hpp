// SPDX-License-Identifier: Apache-2.0
// What halo::plan consists of, at an address that stays the same when the plan is moved. plan.hpp has the contract of
// each call.
#pragma once

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
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace halocline::halo {

class chosen_sites;

class plan_core {
  public:
    plan_core(const comm::job& j, const lattice::decomposition& cut, plan_options options);
    plan_core(const plan_core&) = delete;
    plan_core& operator=(const plan_core&) = delete;
    /// Tells of a misuse that no finish() has told.
    ~plan_core();

    // The calls of an exchange.
    template <class Pack>
    void start_packed(Pack& pack, team t) noexcept;
    /// X: a pointer to a field, a view of one, or a source_field.
    template <class X>
    void start(std::span<X> xs, team t) noexcept;
    void start_bytes(std::span<const std::byte* const> fields, team t) noexcept;
    void start_filled(team t) noexcept;
    void refuse_start(const char* why) noexcept { status_.misuse(why); }
    [[nodiscard]] std::byte* target(face f) noexcept;
    [[nodiscard]] bool test() noexcept;
    [[nodiscard]] comm::status finish(team t) noexcept;
    void finish_or_throw();
    [[nodiscard]] std::span<const face> completed() noexcept;

    // What the ghosts are of. Any member of a team may ask between its finish() and its next start().
    template <class X>
    [[nodiscard]] bool is_fresh(const X& x) const noexcept {
        const auto is_x = [&](const sent_field& sent) {
            return sent.is_fresh(source_of(x).values, version_of(x), epoch_);
        };
        return std::ranges::any_of(sent().fields, is_x) && !team_->in_flight(epoch_);
    }
    template <class X>
    [[nodiscard]] bool is_fresh(std::span<X> xs) const noexcept {
        const auto is_of = [&](const sent_field& sent, const X& x) {
            return sent.is_fresh(source_of(x).values, version_of(x), epoch_);
        };
        return std::ranges::equal(sent().fields, xs, is_of) && !team_->in_flight(epoch_);
    }
    /// Was the last exchange made by the packer of this number (0: of fields that were copied)?
    [[nodiscard]] bool was_packed_by(std::uint64_t packer) const noexcept { return sent().packed_by == packer; }
    template <class X>
    void require_fresh(const X& x) const {
        require_fresh(source_of(x), version_of(x), 0, sent().fields.size());
    }
    template <class X>
    void require_fresh(std::span<X> xs) const;
    /// The status of ensure_halo() of these fields, which by their marks are fresh. A team's members leave it together.
    template <class X>
    comm::status told_fresh(std::span<X> xs, team t) noexcept;

    // Looking at the plan.
    [[nodiscard]] std::span<const plan_message> messages() const { return messages_; }
    [[nodiscard]] int message_of(face f) const noexcept { return message_of_[f.index()]; }
    [[nodiscard]] std::vector<lattice::coordinate> ghost_sites(face f) const;
    [[nodiscard]] const std::byte* ghost(face f) const noexcept {
        const int message = message_of(f);
        return message < 0 ? nullptr : ghosts_[message];
    }
    [[nodiscard]] const std::byte* ghost(face f, int field) const noexcept {
        const std::byte* const first = ghost(f);
        if (first == nullptr) return nullptr;
        return first + static_cast<std::size_t>(field) * ghost_bytes(f);
    }
    /// Bytes of one field's ghosts.  Pre: the face is exchanged.
    [[nodiscard]] std::size_t ghost_bytes(face f) const noexcept {
        return static_cast<std::size_t>(messages_[message_of(f)].ghost_sites) * options_.bytes_per_site;
    }
    [[nodiscard]] comm::status tell_status() noexcept { return status_.tell(); }
    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
    [[nodiscard]] const plan_options& options() const noexcept { return options_; }
    [[nodiscard]] const lattice::decomposition& cut() const noexcept { return cut_; }
    [[nodiscard]] const comm::job& job() const noexcept { return job_; }
    [[nodiscard]] plan_statistics statistics() const { return times_.statistics(channels_); }
    void reset_statistics() { times_.reset(channels_); }
    [[nodiscard]] std::size_t slab_bytes() const { return channels_.memory_bytes(); }
    [[nodiscard]] std::size_t staging_bytes() const;
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
    /// Puts two short messages to one rank, which is the neighbour on both sides of a dimension, into one channel if
    /// they go over a network: there a message costs more than its bytes.  Returns the number of channels.
    std::size_t coalesce_messages();
    /// What channels are asked to carry; decides which messages both ends copy.
    [[nodiscard]] std::vector<comm::channel_request> make_requests(std::size_t channels, const comm::costs& costs);
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

    // Starting an exchange (plan_start.hpp).
    /// Which members of a team pack a message.
    enum class packing : std::uint8_t { by_share, by_caller };
    /// All of start() except the packing, which is fill(message, target, first, last) for sites of a message that
    /// begins at `target`, and returns as message_writer::write(). False if nothing was started.
    /// `source`: where receivers find what fill copies; null: they can't help with it.
    template <class Fill>
    bool start_with(Fill&& fill, team t, packing whose = packing::by_share,
                    const comm::joint_source* source = nullptr) noexcept;
    /// start_with() that copies the fields xs, source(x), and lets receivers help if both ends copy messages.
    template <class X, class Source>
    bool start_copying(std::span<X> xs, team t, Source&& source) noexcept;
    /// start_with() for a member of a team of several.
    template <class Fill>
    bool start_as_member(Fill&& fill, team t, packing whose, std::uint64_t stamp) noexcept;
    /// Fills what a channel carries alone, or together with its receiver.
    template <class Channel, class Fill>
    void fill_channel(Channel& channel, std::uint64_t epoch, Fill& fill) noexcept;
    /// Fills a member's share of what a channel carries: its sites are counted through the messages.
    template <class Channel, class Fill>
    void fill_share(Channel& channel, std::uint64_t epoch, packing_share share, Fill& fill) noexcept;
    /// Fills some sites of one message.
    template <class Channel, class Fill>
    void fill_part(Channel& channel, std::uint64_t epoch, std::size_t message, std::int64_t first, std::int64_t last,
                   Fill& fill) noexcept;
    /// Seals what a channel carries, if messages are sealed.
    template <class Channel>
    void seal(Channel& channel, std::uint64_t epoch, packing whose) noexcept;
    /// Those between ranks that share no memory, but mock, whose messages cost nothing.
    template <class Channel>
    static constexpr bool may_carry_two = comm::carded_channel<Channel> && !std::is_same_v<Channel, comm::mock_channel>;
    template <class Channel>
    [[nodiscard]] std::size_t first_in(const Channel& channel) const noexcept {
        return first_[channel.index()];
    }
    /// Calls use(message) for the messages that a channel carries: one, or two over a network (coalesce_messages()).
    template <class Channel, class Use>
    void for_each_message(const Channel& channel, Use&& use) const noexcept {
        use(first_in(channel));
        if constexpr (may_carry_two<Channel>)
            if (const int follower = follower_[channel.index()]; follower >= 0) use(static_cast<std::size_t>(follower));
    }
    /// Offers the messages to their receivers, before any is filled: they may be waiting.
    void offer(const comm::joint_source& source, std::uint64_t epoch) noexcept;
    [[nodiscard]] bool is_prepared_for(const lattice::site_order* order) const noexcept {
        return writers_.empty() || writers_.front().is_prepared_for(order);
    }
    /// Notes of which fields the exchange is that was just started.
    template <class X>
    void note_sent(std::span<X> xs, std::uint64_t packed_by) noexcept;

    // Finishing it (plan.cpp).
    comm::status wait() noexcept;
    /// After a failed finish(): peers need not wait for what never comes.
    void leave_if_failed() noexcept;
    /// Copies pieces of messages that are on their way to this rank.
    void help(std::uint64_t epoch) noexcept;
    template <class Channel>
    [[nodiscard]] bool is_intact(const Channel& channel, std::size_t message, std::uint64_t epoch) const noexcept;
    /// Checks the targets of the next exchange's messages, and changes their paths.  Pre: no team member is in start().
    void review_paths() noexcept;

    // What is wrong.
    /// The status, which any member of a team may have made bad.
    [[nodiscard]] comm::status state() const noexcept { return status_.load(); }
    /// Refuses the input of start(), if it can't be sent; it may come from any member of a team.
    void refuse_fields(std::size_t fields, const source_field* unfit) noexcept;
    /// Refuses a call by a thread that is not a member, or a member's fault; nobody waits for the missing member.
    void refuse_thread(const comm::wrong_call& call) noexcept {
        status_.misuse(call);
        team_->disband();
    }
    [[nodiscard]] std::string why_misused() const;

    // Freshness (plan_report.cpp).
    [[nodiscard]] const sent_fields& sent() const noexcept { return sent_[epoch_ % 2]; }
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
    std::array<std::uint8_t, lattice::faces> first_{};                 // by channel: its message,
    std::array<int, lattice::faces> follower_{};                       // and the one that follows it, or -1
    std::array<std::size_t, lattice::faces> sent_at_{}, arrives_at_{}; // by message: where it lies in its channel's
    field_check accepted_;                                             // what start() may be given
    std::vector<message_writer> writers_;                              // by message
    message_seal seal_;
    std::array<std::atomic<std::uint64_t>, lattice::faces> sums_{}; // by message: of what members have filled so far
    comm::channel_set channels_;
    joint_faces joint_;
    std::optional<packing_team> team_; // after the channels, which tell who may send

    // The running exchange, and the last one.
    std::uint64_t epoch_ = 0;    // finished exchanges; written by team member 0 while the others wait for it
    sticky_status status_;       // state()
    int broken_seal_ = -1;       // the message whose values did not match its seal
    bool order_prepared_ = true; // whether the fields started last are copied as prepared rather than site by site
    // Of the last exchanges of fields with even and odd numbers: member 0 of a team notes the next one while others may
    // still ask about the last one.
    std::array<sent_fields, 2> sent_;
    std::array<const std::byte*, lattice::faces> ghosts_{}; // by message
    std::array<face, lattice::faces> completed_{};          // room for completed()
    std::array<std::uint64_t, lattice::faces> reported_{};  // by face: the exchange that completed() last reported
    look_times looks_;                                      // for reviewing paths
    exchange_times times_;                                  // of member 0 of a team
};

} // namespace halocline::halo

#include <halocline/halo/detail/plan_start.hpp> // IWYU pragma: export
