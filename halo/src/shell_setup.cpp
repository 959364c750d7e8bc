// SPDX-License-Identifier: Apache-2.0
// How a shell_plan is made: the route of its edges and corners, and the region_plans that it consists of.
#include "box_layers.hpp"
#include "format_checks.hpp"
#include "path_model.hpp"
#include "region_transfers.hpp"
#include "shell_exchange.hpp"

#include <halocline/base/enumerators.hpp>
#include <halocline/base/error.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace halocline::halo {
namespace {

using lattice::dimensions;

/// Is the destination of some field another field? Then ghosts can't be forwarded: they are not where their values are
/// sent from.
bool are_apart(const std::vector<binding>& bindings) {
    return std::ranges::any_of(bindings, [](const binding& b) {
        return !std::ranges::equal(b.source, b.destination, {}, &field_view::data, &field_view::data);
    });
}

/// Everything about a plan that must be the same on every rank, as text for comparison.
std::string shape_of(const lattice::decomposition& cut, const shell_options& o, bool apart) {
    std::string text(to_string(o.layout));
    text += " " + shape_text(cut, o.widths, o.boundaries);
    text += o.shape == shell::faces ? ", faces" : ", with corners ";
    if (o.shape == shell::box) text += to_string(o.corners);
    if (o.shape == shell::box && o.corners == corner_route::automatic && apart)
        text += ", destinations apart from their sources";
    if (o.parity) text += ", parity " + std::to_string(*o.parity);
    for (int mu = 0; mu < dimensions; ++mu)
        if (o.phases[mu] != 1.0) {
            char digits[80];
            std::snprintf(digits, sizeof digits, ", phase (%.17g, %.17g) in %c", o.phases[mu].real(),
                          o.phases[mu].imag(), lattice::dimension_name[mu]);
            text += digits;
        }
    text.append(", path ").append(to_string(o.path));
    if (o.format != message_format::as_stored) text += ", as " + format_text(o.format, o.scale);
    if (o.reverse) text += ", reverse";
    if (o.select) text += ", selected sites";
    return text;
}

/// "behind t-low", "along 1.0.0.-1".
std::string text_of_ghosts(int direction) {
    const lattice::coordinate d = direction_of(direction);
    if (distance(d) > 1) return "along " + lattice::to_string(d);
    int mu = 0;
    while (d[mu] == 0) ++mu;
    return "behind " + lattice::to_string(face{mu, d[mu] < 0 ? lattice::side::low : lattice::side::high});
}

void check_fields(const std::string& who, const lattice::decomposition& cut, int rank, const shell_options& o,
                  const std::vector<binding>& bindings) {
    require_fields(bindings, who);
    lattice::coordinate extents = grown(cut.local_box(rank), o.widths).extents;
    const char* what = "the local box grown by the ghost widths is ";
    if (o.layout == ghost_layout::appended) {
        extents = {static_cast<int>(appended_sites(cut, rank, o).volume()), 1, 1, 1};
        what = "the appended_sites are ";
    }
    for (const binding& b : bindings)
        for (const std::vector<field_view>* views : {&b.source, &b.destination})
            for (const field_view& f : *views)
                if (f.order->extents() != extents)
                    throw input_error(who + "a field covers " + lattice::to_string(f.order->extents()) + "; on rank " +
                                      std::to_string(rank) + " " + what + lattice::to_string(extents));
}

} // namespace

shell_plan::state::state(const comm::job& j, const lattice::decomposition& cut, shell_options choices,
                         const std::vector<binding>& bindings)
    : team_calls(team_patience(j.options().deadline)), job(j), options(std::move(choices)) {
    const bool apart = are_apart(bindings);
    job.agree("the shape of halo '" + options.name + "'", shape_of(cut, options, apart));
    job.collectively([&] { check(cut, bindings, apart); });
    for (const binding& b : bindings) filled.emplace_back(b);
    note_shared_destinations();
    choose_route(cut, apart);
    std::vector<shell_transfers> lists;
    shell_transfers reverse;
    job.collectively([&] { // because options.select may throw
        lists = list_phases(cut);
        if (options.reverse) reverse = shell_at_once(cut, job.rank(), options);
        if (options.checks >= check_level::normal) list_checked_sites(cut);
    });
    if (options.select) {
        const std::string who = "halo '" + options.name + "': ";
        for (const shell_transfers& phase : lists) phase.chosen.compare(job, who, text_of_ghosts);
        if (options.reverse) reverse.chosen.compare(job, who, text_of_ghosts);
    }
    make_phases(std::move(lists), bindings);
    if (options.reverse) make_reverse(cut, std::move(reverse), bindings);
    reported.reserve(ghosts.size());
}

