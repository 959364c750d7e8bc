// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/shell_plan.hpp>

#include "box_layers.hpp"
#include "copying_team.hpp"
#include "format_conversion.hpp"
#include "path_model.hpp"
#include "region_transfers.hpp"
#include "shell_regions.hpp"
#include "source_fingerprint.hpp"
#include "untold_misuse.hpp"

#include <halocline/base/enumerators.hpp>
#include <halocline/base/error.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace halocline::halo {
namespace {

using lattice::dimensions;

source_field source_of(const field_view& f) noexcept { return {f.data, f.order.get(), f.shape}; }

void mark_written(const field_view& f) noexcept {
    if (f.version) *f.version = lattice::next_version();
}

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
                          o.phases[mu].imag(), "xyzt"[mu]);
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

shell_plan::shell_plan(const comm::job& j, const lattice::decomposition& cut, shell_options options,
                       std::vector<binding> bindings)
    : job_(j), threads_("a shell_plan", std::make_shared<copying_team>(team_patience(j.options().deadline))),
      options_(std::move(options)), forward_("a shell_plan", std::make_unique<relay>()) {
    const bool apart = are_apart(bindings);
    job_.agree("the shape of halo '" + options_.name + "'", shape_of(cut, options_, apart));
    job_.collectively([&] {
        const std::string who = "halo '" + options_.name + "': ";
        check_cut({.who = who, .widths = options_.widths, .boundaries = options_.boundaries, .self_exchange = true},
                  cut, job_.ranks());
        require_enumerator(who + "layout", options_.layout);
        require_enumerator(who + "shape", options_.shape);
        require_enumerator(who + "corners", options_.corners);
        require_enumerator(who + "path", options_.path);
        require_enumerator(who + "checks", options_.checks);
        check_parity(who, options_.parity);
        check_fields(who, cut, job_.rank(), options_, bindings);
        if (options_.shape == shell::box && options_.corners == corner_route::by_dimension && apart)
            throw input_error(who +
                              "corners by dimension: ghosts are forwarded from the field where they arrived, so each "
                              "field must be its own destination; use corner_route::at_once or automatic");
    });
    for (const binding& b : bindings) filled_.emplace_back(b);
    note_shared_destinations();
    choose_route(cut, apart);
    std::vector<shell_transfers> forward;
    shell_transfers reverse;
    job_.collectively([&] { // because options_.select may throw
        forward = list_phases(cut);
        if (options_.reverse) reverse = shell_at_once(cut, job_.rank(), options_);
        if (options_.checks >= check_level::normal) list_checked_sites(cut);
    });
    if (options_.select) {
        const std::string who = "halo '" + options_.name + "': ";
        for (const shell_transfers& phase : forward) phase.chosen.compare(job_, who, text_of_ghosts);
        if (options_.reverse) reverse.chosen.compare(job_, who, text_of_ghosts);
    }
    make_phases(std::move(forward), bindings);
    if (options_.reverse) make_reverse(cut, std::move(reverse), bindings);
    reported_.reserve(ghosts_.size());
}

void shell_plan::choose_route(const lattice::decomposition& cut, bool apart) {
    if (options_.shape != shell::box) return;
    const bool asked = options_.corners != corner_route::automatic;
    const verdict<corner_route> v =
        asked   ? verdict<corner_route>{options_.corners, "asked for"}
        : apart ? verdict<corner_route>{corner_route::at_once, "ghosts of other fields can't be forwarded"}
                : halo::choose_route(comm::measured_costs(job_), cut.rank_grid(), options_.widths);
    route_ = v.choice;
    why_ = v.why;
}

std::vector<shell_transfers> shell_plan::list_phases(const lattice::decomposition& cut) const {
    if (route_ == corner_route::at_once) return {shell_at_once(cut, job_.rank(), options_)};
    std::vector<shell_transfers> lists;
    for (int mu = 0; mu < dimensions; ++mu)
        if (options_.widths.low[mu] > 0 || options_.widths.high[mu] > 0)
            lists.push_back(shell_along(cut, job_.rank(), options_, mu));
    return lists;
}

