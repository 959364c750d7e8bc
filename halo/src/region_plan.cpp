// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/region_plan.hpp>

#include "crew.hpp"
#include "region_message.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/clock.hpp>
#include <halocline/comm/stream_bytes.hpp>
#include <halocline/halo/claim_lines.hpp>
#include <halocline/comm/take_line.hpp>
#include <halocline/halo/path_model.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <utility>

namespace halocline::halo {

namespace {

/// Sites of field f of a message.
void put(const region_message& m, std::size_t f, const field_view& source, std::byte* to, std::int64_t first,
         std::int64_t last) noexcept {
    if (m.streamed) return m.out[f].stream(source.data, to, source.shape, first, last);
    if (m.claimed && m.watch.claims()) m.out[f].claim(to, source.shape, first, last);
    m.out[f].copy(source.data, to, source.shape, first, last);
}

/// Claims lines of what goes through the cache into memory that a peer shares, where enough of them follow each other.
void choose_claims(std::vector<region_message>& messages, const comm::job& j, const std::vector<field_view>& source) {
    constexpr std::int64_t least_run_bytes = 256;
    std::size_t claimed = 0;
    for (region_message& m : messages) {
        std::int64_t bytes = 0, runs = 0;
        for (std::size_t f = 0; f < m.out.size(); ++f) {
            bytes += m.send_sites * static_cast<std::int64_t>(source[f].shape.bytes());
            runs += m.way == path::direct ? m.out[f].runs() : 1;
        }
        const bool cached = !m.streamed || m.watch.watches();
        m.claimed = cached && j.members()[m.peer].transport == "shm" && bytes >= least_run_bytes * runs;
        if (m.claimed) claimed += static_cast<std::size_t>(bytes);
    }
    for (region_message& m : messages) m.claimed = m.claimed && claiming_pays(claimed);
}

} // namespace

struct region_plan::state {
    state(const comm::job& j, const std::vector<transfer>& sends, const std::vector<transfer>& receives,
          std::vector<binding> fields, region_plan_options choices);

    void start(int which) noexcept;
    bool test() noexcept;
    comm::status finish() noexcept;
    /// Copies to the fields of peers that have freed them since.
    void send_direct() noexcept;
    void unpack(const region_message& m, const std::byte* message) const noexcept;
    /// Pieces of a message that the team copies; one where more would not pay.
    [[nodiscard]] int pieces(std::int64_t sites) const noexcept {
        const std::size_t bytes = static_cast<std::size_t>(sites) * site_bytes;
        return static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(threads->size()), bytes / piece_bytes));
    }
    /// copy(first, last) for the sites of a message, by the team if it is large.
    template <class Copy>
    void by_team(std::int64_t sites, Copy&& copy) const noexcept {
        threads->share(pieces(sites), [&](int piece, int pieces) noexcept {
            copy(sites * piece / pieces, sites * (piece + 1) / pieces);
        });
    }
    /// Puts into place what has arrived; what is added waits for all, because the order counts.
    void advance() noexcept;
    void add_all() noexcept;
    void note(region_message& m) noexcept;
    /// Before a message is written: how far away is this byte of it?  Pre: the driver; it may be written.
    void look_at(region_message& m, std::byte* middle) noexcept {
        if (looking && m.watch.watches()) m.watch.read(comm::ticks_to_take(middle));
    }
    /// All messages are sent: their ways from the next exchange on.
    void choose_paths() noexcept;

    /// Called in every wait of this rank.
    void work() noexcept {
        if (driver.load(std::memory_order_relaxed) != this_thread()) return;
        if (unsent > 0) send_direct();
        if (step != nullptr && !finishing) step(step_object);
    }
    void work_in_every_wait() {
        if (!std::exchange(works, true))
            channels.work_in_every_wait(this, [](void* self) { static_cast<state*>(self)->work(); });
    }
    static const void* this_thread() noexcept {
        static thread_local char mark;
        return &mark;
    }

    [[nodiscard]] bool started() const { return started_ != epoch; }

    comm::job job;
    region_plan_options options;
    std::vector<binding> bindings;
    std::vector<region_message> messages; // by peer
    std::vector<bool> same_clock;         // by message: the peer's stamps can be compared with ours
    std::vector<int> reported;            // room for completed()
    std::size_t unreported = 0;           // position in `reported` of what completed() has not said yet
    comm::channel_set channels;
    std::shared_ptr<crew> threads = std::make_shared<crew>();
    std::size_t site_bytes = 0;               // of all fields
    std::size_t piece_bytes = 0;              // the least that is worth another thread
    std::int64_t most_sites = 0;              // of a message
    std::uint64_t epoch = 0, started_ = 0;    // finished, and started, exchanges
    std::uint64_t stamp = 0;                  // when the running exchange was started
    std::atomic<const void*> driver{nullptr}; // the thread whose waits may copy: it started the exchange
    std::size_t unsent = 0;                   // direct messages whose target is not free yet
    void (*step)(void* object) = nullptr;     // of region_plan::work_in_every_wait()
    void* step_object = nullptr;
    bool works = false, finishing = false; // work() is called; finish() is running
    look_times looks;
    bool looking = false; // at what the running exchange writes
    std::uint64_t path_changes = 0;
    int bound = 0;
    comm::status status = comm::status::ok;
    std::uint64_t exchanges = 0, pack_ticks = 0, wait_ticks = 0, unpack_ticks = 0, imbalance_ticks = 0;
};

