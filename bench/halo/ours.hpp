// SPDX-License-Identifier: Apache-2.0
// The library's own exchanges of a point: halo::plan (appended) and halo::shell_plan.
#pragma once

#include "halo/thread_team.hpp"
#include "halo/timed_slice.hpp"

#include <halocline/comm/slab.hpp>
#include <halocline/halo/shell_plan.hpp>
#include <halocline/halo/plan.hpp>

namespace halocline::bench {

/// A field that covers the storage of a box.
inline lattice::field<double> field_of(const comm::job& j, const local_box& box) {
    return {box.storage, box.of.bytes_per_site / 8, &j.memory()};
}
inline halo::ghost_widths widths_of(const point& p) {
    halo::ghost_widths widths;
    for (int mu = 0; mu < lattice::dimensions; ++mu) widths.low[mu] = widths.high[mu] = p.cut(mu) ? 1 : 0;
    return widths;
}

/// Ghosts in the plan's slots.
class ours_appended {
  public:
    /// Collective.  threads: number that share the packing.
    ours_appended(const comm::job& j, const point& p, halo::path way, int threads, bool checksums = false)
        : box_(p, j.rank()), field_(field_of(j, box_)), source_(box_, reinterpret_cast<std::byte*>(field_.data())),
          plan_(j, p.decomposition(),
                halo::options_for(field_, {.name = "bench",
                                           .widths = widths_of(p),
                                           .self_exchange = j.ranks() == 1,
                                           .path = way,
                                           .checksums = checksums})),
          team_(j.rank(), j.ranks(), threads, [this](halo::team member) {
              plan_.start(field_, member);
              (void)plan_.finish(member); // a bad status is sticky: member 0 reports it
          }) {}

    [[nodiscard]] tracked_field& source() { return source_; }
    [[nodiscard]] const std::byte* ghosts(std::size_t f) const { return plan_.ghost(box_.faces[f].where); }
    [[nodiscard]] thread_team& team() { return team_; }
    void exchange() {
        const halo::team own = team_.begin();
        plan_.start(field_, own);
        if (plan_.finish(own) != comm::status::ok) plan_.finish_or_throw();
    }

  private:
    local_box box_;
    lattice::field<double> field_;
    tracked_field source_;
    halo::plan plan_;
    thread_team team_; // last, because it uses the others
};

/// Ghosts in a shell of the field.
class ours_padded {
  public:
    /// Collective.  threads: number that share the copies.
    ours_padded(const comm::job& j, const point& p, halo::path way, int threads)
        : box_(p, j.rank()), field_(field_of(j, box_)), source_(box_, reinterpret_cast<std::byte*>(field_.data())),
          plan_(j, p.decomposition(), {.name = "bench", .widths = widths_of(p), .path = way}, {halo::bind(field_)}),
          team_(j.rank(), j.ranks(), threads, [this](halo::team member) {
              plan_.start(0, member);
              (void)plan_.finish(member);
          }) {}

    [[nodiscard]] tracked_field& source() { return source_; }
    [[nodiscard]] const std::byte* ghosts(std::size_t) const { return source_.data(); }
    [[nodiscard]] thread_team& team() { return team_; }
    void exchange() {
        const halo::team own = team_.begin();
        plan_.start(0, own);
        if (plan_.finish(own) != comm::status::ok) plan_.finish_or_throw();
    }

  private:
    local_box box_;
    lattice::field<double> field_;
    tracked_field source_;
    halo::shell_plan plan_;
    thread_team team_; // last, because it uses the others
};

/// A point with the faces of `p` on one rank, which exchanges them with itself: over "mock", ours without the wire.
inline point alone(point p) {
    for (int mu = 0; mu < lattice::dimensions; ++mu) p.self[mu] = p.cut(mu);
    p.grid = {1, 1, 1, 1};
    return p;
}

/// Appended, without any packing: what is left is the price of start() and finish().
class ours_empty {
  public:
    ours_empty(const comm::job& j, const point& p)
        : box_(p, j.rank()), field_(field_of(j, box_)), source_(box_, reinterpret_cast<std::byte*>(field_.data())),
          plan_(j, p.decomposition(),
                halo::options_for(field_, {.name = "bench", .widths = widths_of(p), .self_exchange = true})) {}
    [[nodiscard]] tracked_field& source() { return source_; }
    [[nodiscard]] const std::byte* ghosts(std::size_t f) const { return plan_.ghost(box_.faces[f].where); }
    void exchange() {
        plan_.start([](int, std::int64_t, std::int64_t, std::byte*) {});
        if (plan_.finish() != comm::status::ok) plan_.finish_or_throw();
    }

  private:
    local_box box_;
    lattice::field<double> field_;
    tracked_field source_;
    halo::plan plan_;
};
static_assert(exchanger<ours_appended> && exchanger<ours_padded> && exchanger<ours_empty>);

} // namespace halocline::bench
