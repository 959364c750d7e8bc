// SPDX-License-Identifier: Apache-2.0
// The calls of a shell_plan.
#include <halocline/halo/shell_plan.hpp>

#include "region_transfers.hpp"
#include "shell_exchange.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <utility>

namespace halocline::halo {

shell_plan::shell_plan(const comm::job& j, const lattice::decomposition& cut, shell_options options,
                       std::vector<binding> bindings)
    : s_("a shell_plan", std::make_unique<state>(j, cut, std::move(options), bindings)) {}
shell_plan::shell_plan(shell_plan&&) noexcept = default;
shell_plan& shell_plan::operator=(shell_plan&&) noexcept = default;
shell_plan::~shell_plan() = default;

void shell_plan::start(int which, team t) noexcept {
    s_->start(t, s_->shares, [&] { s_->begin(which); });
}

void shell_plan::start_reverse(int which, team t) noexcept {
    s_->start(t, s_->shares, [&] { s_->begin_reverse(which); });
}

bool shell_plan::test() noexcept { return s_->test(); }

comm::status shell_plan::finish(team t) noexcept {
    return s_->finish(t, [&] { s_->complete(); });
}

void shell_plan::finish_or_throw() {
    (void)*s_; // throws here rather than out of finish()
    const comm::status bad = finish();
    if (bad == comm::status::ok) return;
    if (bad == comm::status::misused) throw input_error(s_->why_misused());
    if (s_->now == state::running::backward) return s_->backward->finish_or_throw();
    s_->forward.plans[s_->forward.now].finish_or_throw();
}

bool shell_plan::is_fresh(int which) const noexcept { return s_->has_binding(which) && s_->filled[which].is_fresh(); }

comm::status shell_plan::ensure_halo(int which, team t) noexcept {
    if (is_fresh(which)) return s_->finish(t, [&] { s_->check_unmarked(which); });
    start(which, t);
    return finish(t);
}

std::string shell_plan::why_stale(int which) const {
    const state& s = *s_;
    const std::size_t fields = s.checked_fields(which);
    for (std::size_t i = 0; i < fields; ++i)
        if (const char* const why = s.why_stale(which, i)) return why;
    return {};
}

std::string shell_plan::why_stale(int which, int field) const {
    const state& s = *s_;
    const std::size_t fields = s.checked_fields(which);
    if (fields == 0) return {};
    if (field < 0 || static_cast<std::size_t>(field) >= fields)
        throw input_error("halo '" + s.options.name + "': require_fresh(): field " + std::to_string(field) +
                          " of a binding of " + std::to_string(fields));
    const char* const why = s.why_stale(which, static_cast<std::size_t>(field));
    return why != nullptr ? why : "";
}

void shell_plan::require_fresh(int which) const {
    const std::string why = why_stale(which);
    if (why.empty()) return;
    const state& s = *s_;
    const std::string n = std::to_string(which);
    const bool under_way = s.now == state::running::forward && s.forward.bound == which;
    throw error("halo '" + s.options.name + "': stale ghosts of binding " + n + " after exchange " +
                std::to_string(s.epoch) + ": " + why +
                (under_way ? "; call finish() first" : "; call start(" + n + ") and finish()") +
                (under_way || is_fresh(which) ? "" : ", or ensure_halo(" + n + ")")); // which goes by marks
}

std::span<const int> shell_plan::completed() noexcept {
    state& s = *s_;
    s.reported.clear();
    if (s.now == state::running::backward) return {};
    if (s.now == state::running::forward) (void)s.forward.test();
    for (std::size_t p = 0; p < s.forward.plans.size() && p <= s.forward.now; ++p)
        for (const int i : s.forward.plans[p].completed()) s.reported.push_back(static_cast<int>(s.first_ghost[p]) + i);
    return s.reported;
}

std::span<const ghost_region> shell_plan::ghosts() const { return s_->ghosts; }
std::uint64_t shell_plan::epoch() const { return s_->epoch; }
const shell_options& shell_plan::options() const { return s_->options; }
const comm::job& shell_plan::job() const { return s_->job; }
corner_route shell_plan::route() const { return s_->route; }

int shell_plan::binding_of(const void* values) const noexcept {
    const auto has_these = [&](const bound_ghosts& g) { return g.fields.front().data == values; };
    const auto found = std::ranges::find_if(s_->filled, has_these);
    return values == nullptr || found == s_->filled.end() ? -1 : static_cast<int>(found - s_->filled.begin());
}

plan_statistics shell_plan::statistics() const {
    plan_statistics sum;
    const auto add = [&](const region_plan& p) {
        const plan_statistics s = p.statistics();
        sum += s;
        return s.exchanges;
    };
    std::uint64_t exchanges = 0;
    for (const region_plan& p : s_->forward.plans) exchanges = add(p); // each exchange takes all phases
    if (s_->backward) exchanges += add(*s_->backward);
    sum.exchanges = exchanges;
    return sum;
}

void shell_plan::reset_statistics() {
    for (region_plan& p : s_->forward.plans) p.reset_statistics();
    if (s_->backward) s_->backward->reset_statistics();
}

std::size_t shell_plan::slab_bytes() const {
    std::size_t sum = s_->backward ? s_->backward->slab_bytes() : 0;
    for (const region_plan& p : s_->forward.plans) sum += p.slab_bytes();
    return sum;
}

std::string shell_plan::describe() const {
    std::string text = "halo '" + s_->options.name + "', " + std::string(to_string(s_->options.layout)) +
                       ", widths low " + lattice::to_string(s_->options.widths.low) + " high " +
                       lattice::to_string(s_->options.widths.high);
    if (s_->options.shape == shell::box)
        text.append(", corners ").append(to_string(s_->route)).append(s_->why.empty() ? "" : ": " + s_->why);
    text += "\n";
    for (const region_plan& p : s_->forward.plans) text += p.describe();
    if (s_->backward) text += s_->backward->describe();
    return text;
}

} // namespace halocline::halo