void shell_plan::make_phases(std::vector<shell_transfers> lists, const std::vector<binding>& bindings) {
    std::vector<region_plan>& phases = forward_->phases;
    for (shell_transfers& t : lists) {
        first_ghost_.push_back(ghosts_.size());
        ghosts_.insert(ghosts_.end(), t.ghosts.begin(), t.ghosts.end());
        phases.emplace_back(job_, std::move(t.sends), std::move(t.receives), bindings,
                            region_plan_options{.name = options_.name,
                                                .path = options_.path,
                                                .format = options_.format,
                                                .scale = options_.scale,
                                                .checksums = options_.checks >= check_level::comm});
    }
    for (std::size_t p = 0; p < phases.size(); ++p) {
        if (p + 1 < phases.size()) // the next phase can then begin during any wait of this rank
            phases[p].work_in_every_wait(forward_.pointer().get(),
                                         [](void* f) { (void)static_cast<relay*>(f)->test(); });
        phases[p].join(threads_.pointer());
        if (p > 0) phases[p].follow(phases[0]);
        shares_ = shares_ || phases[p].shares();
    }
}

void shell_plan::make_reverse(const lattice::decomposition& cut, shell_transfers t,
                              const std::vector<binding>& bindings) {
    for (transfer& ghosts : t.receives) ghosts.phase = 1; // they are sent
    for (transfer& own : t.sends) // its tag is the direction as the sender of the ghosts sees it
        own.phase = phase_along(cut, job_.rank(), options_, direction_of(directions - 1 - static_cast<int>(own.tag)));
    std::vector<binding> swapped;
    for (const binding& b : bindings) swapped.push_back({b.destination, b.source});
    backward_.emplace(job_, std::move(t.receives), std::move(t.sends), std::move(swapped),
                      region_plan_options{.name = options_.name + " (reverse)",
                                          .path = path::packed,
                                          .add = true,
                                          .format = options_.format,
                                          .scale = options_.scale,
                                          .checksums = options_.checks >= check_level::comm});
    backward_->join(threads_.pointer());
}

void shell_plan::list_checked_sites(const lattice::decomposition& cut) {
    const shell_transfers t = shell_at_once(cut, job_.rank(), options_); // the same ghosts by either route
    for (const transfer& sent : t.sends) append_sites(sent, sent_sites_);
    std::sort(sent_sites_.begin(), sent_sites_.end());
    sent_sites_.erase(std::unique(sent_sites_.begin(), sent_sites_.end()), sent_sites_.end());
    for (const transfer& ghosts : t.receives) append_sites(ghosts, ghost_sites_); // each once
}

void shell_plan::note_shared_destinations() {
    for (ghosts_of& g : filled_)
        for (std::size_t other = 0; other < filled_.size(); ++other)
            if (g.overwrites(filled_[other])) g.overwritten.push_back(other);
}

void shell_plan::refuse_thread(const comm::wrong_call& call) noexcept {
    status_.misuse(call);
    threads_->disband();
}

void shell_plan::start(int which, team t) noexcept {
    if (!t.is_member()) return refuse_thread(t);
    if (const comm::team_fault fault = threads_->start(t, shares_, [&] { begin(which); })) refuse_thread(fault);
}

void shell_plan::begin(int which) noexcept {
    if (!status_.is_ok() || is_early()) return;
    reported_.clear();
    forward_->bound = which;
    forward_->phase = 0;
    if (!has_binding(which)) {
        (void)status_.misuse(); // finish_or_throw() finds out why
        return;
    }
    running_ = running::forward;
    ghosts_of& g = filled_[which];
    for (const std::size_t other : g.overwritten)
        if (!filled_[other].absent) filled_[other].absent = "another binding's exchange overwrote them";
    g.absent = ghosts_of::not_filled;
    g.note_versions();
    if (options_.checks >= check_level::normal) g.sum = checksum(g);
    if (!forward_->phases.empty()) forward_->phases[0].begin(which);
}

void shell_plan::start_reverse(int which, team t) noexcept {
    if (!t.is_member()) return refuse_thread(t);
    const comm::team_fault fault = threads_->start(t, shares_, [&] {
        if (!status_.is_ok() || is_early()) return;
        running_ = running::backward;
        if (backward_ && has_binding(which)) {
            const ghosts_of& g = filled_[which];
            for (std::size_t i = 0; i < g.sources; ++i) mark_written(g.fields[i]);
            return backward_->begin(which);
        }
        forward_->bound = which; // for finish_or_throw()
        (void)status_.misuse();
    });
    if (fault) refuse_thread(fault);
}

