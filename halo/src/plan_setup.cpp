// SPDX-License-Identifier: Apache-2.0
// How a halo plan is made: which sites each message carries, and its channels.
#include "box_layers.hpp"
#include "chosen_sites.hpp"
#include "source_fingerprint.hpp"

#include <halocline/base/enumerators.hpp>
#include <halocline/base/error.hpp>
#include <halocline/comm/transport_names.hpp>
#include <halocline/halo/detail/plan_core.hpp>
#include <halocline/halo/region_plan.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

namespace halocline::halo {
namespace {

using lattice::coordinate;
using lattice::dimensions;

/// Everything about a plan that must be the same on every rank, as text for comparison.
std::string shape_of(const lattice::decomposition& cut, const plan_options& o) {
    std::string text = "'" + o.name + "', " + std::to_string(o.bytes_per_site) + " bytes per site";
    text.append(o.element.bytes > 0 ? " of " + comm::to_string(o.element) : "").append(", ");
    if (o.fields > 1) text += std::to_string(o.fields) + " fields, ";
    if (o.parity) text += "parity " + std::to_string(*o.parity) + ", ";
    if (o.select) text += "selected sites, ";
    if (o.self_exchange) text += "self-exchange, ";
    for (int mu = 0; mu < dimensions; ++mu)
        if (o.self_exchange_along[mu])
            text.append("self-exchange in ").append(1, lattice::dimension_name[mu]).append(", ");
    if (o.checksums) text += "checksums, ";
    text.append("path ").append(to_string(o.path)).append(", ");
    return text + shape_text(cut, o.widths, o.boundaries);
}

/// Is that another rank, to which messages go over a network?
bool is_far(const comm::job& j, int peer) {
    const std::string_view transport = j.members()[peer].transport;
    return peer != j.rank() && !comm::is_in_memory(transport) && transport != comm::mock_channel::transport;
}

/// The most that two messages which travel as one may hold: larger ones gain less by that than by the first being on
/// its way while the second is packed.
constexpr std::size_t most_coalesced_bytes = 64 << 10;

} // namespace

plan_core::plan_core(const comm::job& j, const lattice::decomposition& cut, plan_options options)
    : job_(j), cut_(cut), options_(std::move(options)) {
    message_of_.fill(-1);
    options_.checksums = options_.checksums || job_.options().checksums || options_.checks >= check_level::comm;
    seal_ = message_seal(job_, options_.checksums);
    job_.agree("the shape of halo '" + options_.name + "'", shape_of(cut, options_));

    const comm::costs costs = path_costs();
    std::vector<comm::channel_request> requests;
    chosen_sites chosen;
    job_.collectively([&] {
        check_options(cut);
        prepare_messages(cut, chosen);
        refuse_wrapping_sizes();
        const std::size_t channels = coalesce_messages();
        prepare_writers(cut.local_box(job_.rank()).extents);
        joint_ = joint_faces(job_, messages_.size(), options_.order.get(), cut.local_box(job_.rank()).volume(),
                             options_.bytes_per_site);
        requests = make_requests(channels, costs);
    });
    if (options_.select)
        chosen.compare(job_, "halo '" + options_.name + "': ", [](int place) {
            return "behind " + lattice::to_string(lattice::face_of(place));
        });
    make_channels(requests);
    for (sent_fields& sent : sent_) sent.fields.resize(static_cast<std::size_t>(options_.fields));
    times_ = exchange_times(job_, channels_);
    choose_paths(costs);
}

/// The verdict is the same on every rank.
void plan_core::check_options(const lattice::decomposition& cut) const {
    const std::string who = "halo '" + options_.name + "': ";
    check_cut({.who = who,
               .widths = options_.widths,
               .boundaries = options_.boundaries,
               .self_exchange = options_.self_exchange,
               .self_exchange_along = options_.self_exchange_along},
              cut, job_.ranks());
    require_enumerator(who + "path", options_.path);
    require_enumerator(who + "checks", options_.checks);
    if (options_.path == path::packed)
        throw input_error(
            who + "path packed: ghosts in a plan's slots are written in place; direct, streamed, joint or automatic");
    if (options_.bytes_per_site == 0)
        throw input_error(who + "0 bytes per site; say in plan_options::bytes_per_site what a site sends");
    if (options_.element.bytes > 0 && options_.bytes_per_site % options_.element.bytes != 0)
        throw input_error(who + std::to_string(options_.bytes_per_site) + " bytes per site don't consist of " +
                          comm::to_string(options_.element));
    constexpr int most_fields = 1 << 16; // each costs this rank memory, also where it sends no message
    if (options_.fields < 1 || options_.fields > most_fields)
        throw input_error(who + std::to_string(options_.fields) + " fields in a message: must be from 1 to " +
                          std::to_string(most_fields));
    check_parity(who, options_.parity);
}

std::vector<comm::channel_request> plan_core::make_requests(std::size_t channels, const comm::costs& costs) {
    const std::size_t bytes = options_.bytes_per_site * static_cast<std::size_t>(options_.fields);
    std::vector<comm::channel_request> requests;
    for (std::size_t c = 0; c < channels; ++c) {
        const std::size_t i = first_[c];
        const plan_message& m = messages_[i];
        requests.push_back({.peer = m.peer,
                            .key = static_cast<std::uint32_t>(m.where.index()),
                            .peer_key = static_cast<std::uint32_t>(m.where.opposite().index()),
                            .send_bytes = m.send_sites.size() * bytes + seal_.bytes(),
                            .receive_bytes = static_cast<std::size_t>(m.ghost_sites) * bytes + seal_.bytes(),
                            .label = lattice::to_string(m.where)});
        if (const int follower = follower_[c]; follower >= 0) {
            const plan_message& second = messages_[follower];
            comm::channel_request& both = requests.back();
            both.peer_key = both.key;
            both.send_bytes = sent_at_[follower] + second.send_sites.size() * bytes + seal_.bytes();
            both.receive_bytes += arrives_at_[i];
            both.label += " and " + lattice::to_string(second.where);
        }
        choose_joint(i, costs, requests.back());
    }
    return requests;
}

void plan_core::make_channels(const std::vector<comm::channel_request>& requests) {
    channels_ = comm::channel_set(job_, requests, {.name = options_.name, .shape = {}});
    const senders who = channels_.over_network() ? senders::member_0 : senders::any_member;
    team_.emplace(requests.size(), team_patience(job_.options().deadline), who);
    channels_.find_crossed_waits(&*team_,
                                 [](const void* team) { return static_cast<const packing_team*>(team)->begun(); });
    for (std::size_t c = 0; c < requests.size(); ++c)
        if (const std::size_t m = first_[c]; joint_.is_joint(m)) joint_.read(m, channels_.take_note(c));
}

void plan_core::prepare_messages(const lattice::decomposition& cut, chosen_sites& chosen) {
    const lattice::box local = cut.local_box(job_.rank());
    std::uint64_t fingerprint = 0;
    const auto sites = [&](const lattice::box& part, const lattice::box& whole) {
        return selected(sites_of(within(whole, part), whole.extents), part, cut.global(), options_.parity,
                        options_.select, &fingerprint);
    };
    for (int i = 0; i < lattice::faces; ++i) {
        const face f = lattice::face_of(i);
        if (!is_exchanged(cut, options_, job_.rank(), f)) continue;

        plan_message m{.where = f, .peer = cut.neighbour(job_.rank(), f), .send_sites = {}};
        // What leaves through the low face lands behind the neighbour's high face, and vice versa.
        m.send_sites = sites(layers(local, f, options_.widths.behind(f.opposite())), local);
        if (options_.select) chosen.note_sent(m.peer, f.opposite().index(), fingerprint);
        // In the neighbour's coordinates, so that both ends ask `select` about the same source sites.
        const lattice::box theirs = cut.local_box(m.peer);
        const std::vector<std::int32_t> ghosts = sites(layers(theirs, f.opposite(), options_.widths.behind(f)), theirs);
        if (options_.select) chosen.note_expected(m.peer, f.index(), fingerprint);
        m.ghost_sites = std::ssize(ghosts);
        m.fingerprint = checksum_list(checksum_list(0, m.send_sites), ghosts);

        message_of_[i] = static_cast<int>(messages_.size());
        messages_.push_back(std::move(m));
    }
}

std::size_t plan_core::coalesce_messages() {
    follower_.fill(-1);
    const std::size_t bytes = options_.bytes_per_site * static_cast<std::size_t>(options_.fields);
    const auto sent = [&](const plan_message& m) { return m.send_sites.size() * bytes + seal_.bytes(); };
    const auto arriving = [&](const plan_message& m) {
        return static_cast<std::size_t>(m.ghost_sites) * bytes + seal_.bytes();
    };
    const auto in_lines = [](std::size_t n) { return (n + 63) / 64 * 64; };
    // Both ends decide alike: what one sends is what the other receives.
    const auto share_channel = [&](const plan_message& low, const plan_message& high) {
        return low.where == high.where.opposite() && low.peer == high.peer && is_far(job_, low.peer) &&
               std::max(sent(low) + sent(high), arriving(low) + arriving(high)) <= most_coalesced_bytes;
    };
    std::size_t channels = 0;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
        first_[channels] = static_cast<std::uint8_t>(i);
        if (const std::size_t next = i + 1; next < messages_.size() && share_channel(messages_[i], messages_[next])) {
            follower_[channels] = static_cast<int>(next);
            messages_[next].why = "in one message with " + lattice::to_string(messages_[i].where);
            // What leaves first lands behind the peer's other face: the ghosts of the second arrive first.
            sent_at_[next] = in_lines(sent(messages_[i]));
            arrives_at_[i] = in_lines(arriving(messages_[next]));
            ++i;
        }
        ++channels;
    }
    return channels;
}

void plan_core::refuse_wrapping_sizes() const {
    for (const plan_message& m : messages_) {
        const std::size_t sites = std::max(m.send_sites.size(), static_cast<std::size_t>(m.ghost_sites));
        refuse_wrapping_size("halo '" + options_.name + "': a message of ", sites, options_.bytes_per_site,
                             options_.fields);
    }
}

void plan_core::prepare_writers(const lattice::coordinate& extents) {
    const lattice::site_order* const order = options_.order.get();
    if (order && order->extents() != extents)
        throw input_error("halo '" + options_.name + "': the site order is of a box of " +
                          lattice::to_string(order->extents()) + ", the local box of rank " +
                          std::to_string(job_.rank()) + " is " + lattice::to_string(extents));
    accepted_ = field_check(options_, extents);
    for (const plan_message& m : messages_)
        if (order) require_positions("halo '" + options_.name + "': ", *order, m.send_sites);
    for (const plan_message& m : messages_)
        writers_.emplace_back(m.send_sites, order, options_.bytes_per_site, options_.fields);
    for (message_writer& w : writers_)
        if (seal_.seals()) w.sum_up();
}

} // namespace halocline::halo
