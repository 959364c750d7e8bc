// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/plan.hpp>

#include "checksum.hpp"
#include "crew.hpp"
#include "regions.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/take_line.hpp>
#include <halocline/halo/message_checksum.hpp>
#include <halocline/halo/path_model.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <utility>

namespace halocline::halo {
namespace {

using lattice::coordinate;
using lattice::dimensions;

/// Everything about a plan that must be the same on every rank, as text to compare.
std::string shape_of(const lattice::decomposition& cut, const plan_options& o) {
    std::string text = "'" + o.name + "', " + std::to_string(o.bytes_per_site) + " bytes per site, ";
    if (o.fields > 1) text += std::to_string(o.fields) + " fields, ";
    if (o.parity) text += "parity " + std::to_string(*o.parity) + ", ";
    if (o.self_exchange) text += "self-exchange, ";
    if (o.checksums) text += "checksums, ";
    text.append("path ").append(to_string(o.way)).append(", ");
    return text + shape_text(cut, o.widths, o.boundaries);
}

/// What is streamed is gathered in the first-level cache first.
constexpr std::size_t stream_block_bytes = 8192;

} // namespace

plan::plan(const comm::job& j, const lattice::decomposition& cut, plan_options options)
    : job_(j), options_(std::move(options)), team_(std::make_unique<meeting_point>()) {
    message_of_.fill(-1);
    options_.checksums = options_.checksums || job_.options().checksums || options_.checks >= check_level::comm;
    job_.agree("the shape of halo '" + options_.name + "'", shape_of(cut, options_));

    std::vector<comm::channel_request> requests;
    job_.collectively([&] {
        const std::string who = "halo '" + options_.name + "': ";
        check({.who = who,
               .widths = options_.widths,
               .boundaries = options_.boundaries,
               .self_exchange = options_.self_exchange},
              cut, job_.ranks());
        if (options_.way == path::packed)
            throw input_error(who + "path packed: appended ghosts are written in place; direct, streamed or automatic");
        if (options_.bytes_per_site == 0)
            throw input_error(who + "0 bytes per site; say in plan_options::bytes_per_site what a site sends");
        if (options_.fields < 1)
            throw input_error(who + std::to_string(options_.fields) + " fields in a message: must be 1 or more");
        if (options_.parity && *options_.parity != 0 && *options_.parity != 1)
            throw input_error(who + "parity " + std::to_string(*options_.parity) + ": must be 0 or 1");
        const std::size_t bytes = options_.bytes_per_site * static_cast<std::size_t>(options_.fields);
        prepare_messages(cut);
        if (options_.order) prepare_copies();
        for (const plan_message& m : messages_)
            requests.push_back({.peer = m.peer,
                                .key = static_cast<std::uint32_t>(m.where.index()),
                                .peer_key = static_cast<std::uint32_t>(m.where.opposite().index()),
                                .send_bytes = m.send_sites.size() * bytes + seal_bytes(),
                                .receive_bytes = static_cast<std::size_t>(m.ghost_sites) * bytes + seal_bytes(),
                                .label = lattice::to_string(m.where)});
    });
    channels_ = comm::channel_set(job_, requests, {.name = options_.name, .shape = {}});
    choose_ways(requests);
}

void plan::choose_ways(const std::vector<comm::channel_request>& requests) {
    comm::streaming wish = job_.options().streaming;
    if (options_.way == path::direct) wish = comm::streaming::never;
    if (options_.way == path::streamed) wish = comm::streaming::always;
    const bool watched = wish != comm::streaming::always && job_.ranks() > 1;
    const comm::costs costs = watched ? comm::measured_costs(job_) : comm::costs{}; // collective at first
    std::size_t direct_bytes = 0, staged_lines = 0;
    staged_at_.resize(messages_.size());
    watches_.resize(messages_.size());
    channels_.for_each([&]<class Channel>(const Channel& channel) {
        if (std::string_view(Channel::path) != "direct") return;
        plan_message& m = messages_[channel.index()];
        const std::size_t bytes = requests[channel.index()].send_bytes;
        const verdict<path> verdict = choose_writing(wish, costs, bytes);
        m.way = verdict.choice;
        m.why = verdict.why;
        if (seal_bytes() > 0 || options_.bytes_per_site > stream_block_bytes) {
            m.way = path::direct;
            m.why = seal_bytes() > 0 ? "checksums are made of what is at the peer" : "sites of more than 8 KiB";
        } else if (watched && bytes > 0) {
            path_watch& watch = watches_[channel.index()];
            watch = wish == comm::streaming::automatic ? path_watch(costs, bytes, m.way == path::streamed)
                                                       : path_watch::claims_only(costs);
            if (const std::string when = watch.describe(); !when.empty()) m.why += "; " + when;
        }
        if (m.way == path::streamed || watches_[channel.index()].may_stream()) {
            staged_at_[channel.index()] = staged_lines;
            staged_lines += (bytes + sizeof(cache_line) - 1) / sizeof(cache_line);
        }
        if (m.way == path::direct || watches_[channel.index()].watches()) direct_bytes += bytes;
    });
    if (std::any_of(watches_.begin(), watches_.end(), [](const path_watch& w) { return w.watches(); }))
        looks_ = look_times(comm::ticks());
    claims_ = claiming_pays(direct_bytes);
    staging_ = std::make_unique_for_overwrite<cache_line[]>(staged_lines); // no memory before a caller packs
}

void plan::look_at_paths() noexcept {
    channels_.for_each([&](auto& channel) {
        path_watch& watch = watches_[channel.index()];
        const std::size_t middle = field_bytes(channel.index()) * static_cast<std::size_t>(options_.fields) / 2;
        if (watch.watches()) watch.read(comm::ticks_to_take(channel.target(epoch_ + 1) + middle));
    });
    if (!looks_.looked(started_at_)) return;
    for (std::size_t m = 0; m < messages_.size(); ++m) {
        if (!watches_[m].watches() || !watches_[m].decide()) continue;
        messages_[m].way = watches_[m].streamed() ? path::streamed : path::direct;
        ++path_changes_;
    }
}

void plan::prepare_messages(const lattice::decomposition& cut) {
    const lattice::box local = cut.local_box(job_.rank());
    extents_ = local.extents;
    const auto selected = [this](const coordinate& x) {
        return (!options_.parity || lattice::parity(x) == *options_.parity) && (!options_.select || options_.select(x));
    };
    for (int i = 0; i < lattice::faces; ++i) {
        const face f = lattice::face_of(i);
        if (!is_exchanged(cut, options_, job_.rank(), f)) continue;

        plan_message m{.where = f, .peer = cut.neighbour(job_.rank(), f), .send_sites = {}, .ghost_sites = 0};
        // What goes out at the low face lands behind the neighbour's high face, and the other way round.
        const lattice::box sent = layers(local, f, options_.widths.behind(f.opposite()));
        for_each_selected(sent, selected, [&](const coordinate& global) {
            coordinate x = global;
            for (int mu = 0; mu < dimensions; ++mu) x[mu] -= local.origin[mu];
            m.send_sites.push_back(static_cast<std::int32_t>(lattice::lexicographic_index(x, local.extents)));
        });
        // The neighbour's own coordinates: both ends ask `select` about the same source sites.
        const lattice::box source = layers(cut.local_box(m.peer), f.opposite(), options_.widths.behind(f));
        for_each_selected(source, selected, [&](const coordinate&) { ++m.ghost_sites; });

        const std::vector<comm::rank_info>& members = job_.members();
        same_clock_.push_back(members[m.peer].host == members[job_.rank()].host);
        message_of_[i] = static_cast<int>(messages_.size());
        messages_.push_back(std::move(m));
    }
}

void plan::claim_sites(std::size_t message, std::int64_t first, std::int64_t last, std::byte* target) const noexcept {
    if (!claims_ || messages_[message].way != path::direct || !watches_[message].claims()) return;
    for (int f = 0; f < options_.fields; ++f, target += field_bytes(message))
        claim_lines(target + static_cast<std::size_t>(first) * options_.bytes_per_site,
                    target + static_cast<std::size_t>(last) * options_.bytes_per_site);
}

void plan::stream_staged(std::size_t message, std::int64_t first, std::int64_t last, std::byte* target) const noexcept {
    const std::byte* staged = staging_[staged_at_[message]].bytes;
    const std::size_t begin = static_cast<std::size_t>(first) * options_.bytes_per_site,
                      bytes = static_cast<std::size_t>(last - first) * options_.bytes_per_site;
    for (int f = 0; f < options_.fields; ++f, target += field_bytes(message), staged += field_bytes(message))
        comm::stream_bytes(target + begin, staged + begin, bytes);
    comm::finish_streams();
}

void plan::stream_sites(const std::byte* values, const lattice::site_order& order, const site_shape& shape, int message,
                        std::int64_t first, std::int64_t last, std::byte* target) const noexcept {
    // By blocks that stay in the first-level cache and, where sites allow it, end with a line.
    alignas(64) std::array<std::byte, stream_block_bytes> block;
    const std::size_t site_bytes = options_.bytes_per_site;
    const auto room = static_cast<std::int64_t>(block.size() / site_bytes);
    const auto unit = static_cast<std::int64_t>(64 / std::gcd(std::size_t{64}, site_bytes));
    const std::int64_t sites = room >= unit ? room / unit * unit : room;
    for (std::int64_t next = 0; first < last; first = next) {
        next = std::min(last, (first / sites + 1) * sites);
        // Kernels count from the start of the message.
        auto* const start = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(block.data()) -
                                                         static_cast<std::size_t>(first) * site_bytes);
        copy_sites(values, order, shape, message, first, next, start);
        comm::stream_bytes(target + static_cast<std::size_t>(first) * site_bytes, block.data(),
                           static_cast<std::size_t>(next - first) * site_bytes);
    }
    comm::finish_streams();
}