bool shell_plan::is_early() noexcept {
    if (running_ == running::nothing) return false;
    status_.misuse("start() before finish() of the last exchange");
    return true;
}

shell_plan::ghosts_of::ghosts_of(const binding& b)
    : fields(b.source), sources(b.source.size()), versions(b.source.size() + b.destination.size()) {
    fields.insert(fields.end(), b.destination.begin(), b.destination.end());
}

bool shell_plan::ghosts_of::overwrites(const ghosts_of& other) const noexcept {
    for (std::size_t i = 0; i < sources; ++i)
        for (std::size_t j = 0; j < other.sources; ++j)
            if (destination(i).data == other.destination(j).data && fields[i].data != other.fields[j].data) return true;
    return false;
}

void shell_plan::ghosts_of::note_versions() noexcept {
    // Where a field gets the ghosts of another one, those of its own are gone: plans that filled them must know.
    for (std::size_t i = 0; i < sources; ++i)
        if (destination(i).data != fields[i].data) mark_written(destination(i));
    for (std::size_t i = 0; i < fields.size(); ++i) versions[i] = fields[i].version ? *fields[i].version : 0;
}

bool shell_plan::ghosts_of::was_marked() const noexcept {
    for (std::size_t i = 0; i < fields.size(); ++i)
        if (fields[i].version && *fields[i].version != versions[i]) return true;
    return false;
}

bool shell_plan::has_binding(int which) const noexcept {
    return which >= 0 && static_cast<std::size_t>(which) < filled_.size();
}

std::uint64_t shell_plan::checksum(const ghosts_of& g) const noexcept {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < g.sources; ++i) sum = checksum_sites(sum, sent_sites_, source_of(g.fields[i]));
    return sum;
}

std::uint64_t shell_plan::checksum_of_ghosts(const ghosts_of& g) const noexcept {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < g.sources; ++i) sum = checksum_sites(sum, ghost_sites_, source_of(g.destination(i)));
    return sum;
}

bool shell_plan::is_fresh(int which) const noexcept {
    if (!has_binding(which)) return false;
    const ghosts_of& g = filled_[which];
    return !g.absent && !g.was_marked() &&
           std::all_of(g.fields.begin(), g.fields.end(), [](const field_view& f) { return f.version != nullptr; });
}

comm::status shell_plan::ensure_halo(int which) noexcept {
    if (is_fresh(which)) return status_.tell();
    start(which);
    return finish();
}

void shell_plan::require_fresh(int which) const {
    (void)*forward_; // throws if it was moved from
    if (options_.checks < check_level::normal) return;
    if (!has_binding(which))
        throw input_error(no_binding("halo '" + options_.name + "'", "require_fresh", which, filled_.size()));
    const ghosts_of& g = filled_[which];
    const char* why = g.absent                               ? g.absent
                      : g.was_marked()                       ? "a field was marked as written since"
                      : checksum(g) != g.sum                 ? "a field was written since"
                      : checksum_of_ghosts(g) != g.ghost_sum ? "ghosts were written since"
                                                             : nullptr;
    if (!why) return;
    const std::string n = std::to_string(which);
    throw error("halo '" + options_.name + "': stale ghosts of binding " + n + " after exchange " +
                std::to_string(epoch_) + ": " + why + "; call start(" + n + ") and finish(), or ensure_halo(" + n +
                ")");
}

bool shell_plan::relay::test() noexcept {
    while (status == comm::status::ok && phase < phases.size() && phases[phase].has_arrived()) {
        if (phase + 1 == phases.size()) return true;
        status = phases[phase].complete(); // does not wait
        if (status == comm::status::ok) phases[++phase].begin(bound);
    }
    return status != comm::status::ok || phase >= phases.size();
}

bool shell_plan::test() noexcept {
    if (!status_.is_ok() || running_ == running::nothing) return true;
    if (running_ == running::backward) return backward_->test();
    if (forward_->test()) return true;
    (void)forward_->phases[forward_->phase].test(); // does what peers wait for, and checks for deaths
    return forward_->test();
}

