// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/clock.hpp>

#include "channel_agreement.hpp"
#include "control/wire.hpp"
#include "job/job_core.hpp"
#include "job/waiting.hpp"
#include "network/worlds.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace halocline::comm {
namespace {

template <class C>
void await_connection(job_core& core, C& c) {
    const std::string operation = "the first write from rank " + std::to_string(c.peer()) + " over " + C::transport;
    for (waiter waiting(core); !c.connected();) {
        if (const status s = waiting.again(c.peer()); s != status::ok) core.raise(s, operation);
    }
    if (c.trouble().empty()) return;
    core.raise(core.lost(c.peer(), "can't be reached: " + c.trouble()), operation);
}

/// How the ends of a channel_set come to be: steps in this order, each collective.
template <class Lanes>
class setup {
  public:
    setup(const job& j, Lanes& lanes, std::span<const channel_request> requests, const channel_set_options& options)
        : j_(j), core_(j.core()), lanes_(lanes), requests_(requests), options_(options), plan_id_(core_.next_plan_id++),
          offset_(requests.size(), 0), cards_(requests.size()) {}

    /// One block of the slab for all ends that peers write to directly.
    void lay_out_block() {
        j_.collectively([&] {
            by_peer_ = sorted_by_peer(j_, requests_, options_.name);
            for_each_lane([&]<class C>(std::vector<C>&) {
                if constexpr (!carded_channel<C>) {
                    for_each_request_of<C>([&](std::size_t i, const channel_request& r) {
                        offset_[i] = block_bytes_;
                        block_bytes_ += C::block_bytes(r.receive_bytes);
                    });
                }
            });
            if (block_bytes_ > 0) {
                block_ = static_cast<std::byte*>(core_.memory->allocate_for_peers(block_bytes_, alignof(control_line)));
            }
        });
        check_symmetry(j_, by_peer_, options_.name);
    }

    /// The own ends, and what the peers must know of them.
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

    /// Swaps what each end says of itself, and checks that both ends of a channel say the same.
    void agree_with_peers() {
        const own_ends ends{plan_id_, options_, requests_, by_peer_};
        const std::vector<std::string> came = exchange_ends(j_, ends, cards_);
        j_.collectively([&] { cards_ = matching_cards(j_, ends, came); });
    }

    /// Only now: an end that had connected to one that never will must not send there, not even a farewell.
    void connect() {
        j_.collectively([&] {
            for_each_lane([&]<class C>(std::vector<C>& lane) {
                if constexpr (std::is_same_v<C, mpi_channel>) {
                    if (core_.mpi == nullptr) return;
                    const auto look = [&, since = ticks()] { core_.check_or_raise(-1, since, "windows of MPI"); };
                    C::connect_all(*core_.mpi, lane, cards_, look);
                } else if constexpr (carded_channel<C>) {
                    for (C& c : lane) c.connect(cards_[c.index()]);
                } else {
                    connect_lines(lane);
                }
            });
        });
    }

    /// Connections may be made by the first write: now, so that an unreachable peer is an error of the set-up.
    void greet_peers() {
        if (!core_.greets) return;
        j_.collectively([&] {
            for_each_lane([&]<class C>(std::vector<C>& lane) {
                if constexpr (carded_channel<C>) {
                    for (C& c : lane) static_cast<void>(c.connected()); // all greet before one is waited for
                    for (C& c : lane) await_connection(core_, c);
                }
            });
        });
    }

    /// After a step that threw.
    void give_block_back() {
        // Nobody has sent anything: no farewells are due, unless a rank died half-way; then the job is over anyway.
        if (block_ == nullptr || core_.failed() != status::ok) return;
        core_.memory->deallocate(block_, block_bytes_, alignof(control_line));
    }

    [[nodiscard]] std::byte* block() const { return block_; }
    [[nodiscard]] std::size_t block_bytes() const { return block_bytes_; }

  private:
    template <class Visit>
    void for_each_lane(Visit&& visit) {
        std::apply([&](auto&... lane) { (visit(lane), ...); }, lanes_);
    }
    /// The requests that get a channel of kind C.
    template <class C, class Visit>
    void for_each_request_of(Visit&& visit) {
        for (std::size_t i = 0; i < requests_.size(); ++i) {
            const channel_request& r = requests_[i];
            if (core_.members[r.peer].transport == C::transport && r.direct == direct_channel<C>) visit(i, r);
        }
    }

