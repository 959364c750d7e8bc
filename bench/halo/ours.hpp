// SPDX-License-Identifier: Apache-2.0
// Our own exchanges of a point: halo::plan (appended) and halo::shell_plan.
#pragma once

#include "halo/timed_slice.hpp"

#include <halocline/comm/slab.hpp>
#include <halocline/halo/shell_plan.hpp>
#include <halocline/halo/plan.hpp>

#include <atomic>
#include <optional>
#include <thread>

namespace halocline::bench {

/// A field that covers the storage of a box.
inline lattice::field<double> field_of(const comm::job& j, const local_box& box) {
    return lattice::field<double>(lattice::site_order::lexicographic(box.storage), box.of.bytes_per_site / 8,
                                  &j.memory());
}
inline halo::ghost_widths widths_of(const point& p) {
    halo::ghost_widths widths;
    for (int mu = 0; mu < lattice::dimensions; ++mu)
        widths.low[static_cast<std::size_t>(mu)] = widths.high[static_cast<std::size_t>(mu)] = p.cut(mu) ? 1 : 0;
    return widths;
}

/// Ghosts in the plan's slots. With two threads a second one shares the packing.
class ours_appended {
  public:
    /// Collective.
    ours_appended(const comm::job& j, const point& p, int threads, halo::path way)
        : box_(p, j.rank()), field_(field_of(j, box_)), source_(box_, reinterpret_cast<std::byte*>(field_.data())),
          plan_(j, p.decomposition(),
                {.name = "bench",
                 .widths = widths_of(p),
                 .bytes_per_site = static_cast<std::size_t>(p.bytes_per_site),
                 .self_exchange = j.ranks() == 1,
                 .order = field_.shared_order(),
                 .way = way}) {
        if (threads == 2) second_ = std::thread([this] { follow(); });
    }
    ~ours_appended() {
        if (!second_.joinable()) return;
        go_.store(stop, std::memory_order_release);
        second_.join();
    }
    ours_appended(const ours_appended&) = delete;
    ours_appended& operator=(const ours_appended&) = delete;

    [[nodiscard]] tracked_field& source() { return source_; }
    [[nodiscard]] const std::byte* ghosts(std::size_t f) const { return plan_.ghost(box_.faces[f].where); }
    void exchange() {
        const halo::team team{0, second_.joinable() ? 2 : 1};
        if (team.size == 2) go_.fetch_add(1, std::memory_order_release);
        plan_.start(field_, team);
        if (plan_.finish(team) != comm::status::ok) plan_.finish_or_throw();
    }

  private:
    static constexpr std::uint64_t stop = std::uint64_t{1} << 63;
    void follow() {
        for (std::uint64_t seen = 0;; ++seen) {
            std::uint64_t now = seen;
            for (int polls = 0; (now = go_.load(std::memory_order_acquire)) == seen; ++polls)
                if (polls > 2000) std::this_thread::yield();
            if (now == stop) return;
            plan_.start(field_, {1, 2});
            (void)plan_.finish({1, 2}); // a bad status is sticky: thread 0 tells
        }
    }

    local_box box_;
    lattice::field<double> field_;
    tracked_field source_;
    halo::plan plan_;
    std::thread second_;
    alignas(64) std::atomic<std::uint64_t> go_{0};
};

/// Ghosts in a shell of the field.
class ours_padded {
  public:
    /// Collective.
    ours_padded(const comm::job& j, const point& p, halo::path way)
        : box_(p, j.rank()), field_(field_of(j, box_)), source_(box_, reinterpret_cast<std::byte*>(field_.data())),
          plan_(j, p.decomposition(), {.name = "bench", .widths = widths_of(p), .way = way}, {halo::bind(field_)}) {}

    [[nodiscard]] tracked_field& source() { return source_; }
    [[nodiscard]] const std::byte* ghosts(std::size_t) const { return source_.data(); }
    void exchange() {
        plan_.start();
        if (plan_.finish() != comm::status::ok) plan_.finish_or_throw();
    }

  private:
    local_box box_;
    lattice::field<double> field_;
    tracked_field source_;
    halo::shell_plan plan_;
};

/// Ours without the wire: the same faces on a job of one rank over "mock". Ghosts are zeros.
class ours_mock {
  public:
    /// copies: pack the faces; else nothing is packed, and what is left is the price of start() and finish().
    ours_mock(const comm::job& mock, const point& p, bool copies)
        : box_(alone(p), 0), field_(field_of(mock, box_)), source_(box_, reinterpret_cast<std::byte*>(field_.data())),
          plan_(mock, box_.of.decomposition(),
                {.name = "bench",
                 .widths = widths_of(p),
                 .bytes_per_site = static_cast<std::size_t>(p.bytes_per_site),
                 .self_exchange = true,
                 .order = field_.shared_order()}),
          copies_(copies) {}
    [[nodiscard]] tracked_field& source() { return source_; }
    [[nodiscard]] const std::byte* ghosts(std::size_t f) const { return plan_.ghost(box_.faces[f].where); }
    void exchange() {
        if (copies_)
            plan_.start(field_);
        else
            plan_.start([](int, std::int64_t, std::int64_t, std::byte*) {});
        if (plan_.finish() != comm::status::ok) plan_.finish_or_throw();
    }

  private:
    static point alone(point p) {
        for (int mu = 0; mu < lattice::dimensions; ++mu) p.self[static_cast<std::size_t>(mu)] = p.cut(mu);
        p.grid = {1, 1, 1, 1};
        return p;
    }
    local_box box_;
    lattice::field<double> field_;
    tracked_field source_;
    halo::plan plan_;
    bool copies_;
};
static_assert(exchanger<ours_appended> && exchanger<ours_padded> && exchanger<ours_mock>);

} // namespace halocline::bench
