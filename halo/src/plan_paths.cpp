// SPDX-License-Identifier: Apache-2.0
// How a halo plan's messages are written where their peer shares its memory: chosen when the plan is made, and again when
// the machine changes.
#include "path_model.hpp"

#include <halocline/comm/claim_lines.hpp>
#include <halocline/comm/costs.hpp>
#include <halocline/comm/take_line.hpp>
#include <halocline/halo/plan.hpp>

#include <algorithm>
#include <string_view>

namespace halocline::halo {

void plan::choose_paths(const std::vector<comm::channel_request>& requests) {
    const path wish = options_.path == path::automatic ? job_.options().path : options_.path;
    const bool matter = wish != path::streamed && job_.ranks() > 1;
    const comm::costs costs = matter ? comm::measured_costs(job_) : comm::costs{}; // collective at first
    std::size_t direct_bytes = 0, staged_lines = 0;
    staged_at_.resize(messages_.size());
    watches_.resize(messages_.size());
    channels_.for_each([&]<class Channel>(const Channel& channel) {
        if (std::string_view(Channel::path) != "direct") return;
        const std::size_t bytes = requests[channel.index()].send_bytes;
        writing w = choose_writing(wish, costs, bytes);
        if (seal_bytes() > 0) w = {path::direct, "checksums are made of what is at the peer", {}};
        if (options_.bytes_per_site > stream_block_bytes) w = {path::direct, "sites of more than 8 KiB", {}};
        plan_message& m = messages_[channel.index()];
        m.path = w.path;
        m.why = w.why;
        watches_[channel.index()] = w.watch;
        if (m.path == path::streamed || w.watch.may_stream()) {
            staged_at_[channel.index()] = staged_lines;
            staged_lines += (bytes + sizeof(cache_line) - 1) / sizeof(cache_line);
        }
        if (m.path == path::direct || w.watch.watches()) direct_bytes += bytes;
    });
    if (std::any_of(watches_.begin(), watches_.end(), [](const path_watch& w) { return w.watches(); }))
        looks_ = look_times(comm::ticks());
    claims_ = direct_bytes <= comm::largest_claimed();
    staging_ = std::make_unique_for_overwrite<cache_line[]>(staged_lines); // no memory before a caller packs
}

void plan::look_at_paths() noexcept {
    channels_.for_each([&](auto& channel) {
        path_watch& watch = watches_[channel.index()];
        const std::size_t middle = field_bytes(channel.index()) * static_cast<std::size_t>(options_.fields) / 2;
        if (!watch.watches()) return;
        const std::uint64_t ticks = comm::ticks_to_take(channel.target(epoch_ + 1) + middle);
        watch.read(ticks);
        looks_.spent(ticks);
    });
    if (!looks_.looked(timed_at_)) return;
    for (std::size_t m = 0; m < messages_.size(); ++m) {
        if (!watches_[m].watches() || !watches_[m].decide()) continue;
        messages_[m].path = watches_[m].streamed() ? path::streamed : path::direct;
        ++path_changes_;
    }
}

void plan::claim_sites(std::size_t message, std::int64_t first, std::int64_t last, std::byte* target) const noexcept {
    if (!claims(message)) return;
    for (int f = 0; f < options_.fields; ++f, target += field_bytes(message))
        comm::claim_lines(target + static_cast<std::size_t>(first) * options_.bytes_per_site,
                          target + static_cast<std::size_t>(last) * options_.bytes_per_site);
}

} // namespace halocline::halo
