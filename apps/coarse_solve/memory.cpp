// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <halocline/dirac/clover_term.hpp>
#include <halocline/dirac/wilson_clover.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline_app/host_memory.hpp>

#include <algorithm>

namespace halocline::app {
namespace {

using lattice::coordinate;
using lattice::dimensions;

constexpr double links = lattice::gauge_components, spinor = lattice::spinor_components; // reals per site
constexpr double clover = 72;           // a packed Hermitian 6x6 matrix for each chirality
constexpr double columns_at_once = 4;   // of the coarse operator
constexpr double bytes_per_complex = 8; // on the coarse grid, fp32

/// Sites of a box with a layer around it, divided by those of the box.
double padding(const coordinate& extents) {
    double ratio = 1;
    for (const int e : extents) ratio *= (e + 2.0) / e;
    return ratio;
}

/// Neighbours of a coarse site, each of which has a matrix. An extent of 2 has the same one on both sides.
int neighbours(const coordinate& coarse) {
    int all = 0;
    for (const int e : coarse) all += std::min(e - 1, 2);
    return all;
}

/// Right-hand sides that are iterated together.
int at_once(const settings& s) { return amg::even_groups(static_cast<int>(s.rhs.size()), s.solver.at_once).front(); }

/// Bytes per fine site of what is stored in lexicographic order, but for solutions.
double lexicographic_bytes(const settings& s, const coordinate& extents) {
    const double as_read = links, b = spinor * static_cast<double>(s.rhs.size());
    const double reference = dirac::clover_components;
    const double padded = 2 * links; // the links, and the reference's with boundary signs
    return 8 * (as_read + b + reference + padded * padding(extents));
}

/// Bytes per place of what an outer solve of one right-hand side needs.
double system_bytes(const settings& s) {
    const double x_and_b = 2 * spinor, krylov = spinor * (2 * s.solver.restart_length + 1);
    return 8 * (krylov + x_and_b) + 4 * x_and_b;
}

/// Bytes per place of the blocked order, which has more places than sites if lanes stay empty.
double blocked_bytes(const settings& s) {
    const double d = links + clover;
    const double smoother = clover + 2 * spinor; // the term with its inverse; two fields
    const double interpolation = spinor * s.solver.vectors;
    return 8 * d + 4 * (d + smoother + interpolation) + system_bytes(s);
}

/// Bytes per place that the set-up needs besides.
double set_up_bytes(const settings& s, int directions) {
    const double test_vectors = spinor * (s.solver.vectors + std::min(s.solver.vectors, s.solver.at_once)),
                 column = spinor;
    const double images = spinor * columns_at_once * (directions + 1);
    return 4 * (test_vectors + column + images);
}

/// Bytes per site of the coarse lattice.
double coarse_bytes(const settings& s, const coordinate& coarse, int directions) {
    const double n = 2.0 * s.solver.vectors, matrix = n * n;
    const bool odd_even = std::ranges::all_of(coarse, [](int e) { return e % 2 == 0; });
    const double inverses = odd_even ? matrix / 2 : 0;
    const double of_system = n * (s.solver.coarse_restart_length + 1) * (odd_even ? 0.5 : 1) + (odd_even ? 4 : 2) * n;
    const double columns = n * columns_at_once * (directions + 1);
    return bytes_per_complex * (matrix * (directions + 1) + inverses + of_system * s.solver.at_once + columns);
}

} // namespace

double bytes_of_rank(const settings& s, const lattice::decomposition& cut, const coordinate& blocks, int rank) {
    const lattice::box local = cut.local_box(rank);
    coordinate coarse{};
    for (int mu = 0; mu < dimensions; ++mu) coarse[mu] = cut.global()[mu] / blocks[mu];
    const int directions = neighbours(coarse);
    const int lanes = dirac::preferred_lane_width(local, cut.global(), blocks); // on this machine
    const auto sites = static_cast<double>(local.volume()),
               places = static_cast<double>(dirac::blocked_places(local, cut.global(), blocks, lanes));
    const double coarse_sites = sites / static_cast<double>(lattice::volume(blocks));
    const double set_up = places * set_up_bytes(s, directions); // it is gone when the other systems are made
    const double solves = sites * 8 * spinor * at_once(s) + places * system_bytes(s) * (at_once(s) - 1);
    return sites * lexicographic_bytes(s, local.extents) + places * blocked_bytes(s) +
           coarse_sites * coarse_bytes(s, coarse, directions) + std::max(set_up, solves);
}

void check_memory(const comm::job& j, const settings& s, const lattice::decomposition& cut, const coordinate& blocks) {
    check_host_memory(
        j, cut, [&](int rank) { return bytes_of_rank(s, cut, blocks, rank); },
        at_once(s) > 1
            ? "take fewer right-hand sides at once (--at-once 1), a smaller lattice, more hosts, or fewer vectors"
            : "take a smaller lattice, more hosts, or fewer vectors");
}

} // namespace halocline::app
