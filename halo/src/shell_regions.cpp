// SPDX-License-Identifier: Apache-2.0
#include "shell_regions.hpp"

#include "box_layers.hpp"

#include <halocline/halo/detail/phase_arithmetic.hpp>

namespace halocline::halo {
namespace {

using lattice::box;
using lattice::coordinate;
using lattice::dimensions;
using lattice::side;

face face_towards(int mu, int step) { return {mu, step < 0 ? side::low : side::high}; }

/// Are there ghosts behind this face of `rank`?
bool is_filled(const lattice::decomposition& cut, int rank, const shell_options& o, face f) {
    return o.widths.behind(f) > 0 && !(o.boundaries[f.mu] == lattice::boundary::open && cut.wraps(rank, f));
}

int neighbour(const lattice::decomposition& cut, int rank, const coordinate& d) {
    for (int mu = 0; mu < dimensions; ++mu)
        if (d[mu] != 0) rank = cut.neighbour(rank, face_towards(mu, d[mu]));
    return rank;
}

/// The layers that lie along d: of ghosts outside the box, or of its own sites inside it.
box layers_along(const lattice::decomposition& cut, int rank, const shell_options& o, const coordinate& d, bool outside,
                 int grown_below) {
    box b = cut.local_box(rank);
    for (int mu = 0; mu < dimensions; ++mu) {
        if (d[mu] == 0) {
            if (mu >= grown_below) continue;
            const int low = is_filled(cut, rank, o, {mu, side::low}) ? o.widths.low[mu] : 0;
            const int high = is_filled(cut, rank, o, {mu, side::high}) ? o.widths.high[mu] : 0;
            b.origin[mu] -= low;
            b.extents[mu] += low + high;
            continue;
        }
        const int extent = b.extents[mu];
        // Sites inside fill the ghosts behind the neighbour's opposite face.
        const face ghosts = outside ? face_towards(mu, d[mu]) : face_towards(mu, -d[mu]);
        b.extents[mu] = o.widths.behind(ghosts);
        if (outside)
            b.origin[mu] += d[mu] < 0 ? -b.extents[mu] : extent;
        else
            b.origin[mu] += d[mu] < 0 ? 0 : extent - b.extents[mu];
    }
    return b;
}

/// What is sent and received, direction by direction.
class transfer_list {
  public:
    transfer_list(const lattice::decomposition& cut, int rank, const shell_options& o)
        : cut_(cut), rank_(rank), options_(o), outer_(grown(cut.local_box(rank), o.widths)) {
        if (o.layout == ghost_layout::appended) appended_.emplace(cut, rank, o);
    }
    void add(int index, int grown_below) {
        const coordinate d = direction_of(index);
        const int peer = neighbour(cut_, rank_, d);
        const int opposite = directions - 1 - index;
        // The receiver's direction identifies the transfer: the sender's is the opposite one.
        std::uint64_t fingerprint = 0;
        if (is_filled(cut_, peer, options_, direction_of(opposite))) {
            list_.sends.push_back(
                transfer_of(peer, opposite, layers_along(cut_, rank_, options_, d, false, grown_below), fingerprint));
            if (options_.select) list_.chosen.note_sent(peer, opposite, fingerprint);
        }
        if (!is_filled(cut_, rank_, options_, d)) return;
        const box ghosts = ghosts_along(cut_, rank_, options_, d, grown_below);
        list_.receives.push_back(transfer_of(peer, index, ghosts, fingerprint));
        if (options_.select) list_.chosen.note_expected(peer, index, fingerprint);
        list_.receives.back().phase = phase_along(cut_, rank_, options_, d);
        list_.ghosts.push_back({d, within(outer_, ghosts), peer});
    }
    shell_transfers take() { return std::move(list_); }

  private:
    /// The transfer of the selected sites of a box of global coordinates, as the field numbers them. `fingerprint`: see
    /// selected().
    [[nodiscard]] transfer transfer_of(int peer, int direction, const box& part, std::uint64_t& fingerprint) const {
        transfer t{peer, static_cast<std::uint32_t>(direction), {}};
        if (!options_.parity && !options_.select) {
            if (const std::optional<strided_box> whole = box_of(part)) {
                t.boxes.push_back(*whole);
                return t;
            }
        }
        t.sites = selected(appended_ ? appended_->numbers(part) : sites_of(within(outer_, part), outer_.extents), part,
                           cut_.global(), options_.parity, options_.select, &fingerprint);
        return t;
    }
    /// Nothing if the field has no such box: appended ghosts along several directions do not form one.
    [[nodiscard]] std::optional<strided_box> box_of(const box& part) const {
        if (!appended_) return box_in(within(outer_, part), outer_.extents);
        const box local = cut_.local_box(rank_);
        const auto holds = [&](const box& whole) {
            return whole.contains(part.origin) && whole.contains(part.site(part.volume() - 1));
        };
        if (part.volume() == 0) return strided_box{};
        if (holds(local)) return box_in(within(local, part), local.extents);
        for (const appended_sites::region& r : appended_->ghosts())
            if (holds(r.sites)) return box_in(within(r.sites, part), r.sites.extents, {1, 1, 1, 1}, r.first);
        return std::nullopt;
    }

    const lattice::decomposition& cut_;
    int rank_;
    const shell_options& options_;
    box outer_;
    std::optional<appended_sites> appended_;
    shell_transfers list_;
};

} // namespace

coordinate direction_of(int index) {
    coordinate d = lattice::lexicographic_coordinate(index, {3, 3, 3, 3});
    for (int& step : d) step -= 1;
    return d;
}

int index_of(const coordinate& direction) {
    coordinate d = direction;
    for (int& step : d) step += 1;
    return static_cast<int>(lattice::lexicographic_index(d, {3, 3, 3, 3}));
}

bool is_filled(const lattice::decomposition& cut, int rank, const shell_options& o, const coordinate& direction) {
    bool filled = true;
    for (int mu = 0; mu < dimensions; ++mu)
        filled = filled && (direction[mu] == 0 || is_filled(cut, rank, o, face_towards(mu, direction[mu])));
    return filled;
}

box ghosts_along(const lattice::decomposition& cut, int rank, const shell_options& o, const coordinate& direction,
                 int grown_below) {
    return layers_along(cut, rank, o, direction, true, grown_below);
}

std::complex<double> phase_along(const lattice::decomposition& cut, int rank, const shell_options& o,
                                 const coordinate& direction) {
    const boundary_phases phases = with_signs(o.phases, o.boundaries);
    std::complex<double> phase = 1;
    for (int mu = 0; mu < dimensions; ++mu) {
        if (direction[mu] == 0 || phases[mu] == 1.0 || !cut.wraps(rank, face_towards(mu, direction[mu]))) continue;
        phase *= direction[mu] < 0 ? std::conj(phases[mu]) : phases[mu];
    }
    return phase;
}

shell_transfers shell_at_once(const lattice::decomposition& cut, int rank, const shell_options& options) {
    transfer_list list(cut, rank, options);
    for (int i = 0; i < directions; ++i) {
        const int n = distance(direction_of(i));
        if (n == 1 || (n > 1 && options.shape == shell::box)) list.add(i, 0);
    }
    return list.take();
}

shell_transfers shell_along(const lattice::decomposition& cut, int rank, const shell_options& options, int mu) {
    transfer_list list(cut, rank, options);
    for (const int step : {-1, 1}) {
        coordinate d{};
        d[mu] = step;
        list.add(index_of(d), mu);
    }
    return list.take();
}

} // namespace halocline::halo
