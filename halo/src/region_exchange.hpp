// SPDX-License-Identifier: Apache-2.0
// What a region_plan consists of, and its exchange under way: what has been sent, what has arrived, who copies.
#pragma once

#include "copying_team.hpp"
#include "region_message.hpp"

#include <halocline/comm/detail/work_driver.hpp>
#include <halocline/halo/detail/exchange_times.hpp>
#include <halocline/halo/detail/message_seal.hpp>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <utility>

namespace halocline::halo {

struct region_plan::state : team_calls {
    // How it is made (region_channels.cpp).
    state(const comm::job& j, const std::vector<transfer>& sends, const std::vector<transfer>& receives,
          std::vector<binding> fields, region_plan_options choices);
    state(const state&) = delete; // waits know where it is
    state& operator=(const state&) = delete;
    /// Tells of a misuse that no finish() has told.
    ~state();
    /// Err: input_error: the size of a message would overflow.
    void refuse_wrapping_sizes() const;
    /// Makes the channels of all messages. Collective.
    void make_channels();
    /// Each exchange of this plan follows one of `first`, in the same call or in later waits.
    void begins_with(const state& first);

    // Its course (region_exchange.cpp). begin() and complete() are member 0's part of start() and finish().
    bool test() noexcept;
    /// test() of this plan alone, for the work of every wait.
    bool has_arrived() noexcept;
    /// Waits until all is sent and all has arrived.
    void wait() noexcept;
    comm::status complete() noexcept;
    /// The plan has failed: this rank copies nothing more, and tells its peers that nothing more comes.
    void leave() noexcept;
    /// Pre: status is misused.
    [[nodiscard]] std::string why_misused() const;
    [[nodiscard]] bool started() const { return started_ != epoch; }
    /// Called in every wait of this rank.
    void work() noexcept {
        driver.work_in_wait([this] {
            if (unsent > 0) send_direct();
            if (joint) help();
            if (step != nullptr && !finishing) step(step_object);
            // Nothing is left to do in waits. A step may have finished this exchange, so that `unsent` is others' now.
            if (step == nullptr && !joint && unsent == 0) driver.give_up();
        });
    }
    void work_in_every_wait() {
        if (!std::exchange(works, true))
            channels.work_in_every_wait(this, [](void* self) { static_cast<state*>(self)->work(); });
    }

    /// While an exchange is under way and finish() is not running, every wait of the thread that drives it calls
    /// call(object), which may finish this plan, and never waits.
    void work_in_every_wait(void* object, void (*call)(void* object)) {
        step = call;
        step_object = object;
        work_in_every_wait();
    }
    /// Is a message large enough to be shared by a team?
    [[nodiscard]] bool shares() const { return static_cast<std::size_t>(most_sites) * site_bytes >= 2 * piece_bytes; }
    /// May member 0 of a team call the network? (A thread that is alone is not asked.)
    [[nodiscard]] bool may_drive() const noexcept { return threads->size() == 1 || channels.may_call_mpi(); }

    // Sending (region_sending.cpp).
    void begin(int which) noexcept;
    /// Fills a message that begins at `message`, by these copies, written as `watch` says. Returns the sum of its values
    /// if messages are sealed.
    std::uint64_t pack(const region_message& m, const std::vector<site_copy>& out, const path_watch& watch,
                       std::byte* message) const noexcept;
    /// Copies to the fields that peers have freed in the meantime.
    void send_direct() noexcept;
    /// Lets peers copy pieces of what goes to the fields that they have freed, before any of it is copied here.
    void offer() noexcept;
    /// Measures, before a message is written, how far away its receiver is, by this byte of it.  Pre: called by the
    /// driver; the byte may be written.
    template <class Channel>
    void look_at(Channel& channel, region_message& m, std::byte* middle) noexcept {
        if constexpr (std::derived_from<Channel, comm::shm_channel>) { // no others are watched
            if (!looking || m.send_sites == 0 || !m.is_watched()) return;
            const std::uint64_t ticks = looks.look(middle, channel.looked_at(epoch + 1));
            m.watch.read(ticks);
            if (!m.by_slot) return;
            m.by_slot->watch.read(ticks);
            m.by_slot->distance.read(ticks);
        }
    }
    /// When all messages are sent, decides how they are written from the next exchange on.
    void review_paths() noexcept;

    // Receiving (region_receiving.cpp).
    /// Copies pieces of messages that are on their way to this rank.
    void help() noexcept;
    /// Stores what has arrived; additions wait until all is here, because the order counts.
    void advance() noexcept;
    void add_all() noexcept;
    /// Does a message that has arrived have the checksum that it was sent with? Notes the peer if not.
    [[nodiscard]] bool is_intact(const region_message& m, const std::byte* message) noexcept;
    void unpack(const region_message& m, const std::byte* message) const noexcept;
    /// Multiplies what has arrived in place by its phases.
    void multiply(const region_message& m) noexcept;
    /// A message's values are in place, for completed().
    void note(region_message& m) noexcept;

    // By a team.
    /// Number of pieces in which the team copies a message; 0 or 1 if more would not pay.
    [[nodiscard]] int pieces(std::int64_t sites) const noexcept {
        const std::size_t bytes = static_cast<std::size_t>(sites) * site_bytes;
        return static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(threads->size()), bytes / piece_bytes));
    }
    /// Calls copy(first, last) for the sites of a message, by the team if it is large.
    template <class Copy>
    void by_team(std::int64_t sites, Copy&& copy) const noexcept {
        threads->share(pieces(sites), [&](int piece, int pieces) noexcept {
            copy(sites * piece / pieces, sites * (piece + 1) / pieces);
        });
    }

    // Fixed once it is made, but for what watches in `messages` decide.
    comm::job job;
    region_plan_options options;
    std::vector<binding> bindings;
    std::vector<region_message> messages; // by peer
    comm::channel_set channels;
    message_seal seal;                    // of packed messages; others can't have one
    real_format format;                   // of messages
    std::size_t site_bytes = 0;           // in a message, sum over all fields
    std::size_t piece_bytes = 0;          // the least that is worth another thread
    std::int64_t most_sites = 0;          // in a message
    std::uint32_t first_source = 0;       // index among the fields that networks know, after the destinations
    const std::byte* slab = nullptr;      // where this rank's begins
    bool joint = false;                   // may any message be copied by both ends?
    bool works = false;                   // is work() being called?
    void (*step)(void* object) = nullptr; // see work_in_every_wait()
    void* step_object = nullptr;

    // The exchange under way, or the last one.
    std::uint64_t epoch = 0, started_ = 0; // numbers of finished and of started exchanges
    int bound = 0;                         // the binding that was started
    std::uint64_t stamp = 0;               // when it was started; 0 if it is not timed
    bool looking = false;                  // is it measured how far away messages are?
    std::size_t unsent = 0;                // direct messages whose target is not free yet
    std::vector<int> reported;             // room for completed()
    std::size_t unreported = 0;            // the first in `reported` that completed() has not returned yet
    int broken_from = -1;                  // the rank whose message did not match its seal
    bool finishing = false;                // is finish() running?
    comm::work_driver driver;              // the thread whose waits may copy: the last in a call of this exchange
    std::atomic<bool> left{false}; // has leave() been called? At a time by two threads that both say they are member 0
    look_times looks;
    exchange_times times;
};

} // namespace halocline::halo
