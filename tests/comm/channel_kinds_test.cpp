// SPDX-License-Identifier: Apache-2.0
// The contract of delivery for the kinds of channels that only plans use within a node: messages written in place, in
// place or in slots by turns, and by both ends. Those in slots, of every transport, are in contract/. Ranks are processes
// under the launcher, else four threads.
#include "contract/messages.hpp"

#include <halocline/comm/job.hpp>
#include <halocline/comm/slab.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory_resource>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace halocline_test;

job_options options() {
    job_options o;
    o.transports = {"shm"};
    o.path = path::direct; // nothing is measured
    o.deadline = std::chrono::seconds(60);
    return o;
}

void on_every_rank(const std::function<void(const job&)>& body) {
    const job j = job::from_environment(options());
    if (j.ranks() == 1) return run_threads(4, body, options());
    body(j);
    j.barrier();
}

/// Two ends per rank in a ring; what each sends lies in the slab, too, so that its receiver may copy it.
class ring_of {
  public:
    ring_of(const job& j, channel_kind kind, std::size_t bytes)
        : job_(j), bytes_(bytes), tape_(bytes), out_(2 * bytes + 1, &j.memory()), in_(2 * bytes + 1, &j.memory()) {
        auto requests = ring(j, bytes);
        for (channel_request& r : requests) {
            r.kind = kind;
            r.note = std::to_string(own_offset(in_.data() + r.key * bytes_));
        }
        set_.emplace(j, requests, channel_set_options{"kinds", "", {in_.data()}});
        for (std::size_t i = 0; i < requests.size(); ++i) there_.push_back(std::stoull(set_->take_note(i)));
    }
    /// `before_wait` may delay.
    template <class Before>
    status exchange(std::uint64_t epoch, Before&& before_wait) {
        epoch_ = epoch;
        for (std::uint32_t key : {0U, 1U})
            if (bytes_ > 0) std::memcpy(out_.data() + key * bytes_, tape_.message(job_.rank(), key, epoch), bytes_);
        set_->for_each_direct([&](auto& c) { c.free(epoch_, 0); });
        set_->for_each_direct([&]<class C>(C& c) {
            if constexpr (slotted_channel<C>)
                if (goes_by_slot(job_.rank())) {
                    if (bytes_ > 0) std::memcpy(c.slot_target(epoch_), source(c.index()), bytes_);
                    c.send_by_slot(epoch_, ticks());
                }
        });
        set_->for_each([&]<class C>(C& c) {
            if constexpr (joint_channel<C>) send_jointly(c, c.target(epoch_));
        });
        before_wait();
        return set_->wait(epoch_, [&] { work(); });
    }
    [[nodiscard]] std::uint64_t wrong() {
        std::uint64_t wrong = 0;
        const auto look = [&](std::size_t index, const std::byte* message) {
            const channel_request& r = set_->request(index);
            wrong += bytes_ > 0 && std::memcmp(message, tape_.message(r.peer, r.peer_key, epoch_), bytes_) != 0;
        };
        set_->for_each([&](auto& c) { look(c.index(), c.received(epoch_)); });
        set_->for_each_direct([&]<class C>(C& c) {
            if constexpr (slotted_channel<C>) {
                EXPECT_EQ(c.came_by_slot(epoch_), goes_by_slot(c.peer()));
                if (c.came_by_slot(epoch_)) return look(c.index(), c.slot_received(epoch_));
            }
            look(c.index(), in_.data() + set_->request(c.index()).key * bytes_);
        });
        return wrong;
    }
    [[nodiscard]] std::uint64_t pieces_helped() const { return set_->pieces_helped(); }

