// SPDX-License-Identifier: Apache-2.0
// Box stencils on a decomposed lattice: start, for_interior, finish, for_boundary, with neighbours across edges and
// corners. The fields hold their ghosts, so a neighbour is always a fixed distance away in memory, whichever rank owns
// it. For stars, which need no corners, stencil.hpp has fields without ghosts.
#pragma once

#include <halocline/base/check.hpp>
#include <halocline/base/checked_pointer.hpp>
#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/halo/boundary_phases.hpp>
#include <halocline/halo/box_neighbourhood.hpp>
#include <halocline/halo/detail/box_parts.hpp>
#include <halocline/halo/detail/checked_kernel.hpp>
#include <halocline/halo/detail/phase_arithmetic.hpp>
#include <halocline/halo/detail/team_share.hpp>
#include <halocline/halo/field_view.hpp>
#include <halocline/halo/sequential.hpp>
#include <halocline/halo/shell.hpp>
#include <halocline/halo/shell_plan.hpp>
#include <halocline/halo/team.hpp>
#include <halocline/lattice/component.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/lattice/site_order.hpp>

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace halocline::halo {

/// Equal on every rank.
struct box_stencil_options {
    std::string name = "stencil"; ///< in error messages and reports
    int fields = 2;               ///< number of fields that can be exchanged: box_stencil::field()
    /// Sets of two or more fields that start() can send in one message each: {{0, 1}} for start({0, 1}). Where fields
    /// are swapped, also the sets that they then form. Sets of one size share their slots.
    std::vector<std::vector<int>> together{};
    /// Makes start_in_place() possible: updates of one parity after the other (red-black). Takes two more plans, each
    /// with half of the slots. Every dimension that the stencil reaches along must be open or of even extent, or else
    /// parities don't alternate across its edge.
    bool in_place = false;
    /// How far the stencil reaches; 0 in dimensions where it does not, such as the last two of a 2-D stencil. By default
    /// one site. In y, z and t, where the lattice has one site, and what lies beyond it is that site itself, there are no
    /// ghosts then.
    ghost_widths widths = by_extents;
    /// Stands for the default of `widths`.
    static constexpr ghost_widths by_extents{{-1, -1, -1, -1}, {-1, -1, -1, -1}};
    /// Periodic by default. Beyond an open edge lie the values of box_stencil::set_outside(), which are 0 at first.
    /// Beyond an antiperiodic one the field changes its sign.
    std::array<lattice::boundary, lattice::dimensions> boundaries{};
    /// Twisted boundaries: see shell_options. An antiperiodic one also changes the sign.
    boundary_phases phases{1, 1, 1, 1};
    /// faces: for kernels that reach along one dimension at a time; edges and corners are not sent then.
    shell shape = shell::box;
    /// With phases in several dimensions the last bits of ghosts in corners may depend on the route, and automatic on
    /// the machine's costs; at_once gives the same bits everywhere.
    corner_route corners = corner_route::automatic;
    /// How values travel: see shell_options. With half and bfloat16 ghosts are rounded, so results depend on the cut.
    message_format format = message_format::as_stored;
    double scale = 1;
    /// normal and above: for_boundary() detects a field that was written since start(), both calls of the kernel one
    /// that writes its own site of a field that it reads (unless in place). comm: see shell_options::checks.
    check_level checks = default_checks();
};

/// A stencil with its fields and their halo plan:
///
///     s.start(0);               // sends the sites of field(0) that neighbours need
///     s.for_interior(kernel);   // visits the sites that need no ghosts
///     s.finish_or_throw();      // waits for the ghosts
///     s.for_boundary(kernel);   // visits the other sites
///
/// kernel(n), with n a box_neighbourhood, is called once per site of this rank, in any order, also for several sites at
/// once. It may write what belongs to its own site n.index(), but nothing that is read. A kernel that adds to what
/// several sites share (a histogram, a sum) goes through sequential(). The same `[&](const auto& n) { … }` serves both
/// calls. Teams: see stencil.
/// A kernel of several fields reads n.of(f): of those that start({0, 1}) sends in one message, and of others whose
/// ghosts are there still, such as coefficients that were sent once, by apply(f, nothing).
/// T: a trivially copyable type of 4 or 8 bytes, or std::complex of float or double.
template <class T, int Components = 1>
class box_stencil {
    static_assert(Components >= 1 && movable_component<T>);

  public:
    /// The fields are filled with zeros and lie in the job's slab.
    /// Collective.
    /// Err: on every rank: as shell_plan; slab_full; input_error for no field, for a set of fields that is none, for
    ///      in_place around an odd extent, or for a phase or an antiperiodic boundary where T is no float or double,
    ///      real or complex.
    box_stencil(const comm::job& j, const lattice::decomposition& cut, const box_stencil_options& options = {});

    /// This rank's part of the lattice.
    [[nodiscard]] const lattice::box& local_box() const { return local_; }
    /// Field i.  Shape: grown(local_box(), widths), lexicographic, Components per site. Fields of a stencil may be
    /// swapped between steps, `s.field(0).swap(s.field(1))`, but not replaced: neighbours write into their memory.
    /// Err: input_error if there is no such field.
    [[nodiscard]] lattice::field<T>& field(int i) { return (*fields_)[place_of(i)]; }
    [[nodiscard]] const lattice::field<T>& field(int i) const { return (*fields_)[place_of(i)]; }
    /// Index in the fields of the site with this global coordinate.  Pre: local_box() contains it.
    [[nodiscard]] std::int64_t index(const lattice::coordinate& global_site) const { return grown_.index(global_site); }
    /// The global coordinate of the site with this index.
    [[nodiscard]] lattice::coordinate global_site(std::int64_t index) const { return grown_.site(index); }
    /// Sets the values beyond open edges in all fields: value(x, c) is component c at the global coordinate x, which is
    /// off the lattice in at least one open dimension and wrapped around in the others. Where it was wrapped, the value
    /// is multiplied by the phase.  Pre: no exchange is under way.
    template <class Value>
    requires std::is_invocable_r_v<T, Value&, const lattice::coordinate&, int>
    void set_outside(Value&& value);

    /// Starts the exchange of field(i), which must not change until for_boundary() has returned.
    /// Err: input_error if there is no such field, or if it lies elsewhere than the fields that the stencil made.
    void start(int i, team t = {}) { start(std::span(&i, 1), t); }
    /// Starts the exchange of several fields, in one message to each neighbour. The kernel sees the first of them; the
    /// others are n.of(f).
    /// Err: as for one; input_error if box_stencil_options::together has no such set, in whichever order.
    void start(std::initializer_list<int> fields, team t = {}) { start(std::span(fields.begin(), fields.size()), t); }
    void start(std::span<const int> fields, team t = {});
    /// Starts an update of field(i) in place, on the sites of this parity (of the global coordinate, 0 or 1): sends the
    /// sites of the other one. The loops then visit only sites of `parity`, and the kernel writes them into the same
    /// field, such as s.field(i).data()[n.index()]. A sweep of Gauss-Seidel is one update of each parity. As before any
    /// start(), a team needs a barrier between them.
    /// Pre: of field(i) the kernel reads its own site and sites of the other parity, an odd number of steps away.
    /// Err: as start(i); input_error for another parity, or without box_stencil_options::in_place.
    void start_in_place(int i, int parity, team t = {});
    /// Calls the kernel for every site whose neighbours are all available already.  Pre: start().
    /// Err: error if start() was never called, if a field that was started was swapped since, or (checks normal) if the
    ///      kernel writes one, or reads where no exchange reaches, or, in place, sites that are updated.
    template <class Kernel>
    void for_interior(Kernel&& kernel, team t = {}) const;
    /// Moves what can be moved now. True if finish() would not wait. In a team member 0 alone calls it.
    [[nodiscard]] bool test() noexcept { return plan_now().test(); }
    /// Waits for the ghosts, and for all members of a team, so the interior is done, too.
    /// Err: as shell_plan.
    [[nodiscard]] comm::status finish(team t = {}) noexcept { return plan_now().finish(t); }
    /// finish() that throws on a bad status, as shell_plan does. Not for members of a team: they call finish(t). If that
    /// is not ok, one thread calls this afterwards, and it throws the reason.
    void finish_or_throw() { plan_now().finish_or_throw(); }
    /// Calls the kernel for every other site.
    /// Err: error if the exchange is not finished, or if a field that was started was swapped since. With checks normal
    ///      as for_interior(), also if a field that was started, or its ghosts, were written outside the kernel, and if
    ///      the kernel reads neighbours in a field that was not started, and whose ghosts are not of the field as it is
    ///      now. What was written outside the kernel is told to one member of a team.
    template <class Kernel>
    void for_boundary(Kernel&& kernel, team t = {}) const;

    /// All four in turn, for field(i), by one thread.  Err: as start() and finish_or_throw().
    template <class Kernel>
    void apply(int i, Kernel&& kernel) {
        start(i);
        step(kernel);
    }
    /// The same for several fields, which start() sends together.
    template <class Kernel>
    void apply(std::initializer_list<int> fields, Kernel&& kernel) {
        start(fields);
        step(kernel);
    }

    /// The plan that exchanges so many fields at once.
    /// Err: input_error: box_stencil_options::together has no set of that size.
    [[nodiscard]] const shell_plan& halo_plan(int fields = 1) const { return plan_of(fields, every_parity); }
    /// The plan of updates in place of the sites of this parity.
    /// Err: input_error: another parity; box_stencil_options::in_place is false.
    [[nodiscard]] const shell_plan& halo_plan_in_place(int parity) const { return plan_of(1, parity); }

  private:
    using neighbours = box_neighbourhood<T, Components>;
    using field_list = std::vector<lattice::field<T>>;
    /// Fields that one exchange can send, as a binding of one of the plans.
    struct field_set {
        std::vector<const T*> values{};
        std::size_t plan = 0;
        int binding = 0;
        int updated = every_parity; // of the sites that the loops visit; the others are sent
    };
    static constexpr int every_parity = -1;
    /// What a checked kernel may read.
    struct readable {
        const box_stencil& s;
        bool ghosts;                   // for_boundary() reads some
        std::vector<bool> are_fresh{}; // by field

        void field(int f) const { (void)s.place_of(f); }
        void neighbours(int f) {
            if (!ghosts) return;
            are_fresh.resize(s.fields_->size());
            if (!are_fresh[f]) s.require_fresh(f);
            are_fresh[f] = true;
        }
        void reach(const lattice::coordinate& steps, int f) const { s.require_reach(steps, f); }
    };

    template <class Kernel>
    void step(Kernel& kernel) {
        for_interior(kernel);
        finish_or_throw();
        for_boundary(kernel);
    }
    /// A member's rows of these parts.
    template <class Kernel>
    void visit(std::span<const lattice::box> parts, Kernel& kernel, readable require, team t) const;
    template <class Kernel>
    void visit(const lattice::box& part, Kernel& kernel, team t) const;
    [[nodiscard]] static std::unique_ptr<field_list> made(const comm::job& j, const lattice::box& grown,
                                                          const box_stencil_options& options);
    /// Adds a plan that can send these sets of fields, all of one size, to plans_ and sets_.  what: added to its name.
    void add_plan(const lattice::decomposition& cut, const std::vector<std::vector<int>>& sets, const std::string& what,
                  int updated);
    [[nodiscard]] const shell_plan& plan_of(int fields, int updated) const;
    /// The set of these fields, as they are now; null: there is none.
    [[nodiscard]] const field_set* set_of(std::span<const int> fields, int updated = every_parity) const;
    /// start() of a set whose first field this is.
    void start_set(const field_set& set, int first, team t);
    /// Err: input_error: why there is no set of these fields.
    [[noreturn]] void refuse(std::span<const int> fields) const;
    [[nodiscard]] std::size_t place_of(int field) const;
    /// The plan of the exchange started last.  Err: input_error: the stencil was moved from.
    [[nodiscard]] shell_plan& plan_now() { return (*plans_)[sets_[set_].plan]; }
    [[nodiscard]] const shell_plan& plan_now() const { return (*plans_)[sets_[set_].plan]; }
    /// Err: error if a field that was started was swapped or replaced since.
    void require_same_values() const;
    /// Is the neighbour along mu always the site itself, without ghosts?
    [[nodiscard]] bool is_flat(int mu) const {
        return grown_.extents[mu] == 1 && is_its_own_neighbour(options_, global_, mu);
    }
    /// Err: error if no exchange brings a site so far away, or if it is updated in place: of this field, -1 for the one
    ///      that was started.
    void require_reach(const lattice::coordinate& steps, int field) const;
    [[noreturn]] void refuse_reach(const lattice::coordinate& steps, const std::string& why) const;
    /// Err: error unless the ghosts of a field, brought by any exchange, are of the field as it is now.
    void require_fresh(int field) const;
    /// "0", or "{0, 1}": the fields of a set, as they are now.
    [[nodiscard]] std::string text_of(const field_set& set) const;
    /// "start({0, 1})".
    [[nodiscard]] std::string call_of(const field_set& set) const {
        return set.updated == every_parity
                   ? "start(" + text_of(set) + ")"
                   : "start_in_place(" + text_of(set) + ", " + std::to_string(set.updated) + ")";
    }
    [[nodiscard]] std::string named() const { return "stencil '" + options_.name + "': "; }

    comm::job job_; // outlives the fields in its slab
    box_stencil_options options_;
    box_parts parts_;
    lattice::coordinate global_;
    lattice::box local_, grown_;
    checked_pointer<std::unique_ptr<field_list>> fields_;
    // First those of single fields, each alone; then for each size of sets; then those of single fields of one parity.
    std::vector<field_set> sets_;
    checked_pointer<std::unique_ptr<std::vector<shell_plan>>> plans_;
    team_value<int> source_ = -1;                // the field last started, or the first of them
    team_value<std::size_t> set_ = 0;            // what was last started
    team_value<std::uint64_t> epoch_ = 0;        // the exchange that brings its ghosts
    std::vector<team_value<const T*>> at_start_; // the values of all fields
};

template <class T, int Components>
box_stencil<T, Components>::box_stencil(const comm::job& j, const lattice::decomposition& cut,
                                        const box_stencil_options& options)
    : job_(j), options_(with_widths(options, cut.global())), parts_(parts_of(j, cut, options_)), global_(cut.global()),
      local_(cut.local_box(j.rank())), grown_(grown(local_, options_.widths)),
      fields_("a box_stencil", made(j, grown_, options)),
      plans_("a box_stencil", std::make_unique<std::vector<shell_plan>>()), at_start_(fields_->size()) {
    std::vector<std::vector<int>> single;
    for (int i = 0; i < options.fields; ++i) single.push_back({i});
    add_plan(cut, single, "", every_parity);
    std::map<std::size_t, std::vector<std::vector<int>>> by_size;
    for (const std::vector<int>& set : options.together) by_size[set.size()].push_back(set);
    for (const auto& [size, sets] : by_size) add_plan(cut, sets, ", " + std::to_string(size) + " fields", every_parity);
    if (!options.in_place) return;
    add_plan(cut, single, ", odd sites", 0);
    add_plan(cut, single, ", even sites", 1);
}

template <class T, int Components>
auto box_stencil<T, Components>::made(const comm::job& j, const lattice::box& grown, const box_stencil_options& options)
    -> std::unique_ptr<field_list> {
    auto fields = std::make_unique<field_list>();
    j.collectively([&] {
        const auto order = lattice::site_order::lexicographic(grown.extents);
        for (int i = 0; i < options.fields; ++i) fields->emplace_back(order, Components, &j.memory());
    });
    return fields;
}

template <class T, int Components>
void box_stencil<T, Components>::add_plan(const lattice::decomposition& cut, const std::vector<std::vector<int>>& sets,
                                          const std::string& what, int updated) {
    std::vector<binding> bindings;
    for (const std::vector<int>& members : sets) {
        const auto number = static_cast<int>(bindings.size());
        field_set& set = sets_.emplace_back(field_set{.plan = plans_->size(), .binding = number, .updated = updated});
        binding& all = bindings.emplace_back();
        for (const int i : members) {
            set.values.push_back(field(i).data());
            all.source.push_back(view(field(i)));
        }
        all.destination = all.source;
    }
    shell_options options{.name = options_.name + what,
                          .widths = options_.widths,
                          .boundaries = options_.boundaries,
                          .phases = options_.phases,
                          .shape = options_.shape,
                          .corners = options_.corners,
                          .format = options_.format,
                          .scale = options_.scale,
                          .checks = options_.checks};
    if (updated != every_parity) options.parity = 1 - updated;
    plans_->emplace_back(job_, cut, options, bindings);
}

template <class T, int Components>
auto box_stencil<T, Components>::set_of(std::span<const int> fields, int updated) const -> const field_set* {
    (void)*fields_; // throws if it was moved from
    for (const field_set& set : sets_) {
        if (set.updated != updated) continue;
        const auto is_asked_for = [&](const T* values) {
            return std::ranges::any_of(fields, [&](int i) { return field(i).data() == values; });
        };
        if (set.values.size() == fields.size() && std::ranges::all_of(set.values, is_asked_for)) return &set;
    }
    return nullptr;
}

template <class T, int Components>
const shell_plan& box_stencil<T, Components>::plan_of(int fields, int updated) const {
    const std::vector<shell_plan>& plans = *plans_;
    for (const field_set& set : sets_)
        if (std::ssize(set.values) == fields && set.updated == updated) return plans[set.plan];
    if (updated != every_parity)
        throw input_error(named() + "no plan updates sites of parity " + std::to_string(updated) + " in place");
    throw input_error(named() + "no set of " + std::to_string(fields) + " fields is sent together");
}

template <class T, int Components>
std::string box_stencil<T, Components>::text_of(const field_set& set) const {
    std::string text;
    for (const T* values : set.values)
        for (std::size_t i = 0; i < fields_->size(); ++i)
            if ((*fields_)[i].data() == values) text += (text.empty() ? "" : ", ") + std::to_string(i);
    return set.values.size() == 1 ? text : "{" + text + "}";
}

template <class T, int Components>
std::size_t box_stencil<T, Components>::place_of(int field) const {
    const auto fields = std::ssize(*fields_);
    if (field < 0 || field >= fields)
        throw input_error(named() + "field " + std::to_string(field) + ": must be 0 to " + std::to_string(fields - 1));
    return static_cast<std::size_t>(field);
}

template <class T, int Components>
template <class Value>
requires std::is_invocable_r_v<T, Value&, const lattice::coordinate&, int>
void box_stencil<T, Components>::set_outside(Value&& value) {
    field_list& fields = *fields_;
    const boundary_phases phases = with_signs(options_.phases, options_.boundaries);
    for (std::int64_t i = 0; i < grown_.volume(); ++i) {
        lattice::coordinate x = grown_.site(i);
        bool outside = false;
        std::complex<double> phase = 1;
        for (int mu = 0; mu < lattice::dimensions; ++mu) {
            const bool below = x[mu] < 0, beyond = below || x[mu] >= global_[mu];
            if (options_.boundaries[mu] == lattice::boundary::open) {
                outside = outside || beyond;
            } else if (beyond) { // no ghost lies further off than the lattice is long
                x[mu] += below ? global_[mu] : -global_[mu];
                phase *= below ? std::conj(phases[mu]) : phases[mu];
            }
        }
        if (!outside) continue;
        std::array<T, Components> values;
        for (int c = 0; c < Components; ++c) values[c] = value(x, c);
        using real = lattice::real_of<T>;
        if constexpr (std::is_floating_point_v<real>)
            if (auto* const reals = reinterpret_cast<real*>(values.data()); phase != 1.0)
                multiply(reals, reals, Components * lattice::reals_of<T>, phase);
        for (auto& f : fields) std::copy(values.begin(), values.end(), f.data() + i * Components);
    }
}

template <class T, int Components>
void box_stencil<T, Components>::start(std::span<const int> fields, team t) {
    const field_set* const set = set_of(fields);
    if (set == nullptr) refuse(fields);
    start_set(*set, fields.front(), t);
}

template <class T, int Components>
void box_stencil<T, Components>::start_in_place(int i, int parity, team t) {
    const field_set* const set = set_of(std::span(&i, 1), parity);
    if (set == nullptr && set_of(std::span(&i, 1)) == nullptr) refuse(std::span(&i, 1));
    if (set == nullptr || set->updated == every_parity)
        throw input_error(named() + "start_in_place() of parity " + std::to_string(parity) +
                          (options_.in_place ? ": must be 0 or 1" : ": made without box_stencil_options::in_place"));
    start_set(*set, i, t);
}

template <class T, int Components>
void box_stencil<T, Components>::start_set(const field_set& set, int first, team t) {
    shell_plan& plan = (*plans_)[set.plan];
    // Read in the reverse order of the writes below: a member that sees another one's new epoch_ sees its set_, too.
    const std::uint64_t last_epoch = epoch_;
    const field_set& last = sets_[set_];
    shell_plan& last_plan = (*plans_)[last.plan];
    if (set.plan != last.plan && last_plan.epoch() + 1 == last_epoch) // not finished: it tells so
        return last_plan.start(last.binding, t);
    source_ = first;
    for (std::size_t i = 0; i < at_start_.size(); ++i) at_start_[i] = (*fields_)[i].data();
    set_ = static_cast<std::size_t>(&set - sets_.data());
    epoch_ = plan.epoch() + 1;
    plan.start(set.binding, t);
}

template <class T, int Components>
void box_stencil<T, Components>::refuse(std::span<const int> fields) const {
    std::string text;
    for (const int i : fields) {
        if (set_of(std::span(&i, 1)) == nullptr)
            throw input_error(named() + "field " + std::to_string(i) +
                              " was replaced: swap it with another one of the stencil, or copy values into it");
        text += (text.empty() ? "" : ", ") + std::to_string(i);
    }
    throw input_error(named() + "start({" + text + "}): box_stencil_options::together has no such set");
}

template <class T, int Components>
template <class Kernel>
void box_stencil<T, Components>::visit(const lattice::box& part, Kernel& kernel, team t) const {
    typename neighbours::run r;
    const std::int64_t sites = part.extents[0];
    std::int64_t distance = Components;
    for (int mu = 0; mu < lattice::dimensions; ++mu) {
        r.step[mu] = is_flat(mu) ? 0 : distance;
        distance *= grown_.extents[mu];
    }
    r.fields = fields_->data();
    const T* const values = at_start_[static_cast<std::size_t>(source_)];
    const int updated = sets_[set_].updated;
    const std::int64_t planes = std::int64_t{part.extents[3]} * part.extents[2];
    const team_share mine = share_of(planes * part.extents[1], t);
    std::int64_t before = 0; // rows in the planes before this one
    lattice::coordinate x = part.origin;
    for (int k = 0; k < part.extents[3]; ++k)
        for (int z = 0; z < part.extents[2]; ++z, before += part.extents[1]) {
            const team_share rows = mine.among(before, part.extents[1]);
            for (std::int64_t y = rows.first; y < rows.last; ++y) {
                x[1] = part.origin[1] + static_cast<int>(y);
                x[2] = part.origin[2] + z;
                x[3] = part.origin[3] + k;
                r.first = lattice::lexicographic_index(x, grown_.extents);
                r.here = values + r.first * Components;
                const typename neighbours::run fixed = r; // a copy that nothing else refers to can stay in registers
                if (updated == every_parity) {
                    detail::visit_sites(0, sites, kernel, [&fixed](std::int64_t i) { return neighbours(fixed, i); });
                } else {
                    const int first = lattice::parity(grown_.site(r.first)) == updated ? 0 : 1;
                    detail::visit_sites(0, (sites - first + 1) / 2, kernel,
                                        [&fixed, first](std::int64_t i) { return neighbours(fixed, first + 2 * i); });
                }
            }
        }
}

template <class T, int Components>
template <class Kernel>
void box_stencil<T, Components>::visit(std::span<const lattice::box> parts, Kernel& kernel, readable require,
                                       team t) const {
    using checked = checked_box_neighbourhood<T, Components, readable>;
    std::span<const T* const> read(sets_[set_].values);
    if (sets_[set_].updated != every_parity) read = {}; // the kernel may write the field
    visit_with_checks<Components>(
        options_.checks, options_.name, grown_, read, kernel,
        [&](auto& k) {
            for (const lattice::box& part : parts) this->visit(part, k, t);
        },
        [&](const neighbours& n) { return checked(n, require); });
}

template <class T, int Components>
void box_stencil<T, Components>::require_same_values() const {
    const std::span<const T* const> sent(sets_[set_].values);
    for (std::size_t i = 0; i < at_start_.size(); ++i)
        if (const T* const then = at_start_[i];
            (*fields_)[i].data() != then && std::ranges::find(sent, then) != sent.end())
            throw error(named() + "field " + std::to_string(i) + " was swapped or replaced since start()");
}

template <class T, int Components>
void box_stencil<T, Components>::require_reach(const lattice::coordinate& steps, int field) const {
    int along = 0, sum = 0; // dimensions in which the site lies elsewhere; all steps
    for (int mu = 0; mu < lattice::dimensions; ++mu) {
        if (is_flat(mu)) continue;
        along += steps[mu] != 0;
        sum += steps[mu];
        if (steps[mu] < -options_.widths.low[mu] || steps[mu] > options_.widths.high[mu])
            refuse_reach(steps, "beyond the widths low " + lattice::to_string(options_.widths.low) + " high " +
                                    lattice::to_string(options_.widths.high));
    }
    if (along > 1 && options_.shape == shell::faces)
        refuse_reach(steps,
                     "along several dimensions: with shape faces no exchange brings it; shell::box has such sites");
    if (along > 0 && sum % 2 == 0 && sets_[set_].updated != every_parity && (field < 0 || field == source_))
        refuse_reach(steps, "an even number of steps: in place that is a site that is updated, too");
}

template <class T, int Components>
void box_stencil<T, Components>::refuse_reach(const lattice::coordinate& steps, const std::string& why) const {
    throw error(named() + "the kernel reads a site " + lattice::to_string(steps) + " away, " + why);
}

template <class T, int Components>
void box_stencil<T, Components>::require_fresh(int field) const {
    const T* const values = this->field(field).data();
    const auto is_it = [&](const T* other) { return other == values; };
    if (std::ranges::any_of(sets_[set_].values, is_it)) return; // for_boundary() has checked them
    std::string why;
    for (const field_set& set : sets_) {
        const auto at = std::ranges::find_if(set.values, is_it);
        if (at == set.values.end() || set.updated != every_parity) continue;
        const shell_plan& plan = (*plans_)[set.plan];
        const std::string stale = plan.why_stale(set.binding, static_cast<int>(at - set.values.begin()));
        if (stale.empty()) return;
        if (why.empty() || plan.epoch() > 0) why = stale;
    }
    const std::string number = std::to_string(field);
    throw error(named() + "the kernel reads neighbours in field " + number + ", whose ghosts are stale: " + why +
                "; exchange it first, start(" + number + ") and finish(), or together with the others");
}

template <class T, int Components>
template <class Kernel>
void box_stencil<T, Components>::for_interior(Kernel&& kernel, team t) const {
    (void)*fields_; // throws if it was moved from
    if (source_ < 0) throw error(named() + "for_interior() before start(): of which field?");
    require_same_values();
    visit(std::span(&parts_.interior, 1), kernel, {*this, false}, t);
}

template <class T, int Components>
template <class Kernel>
void box_stencil<T, Components>::for_boundary(Kernel&& kernel, team t) const {
    (void)*fields_;
    if (plan_now().epoch() != epoch_ || source_ < 0)
        throw error(named() + "for_boundary() before finish(): its ghosts are stale");
    require_same_values();
    const field_set& set = sets_[set_];
    if (t.index == 0)
        if (const std::string why = plan_now().why_stale(set.binding); !why.empty())
            throw error(named() + "stale ghosts of field" + (set.values.size() == 1 ? " " : "s ") + text_of(set) +
                        ": " + why + "; call " + call_of(set) + " and finish()");
    visit(parts_.boundary, kernel, {*this, true}, t);
}

} // namespace halocline::halo