region_plan::state::state(const comm::job& j, const std::vector<transfer>& sends, const std::vector<transfer>& receives,
                          std::vector<binding> fields, region_plan_options choices)
    : job(j), options(std::move(choices)), bindings(std::move(fields)) {
    std::string shape = options.add ? "added" : "copied";
    job.collectively([&] {
        if (bindings.empty()) throw input_error("'" + options.name + "': no field is bound");
        for (const field_view& f : bindings.front().source)
            shape += ", " + std::to_string(f.shape.bytes()) + " bytes per site";
    });
    messages = make_messages(job, sends, receives, bindings, options);
    for (const field_view& f : bindings.front().source) site_bytes += f.shape.bytes();
    choose_claims(messages, job, bindings.front().source);
    piece_bytes = least_piece_bytes(comm::measured_costs(job));
    std::vector<comm::channel_request> requests;
    for (const region_message& m : messages) {
        // One end per peer, named by the peer's rank.
        requests.push_back({.peer = m.peer,
                            .key = static_cast<std::uint32_t>(m.peer),
                            .peer_key = static_cast<std::uint32_t>(job.rank()),
                            .send_bytes = static_cast<std::size_t>(m.send_sites) * site_bytes,
                            .receive_bytes = static_cast<std::size_t>(m.receive_sites) * site_bytes,
                            .label = "values",
                            .direct = m.way == path::direct});
        most_sites = std::max({most_sites, m.send_sites, m.receive_sites});
        same_clock.push_back(job.members()[m.peer].host == job.members()[job.rank()].host);
    }
    comm::channel_set_options set_options{.name = options.name, .shape = shape, .written_by_peers = {}};
    if (std::any_of(requests.begin(), requests.end(), [](const comm::channel_request& r) { return r.direct; }))
        for (const binding& b : bindings)
            for (const field_view& f : b.destination) set_options.written_by_peers.push_back(f.data);
    channels = comm::channel_set(job, requests, set_options);
    if (!set_options.written_by_peers.empty()) work_in_every_wait();
    if (std::any_of(messages.begin(), messages.end(), [](const region_message& m) { return m.watch.watches(); }))
        looks = look_times(comm::ticks());
    reported.reserve(receives.size());
}

void region_plan::state::start(int which) noexcept {
    if (status != comm::status::ok) return;
    const std::uint64_t k = epoch + 1;
    stamp = comm::ticks();
    bound = which;
    reported.clear();
    unreported = 0;
    unsent = 0;
    looking = looks.due(stamp);
    channels.for_each_direct([&](auto& channel) { // first, so that the peers can go on
        channel.free(k, static_cast<std::uint32_t>(which));
        messages[channel.index()].there = false;
        ++unsent;
    });
    const std::vector<field_view>& source = bindings[static_cast<std::size_t>(which)].source;
    channels.for_each([&](auto& channel) {
        region_message& m = messages[channel.index()];
        m.there = false;
        look_at(m, channel.target(k) + m.middle);
        by_team(m.send_sites, [&](std::int64_t first, std::int64_t last) noexcept {
            std::byte* message = channel.target(k);
            for (std::size_t f = 0; f < source.size(); ++f) {
                put(m, f, source[f], message, first, last);
                message += static_cast<std::size_t>(m.send_sites) * source[f].shape.bytes();
            }
            if (m.streamed) comm::finish_streams();
        });
        channel.send(k, stamp, static_cast<std::uint32_t>(which));
    });
    started_ = k;
    driver.store(this_thread(), std::memory_order_relaxed);
    if (unsent > 0) send_direct();
    pack_ticks += comm::ticks() - stamp;
}