void shell_plan::state::check(const lattice::decomposition& cut, const std::vector<binding>& bindings,
                              bool apart) const {
    const std::string who = "halo '" + options.name + "': ";
    check_cut({.who = who, .widths = options.widths, .boundaries = options.boundaries, .self_exchange = true}, cut,
              job.ranks());
    require_enumerator(who + "layout", options.layout);
    require_enumerator(who + "shape", options.shape);
    require_enumerator(who + "corners", options.corners);
    require_enumerator(who + "path", options.path);
    require_enumerator(who + "checks", options.checks);
    check_parity(who, options.parity);
    check_fields(who, cut, job.rank(), options, bindings);
    if (options.shape == shell::box && options.corners == corner_route::by_dimension && apart)
        throw input_error(who + "corners by dimension: ghosts are forwarded from the field where they arrived, so each "
                                "field must be its own destination; use corner_route::at_once or automatic");
}

void shell_plan::state::choose_route(const lattice::decomposition& cut, bool apart) {
    if (options.shape != shell::box) return;
    const bool asked = options.corners != corner_route::automatic;
    const verdict<corner_route> v =
        asked   ? verdict<corner_route>{options.corners, "asked for"}
        : apart ? verdict<corner_route>{corner_route::at_once, "ghosts of other fields can't be forwarded"}
                : halo::choose_route(comm::measured_costs(job), cut.rank_grid(), options.widths);
    route = v.choice;
    why = v.why;
}

std::vector<shell_transfers> shell_plan::state::list_phases(const lattice::decomposition& cut) const {
    if (route == corner_route::at_once) return {shell_at_once(cut, job.rank(), options)};
    std::vector<shell_transfers> lists;
    for (int mu = 0; mu < dimensions; ++mu)
        if (options.widths.low[mu] > 0 || options.widths.high[mu] > 0)
            lists.push_back(shell_along(cut, job.rank(), options, mu));
    return lists;
}

void shell_plan::state::make_phases(std::vector<shell_transfers> lists, const std::vector<binding>& bindings) {
    std::vector<region_plan>& phases = forward.plans;
    for (shell_transfers& t : lists) {
        first_ghost.push_back(ghosts.size());
        ghosts.insert(ghosts.end(), t.ghosts.begin(), t.ghosts.end());
        phases.emplace_back(job, std::move(t.sends), std::move(t.receives), bindings,
                            region_plan_options{.name = options.name,
                                                .path = options.path,
                                                .format = options.format,
                                                .scale = options.scale,
                                                .checksums = options.checks >= check_level::comm});
    }
    for (std::size_t p = 0; p < phases.size(); ++p) {
        region_plan::state& phase = of(phases[p]);
        if (p + 1 < phases.size()) // the next phase can then begin during any wait of this rank
            phase.work_in_every_wait(&forward, [](void* f) { static_cast<phases_in_turn*>(f)->work(); });
        phase.threads = threads;
        if (p > 0) phase.begins_with(of(phases[0]));
        shares = shares || phase.shares();
    }
}

void shell_plan::state::make_reverse(const lattice::decomposition& cut, shell_transfers t,
                                     const std::vector<binding>& bindings) {
    for (transfer& theirs : t.receives) theirs.phase = 1; // they are sent
    for (transfer& own : t.sends) // its tag is the direction as the sender of the ghosts sees it
        own.phase = phase_along(cut, job.rank(), options, direction_of(directions - 1 - static_cast<int>(own.tag)));
    std::vector<binding> swapped;
    for (const binding& b : bindings) swapped.push_back({b.destination, b.source});
    backward.emplace(job, std::move(t.receives), std::move(t.sends), std::move(swapped),
                     region_plan_options{.name = options.name + " (reverse)",
                                         .path = path::packed,
                                         .add = true,
                                         .format = options.format,
                                         .scale = options.scale,
                                         .checksums = options.checks >= check_level::comm});
    of(*backward).threads = threads;
}

void shell_plan::state::list_checked_sites(const lattice::decomposition& cut) {
    const shell_transfers t = shell_at_once(cut, job.rank(), options); // the same ghosts by either route
    for (const transfer& sent : t.sends) append_sites(sent, sent_sites);
    std::sort(sent_sites.begin(), sent_sites.end());
    sent_sites.erase(std::unique(sent_sites.begin(), sent_sites.end()), sent_sites.end());
    for (const transfer& received : t.receives) append_sites(received, ghost_sites); // each once
}

void shell_plan::state::note_shared_destinations() {
    for (bound_ghosts& g : filled)
        for (std::size_t other = 0; other < filled.size(); ++other)
            if (g.overwrites(filled[other])) g.overwritten.push_back(other);
}

} // namespace halocline::halo
