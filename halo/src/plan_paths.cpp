// SPDX-License-Identifier: Apache-2.0
// How a halo plan's messages are written if their peer shares its memory: chosen when the plan is made, and again when
// the machine changes.
#include "path_model.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/costs.hpp>
#include <halocline/halo/plan.hpp>

#include <algorithm>
#include <utility>

namespace halocline::halo {

void plan::choose_paths() {
    const path wish = options_.path == path::automatic ? job_.options().path : options_.path;
    const bool matter = wish != path::streamed && job_.ranks() > 1;
    const comm::costs costs = matter ? comm::measured_costs(job_) : comm::costs{}; // collective the first time
    channels_.for_each([&]<class Channel>(const Channel& channel) {
        if constexpr (!Channel::in_peer_memory) return;
        message_writer& writer = writers_[channel.index()];
        writing w = choose_writing(wish, costs, writer.bytes());
        if (seal_.bytes() > 0) w = {path_watch::always_claimed(), "checksums are made of what is at the peer"};
        if (options_.bytes_per_site > message_writer::largest_streamed_site)
            w = {path_watch::always_claimed(), "sites of more than 8 KiB"};
        writer.follow(w.watch);
        messages_[channel.index()].path = w.watch.path();
        messages_[channel.index()].why = std::move(w.why);
    });
    limit_claims(
        writers_, [](message_writer& w) -> path_watch& { return w.watch(); },
        [](const message_writer& w) { return w.bytes(); });
    if (std::any_of(writers_.begin(), writers_.end(), [](message_writer& w) { return w.watch().watches(); }))
        looks_ = look_times(comm::ticks());
}

void plan::review_paths() noexcept {
    channels_.for_each([&](auto& channel) {
        message_writer& writer = writers_[channel.index()];
        looks_.look(writer.watch(), channel.target(epoch_ + 1) + writer.bytes() / 2);
    });
    if (!looks_.looked(times_.last_stamp())) return;
    for (std::size_t m = 0; m < messages_.size(); ++m) {
        if (!writers_[m].watch().decide()) continue;
        messages_[m].path = writers_[m].watch().path();
        times_.note_path_change();
    }
}

} // namespace halocline::halo