comm::status shell_plan::finish(team t) noexcept {
    if (!t.is_member())
        refuse_thread(t);
    else if (const comm::team_fault fault = threads_->finish(t, [&] { complete(); }))
        refuse_thread(fault);
    return status_.tell();
}

void shell_plan::complete() noexcept {
    if (status_.is_ok() && running_ == running::nothing) status_.misuse("finish() without start()");
    if (!status_.is_ok()) return leave();
    if (running_ == running::backward) {
        (void)status_.end(backward_->complete());
    } else {
        relay& f = *forward_;
        while (f.status == comm::status::ok && f.phase < f.phases.size()) {
            f.status = f.phases[f.phase].complete();
            if (f.status == comm::status::ok && ++f.phase < f.phases.size()) f.phases[f.phase].begin(f.bound);
        }
        if (status_.end(f.status) == comm::status::ok) {
            ++epoch_;
            ghosts_of& g = filled_[f.bound];
            g.absent = nullptr;
            if (options_.checks >= check_level::normal) g.ghost_sum = checksum_of_ghosts(g);
        }
    }
    if (!status_.is_ok()) return leave();
    running_ = running::nothing;
}

void shell_plan::leave() noexcept {
    for (region_plan& phase : forward_->phases) phase.leave();
    if (backward_) backward_->leave();
}

shell_plan::shell_plan(shell_plan&&) noexcept = default;
shell_plan& shell_plan::operator=(shell_plan&& other) noexcept { return replace(*this, std::move(other)); }

shell_plan::~shell_plan() {
    if (threads_.pointer()) warn_of_untold_misuse(job_, status_, [this] { return why_misused(); });
}

std::string shell_plan::why_misused() const {
    const std::string who = "halo '" + options_.name + "'";
    if (const comm::wrong_call& call = status_.wrong_call()) return who + ": " + call.text();
    if (running_ == running::backward && !backward_)
        return who + ": start_reverse(): the plan was made without shell_options::reverse";
    return no_binding(who, running_ == running::backward ? "start_reverse" : "start", forward_->bound, filled_.size());
}

void shell_plan::finish_or_throw() {
    (void)*threads_; // throws here rather than out of finish()
    const comm::status bad = finish();
    if (bad == comm::status::ok) return;
    if (bad == comm::status::misused) throw input_error(why_misused());
    if (running_ == running::backward) return backward_->finish_or_throw();
    forward_->phases[forward_->phase].finish_or_throw();
}

std::span<const int> shell_plan::completed() noexcept {
    reported_.clear();
    if (running_ == running::backward) return {};
    if (running_ == running::forward) (void)forward_->test();
    for (std::size_t p = 0; p < forward_->phases.size() && p <= forward_->phase; ++p)
        for (const int i : forward_->phases[p].completed()) reported_.push_back(static_cast<int>(first_ghost_[p]) + i);
    return reported_;
}

plan_statistics shell_plan::statistics() const {
    plan_statistics sum;
    const auto add = [&](const region_plan& p) {
        const plan_statistics s = p.statistics();
        sum += s;
        return s.exchanges;
    };
    std::uint64_t exchanges = 0;
    for (const region_plan& p : forward_->phases) exchanges = add(p); // each exchange takes all phases
    if (backward_) exchanges += add(*backward_);
    sum.exchanges = exchanges;
    return sum;
}

void shell_plan::reset_statistics() {
    for (region_plan& p : forward_->phases) p.reset_statistics();
    if (backward_) backward_->reset_statistics();
}

std::size_t shell_plan::slab_bytes() const {
    std::size_t sum = backward_ ? backward_->slab_bytes() : 0;
    for (const region_plan& p : forward_->phases) sum += p.slab_bytes();
    return sum;
}

std::string shell_plan::describe() const {
    std::string text = "halo '" + options_.name + "', " + std::string(to_string(options_.layout)) + ", widths low " +
                       lattice::to_string(options_.widths.low) + " high " + lattice::to_string(options_.widths.high);
    if (options_.shape == shell::box)
        text.append(", corners ").append(to_string(route_)).append(why_.empty() ? "" : ": " + why_);
    text += "\n";
    for (const region_plan& p : forward_->phases) text += p.describe();
    if (backward_) text += backward_->describe();
    return text;
}

} // namespace halocline::halo
