// SPDX-License-Identifier: Apache-2.0
// How the channels of a channel_set are made.
#pragma once

#include "channel_agreement.hpp"
#include "control/wire.hpp"
#include "job/job_core.hpp"
#include "job/slab_block.hpp"
#include "job/waiting.hpp"
#include "network/worlds.hpp"

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace halocline::comm {

template <class C>
void await_connection(job_core& core, C& c) {
    const std::string operation = "the first write from rank " + std::to_string(c.peer()) + " over " + C::transport;
    for (waiter waiting(core); !c.connected();) {
        if (const status s = waiting.again(c.peer()); s != status::ok) core.raise(s, operation);
    }
    if (c.trouble().empty()) return;
    core.raise(core.lost(c.peer(), c.trouble()), operation);
}

/// The steps, in this order; each is collective.
template <class Lanes>
class channel_setup {
  public:
    /// `requests` keep the notes of their other ends.
    channel_setup(const job& j, Lanes& lanes, std::span<channel_request> requests, const channel_set_options& options)
        : j_(j), core_(j.core()), lanes_(lanes), requests_(requests), options_(options), plan_id_(core_.next_plan_id++),
          offset_(requests.size(), 0), cards_(requests.size()) {}

    /// Allocates one block of the slab for all ends that peers write to directly.
    void lay_out_block() {
        j_.collectively([&] {
            by_peer_ = sorted_by_peer(j_, requests_, options_.name);
            std::size_t bytes = 0;
            for_each_lane([&]<class C>(std::vector<C>&) {
                if constexpr (!carded_channel<C>) {
                    for_each_request_of<C>([&](std::size_t i, const channel_request& r) {
                        offset_[i] = bytes;
                        bytes += C::block_bytes(r.receive_bytes);
                    });
                }
            });
            if (bytes > 0) block_ = slab_block(core_, bytes);
        });
        check_symmetry(j_, by_peer_, options_.name);
    }

    /// Makes this rank's ends and their cards.
    void make_own_ends() {
        j_.collectively([&] {
            for_each_lane([&]<class C>(std::vector<C>& lane) {
                if constexpr (carded_channel<C>) {
                    make_carded(lane);
                } else {
                    make_lines<C>();
                }
            });
        });
    }

    /// Swaps the descriptions of the ends, and checks that both ends of a channel agree.
    void agree_with_peers() {
        const own_ends ends{plan_id_, options_, requests_, by_peer_};
        const std::vector<std::string> came = exchange_ends(j_, ends, cards_);
        j_.collectively([&] { take_cards(matching_ends(j_, ends, came)); });
    }

    /// Only after all ranks have agreed: an end must not send anything, even a farewell, to an end that will never
    /// connect.
    void connect() {
        connecting_ = true;
        j_.collectively([&] {
            for_each_lane([&]<class C>(std::vector<C>& lane) {
                if constexpr (std::is_same_v<C, mpi_channel>) {
                    if (core_.networks.mpi == nullptr) return;
                    const auto look = [&, since = ticks()] { core_.check_or_raise(-1, since, "windows of MPI"); };
                    C::connect_all(*core_.networks.mpi, lane, cards_, look);
                } else if constexpr (carded_channel<C>) {
                    for (C& c : lane) c.connect(cards_[c.index()]);
                } else {
                    connect_lines(lane);
                }
            });
        });
    }

    /// A network may connect only with the first write. That happens here, so that an unreachable peer is a set-up
    /// error.
    void greet_peers() {
        if (!core_.networks.greet) return;
        j_.collectively([&] {
            for_each_lane([&]<class C>(std::vector<C>& lane) {
                if constexpr (carded_channel<C>) {
                    for (C& c : lane)
                        static_cast<void>(c.connected()); // puts every greeting on its way before the first wait
                    for (C& c : lane) await_connection(core_, c);
                }
            });
        });
    }

    /// Called after a step that threw, before the lanes are cleared: if no rank has begun to connect, nobody writes to
    /// their ends.
    void refuse_ends() noexcept {
        if (connecting_ || core_.failed() != status::ok) return;
        for_each_lane([]<class C>(std::vector<C>& lane) {
            if constexpr (requires(C & c) { c.refuse(); })
                for (C& c : lane) c.refuse();
        });
    }
    [[nodiscard]] std::uint32_t plan_id() const noexcept { return plan_id_; }
    /// After the last step: the block, for its new owner. Its start is nullptr if no end needs one.
    [[nodiscard]] parked_block release_block() noexcept { return block_.release(); }

  private:
    template <class Visit>
    void for_each_lane(Visit&& visit) {
        std::apply([&](auto&... lane) { (visit(lane), ...); }, lanes_);
    }
    void take_cards(std::vector<end_told> ends) {
        for (std::size_t i = 0; i < ends.size(); ++i) {
            cards_[i] = std::move(ends[i].card);
            requests_[i].note = std::move(ends[i].note);
        }
    }
    /// Visits the requests that get a channel of kind C.
    template <class C, class Visit>
    void for_each_request_of(Visit&& visit) {
        for (std::size_t i = 0; i < requests_.size(); ++i) {
            const channel_request& r = requests_[i];
            if (core_.members[r.peer].transport == C::transport && r.kind == C::kind) visit(i, r);
        }
    }

    template <class C>
    void make_carded(std::vector<C>& lane) {
        for_each_request_of<C>([&](std::size_t i, const channel_request& r) {
            auto& world = world_of<C>(core_);
            if constexpr (rdma_channel<C>)
                lane.emplace_back(world, *core_.memory, i, r.peer, plan_id_, r.writes, r.fields);
            else
                lane.emplace_back(world, *core_.memory, i, r.peer, plan_id_, r.send_bytes, r.receive_bytes);
        });
        if (lane.empty()) return;
        auto& world = world_of<C>(core_);
        if constexpr (requires { world.complete(plan_id_); }) world.complete(plan_id_);
        for (const C& c : lane) cards_[c.index()] = c.card();
    }
    /// Makes the control lines in the block; the card gives their position.
    template <class C>
    void make_lines() {
        for_each_request_of<C>([&](std::size_t i, const channel_request& r) {
            std::byte* const own = block_.start() + offset_[i];
            new (own) control_line;
            if constexpr (direct_channel<C>) new (own + sizeof(control_line)) line_label;
            if constexpr (joint_channel<C>) new (own + C::copy_at(r.receive_bytes)) joint_copy;
            cards_[i] = wire_writer().number<std::int64_t>(own - core_.memory->base()).take();
        });
    }
    template <class C>
    void connect_lines(std::vector<C>& lane) {
        for_each_request_of<C>([&](std::size_t i, const channel_request& r) {
            std::byte* const own = block_.start() + offset_[i];
            std::byte* const base = core_.peer_base[r.peer];
            std::byte* const remote = base + wire_reader(cards_[i]).number<std::int64_t>();
            if constexpr (direct_channel<C> || joint_channel<C>) {
                lane.emplace_back(i, r.peer, plan_id_, r.send_bytes, r.receive_bytes, remote, own, base);
            } else {
                lane.emplace_back(i, r.peer, plan_id_, r.send_bytes, r.receive_bytes, remote, own);
            }
        });
    }

    const job& j_;
    job_core& core_;
    Lanes& lanes_;
    std::span<channel_request> requests_;
    const channel_set_options& options_;
    std::uint32_t plan_id_;
    requests_by_peer by_peer_;
    bool connecting_ = false;
    // Control lines and slots of the lanes without cards. If a step throws, it goes back: nothing has been sent, so no
    // farewells are due, unless a rank died half-way; then the job is over anyway.
    slab_block block_;
    std::vector<std::size_t> offset_; // by request: its part of the block
    std::vector<std::string> cards_;  // by request: this rank's, then, once agreed, the peers'
};

} // namespace halocline::comm
