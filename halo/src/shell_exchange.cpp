// SPDX-License-Identifier: Apache-2.0
#include "shell_exchange.hpp"

#include "region_transfers.hpp"
#include "untold_misuse.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>

namespace halocline::halo {

void shell_plan::state::phases_in_turn::begin(int which) noexcept {
    driver.take_over();
    bound = which;
    now = 0;
    if (!plans.empty()) of(plans[0]).begin(which);
}

bool shell_plan::state::phases_in_turn::advance() noexcept {
    while (status == comm::status::ok && now < plans.size() && of(plans[now]).has_arrived()) {
        if (now + 1 == plans.size()) return true;
        status = of(plans[now]).complete(); // does not wait
        if (status == comm::status::ok) of(plans[++now]).begin(bound);
    }
    return status != comm::status::ok || now >= plans.size();
}

bool shell_plan::state::phases_in_turn::test() noexcept {
    driver.take_over();
    return advance();
}

comm::status shell_plan::state::phases_in_turn::complete() noexcept {
    driver.take_over();
    while (status == comm::status::ok && now < plans.size()) {
        status = of(plans[now]).complete();
        if (status == comm::status::ok && ++now < plans.size()) of(plans[now]).begin(bound);
    }
    driver.give_up();
    return status;
}

void shell_plan::state::phases_in_turn::leave() noexcept {
    driver.take_over();
    driver.give_up();
    for (region_plan& phase : plans) of(phase).leave();
}

shell_plan::state::~state() {
    warn_of_untold_misuse(job, status, [this] { return why_misused(); });
}

void shell_plan::state::begin(int which) noexcept {
    if (!status.is_ok() || !may_start()) return;
    reported.clear();
    if (!has_binding(which)) {
        forward.bound = which; // for why_misused()
        forward.now = 0;
        (void)status.misuse();
        return;
    }
    now = running::forward;
    bound_ghosts& g = filled[which];
    for (const std::size_t other : g.overwritten)
        if (!filled[other].absent) filled[other].absent = "another binding's exchange overwrote them";
    g.absent = bound_ghosts::not_filled;
    g.note_versions();
    if (options.checks >= check_level::normal) g.note_sent(sent_sites);
    forward.begin(which);
}

void shell_plan::state::begin_reverse(int which) noexcept {
    if (!status.is_ok() || !may_start()) return;
    now = running::backward;
    if (!backward || !has_binding(which)) {
        forward.bound = which; // for why_misused()
        (void)status.misuse();
        return;
    }
    filled[which].mark_sources();
    of(*backward).begin(which);
}

bool shell_plan::state::may_start() noexcept {
    const auto may_drive = [](region_plan& p) { return of(p).may_drive(); };
    if (now != running::nothing)
        status.misuse("start() before finish() of the last exchange");
    else if (!std::ranges::all_of(forward.plans, may_drive) || (backward && !may_drive(*backward)))
        status.misuse(needs_thread_level);
    return status.is_ok();
}

bool shell_plan::state::has_binding(int which) const noexcept {
    return which >= 0 && static_cast<std::size_t>(which) < filled.size();
}

void shell_plan::state::check_unmarked(int which) noexcept {
    if (options.checks < check_level::normal) return;
    const bound_ghosts& g = filled[which];
    for (std::size_t i = 0; i < g.sources; ++i) {
        if (!g.sends_what_it_sent(i, sent_sites))
            status.misuse("ensure_halo() of a field that was written since its exchange, without mark_written()");
        else if (!g.has_what_arrived(i, ghost_sites))
            status.misuse("ensure_halo() of ghosts that were written since their exchange");
    }
    if (!status.is_ok()) leave();
}

std::size_t shell_plan::state::checked_fields(int which) const {
    if (options.checks < check_level::normal) return 0;
    if (!has_binding(which))
        throw input_error(no_binding("halo '" + options.name + "'", "require_fresh", which, filled.size()));
    return filled[which].sources;
}

const char* shell_plan::state::why_stale(int which, std::size_t field) const noexcept {
    const bound_ghosts& g = filled[which];
    if (now == running::forward && forward.bound == which) return "their exchange is not finished";
    if (g.absent) return g.absent;
    if (g.was_marked(field)) return "a field was marked as written since";
    if (!g.sends_what_it_sent(field, sent_sites)) return "a field was written since, without mark_written()";
    if (!g.has_what_arrived(field, ghost_sites)) return "ghosts were written since";
    return nullptr;
}

bool shell_plan::state::test() noexcept {
    if (!status.is_ok() || now == running::nothing) return true;
    if (now == running::backward) return backward->test();
    if (forward.test()) return true;
    (void)forward.plans[forward.now].test(); // does what peers wait for, and checks for deaths
    return forward.test();
}

void shell_plan::state::complete() noexcept {
    if (status.is_ok() && now == running::nothing) status.misuse("finish() without start()");
    if (!status.is_ok()) return leave();
    if (now == running::backward) {
        (void)status.end(of(*backward).complete());
    } else if (status.end(forward.complete()) == comm::status::ok) {
        ++epoch;
        bound_ghosts& g = filled[forward.bound];
        g.absent = nullptr;
        if (options.checks >= check_level::normal) g.note_arrived(ghost_sites);
    }
    if (!status.is_ok()) return leave();
    now = running::nothing;
}

void shell_plan::state::leave() noexcept {
    forward.leave();
    if (backward) of(*backward).leave();
}

std::string shell_plan::state::why_misused() const {
    const std::string who = "halo '" + options.name + "'";
    if (const comm::wrong_call& call = status.wrong_call()) return who + ": " + call.text();
    if (now == running::backward && !backward)
        return who + ": start_reverse(): the plan was made without shell_options::reverse";
    return no_binding(who, now == running::backward ? "start_reverse" : "start", forward.bound, filled.size());
}

} // namespace halocline::halo