    template <class C>
    void make_carded(std::vector<C>& lane) {
        for_each_request_of<C>([&](std::size_t i, const channel_request& r) {
            lane.emplace_back(world_of(core_, static_cast<C*>(nullptr)), *core_.memory, i, r.peer, plan_id_,
                              r.send_bytes, r.receive_bytes);
        });
        if (lane.empty()) return;
        if constexpr (requires { &C::complete; }) C::complete(world_of(core_, static_cast<C*>(nullptr)), plan_id_);
        for (const C& c : lane) cards_[c.index()] = c.card();
    }
    /// The control lines in the block; the card says where.
    template <class C>
    void make_lines() {
        for_each_request_of<C>([&](std::size_t i, const channel_request&) {
            std::byte* const own = block_ + offset_[i];
            new (own) control_line;
            if constexpr (direct_channel<C>) new (own + sizeof(control_line)) message_header;
            cards_[i] = wire_writer().number<std::int64_t>(own - core_.memory->base()).take();
        });
    }
    template <class C>
    void connect_lines(std::vector<C>& lane) {
        for_each_request_of<C>([&](std::size_t i, const channel_request& r) {
            std::byte* const own = block_ + offset_[i];
            std::byte* const base = core_.peer_base[r.peer];
            std::byte* const remote = base + wire_reader(cards_[i]).number<std::int64_t>();
            if constexpr (direct_channel<C>) {
                lane.emplace_back(i, r.peer, plan_id_, r.send_bytes, r.receive_bytes, remote, own, base);
            } else {
                lane.emplace_back(i, r.peer, plan_id_, r.send_bytes, r.receive_bytes, remote, own);
            }
        });
    }

    const job& j_;
    job_core& core_;
    Lanes& lanes_;
    std::span<const channel_request> requests_;
    const channel_set_options& options_;
    std::uint32_t plan_id_;
    requests_by_peer by_peer_;
    std::byte* block_ = nullptr; // control lines and slots of the lanes without cards
    std::size_t block_bytes_ = 0;
    std::vector<std::size_t> offset_; // by request: of its part of the block
    std::vector<std::string> cards_;  // by request: the own ones, once agreed the peers'
};

} // namespace

channel_set::channel_set(const job& j, std::span<const channel_request> requests, const channel_set_options& options)
    : requests_(requests.begin(), requests.end()), options_(options) {
    job_core& core = j.core();
    core.sweep();
    const std::size_t used_before = core.memory->used();
    setup steps(j, lanes_, requests_, options_);
    try {
        steps.lay_out_block();
        steps.make_own_ends();
        steps.agree_with_peers();
        steps.connect();
        steps.greet_peers();
    } catch (...) {
        steps.give_block_back();
        throw;
    }
    block_ = steps.block();
    block_bytes_ = steps.block_bytes();
    for (const void* p : options_.written_by_peers) core.memory->pin(p);
    memory_bytes_ = core.memory->used() - used_before;
    const bool in_memory = std::all_of(requests_.begin(), requests_.end(), [&](const channel_request& r) {
        const std::string& transport = core.members[static_cast<std::size_t>(r.peer)].transport;
        return transport == shm_channel::transport || transport == self_channel::transport;
    });
    if (in_memory && core.spin.has_own_core()) short_spin_ = 64;
    core_ = j.share();
}

channel_set::channel_set(channel_set&& other) noexcept { *this = std::move(other); }

channel_set& channel_set::operator=(channel_set&& other) noexcept {
    if (this == &other) return *this;
    close();
    lanes_ = std::exchange(other.lanes_, {});
    requests_ = std::exchange(other.requests_, {});
    options_ = std::exchange(other.options_, {});
    core_ = std::exchange(other.core_, nullptr);
    block_ = std::exchange(other.block_, nullptr);
    block_bytes_ = std::exchange(other.block_bytes_, 0);
    memory_bytes_ = std::exchange(other.memory_bytes_, 0);
    short_spin_ = other.short_spin_;
    worker_ = std::exchange(other.worker_, nullptr);
    waits_yielded_ = other.waits_yielded_;
    status_ = other.status_;
    return *this;
}

channel_set::~channel_set() { close(); }

