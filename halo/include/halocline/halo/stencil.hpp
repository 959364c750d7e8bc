// SPDX-License-Identifier: Apache-2.0
// Star stencils on a decomposed lattice: start, for_interior, finish, for_boundary. With corners: box_stencil.hpp.
// Sites are visited in runs along x. The neighbours of a run are runs too: of the field, of the field beyond a periodic
// wrap, or of the ghosts in the plan's receive slots. So a kernel reads through pointers, and never has to ask where a
// site is.
#pragma once

#include <halocline/base/check.hpp>
#include <halocline/base/checked_pointer.hpp>
#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/halo/boundary_phases.hpp>
#include <halocline/halo/detail/checked_kernel.hpp>
#include <halocline/halo/detail/phase_arithmetic.hpp>
#include <halocline/halo/detail/star_loops.hpp>
#include <halocline/halo/detail/star_table.hpp>
#include <halocline/halo/detail/team_share.hpp>
#include <halocline/halo/field_view.hpp>
#include <halocline/halo/message_format.hpp>
#include <halocline/halo/neighbourhood.hpp>
#include <halocline/halo/packer.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/halo/team.hpp>
#include <halocline/lattice/component.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/lattice/huge_pages.hpp>
#include <halocline/lattice/site_order.hpp>

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace halocline::halo {

/// Equal on every rank.
struct stencil_options {
    std::string name = "stencil"; ///< in error messages and reports
    /// Periodic by default. Beyond an open edge lie the values of stencil::set_outside(), which are 0 at first. Beyond
    /// an antiperiodic one the field changes its sign.
    std::array<lattice::boundary, lattice::dimensions> boundaries{};
    /// Twisted boundaries: beyond the upper edge of the lattice the field continues as phase * field, beyond the lower
    /// edge as conj(phase) * field. Unless a phase is real, components are pairs (re, im). An antiperiodic boundary
    /// also changes the sign. Where a phase is not 1, no wrap is local: a dimension that is not cut is exchanged with
    /// this rank itself, and sites near the edge belong to for_boundary().
    boundary_phases phases{1, 1, 1, 1};
    /// Exchanges periodic dimensions that are not cut with this rank itself, instead of wrapping around locally (for
    /// tests).
    bool self_exchange = false;
    /// How values travel. half and bfloat16, for fields of float: half the bytes, and rounded ghosts, so that results
    /// depend on the cut. Messages hold scale * value.
    message_format format = message_format::as_stored;
    double scale = 1;
    /// normal and above: for_boundary() detects a field that was written since start(); both calls of the kernel detect
    /// one that writes its own site of the field that it reads. comm: see plan_options::checksums.
    check_level checks = default_checks();
};

/// Collective. In which dimensions the field is multiplied by a phase at the edge.
/// Err: error on every rank: phases or formats that differ between ranks.
std::array<bool, lattice::dimensions> agreed_twists(const comm::job& j, const stencil_options& options);

/// What a stencil does at the ends of the dimensions.
struct star_edges {
    /// Collective. s.components: its reals. real_bytes: of one, 4 if they are float, 8 if double, 0 for anything else.
    /// Err: on every rank: input_error: a format that does not fit the fields, a phase that is not finite or does not
    ///      fit them, or 2^31 sites or more behind a face.
    star_edges(const comm::job& j, const lattice::decomposition& cut, const stencil_options& options, star s,
               std::size_t real_bytes);

    std::array<bool, lattice::dimensions> leaves{};            ///< does a box leave itself (see star_table)?
    std::array<std::complex<double>, lattice::faces> phases{}; ///< of the field behind each face of this rank
};

/// A stencil on fields of this rank's box, with its halo plan:
///
///     s.start(u);               // sends the faces of u
///     s.for_interior(kernel);   // visits the sites that need no ghosts
///     s.finish_or_throw();      // waits for the ghosts
///     s.for_boundary(kernel);   // visits the other sites
///
/// kernel(n), with n a neighbourhood, is called once per site, in any order, also for several sites at once. It may
/// write what belongs to its own site n.index(), but nothing that is read. A kernel that adds to what several sites
/// share (a histogram, a sum) goes through sequential(). The same `[&](const auto& n) { … }` serves both calls.
/// Teams: with size > 1 every member makes all four calls, in turn, each with its own index; a kernel is called for the
/// sites of the member's share. Before any member calls start(), all must be done with what came before it: with
/// for_boundary(), and with the field that is to be sent. Threads that add to a sum each have their own.
/// T: a trivially copyable type of 4 or 8 bytes, or std::complex of float or double.
template <class T, star Star = star{}>
class stencil {
    using real = lattice::real_of<T>;
    static constexpr int reals = Star.components * lattice::reals_of<T>; // of a site
    static_assert(movable_component<T>);
    static_assert(Star.radius >= 1 && Star.components >= 1);

  public:
    /// Collective.
    /// Err: as halo::plan; on every rank: input_error for phases, formats or types of reals (float, double, others) that
    ///      differ between ranks, for half or bfloat16 where the reals are not float, a scale that packers refuse, for a
    ///      phase or an antiperiodic boundary where they are not float or double, or which is not real where the number
    ///      of reals is odd; for 2^31 sites or more behind a face.
    stencil(const comm::job& j, const lattice::decomposition& cut, const stencil_options& options = {});

    /// A field of zeros for this stencil: lexicographic, without ghosts. In `&job.memory()`, the slab, receivers that
    /// wait may copy its faces, too (path joint); then it must outlive the stencil's last exchange of it at every rank.
    /// Err: slab_full, or what else `memory` throws.
    [[nodiscard]] lattice::field<T> make_field(std::pmr::memory_resource* memory = lattice::huge_pages()) const {
        return {order(), Star.components, memory};
    }
    /// This rank's part of the lattice.
    [[nodiscard]] const lattice::box& local_box() const { return local_; }
    /// Global coordinate of the site with this local lexicographic index.
    [[nodiscard]] lattice::coordinate global_site(std::int64_t index) const { return local_.site(index); }
    /// Sets the values beyond open edges: value(x, c) is component c at the global coordinate x, up to `radius` sites
    /// off the lattice.  Pre: for_boundary() is not running.
    template <class Value>
    requires std::is_invocable_r_v<T, Value&, const lattice::coordinate&, int>
    void set_outside(Value&& value);

    /// Starts the exchange of u, which must not change, and whose object must stay where it is, until for_boundary() has
    /// returned. Several stencils may work on one field.
    /// Err: input_error if u is not as make_field() makes it.
    void start(const lattice::field<T>& u, team t = {});
    /// The same for an array of your own: its sites are those of local_box(), x fastest, without ghosts, with all
    /// components of a site next to each other. With checks normal, for_boundary() goes by its values alone.
    /// Shape: local_box().volume() x Star.components values.  Err: input_error: a null pointer.
    void start(const T* values, team t = {});
    /// Calls the kernel for every site whose neighbours all lie in this rank's box, across a wrap or not.  Pre:
    /// start().
    /// Err: error if start() was never called, if u was swapped since, or (checks normal) if the kernel writes u.
    template <class Kernel>
    void for_interior(Kernel&& kernel, team t = {}) const;
    /// Moves what can be moved now. True if finish() would not wait. In a team member 0 alone calls it.
    [[nodiscard]] bool test() noexcept { return plan_.test(); }
    /// Waits for the ghosts, and for all members of a team, so the interior is done, too.
    /// Err: as halo::plan.
    [[nodiscard]] comm::status finish(team t = {}) noexcept;
    /// finish() that throws on a bad status, as halo::plan does. Not for members of a team: they call finish(t). If that
    /// is not ok, one thread calls this afterwards, and it throws the reason.
    void finish_or_throw() {
        plan_.finish_or_throw();
        complete_ghosts();
    }
    /// Calls the kernel for every other site.
    /// Err: error if the exchange is not finished, or if u was swapped or (checks normal) written since start(), also
    ///      by the kernel itself. What was written outside the kernel is told to one member of a team.
    template <class Kernel>
    void for_boundary(Kernel&& kernel, team t = {}) const;

    /// All four in turn, by one thread.  Err: as start() and finish_or_throw().
    template <class Kernel>
    void apply(const lattice::field<T>& u, Kernel&& kernel) {
        start(u);
        step(kernel);
    }
    template <class Kernel>
    void apply(const T* values, Kernel&& kernel) {
        start(values);
        step(kernel);
    }

    [[nodiscard]] const plan& halo_plan() const { return plan_; }

  private:
    using loops = star_loops<T, Star>;

    /// start() of u, a field or a source_field, with these values.
    template <class X>
    void start_of(const X& u, const T* values, team t);
    template <class Kernel>
    void step(Kernel& kernel) {
        for_interior(kernel);
        finish_or_throw();
        for_boundary(kernel);
    }
    /// Values in the order of the stencil's fields, as the source of messages.
    [[nodiscard]] source_field source_at(const T* values) const {
        return {reinterpret_cast<const std::byte*>(values), order_.pointer().get(), site_of<T>(Star.components),
                comm::element_type_of<real>()};
    }
    /// Err: input_error: it was moved from.
    [[nodiscard]] const std::shared_ptr<const lattice::site_order>& order() const {
        (void)*order_;
        return order_.pointer();
    }
    [[nodiscard]] static std::shared_ptr<const lattice::site_order> made_order(const comm::job& j,
                                                                               const lattice::box& local);
    [[nodiscard]] static plan_options options_of_plan(const comm::job& j, const stencil_options& options,
                                                      std::shared_ptr<const lattice::site_order> order);
    /// Where for_boundary() reads.
    [[nodiscard]] typename loops::sources sources() const;
    /// Fills completed_.
    void complete_ghosts() noexcept;
    /// Err: error if the source was marked or written since start().
    void require_fresh() const;
    /// Err: error if the field that was started has other values now: it was swapped, or assigned to.
    void require_same_values() const;

    /// The layers behind a face that are not read from the message as they came: beyond it the field continues times a
    /// phase, or the message is rounded.
    struct completed_layers {
        std::complex<double> phase = 1;
        std::vector<T> values; // in message order; none: the message's own are read
    };
    // What lies behind face i, for for_boundary(): completed_[i].values, or if there are none the plan's message, or if
    // there is none outside_[i].
    lattice::box local_;
    checked_pointer<std::shared_ptr<const lattice::site_order>> order_;
    plan plan_;
    star_edges edges_;
    star_table table_;
    std::optional<packer<float>> rounding_; // for half and bfloat16
    std::array<completed_layers, lattice::faces> completed_;
    std::array<std::vector<T>, lattice::faces> outside_; // behind the open edges of this rank, in message order
    team_value<const lattice::field<T>*> source_;        // the last one started; null if that was an array
    team_value<const T*> values_;                        // its values
    team_value<std::uint64_t> epoch_ = 1;                // the exchange that brings its ghosts
    team_value<std::uint64_t> completed_epoch_;          // the last one whose ghosts complete_ghosts() has seen to
};

template <class T, star Star>
stencil<T, Star>::stencil(const comm::job& j, const lattice::decomposition& cut, const stencil_options& options)
    : local_(cut.local_box(std::min(j.rank(), cut.ranks() - 1))), // the plan refuses a job of another size
      order_("a stencil", made_order(j, local_)), plan_(j, cut, options_of_plan(j, options, order_.pointer())),
      edges_(j, cut, options, {Star.radius, reals}, std::is_floating_point_v<real> ? sizeof(real) : 0),
      table_(local_.extents, edges_.leaves, Star.radius) {
    if (options.format != message_format::as_stored) // so the reals are float
        rounding_.emplace(
            plan_,
            packer_options{.components = reals, .format = options.format, .scale = options.scale, .projections = {}});
    for (int i = 0; i < lattice::faces; ++i) {
        const face f = lattice::face_of(i);
        const bool has_message = plan_.message_of(f) >= 0, is_twisted = edges_.phases[i] != 1.0;
        const std::int64_t values = local_.volume() / local_.extents[f.mu] * Star.radius * Star.components;
        if (is_twisted || (has_message && rounding_)) {
            completed_[i].phase = edges_.phases[i];
            completed_[i].values.resize(values);
        } else if (edges_.leaves[f.mu] && !has_message) {
            outside_[i].resize(values);
        }
    }
}

template <class T, star Star>
std::shared_ptr<const lattice::site_order> stencil<T, Star>::made_order(const comm::job& j, const lattice::box& local) {
    std::shared_ptr<const lattice::site_order> order;
    j.collectively([&] { order = lattice::site_order::lexicographic(local.extents); }); // one box may be too large
    return order;
}

template <class T, star Star>
plan_options stencil<T, Star>::options_of_plan(const comm::job& j, const stencil_options& options,
                                               std::shared_ptr<const lattice::site_order> order) {
    constexpr int r = Star.radius;
    return {.name = options.name,
            .widths = {{r, r, r, r}, {r, r, r, r}},
            .boundaries = options.boundaries,
            .bytes_per_site = bytes_per_real(options.format, sizeof(real)) * reals,
            .element =
                options.format == message_format::as_stored ? comm::element_type_of<real>() : comm::element_type{},
            .self_exchange = options.self_exchange,
            .self_exchange_along = agreed_twists(j, options),
            .select = {},
            .order = std::move(order),
            .checks = options.checks};
}

template <class T, star Star>
void stencil<T, Star>::complete_ghosts() noexcept {
    if constexpr (std::is_floating_point_v<real>)
        for (int i = 0; i < lattice::faces; ++i) {
            completed_layers& layers = completed_[i];
            if (layers.values.empty()) continue;
            const auto count = static_cast<std::int64_t>(layers.values.size()) * lattice::reals_of<T>;
            const face f = lattice::face_of(i);
            real* const values = reinterpret_cast<real*>(layers.values.data());
            if constexpr (std::is_same_v<real, float>)
                if (rounding_) rounding_->unpack(plan_.ghost(f), 0, count / reals, values);
            const real* const from = rounding_ ? values : plan_.ghosts<real>(f).data();
            if (layers.phase != 1.0) multiply(from, values, count, layers.phase);
        }
}

template <class T, star Star>
void stencil<T, Star>::require_fresh() const {
    source_ != nullptr ? plan_.require_fresh(*source_) : plan_.require_fresh(source_at(values_));
}

template <class T, star Star>
void stencil<T, Star>::require_same_values() const {
    if (source_ != nullptr && source_->data() != values_)
        throw error("stencil '" + plan_.options().name + "': the field was swapped or replaced since start()");
}

template <class T, star Star>
template <class Value>
requires std::is_invocable_r_v<T, Value&, const lattice::coordinate&, int>
void stencil<T, Star>::set_outside(Value&& value) {
    (void)order(); // throws if it was moved from
    for (int i = 0; i < lattice::faces; ++i) {
        const face f = lattice::face_of(i);
        lattice::box behind = local_;
        behind.extents[f.mu] = Star.radius;
        behind.origin[f.mu] += f.end == lattice::side::low ? -Star.radius : local_.extents[f.mu];
        for (std::size_t k = 0; k < outside_[i].size(); ++k) {
            const lattice::coordinate x = behind.site(static_cast<std::int64_t>(k) / Star.components);
            outside_[i][k] = value(x, static_cast<int>(k % Star.components));
        }
    }
}

template <class T, star Star>
void stencil<T, Star>::start(const lattice::field<T>& u, team t) {
    if (u.shared_order() == nullptr || !u.order().is_like(*order()) || u.components() != Star.components)
        throw input_error("stencil '" + plan_.options().name + "': a field for it is lexicographic, covers " +
                          lattice::to_string(local_.extents) + " and has " + std::to_string(Star.components) +
                          " components per site, as make_field() makes it");
    source_ = &u;
    start_of(u, u.data(), t);
}

template <class T, star Star>
void stencil<T, Star>::start(const T* values, team t) {
    (void)order(); // throws if it was moved from
    if (values == nullptr) throw input_error("stencil '" + plan_.options().name + "': start() of a null pointer");
    source_ = nullptr;
    start_of(source_at(values), values, t);
}

template <class T, star Star>
template <class X>
void stencil<T, Star>::start_of(const X& u, const T* values, team t) {
    values_ = values;
    epoch_ = plan_.epoch() + 1;
    if constexpr (std::is_same_v<real, float>)
        if (rounding_) return plan_.start(rounding_->of(u), t);
    plan_.start(u, t);
}

template <class T, star Star>
comm::status stencil<T, Star>::finish(team t) noexcept {
    const comm::status s = plan_.finish(t);
    if (t.index == 0) {
        if (s == comm::status::ok) complete_ghosts();
        completed_epoch_ = epoch_; // in any case: another member may have left plan_ before it failed
    } else if (s == comm::status::ok) {
        await_team([this] { return completed_epoch_ >= epoch_; });
    }
    return s;
}

template <class T, star Star>
template <class Kernel>
void stencil<T, Star>::for_interior(Kernel&& kernel, team t) const {
    (void)order(); // throws if it was moved from
    if (values_ == nullptr)
        throw error("stencil '" + plan_.options().name + "': for_interior() before start(): of which field?");
    require_same_values();
    const T* const values = values_;
    visit_with_checks<Star.components>(plan_.options().checks, plan_.options().name, local_, std::span(&values, 1),
                                       kernel, [&](auto& k) { loops(table_).interior(values, k, t); });
}

template <class T, star Star>
template <class Kernel>
void stencil<T, Star>::for_boundary(Kernel&& kernel, team t) const {
    (void)order(); // throws if it was moved from
    if (plan_.epoch() != epoch_)
        throw error("stencil '" + plan_.options().name + "': for_boundary() before finish(): its ghosts are stale");
    require_same_values();
    if (t.index == 0) require_fresh();
    const T* const values = values_;
    visit_with_checks<Star.components>(plan_.options().checks, plan_.options().name, local_, std::span(&values, 1),
                                       kernel, [&](auto& k) { loops(table_).boundary(sources(), k, t); });
}

template <class T, star Star>
auto stencil<T, Star>::sources() const -> typename loops::sources {
    typename loops::sources from{values_};
    for (int i = 0; i < lattice::faces; ++i)
        from[1 + i] = !completed_[i].values.empty()                ? completed_[i].values.data()
                      : plan_.message_of(lattice::face_of(i)) >= 0 ? plan_.ghosts<T>(lattice::face_of(i)).data()
                                                                   : outside_[i].data();
    return from;
}

} // namespace halocline::halo