  private:
    [[nodiscard]] std::uint64_t own_offset(const std::byte* p) const {
        return static_cast<std::uint64_t>(p - job_.memory().base());
    }
    [[nodiscard]] const std::byte* source(std::size_t index) const {
        return out_.data() + set_->request(index).key * bytes_;
    }
    [[nodiscard]] bool goes_by_slot(int sender) const { return (epoch_ + static_cast<std::uint64_t>(sender)) % 3 == 0; }
    template <class Channel>
    void send_jointly(Channel& c, std::byte* to) {
        const std::byte* const from = source(c.index());
        c.offer(epoch_, {.component_bytes = 1, .fields = 1, .places = {own_offset(from)}});
        c.copy_offered(epoch_, static_cast<std::int64_t>(bytes_), [&](std::int64_t first, std::int64_t last) {
            std::memcpy(to + first, from + first, static_cast<std::size_t>(last - first));
        });
        c.send(epoch_, ticks());
    }
    /// What a wait does: copies to places that have become free, and pieces of what is on its way.
    void work() {
        set_->for_each_direct([&]<class C>(C& c) {
            if (c.given(epoch_) || !c.freed(epoch_)) return;
            EXPECT_EQ(c.peer_field(), 0U);
            std::byte* const to = c.memory() + there_[c.index()];
            if constexpr (joint_channel<C>) {
                send_jointly(c, to);
            } else {
                if (bytes_ > 0) std::memcpy(to, source(c.index()), bytes_);
                c.send(epoch_, ticks());
            }
        });
        const auto help = [&]<class C>(C& c) {
            if constexpr (joint_channel<C>)
                c.help(epoch_, static_cast<std::int64_t>(bytes_),
                       [&](std::int64_t first, std::int64_t last, const joint_source& source, const std::byte* memory) {
                           std::byte* to = in_.data() + set_->request(c.index()).key * bytes_;
                           if constexpr (channel<C>) to = c.slot(epoch_);
                           std::memcpy(to + first, memory + source.places[0] + first,
                                       static_cast<std::size_t>(last - first));
                       });
        };
        set_->for_each(help);
        set_->for_each_direct(help);
    }

    job job_;
    std::size_t bytes_;
    tape tape_;
    std::pmr::vector<std::byte> out_, in_;
    std::optional<channel_set> set_;
    std::vector<std::uint64_t> there_; // by channel: where it lies in the peer's slab
    std::uint64_t epoch_ = 0;
};

void nap() { std::this_thread::sleep_for(std::chrono::microseconds(300)); }

/// `steps` exchanges, in which `late(epoch)` of one rank naps before or after it sends.
class Kinds : public testing::TestWithParam<channel_kind> {
  protected:
    template <class Before, class Between>
    void expect_delivers(const job& j, std::size_t bytes, std::uint64_t steps, Before&& before, Between&& between) {
        ring_of r(j, GetParam(), bytes);
        std::uint64_t wrong = 0;
        for (std::uint64_t k = 1; k <= steps; ++k) {
            before(k);
            ASSERT_EQ(r.exchange(k, [&] { between(k); }), status::ok) << bytes << " bytes, step " << k;
            wrong += r.wrong();
        }
        EXPECT_EQ(wrong, 0U) << bytes << " bytes, of " << 2 * steps << " messages";
        if (!is_joint(GetParam())) {
            EXPECT_EQ(r.pieces_helped(), 0U);
        }
    }
    void expect_delivers(const job& j, std::size_t bytes, std::uint64_t steps) {
        const auto nothing = [](std::uint64_t) {};
        expect_delivers(j, bytes, steps, nothing, nothing);
    }
};

TEST_P(Kinds, EveryByteOfEverySizeArrives) {
    on_every_rank([&](const job& j) {
        for (const std::size_t bytes : {0, 1, 63, 64, 65, 511, 512, 513, 8191, 8192, 8193, 65'536, 1 << 20})
            expect_delivers(j, bytes, bytes > 100'000 ? 10 : 50);
    });
}

TEST_P(Kinds, ManyStepsArriveInOrder) {
    // More ranks than cores take turns in each step.
    on_every_rank([&](const job& j) { expect_delivers(j, 200, j.ranks() > 2 ? 500 : 100'000); });
}

TEST_P(Kinds, WhoeverIsLate) {
    on_every_rank([&](const job& j) {
        const auto nothing = [](std::uint64_t) {};
        const auto late = [&](std::uint64_t k) {
            if (j.rank() == j.ranks() / 2 && k % 4 == 0) nap();
        };
        for (const std::size_t bytes : {8, 4096, 300'001}) {
            expect_delivers(j, bytes, 60, late, nothing);
            expect_delivers(j, bytes, 60, nothing, late);
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Shm, Kinds,
                         testing::Values(channel_kind::direct, channel_kind::joint_direct, channel_kind::slotted_direct,
                                         channel_kind::joint_slots),
                         [](const auto& kind) -> std::string {
                             switch (kind.param) {
                             case channel_kind::direct: return "direct";
                             case channel_kind::joint_direct: return "joint_direct";
                             case channel_kind::slotted_direct: return "slotted_direct";
                             case channel_kind::joint_slots: return "joint_slots";
                             case channel_kind::slots: break;
                             }
                             return "slots";
                         });

} // namespace
