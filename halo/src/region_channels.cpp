// SPDX-License-Identifier: Apache-2.0
// How a region_plan's exchange is made: its messages, their channels, and what each exchange needs of them.
#include "region_exchange.hpp"

#include "box_layers.hpp"
#include "path_model.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/clock.hpp>

namespace halocline::halo {

region_plan::state::state(const comm::job& j, const std::vector<transfer>& sends, const std::vector<transfer>& receives,
                          std::vector<binding> fields, region_plan_options choices)
    : team_calls(team_patience(j.options().deadline)), job(j), options(std::move(choices)),
      bindings(std::move(fields)) {
    options.checksums = options.checksums || job.options().checksums;
    seal = message_seal(job, options.checksums);
    job.collectively([&] {
        if (bindings.empty()) throw input_error("'" + options.name + "': no field is bound");
    });
    messages = make_messages(job, sends, receives, bindings, options);
    format = {options.format, static_cast<float>(options.scale)};
    for (const field_view& f : bindings.front().source) site_bytes += format.bytes(f.shape);
    job.collectively([&] { refuse_wrapping_sizes(); });
    std::vector<watched_bytes> direct, by_slot;
    for (region_message& m : messages) {
        direct.push_back({&m.watch, m.out_at.back()});
        by_slot.push_back({m.by_slot ? &m.by_slot->watch : &m.watch, m.out_at.back()});
    }
    limit_claims(direct);
    limit_claims(by_slot);
    piece_bytes = least_piece_bytes(comm::measured_costs(job));
    for (const region_message& m : messages) most_sites = std::max({most_sites, m.send_sites, m.receive_sites});
    joint = std::ranges::any_of(messages, &region_message::joint);
    slab = job.memory().base();
    make_channels();
    times = exchange_times(job, channels);
    if (std::ranges::any_of(messages, &region_message::is_watched)) looks = look_times(comm::ticks());
    reported.reserve(receives.size());
}

void region_plan::state::refuse_wrapping_sizes() const {
    for (const region_message& m : messages) {
        const std::string what = "'" + options.name + "': the message between rank " + std::to_string(job.rank()) +
                                 " and rank " + std::to_string(m.peer) + ", ";
        refuse_wrapping_size(what, static_cast<std::size_t>(std::max(m.send_sites, m.receive_sites)), site_bytes);
    }
}

void region_plan::state::make_channels() {
    std::vector<comm::channel_request> requests;
    for (const region_message& m : messages) // one end per peer, identified by the peer's rank
        requests.push_back({.peer = m.peer,
                            .key = static_cast<std::uint32_t>(m.peer),
                            .peer_key = static_cast<std::uint32_t>(job.rank()),
                            .send_bytes = m.out_at.back() + seal.bytes(),
                            .receive_bytes = m.in_at.back() + seal.bytes(),
                            .label = "values",
                            .kind = m.channel_kind(),
                            .writes = m.writes,
                            .fields = m.registered});
    comm::channel_set_options set_options{.name = options.name, .shape = {}, .written_by_peers = {}};
    const auto is_direct = [](const region_message& m) { return m.path == path::direct; };
    const bool near =
        std::ranges::any_of(messages, [&](const region_message& m) { return is_direct(m) && !m.registered; });
    for (std::size_t b = 0; near && b < bindings.size(); ++b)
        for (const field_view& f : bindings[b].destination) set_options.written_by_peers.push_back(f.data);
    for (region_message& m : messages) m.registered = nullptr; // the channels own it now
    channels = comm::channel_set(job, requests, set_options);
    first_source = static_cast<std::uint32_t>(bindings.size() * bindings.front().destination.size());
    if (std::ranges::any_of(messages, is_direct)) work_in_every_wait();
    begins_with(*this);
}

void region_plan::state::begins_with(const state& first) {
    channels.find_crossed_waits(&first, [](const void* s) { return static_cast<const state*>(s)->started_; });
}

} // namespace halocline::halo
