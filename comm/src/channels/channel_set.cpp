// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/channel_set.hpp>

#include "channel_setup.hpp"
#include "job/job_core.hpp"
#include "job/waiting.hpp"
#include "mpi/world.hpp"

#include <halocline/comm/transport_names.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace halocline::comm {

channel_set::channel_set(const job& j, std::span<const channel_request> requests, const channel_set_options& options)
    : requests_(requests.begin(), requests.end()), options_(options) {
    job_core& core = j.core();
    core.sweep();
    const std::size_t used_before = core.memory->used();
    channel_setup steps(j, lanes_, requests_, options_);
    try {
        steps.lay_out_block();
        steps.make_own_ends();
        steps.agree_with_peers();
        steps.connect();
        steps.greet_peers();
    } catch (...) {
        const closing_scope closing(core.own_activity);
        steps.refuse_ends();
        lanes_ = {}; // says farewell
        throw;
    }
    std::apply([&](const auto&... lane) { lanes_used_ = (static_cast<int>(!lane.empty()) + ...); }, lanes_);
    plan_id_ = steps.plan_id();
    const parked_block block = steps.release_block();
    block_ = static_cast<std::byte*>(block.start);
    block_bytes_ = block.bytes;
    for (const void* p : options_.written_by_peers) core.memory->pin(p);
    memory_bytes_ = core.memory->used() - used_before;
    const bool in_memory = std::ranges::all_of(
        requests_, [&](const channel_request& r) { return is_in_memory(core.members[r.peer].transport); });
    if (in_memory && core.spin.has_own_core()) short_spin_ = 64;
    core_ = j.share();
    ended_ = &core.memory->record().state;
}

channel_set::channel_set(channel_set&& other) noexcept { *this = std::move(other); }

channel_set& channel_set::operator=(channel_set&& other) noexcept {
    if (this == &other) return *this;
    close();
    lanes_ = std::exchange(other.lanes_, {});
    lanes_used_ = std::exchange(other.lanes_used_, 0);
    requests_ = std::exchange(other.requests_, {});
    options_ = std::exchange(other.options_, {});
    core_ = std::exchange(other.core_, nullptr);
    block_ = std::exchange(other.block_, nullptr);
    block_bytes_ = std::exchange(other.block_bytes_, 0);
    memory_bytes_ = std::exchange(other.memory_bytes_, 0);
    plan_id_ = other.plan_id_;
    short_spin_ = other.short_spin_;
    noted_thread_ = std::exchange(other.noted_thread_, nullptr);
    worker_ = std::exchange(other.worker_, nullptr);
    waits_yielded_ = other.waits_yielded_;
    fruitless_tests_ = other.fruitless_tests_;
    status_ = other.status_;
    left_ = std::exchange(other.left_, false);
    ended_ = std::exchange(other.ended_, &never_ended);
    return *this;
}

channel_set::~channel_set() { close(); }

void channel_set::close() noexcept {
    if (core_ == nullptr) return;
    if (core_->in_forked_child()) {
        leave_to_parent(lanes_);
        core_ = nullptr;
        return;
    }
    const closing_scope closing(core_->own_activity);
    if (worker_ != nullptr) core_->background.remove(worker_);
    worker_ = nullptr;
    core_->crossed.remove(plan_id_);
    say_farewell(true);
    for_each_lane([]<class C>(std::vector<C>& lane) {
        if constexpr (carded_channel<C>) lane.clear(); // their worlds keep the memory that peers may still write
    });
    if (block_ != nullptr) {
        // For lanes in this block, the senders' farewells free it.
        parked_block parked{block_, block_bytes_, {}, std::move(options_.written_by_peers)};
        for_each_lane([&]<class C>(const std::vector<C>& lane) {
            if constexpr (requires(const C& c) { c.line(); })
                for (const C& c : lane) parked.lines.push_back(c.line());
        });
        core_->park(std::move(parked));
    }
    core_ = nullptr;
    block_ = nullptr;
}

void channel_set::say_farewell(bool far) noexcept {
    const bool near = !std::exchange(left_, true);
    for_each_lane([&]<class C>(std::vector<C>& lane) {
        if constexpr (requires(C & c) { c.close(); })
            if (carded_channel<C> ? far : near)
                for (C& c : lane) c.close();
    });
}

void channel_set::leave() noexcept {
    if (core_ == nullptr || left_ || core_->in_forked_child()) return;
    const closing_scope closing(core_->own_activity);
    const job_end* const end = core_->memory->record().end_soon();
    // A peer that finds the farewell must find the cause, too.
    for (const channel_request& r : requests_)
        if (end != nullptr && core_->peer_base[r.peer] != nullptr) (void)core_->record_of(r.peer).settle(*end);
    say_farewell(end == nullptr);
}

bool channel_set::over_network() const noexcept {
    bool any = false;
    for_each_lane([&]<class C>(const std::vector<C>& lane) { any = any || (carded_channel<C> && !lane.empty()); });
    return any;
}

bool channel_set::may_call_its_mpi() const noexcept { return core_->networks.mpi->may_call(); }

template <class Channel>
void channel_set::check_arrived(Channel& c, std::uint64_t epoch) noexcept {
    const status s = c.check(epoch);
    if (s == status::ok) return;
    status_ = s;
    if (s == status::aborted) { // the end of the job is why peers leave, if it has ended
        const bool ended = core_->memory->record().end_soon() != nullptr;
        status_ = ended ? core_->failed_for_call() : core_->left_by(c.peer());
    }
    if constexpr (carded_channel<Channel>) {
        if (s == status::peer_died) status_ = core_->lost(c.peer(), c.trouble());
    }
}

