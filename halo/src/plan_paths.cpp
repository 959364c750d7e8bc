// SPDX-License-Identifier: Apache-2.0
// How a halo plan's messages are written if their peer shares its memory: chosen when the plan is made, and again when
// the machine changes.
#include "message_stores.hpp"
#include "path_model.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/costs.hpp>
#include <halocline/halo/detail/plan_core.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace halocline::halo {
namespace {

/// Why a message to another rank is packed, if that rank shares no memory with this one.
std::string why_sent(path wish) {
    std::string why = "packed, then sent: no shared memory";
    if (wish == path::direct || wish == path::streamed || wish == path::joint)
        why.append(", which ").append(to_string(wish)).append(" is for");
    return why;
}

} // namespace

path plan_core::wished_path() const { return options_.path == path::automatic ? job_.options().path : options_.path; }

comm::costs plan_core::path_costs() const {
    if (wished_path() == path::streamed || job_.ranks() == 1) return comm::unmeasured_costs();
    return comm::measured_costs(job_);
}

/// By what both ends know, so that they decide alike: a channel is joint if either of its messages is worth it.
void plan_core::choose_joint(std::size_t message, const comm::costs& costs, comm::channel_request& request) {
    plan_message& m = messages_[message];
    if (!shares_memory(job_, m.peer) || seal_.bytes() > 0) return;
    if (options_.fields > static_cast<int>(comm::joint_source::most_fields)) return;
    const path wish = wished_path();
    if (!comm::joint_pays(wish, costs, std::max(request.send_bytes, request.receive_bytes))) return;
    request.kind = comm::channel_kind::joint_slots;
    request.note =
        joint_.join(message, comm::joint_pays(wish, costs, request.send_bytes), m.send_sites, options_.order.get());
}

path plan_core::path_now(std::size_t message) noexcept {
    const path alone = writers_[message].watch().path();
    return alone == path::direct && joint_.is_offered(message) ? path::joint : alone;
}

void plan_core::choose_paths(const comm::costs& costs) {
    const path wish = wished_path();
    channels_.for_each([&]<class Channel>(const Channel& channel) {
        if constexpr (!Channel::in_peer_memory) {
            if (plan_message& m = messages_[first_in(channel)]; m.peer != job_.rank()) m.why = why_sent(wish);
            return;
        }
        message_writer& writer = writers_[first_in(channel)];
        writing w = choose_writing(wish, costs, writer.lines());
        if (options_.bytes_per_site > largest_assembled_site)
            w = {path_watch::always_cached(costs), "sites of more than 8 KiB"};
        writer.follow(w.watch);
        plan_message& m = messages_[first_in(channel)];
        m.path = path_now(first_in(channel));
        m.why = std::move(w.why) + why_joint(wish, costs, options_.fields, joint_.is_offered(first_in(channel)));
        if (wish == path::joint && seal_.seals()) m.why += "; one with a checksum is copied by its sender alone";
    });
    std::vector<watched_bytes> messages;
    for (message_writer& w : writers_) messages.push_back({&w.watch(), w.bytes()});
    limit_claims(messages);
    if (std::any_of(writers_.begin(), writers_.end(), [](message_writer& w) { return w.watch().watches(); }))
        looks_ = look_times(comm::ticks());
}

void plan_core::review_paths() noexcept {
    channels_.for_each([&]<class Channel>(Channel& channel) {
        message_writer& writer = writers_[first_in(channel)];
        if constexpr (Channel::in_peer_memory)
            if (writer.watch().watches())
                writer.watch().read(
                    looks_.look(channel.target(epoch_ + 1) + writer.bytes() / 2, channel.looked_at(epoch_ + 1)));
    });
    if (!looks_.looked(times_.last_stamp())) return;
    for (std::size_t m = 0; m < messages_.size(); ++m) {
        if (!writers_[m].watch().decide()) continue;
        messages_[m].path = path_now(m);
        times_.note_path_change();
    }
}

} // namespace halocline::halo
