// SPDX-License-Identifier: Apache-2.0
// A halo plan's description of itself, of which sites its ghosts are, and whether they are fresh.
#include "box_layers.hpp"
#include "source_fingerprint.hpp"
#include "why_column.hpp"

#include <halocline/base/error.hpp>
#include <halocline/halo/detail/plan_core.hpp>

#include <cstdio>
#include <numeric>
#include <string_view>
#include <type_traits>
#include <utility>

namespace halocline::halo {
namespace {

/// Why a face is not exchanged.
const char* why_none(const plan_options& options, face f) {
    if (options.widths.behind(f) == 0 && options.widths.behind(f.opposite()) == 0) return "of width 0";
    if (options.boundaries[f.mu] == lattice::boundary::open) return "an open edge of the lattice";
    return "not cut: wraps around in the box, without ghosts";
}

} // namespace

std::size_t plan_core::staging_bytes() const {
    std::size_t sum = 0;
    for (const message_writer& writer : writers_) sum += writer.staging_bytes();
    return sum;
}

std::string plan_core::describe() const {
    std::string table = "halo '" + options_.name + "', " + std::to_string(options_.bytes_per_site) + " bytes per site" +
                        (options_.fields > 1 ? ", " + std::to_string(options_.fields) + " fields" : "") +
                        (order_prepared_ ? "" : "; fields in another order than prepared: copied site by site") + "\n";
    const std::size_t site_bytes = options_.bytes_per_site * static_cast<std::size_t>(options_.fields);
    char line[160];
    std::snprintf(line, sizeof line, "  %-7s %5s  %-9s %-8s %10s %12s %10s %12s  %s\n", "face", "peer", "transport",
                  "path", "send sites", "send bytes", "ghosts", "ghost bytes", "why");
    table += line;
    channels_.for_each([&](const auto& channel) {
        using kind = std::remove_cvref_t<decltype(channel)>;
        for_each_message(channel, [&](std::size_t message) {
            const plan_message& m = messages_[message];
            std::string_view taken = kind::path_name;
            if constexpr (requires { channel.path_taken(); }) taken = channel.path_taken();
            if (m.path != path::packed) taken = to_string(m.path);
            std::snprintf(line, sizeof line, "  %-7s %5d  %-9s %-8s %10zu %12zu %10lld %12lld  ",
                          lattice::to_string(m.where).c_str(), m.peer, kind::transport, taken.data(),
                          m.send_sites.size(), m.send_sites.size() * site_bytes, static_cast<long long>(m.ghost_sites),
                          static_cast<long long>(m.ghost_sites) * static_cast<long long>(site_bytes));
            table += line + why_column(m.why, job_.members()[m.peer]) + "\n";
        });
    });
    for (int i = 0; i < lattice::faces; ++i) {
        const face f = lattice::face_of(i);
        if (message_of(f) >= 0) continue;
        std::snprintf(line, sizeof line, "  %-7s %5s  %-9s %-8s %10d %12d %10d %12d  ", lattice::to_string(f).c_str(),
                      "-", "-", "none", 0, 0, 0, 0);
        table.append(line).append(why_none(options_, f)).append("\n");
    }
    return table;
}

std::vector<lattice::coordinate> plan_core::ghost_sites(face f) const {
    if (message_of(f) < 0) return {};
    // In the neighbour's coordinates, as when the plan was made.
    const lattice::box theirs = cut_.local_box(messages_[message_of(f)].peer),
                       part = layers(theirs, f.opposite(), options_.widths.behind(f));
    std::vector<std::int32_t> all(static_cast<std::size_t>(part.volume()));
    std::iota(all.begin(), all.end(), 0);
    std::vector<lattice::coordinate> sites;
    for (const std::int32_t i : selected(std::move(all), part, cut_.global(), options_.parity, options_.select))
        sites.push_back(lattice::wrapped(part.site(i), cut_.global()));
    return sites;
}

std::uint64_t plan_core::checksum(const source_field& x) const noexcept {
    std::uint64_t sum = 0;
    for (const plan_message& m : messages_) sum = checksum_sites(sum, m.send_sites, x);
    return sum;
}

void plan_core::require_fresh(const source_field& x, std::uint64_t version, std::size_t first, std::size_t last) const {
    if (options_.checks < check_level::normal) return;
    std::string stale = "halo '" + options_.name + "': stale ghosts after exchange " + std::to_string(epoch_) + ": ";
    if (team_->in_flight(epoch_)) throw error(stale + "the next exchange is not finished; call finish() first");
    std::string_view why = "is not what the last finished exchange sent";
    for (std::size_t i = first; i < last; ++i) {
        const sent_field& f = sent().fields[i];
        if (!f.is_of(x.values)) continue;
        const char* const stale_because = f.why_stale(x.values, version, epoch_, [&] { return checksum(x); });
        if (!stale_because) return;
        why = stale_because;
    }
    if (epoch_ > 0 && sent().fields.front().epoch() < epoch_)
        why = "is not tracked: the last exchange was packed by its caller";
    // ensure_halo() goes by marks.
    const char* const remedy = why == sent_field::unmarked ? "" : ", or ensure_halo()";
    throw error(stale.append("the field ").append(why).append("; call start() and finish()").append(remedy));
}

void plan_core::throw_other_number(std::size_t fields) const {
    throw input_error("halo '" + options_.name + "': require_fresh() was given " + std::to_string(fields) +
                      (fields == 1 ? " field" : " fields") + "; it sends " + std::to_string(options_.fields));
}

} // namespace halocline::halo