void plan::prepare_copies() {
    const lattice::site_order& order = *options_.order;
    if (order.extents() != extents_)
        throw input_error("halo '" + options_.name + "': the site order is of a box of " +
                          lattice::to_string(order.extents()) + ", the local box of rank " +
                          std::to_string(job_.rank()) + " is " + lattice::to_string(extents_));
    std::vector<std::int64_t> from, to;
    for (const plan_message& m : messages_) {
        from.clear();
        for (const std::int32_t site : m.send_sites) from.push_back(order.position(site));
        to.resize(from.size());
        std::iota(to.begin(), to.end(), 0);
        copies_.emplace_back(from, order.lane_width(), to, 1);
    }
}

bool plan::fits(const lattice::site_order& order, const site_shape& shape) const noexcept {
    return shape.bytes() == options_.bytes_per_site && order.extents() == extents_;
}

void plan::copy_sites(const std::byte* values, const lattice::site_order& order, const site_shape& shape, int message,
                      std::int64_t first, std::int64_t last, std::byte* target) const noexcept {
    if (&order == options_.order.get())
        return copies_[static_cast<std::size_t>(message)].copy(values, target, shape, first, last);
    const std::size_t site_bytes = shape.bytes(), component_bytes = shape.component_bytes;
    const auto w = static_cast<std::size_t>(order.lane_width());
    const std::vector<std::int32_t>& sites = messages_[static_cast<std::size_t>(message)].send_sites;
    target += static_cast<std::size_t>(first) * site_bytes;
    for (std::int64_t i = first; i < last; ++i) {
        const auto position = static_cast<std::size_t>(order.position(sites[static_cast<std::size_t>(i)]));
        const std::byte* source = values + position / w * w * site_bytes + position % w * component_bytes;
        for (int c = 0; c < shape.components; ++c, target += component_bytes, source += w * component_bytes)
            std::memcpy(target, source, component_bytes);
    }
}