void region_plan::state::send_direct() noexcept {
    const std::uint64_t k = epoch + 1;
    const std::vector<field_view>& source = bindings[static_cast<std::size_t>(bound)].source;
    channels.for_each_direct([&](auto& channel) {
        if (channel.sent(k) || !channel.freed(k)) return;
        region_message& m = messages[channel.index()];
        const std::vector<std::size_t>& targets = m.targets[channel.peer_field()];
        look_at(m, channel.memory() + targets[0] + m.middle);
        by_team(m.send_sites, [&](std::int64_t first, std::int64_t last) noexcept {
            for (std::size_t f = 0; f < source.size(); ++f)
                put(m, f, source[f], channel.memory() + targets[f], first, last);
            if (m.streamed) comm::finish_streams();
        });
        channel.send(k, stamp, static_cast<std::uint32_t>(bound));
        --unsent;
    });
}

void region_plan::state::choose_paths() noexcept {
    if (!looking || !looks.looked(stamp)) return;
    for (region_message& m : messages) {
        if (!m.watch.watches() || !m.watch.decide()) continue;
        m.streamed = m.watch.streamed();
        ++path_changes;
    }
}

void region_plan::state::unpack(const region_message& m, const std::byte* message) const noexcept {
    const std::vector<field_view>& destination = bindings[static_cast<std::size_t>(bound)].destination;
    const auto place = [&](std::int64_t first, std::int64_t last) noexcept {
        const std::byte* values = message;
        for (std::size_t f = 0; f < destination.size(); ++f) {
            if (options.add)
                m.in[f].add(values, destination[f].data, destination[f].shape, first, last);
            else
                m.in[f].copy(values, destination[f].data, destination[f].shape, first, last);
            values += static_cast<std::size_t>(m.receive_sites) * destination[f].shape.bytes();
        }
    };
    if (options.add) return place(0, m.receive_sites); // a site may occur twice: one thread, in order
    by_team(m.receive_sites, place);
}

void region_plan::state::advance() noexcept {
    const std::uint64_t k = epoch + 1;
    if (unsent > 0) send_direct();
    channels.for_each_direct([&](auto& channel) {
        region_message& m = messages[channel.index()];
        if (!m.there && channel.arrived(k) && channel.check(k) == comm::status::ok) note(m);
    });
    channels.for_each([&](auto& channel) {
        region_message& m = messages[channel.index()];
        if (m.there || !channel.arrived(k) || channel.check(k) != comm::status::ok) return;
        const std::uint64_t before = comm::ticks();
        unpack(m, channel.received(k));
        unpack_ticks += comm::ticks() - before;
        note(m);
    });
}

void region_plan::state::add_all() noexcept {
    const std::uint64_t before = comm::ticks();
    channels.for_each([&](auto& channel) { messages[channel.index()].arrived = channel.received(epoch + 1); });
    for (region_message& m : messages) { // by peer, whatever the transports
        unpack(m, m.arrived);
        note(m);
    }
    unpack_ticks += comm::ticks() - before;
}

void region_plan::state::note(region_message& m) noexcept {
    m.there = true;
    for (const int i : m.receives) reported.push_back(i);
}

bool region_plan::state::test() noexcept {
    if (status != comm::status::ok || !started()) return true;
    if (!options.add) advance();
    return channels.test(epoch + 1);
}

comm::status region_plan::state::finish() noexcept {
    if (status != comm::status::ok || !started()) return status;
    const std::uint64_t before = comm::ticks(), k = epoch + 1;
    driver.store(this_thread(), std::memory_order_relaxed);
    if (unsent > 0) send_direct();
    finishing = true;
    status = channels.wait(k); // copies what is freed meanwhile: work()
    finishing = false;
    const std::uint64_t waited = comm::ticks() - before;
    wait_ticks += waited;
    if (status != comm::status::ok) return status;

    std::uint64_t late = 0; // the last peer to start, after we began to wait
    const auto note_lateness = [&](auto& channel) {
        const std::uint64_t theirs = same_clock[channel.index()] ? channel.header(k).start_stamp : 0;
        if (theirs > before) late = std::max(late, theirs - before);
    };
    channels.for_each(note_lateness);
    channels.for_each_direct(note_lateness);
    imbalance_ticks += std::min(late, waited);
    if (options.add)
        add_all();
    else
        advance();
    driver.store(nullptr, std::memory_order_relaxed);
    ++exchanges;
    epoch = k;
    choose_paths();
    return status;
}