status channel_set::wait(std::uint64_t epoch, void* object, status (*step)(void*)) noexcept {
    if (status_ == status::ok && core_ != nullptr) status_ = core_->failed_for_call();
    if (status_ != status::ok || core_ == nullptr) return status_;
    constexpr std::uint64_t looks_per_crossing_check = 16; // one look takes a millisecond or longer
    std::uint64_t looks = 0;
    waiter waiting(*core_);
    std::array<std::size_t, std::tuple_size_v<decltype(lanes_)>> done{}; // channels at the front of each lane
    // All lanes are polled in turn, because MPI makes progress only when called.
    const auto pass = [&](auto& lane, std::size_t& first, int& pending) {
        for (; first < lane.size() && status_ == status::ok; ++first) {
            auto& c = lane[first];
            if (!c.arrived(epoch) || !c.sent(epoch)) {
                pending = c.peer();
                return;
            }
            check_arrived(c, epoch);
        }
    };
    while (true) {
        if (step != nullptr && status_ == status::ok) status_ = step(object);
        if (status_ != status::ok) break;
        int pending = -1;
        std::size_t n = 0;
        for_each_lane([&](auto& lane) { pass(lane, done[n++], pending); });
        if (status_ != status::ok || pending < 0) break;
        status_ = waiting.again(pending);
        if (status_ != status::ok) break;
        if (waiting.checked_job()) {
            if (++looks % looks_per_crossing_check == 0)
                status_ = core_->crossed.look(*core_, plan_id_, epoch, waiting.since());
            // A message after the first missing one may never come.
            for_each_lane([&](auto& lane) {
                for (auto& c : lane) {
                    if (status_ == status::ok && c.arrived(epoch)) check_arrived(c, epoch);
                }
            });
        }
    }
    if (looks >= looks_per_crossing_check) core_->crossed.over(*core_);
    waits_yielded_ += waiting.yielded();
    return status_;
}

void channel_set::work_in_every_wait(void* object, void (*step)(void*), std::uint32_t polls) {
    worker_ = object;
    core_->background.add(object, step, polls);
}

void channel_set::find_crossed_waits(const void* owner, std::uint64_t (*begun)(const void*)) {
    noted_thread_ = &core_->crossed.noted_thread(); // whoever begins its epochs may begin those of other sets, too
    if (requests_.empty()) return;
    std::vector<int> peers;
    for (const channel_request& r : requests_) peers.push_back(r.peer);
    std::ranges::sort(peers);
    const auto twice = std::ranges::unique(peers);
    peers.erase(twice.begin(), twice.end());
    core_->crossed.add(plan_id_, {options_.name, std::move(peers), owner, begun});
}

void channel_set::note_other_thread() noexcept {
    if (core_ != nullptr) core_->crossed.note_thread();
}

int channel_set::missing(std::uint64_t epoch) noexcept {
    int peer = nobody;
    for_each_lane([&](auto& lane) {
        for (auto& c : lane)
            if (!c.arrived(epoch) || !c.sent(epoch)) peer = c.peer();
    });
    return peer;
}

bool channel_set::has_arrived(std::uint64_t epoch) noexcept {
    return status_ != status::ok || missing(epoch) == nobody;
}

bool channel_set::test(std::uint64_t epoch) noexcept {
    if (status_ != status::ok) return true;
    const int peer = missing(epoch);
    if (peer == nobody) return true;
    status_ = after_fruitless_test(*core_, fruitless_tests_, peer);
    return status_ != status::ok;
}

void channel_set::give_way() noexcept { comm::give_way(*core_, fruitless_tests_); }

std::uint64_t channel_set::pieces_helped() const {
    std::uint64_t pieces = 0;
    for_each_lane([&]<class C>(const std::vector<C>& lane) {
        if constexpr (joint_channel<C>)
            for (const C& c : lane) pieces += c.pieces_helped();
    });
    return pieces;
}

std::vector<transport_counts> channel_set::counts(std::uint64_t epochs) const {
    std::vector<transport_counts> result;
    for_each_lane([&]<class C>(const std::vector<C>& lane) {
        if (lane.empty()) return;
        auto place = std::ranges::find(result, C::transport, &transport_counts::transport);
        if (place == result.end()) place = result.insert(place, {.transport = C::transport});
        transport_counts& counts = *place;
        for (const auto& c : lane) {
            counts.messages += epochs;
            counts.bytes += epochs * requests_[c.index()].send_bytes;
            if constexpr (requires { c.writes(); }) counts.writes += c.writes();
            if constexpr (requires { c.receives(); }) counts.receives += c.receives();
            if constexpr (requires { c.completions(); }) counts.completions += c.completions();
        }
    });
    return result;
}

std::size_t channel_set::size() const { return requests_.size(); }

std::string channel_set::pending(std::uint64_t epoch) const {
    std::string first;
    int more = 0;
    const auto note = [&](const auto& c, const char* verb, const char* rest) {
        const channel_request& r = requests_[c.index()];
        if (first.empty())
            first =
                r.label + verb + std::to_string(r.peer) + " over " + std::remove_cvref_t<decltype(c)>::transport + rest;
        else
            ++more;
    };
    const auto look = [&](const auto& c) {
        if constexpr (requires { c.is_copied(); }) {
            if (!c.is_copied()) note(c, " to rank ", ", of which that rank is copying pieces");
        }
        // Not c.arrived(), which tests and so changes an MPI request.
        if constexpr (requires { c.is_here(epoch); }) {
            if (c.is_here(epoch)) return;
        } else if (c.label(epoch).epoch.load(std::memory_order_acquire) >= epoch) {
            return;
        }
        note(c, " from rank ", "");
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
