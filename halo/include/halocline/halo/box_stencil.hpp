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
#include <halocline/halo/detail/box_parts.hpp>
#include <halocline/halo/detail/checked_kernel.hpp>
#include <halocline/halo/detail/phase_arithmetic.hpp>
#include <halocline/halo/detail/team_share.hpp>
#include <halocline/halo/sequential.hpp>
#include <halocline/halo/shell.hpp>
#include <halocline/halo/shell_plan.hpp>
#include <halocline/halo/team.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/lattice/site_order.hpp>

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace halocline::halo {

/// Equal on every rank.
struct box_stencil_options {
    std::string name = "stencil"; ///< in error messages and reports
    int fields = 2;               ///< number of fields that can be exchanged: box_stencil::field()
    /// How far the stencil reaches; 0 in dimensions where it does not, such as the last two of a 2-D stencil.
    ghost_widths widths{};
    /// Periodic by default. Beyond an open edge lie the values of box_stencil::set_outside(), which are 0 at first.
    /// Beyond an antiperiodic one the field changes its sign.
    std::array<lattice::boundary, lattice::dimensions> boundaries{};
    /// Twisted boundaries: see shell_options. An antiperiodic one also changes the sign.
    boundary_phases phases{1, 1, 1, 1};
    /// faces: for kernels that reach along one dimension at a time; edges and corners are not sent then.
    shell shape = shell::box;
    corner_route corners = corner_route::automatic;
    /// How values travel: see shell_options. With half and bfloat16 ghosts are rounded, so results depend on the cut.
    message_format format = message_format::as_stored;
    double scale = 1;
    /// normal and above: for_boundary() detects a field that was written since start(), both calls of the kernel one
    /// that writes its own site of the field that it reads. comm: see shell_options::checks.
    check_level checks = default_checks();
};

/// A kernel's view of one site: its values, and those of all sites within the stencil's widths.
template <class T, int Components>
class box_neighbourhood {
  public:
    /// Consecutive sites along x.
    struct run {
        std::int64_t first = 0;                               ///< index of the first site in the stencil's fields
        const T* here = nullptr;                              ///< its component 0
        std::array<std::int64_t, lattice::dimensions> step{}; ///< values from a site to the next along each dimension
    };
    /// Site i of a run.
    box_neighbourhood(const run& r, std::int64_t i) : run_(r), i_(i) {}

    /// Index of this site in the stencil's fields: component c is data()[index() * Components + c].
    [[nodiscard]] std::int64_t index() const { return run_.first + i_; }
    /// Component c of this site.
    [[nodiscard]] T here(int c = 0) const { return run_.here[i_ * Components + c]; }
    /// Component c of the site `steps` away.  Pre: -widths.low[mu] <= steps[mu] <= widths.high[mu].
    [[nodiscard]] T at(const lattice::coordinate& steps, int c = 0) const {
        const std::int64_t away =
            steps[0] * Components + steps[1] * run_.step[1] + steps[2] * run_.step[2] + steps[3] * run_.step[3];
        return run_.here[i_ * Components + away + c];
    }

  private:
    const run& run_;
    std::int64_t i_;
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
/// T: a trivially copyable type of 4 or 8 bytes.
template <class T, int Components = 1>
class box_stencil {
    static_assert(Components >= 1);

  public:
    /// The fields are filled with zeros and lie in the job's slab.
    /// Collective.
    /// Err: on every rank: as shell_plan; slab_full; input_error for no field, or for a phase or an antiperiodic
    ///      boundary where T is not float or double.
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
    void start(int i, team t = {});
    /// Calls the kernel for every site whose neighbours are all available already.  Pre: start().
    /// Err: error if start() was never called, if the field was swapped since, or (checks normal) if the kernel writes
    ///      it.
    template <class Kernel>
    void for_interior(Kernel&& kernel, team t = {}) const;
    /// Moves what can be moved now. True if finish() would not wait. In a team member 0 alone calls it.
    [[nodiscard]] bool test() noexcept { return plan_.test(); }
    /// Waits for the ghosts, and for all members of a team, so the interior is done, too.
    /// Err: as shell_plan.
    [[nodiscard]] comm::status finish(team t = {}) noexcept { return plan_.finish(t); }
    /// finish() that throws on a bad status, as shell_plan does. Not for members of a team: they call finish(t). If that
    /// is not ok, one thread calls this afterwards, and it throws the reason.
    void finish_or_throw() { plan_.finish_or_throw(); }
    /// Calls the kernel for every other site.
    /// Err: error if the exchange is not finished, or if the field was swapped since start() or (checks normal) it or
    ///      its ghosts were written, also by the kernel itself. What was written outside the kernel is told to one
    ///      member of a team.
    template <class Kernel>
    void for_boundary(Kernel&& kernel, team t = {}) const;

    /// All four in turn, for field(i), by one thread.  Err: as start() and finish_or_throw().
    template <class Kernel>
    void apply(int i, Kernel&& kernel) {
        start(i);
        for_interior(kernel);
        finish_or_throw();
        for_boundary(kernel);
    }

    [[nodiscard]] const shell_plan& halo_plan() const { return plan_; }

  private:
    using neighbours = box_neighbourhood<T, Components>;
    using field_list = std::vector<lattice::field<T>>;

    /// A member's rows of a part.
    template <class Kernel>
    void visit(const lattice::box& part, Kernel& kernel, team t) const;
    [[nodiscard]] static std::unique_ptr<field_list> made(const comm::job& j, const lattice::box& grown,
                                                          const box_stencil_options& options);
    /// Err: error if the field was swapped or replaced since start().
    void require_same_values() const;
    [[nodiscard]] std::vector<binding> bindings();
    [[nodiscard]] std::size_t place_of(int field) const;
    [[nodiscard]] std::string named() const { return "stencil '" + options_.name + "': "; }

    comm::job job_; // outlives the fields in its slab
    box_stencil_options options_;
    box_parts parts_;
    lattice::coordinate global_;
    lattice::box local_, grown_;
    checked_pointer<std::unique_ptr<field_list>> fields_;
    shell_plan plan_;
    team_value<int> source_ = -1;         // the field last started
    team_value<const T*> values_;         // its values
    team_value<std::uint64_t> epoch_ = 0; // the exchange that brings its ghosts
};

template <class T, int Components>
box_stencil<T, Components>::box_stencil(const comm::job& j, const lattice::decomposition& cut,
                                        const box_stencil_options& options)
    : job_(j), options_(options), parts_(parts_of(j, cut, options)), global_(cut.global()),
      local_(cut.local_box(j.rank())), grown_(grown(local_, options.widths)),
      fields_("a box_stencil", made(j, grown_, options)), plan_(j, cut,
                                                                {.name = options.name,
                                                                 .widths = options.widths,
                                                                 .boundaries = options.boundaries,
                                                                 .phases = options.phases,
                                                                 .shape = options.shape,
                                                                 .corners = options.corners,
                                                                 .format = options.format,
                                                                 .scale = options.scale,
                                                                 .checks = options.checks},
                                                                bindings()) {}

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
std::vector<binding> box_stencil<T, Components>::bindings() {
    std::vector<binding> result;
    for (auto& x : *fields_) result.push_back(bind(x));
    return result;
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
        if constexpr (std::is_floating_point_v<T>)
            if (phase != 1.0) multiply(values.data(), values.data(), Components, phase);
        for (auto& f : fields) std::copy(values.begin(), values.end(), f.data() + i * Components);
    }
}

template <class T, int Components>
void box_stencil<T, Components>::start(int i, team t) {
    const T* const values = field(i).data();
    const int bound = plan_.binding_of(values);
    if (bound < 0)
        throw input_error(named() + "field " + std::to_string(i) +
                          " was replaced: swap it with another one of the stencil, or copy values into it");
    source_ = i;
    values_ = values;
    epoch_ = plan_.epoch() + 1;
    plan_.start(bound, t);
}

template <class T, int Components>
template <class Kernel>
void box_stencil<T, Components>::visit(const lattice::box& part, Kernel& kernel, team t) const {
    typename neighbours::run r;
    const std::int64_t sites = part.extents[0];
    std::int64_t distance = Components;
    for (int mu = 0; mu < lattice::dimensions; ++mu) {
        r.step[mu] = distance;
        distance *= grown_.extents[mu];
    }
    const T* const values = values_;
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
                detail::visit_sites(0, sites, kernel, [&fixed](std::int64_t i) { return neighbours(fixed, i); });
            }
        }
}