void channel_set::close() noexcept {
    if (core_ == nullptr) return;
    const closing_scope closing(core_->doing);
    if (worker_ != nullptr) std::erase_if(core_->background, [this](const auto& b) { return b.object == worker_; });
    worker_ = nullptr;
    for_each_lane([]<class C>(std::vector<C>& lane) {
        if constexpr (requires(C & c) { c.close(); })
            for (C& c : lane) c.close();
    });
    for_each_lane([]<class C>(std::vector<C>& lane) {
        if constexpr (carded_channel<C>) lane.clear(); // its worlds keep what peers may still write
    });
    if (block_ != nullptr) {
        // The receiving ends of these lanes: their senders' farewells free the block.
        parked_block parked{block_, block_bytes_, {}, std::move(options_.written_by_peers)};
        for_each_lane([&]<class C>(const std::vector<C>& lane) {
            if constexpr (requires(const C& c) { c.line(); })
                for (const C& c : lane) parked.lines.push_back(c.line());
        });
        core_->parked.push_back(std::move(parked));
        core_->sweep();
    }
    core_ = nullptr;
    block_ = nullptr;
}

template <class Channel>
void channel_set::judge(Channel& c, std::uint64_t epoch) noexcept {
    const status s = c.check(epoch);
    if (s == status::ok) return;
    status_ = s;
    if constexpr (carded_channel<Channel>) {
        if (s == status::peer_died) status_ = core_->lost(c.peer(), "can't be reached: " + c.trouble());
    }
}

status channel_set::wait(std::uint64_t epoch, void* object, status (*step)(void*)) noexcept {
    if (status_ != status::ok || core_ == nullptr) return status_;
    waiter waiting(*core_);
    std::array<std::size_t, std::tuple_size_v<decltype(lanes_)>> done{}; // channels at the front of each lane
    // All lanes are polled in turn: MPI moves nothing unless it is asked.
    const auto pass = [&](auto& lane, std::size_t& first, int& pending) {
        for (; first < lane.size() && status_ == status::ok; ++first) {
            auto& c = lane[first];
            if (!c.arrived(epoch) || !c.sent(epoch)) {
                pending = c.peer();
                return;
            }
            judge(c, epoch);
        }
    };
    while (true) {
        if (step != nullptr) status_ = step(object);
        if (status_ != status::ok) break;
        int pending = -1;
        std::size_t n = 0;
        for_each_lane([&](auto& lane) { pass(lane, done[n++], pending); });
        if (status_ != status::ok || pending < 0) break;
        status_ = waiting.again(pending);
        if (status_ != status::ok) break;
        // Behind the first that is missing there may be one that never comes.
        if (waiting.looked()) {
            for_each_lane([&](auto& lane) {
                for (auto& c : lane) {
                    if (status_ == status::ok && c.arrived(epoch)) judge(c, epoch);
                }
            });
        }
    }
    waits_yielded_ += waiting.yielded();
    return status_;
}

void channel_set::work_in_every_wait(void* object, void (*step)(void*)) {
    worker_ = object;
    core_->background.push_back({object, step});
}

bool channel_set::test(std::uint64_t epoch) noexcept {
    if (status_ != status::ok) return true;
    bool all = true;
    for_each_lane([&](auto& lane) {
        for (auto& c : lane) all = c.arrived(epoch) && c.sent(epoch) && all;
    });
    return all;
}

std::vector<lane_counts> channel_set::counts(std::uint64_t epochs) const {
    std::vector<lane_counts> result;
    for_each_lane([&]<class C>(const std::vector<C>& lane) {
        if (lane.empty()) return;
        lane_counts counts{.transport = C::transport};
        for (const auto& c : lane) {
            counts.messages += epochs;
            counts.bytes += epochs * requests_[c.index()].send_bytes;
            if constexpr (requires { c.writes(); }) counts.writes += c.writes();
            if constexpr (requires { c.receives(); }) counts.receives += c.receives();
            if constexpr (requires { c.completions(); }) counts.completions += c.completions();
        }
        result.push_back(counts);
    });
    return result;
}

std::size_t channel_set::size() const { return requests_.size(); }

std::string channel_set::pending(std::uint64_t epoch) const {
    std::string first;
    int more = 0;
    const auto look = [&](const auto& c) {
        // MPI's requests change when they are tested; of those the header tells.
        const bool there = c.header(epoch).epoch.load(std::memory_order_acquire) >= epoch;
        if (there) return;
        const channel_request& r = requests_[c.index()];
        if (first.empty()) {
            first = r.label + " from rank " + std::to_string(r.peer) + " over " +
                    std::remove_cvref_t<decltype(c)>::transport;
        } else {
            ++more;
        }
    };
    for_each_lane([&](const auto& lane) {
        for (const auto& c : lane) look(c);
    });
    std::string text = "'" + options_.name + "' epoch " + std::to_string(epoch);
    if (!first.empty()) text += ": " + first;
    if (more > 0) text += " and " + std::to_string(more) + " more";
    return text;
}

} // namespace halocline::comm