region_plan::region_plan(const comm::job& j, std::vector<transfer> sends, std::vector<transfer> receives,
                         std::vector<binding> bindings, region_plan_options options)
    : s_(std::make_unique<state>(j, sends, receives, std::move(bindings), std::move(options))) {}
region_plan::region_plan(region_plan&&) noexcept = default;
region_plan& region_plan::operator=(region_plan&&) noexcept = default;
region_plan::~region_plan() = default;

void region_plan::work_in_every_wait(void* object, void (*step)(void*)) {
    s_->step = step;
    s_->step_object = object;
    s_->work_in_every_wait();
}

void region_plan::join(std::shared_ptr<crew> threads) { s_->threads = std::move(threads); }
void region_plan::begin(int which) noexcept { s_->start(which); }
comm::status region_plan::complete() noexcept { return s_->finish(); }
bool region_plan::shares() const {
    return static_cast<std::size_t>(s_->most_sites) * s_->site_bytes >= 2 * s_->piece_bytes;
}

void region_plan::start(int which, team t) noexcept {
    s_->threads->start(t, shares(), [&] { s_->start(which); });
}
bool region_plan::test() noexcept { return s_->test(); }
comm::status region_plan::finish(team t) noexcept {
    s_->threads->finish(t, [&] { (void)s_->finish(); });
    return s_->status;
}

void region_plan::finish_or_throw() {
    if (const comm::status bad = finish(); bad != comm::status::ok)
        s_->job.fail(bad, "regions " + s_->channels.pending(s_->epoch + 1));
}

std::span<const int> region_plan::completed() noexcept {
    if (s_->started() && s_->status == comm::status::ok && !s_->options.add) s_->advance();
    const std::size_t first = std::exchange(s_->unreported, s_->reported.size());
    return std::span(s_->reported).subspan(first);
}

std::uint64_t region_plan::epoch() const { return s_->epoch; }
const region_plan_options& region_plan::options() const { return s_->options; }

plan_statistics region_plan::statistics() const {
    const double seconds = comm::seconds_per_tick();
    return {.exchanges = s_->exchanges,
            .pack_seconds = seconds * static_cast<double>(s_->pack_ticks),
            .wait_seconds = seconds * static_cast<double>(s_->wait_ticks),
            .unpack_seconds = seconds * static_cast<double>(s_->unpack_ticks),
            .imbalance_seconds = seconds * static_cast<double>(s_->imbalance_ticks),
            .path_changes = s_->path_changes,
            .lanes = s_->channels.counts(s_->exchanges)};
}

void region_plan::reset_statistics() {
    s_->path_changes = s_->exchanges = s_->pack_ticks = s_->wait_ticks = s_->unpack_ticks = s_->imbalance_ticks = 0;
}

std::size_t region_plan::slab_bytes() const { return s_->channels.memory_bytes(); }

std::string region_plan::describe() const {
    std::string table = "regions '" + s_->options.name + "'\n";
    char line[160];
    std::snprintf(line, sizeof line, "  %5s  %-9s %-8s %12s %12s  %s\n", "peer", "transport", "path", "send sites",
                  "receives", "why");
    table += line;
    const auto row = [&](const auto& channel) {
        const region_message& m = s_->messages[channel.index()];
        const std::string_view transport = std::remove_cvref_t<decltype(channel)>::transport;
        std::snprintf(line, sizeof line, "  %5d  %-9s %-8s %12lld %12lld  ", m.peer, transport.data(),
                      to_string(m.way == path::direct && m.streamed ? path::streamed : m.way).data(),
                      static_cast<long long>(m.send_sites), static_cast<long long>(m.receive_sites));
        table += line + m.why + "\n";
    };
    s_->channels.for_each(row);
    s_->channels.for_each_direct(row);
    if (s_->messages.empty()) table += "  no message\n";
    return table;
}

} // namespace halocline::halo