template <class T, int Components>
void box_stencil<T, Components>::require_same_values() const {
    if (field(source_).data() != values_)
        throw error(named() + "field " + std::to_string(source_) + " was swapped or replaced since start()");
}

template <class T, int Components>
template <class Kernel>
void box_stencil<T, Components>::for_interior(Kernel&& kernel, team t) const {
    (void)*fields_; // throws if it was moved from
    if (source_ < 0) throw error(named() + "for_interior() before start(): of which field?");
    require_same_values();
    const T* const values = values_;
    visit_with_checks<Components>(options_.checks, options_.name, values, kernel,
                                  [&](auto& k) { this->visit(parts_.interior, k, t); });
}

template <class T, int Components>
template <class Kernel>
void box_stencil<T, Components>::for_boundary(Kernel&& kernel, team t) const {
    (void)*fields_;
    if (plan_.epoch() != epoch_ || source_ < 0)
        throw error(named() + "for_boundary() before finish(): its ghosts are stale");
    require_same_values();
    if (t.index == 0)
        if (const std::string why = plan_.why_stale(plan_.binding_of(values_)); !why.empty())
            throw error(named() + "stale ghosts of field " + std::to_string(source_) + ": " + why + "; call start(" +
                        std::to_string(source_) + ") and finish()");
    const T* const values = values_;
    visit_with_checks<Components>(options_.checks, options_.name, values, kernel, [&](auto& k) {
        for (const lattice::box& part : parts_.boundary) this->visit(part, k, t);
    });
}

} // namespace halocline::halo