std::uint64_t plan::checksum(const std::byte* values, const lattice::site_order& order,
                             const site_shape& shape) const noexcept {
    std::uint64_t sum = 0;
    for (const plan_message& m : messages_) sum = checksum_sites(sum, m.send_sites, values, order, shape);
    return sum;
}

void plan::throw_stale(const char* why) const {
    throw error("halo '" + options_.name + "': stale ghosts after exchange " + std::to_string(epoch_) + ": the field " +
                why + "; call start() and finish(), or ensure_halo()");
}

std::span<const face> plan::completed() noexcept {
    const bool in_flight = team_->started.load(std::memory_order_acquire) != epoch_;
    const std::uint64_t epoch = in_flight ? epoch_ + 1 : epoch_;
    std::size_t n = 0;
    if (status_ == comm::status::ok && epoch > 0)
        channels_.for_each([&](auto& channel) {
            const face f = messages_[channel.index()].where;
            if (reported_[f.index()] == epoch) return;
            if (in_flight) {
                if (!channel.arrived(epoch) || channel.check(epoch) != comm::status::ok) return;
                const std::byte* message = channel.received(epoch);
                const auto sites = static_cast<std::size_t>(messages_[channel.index()].ghost_sites);
                if (seal_bytes() > 0 && !is_sealed(message, sites, epoch)) return; // finish() will say so
                ghosts_[f.index()] = message;
            }
            reported_[f.index()] = epoch;
            completed_[n++] = f;
        });
    return {completed_.data(), n};
}

std::byte* plan::target(face f) noexcept {
    const auto message = static_cast<std::size_t>(message_of(f));
    std::byte* target = nullptr;
    channels_.for_each([&](auto& channel) {
        if (channel.index() == message) target = channel.target(epoch_ + 1);
    });
    return target;
}

void plan::start_filled(team t) noexcept {
    start_by([](auto&, std::uint64_t, std::int64_t, std::int64_t) noexcept {}, t);
}

void plan::seal(std::byte* message, std::size_t sites, std::uint64_t epoch) noexcept {
    const std::size_t bytes = sites * options_.bytes_per_site * static_cast<std::size_t>(options_.fields);
    const std::uint32_t sum = message_checksum(message, bytes, epoch);
    std::memcpy(message + bytes, &sum, sizeof sum);
}

bool plan::is_sealed(const std::byte* message, std::size_t sites, std::uint64_t epoch) const noexcept {
    const std::size_t bytes = sites * options_.bytes_per_site * static_cast<std::size_t>(options_.fields);
    const std::uint32_t sum = message_checksum(message, bytes, epoch);
    return std::memcmp(message + bytes, &sum, sizeof sum) == 0;
}

bool plan::test() noexcept {
    if (status_ != comm::status::ok || team_->started.load(std::memory_order_acquire) == epoch_) return true;
    const std::uint64_t before = comm::ticks();
    const bool arrived = channels_.test(epoch_ + 1);
    wait_ticks_ += comm::ticks() - before;
    return arrived;
}

comm::status plan::finish(team t) noexcept {
    if (t.size == 1) return wait();
    // Everybody notes the round before the last one can end it.
    const std::uint64_t round = team_->released.load(std::memory_order_relaxed);
    team_->waiting.fetch_add(1, std::memory_order_acq_rel);
    if (t.index != 0) {
        await_team([&] { return team_->released.load(std::memory_order_acquire) != round; });
        return status_;
    }
    if (status_ == comm::status::ok)
        await_team([&] { return team_->started.load(std::memory_order_acquire) != epoch_; });
    const comm::status now = wait();
    await_team([&] { return team_->waiting.load(std::memory_order_acquire) == t.size; });
    team_->waiting.store(0, std::memory_order_relaxed);
    team_->released.store(round + 1, std::memory_order_release);
    return now;
}

comm::status plan::wait() noexcept {
    if (status_ != comm::status::ok || team_->started.load(std::memory_order_relaxed) == epoch_) return status_;
    const std::uint64_t epoch = epoch_ + 1;
    if (!channels_.done(epoch)) { // else no reading of the clock: two cost as much as all the rest
        const std::uint64_t before = comm::ticks();
        status_ = channels_.wait(epoch);
        const std::uint64_t waited = comm::ticks() - before;
        wait_ticks_ += waited;
        if (status_ != comm::status::ok) return status_;
        imbalance_ticks_ += std::min(waited, lateness(epoch, before));
    }
    channels_.for_each([&](const auto& channel) {
        const plan_message& m = messages_[channel.index()];
        ghosts_[m.where.index()] = channel.received(epoch);
        if (seal_bytes() > 0 && !is_sealed(channel.received(epoch), static_cast<std::size_t>(m.ghost_sites), epoch))
            broken_seal_ = static_cast<int>(channel.index());
    });
    if (broken_seal_ >= 0) return status_ = comm::status::wrong_data;
    ++exchanges_;
    epoch_ = epoch;
    if (looks_.due(started_at_)) look_at_paths();
    return status_;
}

std::uint64_t plan::lateness(std::uint64_t epoch, std::uint64_t waiting_since) const noexcept {
    std::uint64_t late = 0;
    channels_.for_each([&](const auto& channel) {
        const std::uint64_t started = same_clock_[channel.index()] ? channel.header(epoch).start_stamp : 0;
        if (started > waiting_since) late = std::max(late, started - waiting_since);
    });
    return late;
}

void plan::finish_or_throw() {
    const comm::status s = finish();
    if (s == comm::status::ok) return;
    if (broken_seal_ < 0) job_.fail(s, "halo " + channels_.pending(epoch_ + 1));
    const plan_message& m = messages_[static_cast<std::size_t>(broken_seal_)];
    job_.fail(s, "halo '" + options_.name + "' epoch " + std::to_string(epoch_ + 1) + ": what arrived behind " +
                     lattice::to_string(m.where) + " from rank " + std::to_string(m.peer) +
                     " does not have the checksum that it was sent with");
}

plan_statistics plan::statistics() const {
    const double seconds = comm::seconds_per_tick();
    const double of_one = timed_packs_ > 0 ? static_cast<double>(pack_ticks_) / static_cast<double>(timed_packs_) : 0;
    return {.exchanges = exchanges_,
            .pack_seconds = seconds * of_one * static_cast<double>(exchanges_),
            .wait_seconds = seconds * static_cast<double>(wait_ticks_),
            .unpack_seconds = 0,
            .imbalance_seconds = seconds * static_cast<double>(imbalance_ticks_),
            .path_changes = path_changes_,
            .lanes = channels_.counts(exchanges_)};
}

void plan::reset_statistics() {
    path_changes_ = exchanges_ = pack_ticks_ = timed_packs_ = wait_ticks_ = imbalance_ticks_ = 0;
}

std::string plan::describe() const {
    std::string table =
        "halo '" + options_.name + "', " + std::to_string(options_.bytes_per_site) + " bytes per site\n";
    char line[160];
    std::snprintf(line, sizeof line, "  %-7s %5s  %-9s %-8s %10s %12s %10s %12s  %s\n", "face", "peer", "transport",
                  "path", "send sites", "send bytes", "ghosts", "ghost bytes", "why");
    table += line;
    channels_.for_each([&](const auto& channel) {
        const plan_message& m = messages_[channel.index()];
        using kind = std::remove_cvref_t<decltype(channel)>;
        std::string_view way = kind::path;
        if constexpr (requires { channel.way(); }) way = channel.way();
        if (m.way != path::packed) way = to_string(m.way);
        std::snprintf(line, sizeof line, "  %-7s %5d  %-9s %-8s %10zu %12zu %10lld %12lld  ",
                      lattice::to_string(m.where).c_str(), m.peer, kind::transport, way.data(), m.send_sites.size(),
                      m.send_sites.size() * options_.bytes_per_site, static_cast<long long>(m.ghost_sites),
                      static_cast<long long>(m.ghost_sites) * static_cast<long long>(options_.bytes_per_site));
        table += line + m.why + "\n";
    });
    if (messages_.empty()) table += "  no message: every dimension wraps locally\n";
    return table;
}

} // namespace halocline::halo
