// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <halocline/amg/memory.hpp>
#include <halocline/dirac/clover_term.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline_app/host_memory.hpp>

#include <algorithm>

namespace halocline::app {
namespace {

using lattice::coordinate;

constexpr double links = lattice::gauge_components, spinor = lattice::spinor_components; // reals per site

/// Sites of a box with a layer around it, divided by those of the box.
double padding(const coordinate& extents) {
    double ratio = 1;
    for (const int e : extents) ratio *= (e + 2.0) / e;
    return ratio;
}

/// Right-hand sides that are iterated together.
int at_once(const settings& s) { return amg::even_groups(static_cast<int>(s.rhs.size()), s.solver.at_once).front(); }

/// Bytes per site of what the program itself holds, but for solutions. Before, the links as they were read and one
/// padded copy take less.
double program_bytes(const settings& s, const coordinate& extents) {
    const double b = spinor * static_cast<double>(s.rhs.size());
    const double reference = dirac::clover_components;
    const double padded = 2 * links; // the links, and the reference's with boundary signs
    return 8 * (b + reference + padded * padding(extents));
}

} // namespace

double bytes_of_rank(const settings& s, const lattice::decomposition& cut, const coordinate& blocks, int rank) {
    amg::solver_options options = s.solver;
    options.blocks = blocks;
    const amg::memory_estimate solver = amg::estimate_memory(cut, rank, options, at_once(s));
    const lattice::box local = cut.local_box(rank);
    const auto sites = static_cast<double>(local.volume());
    const double solutions = sites * 8 * spinor * at_once(s); // made after the set-up
    return sites * program_bytes(s, local.extents) + solver.made + std::max(solver.set_up, solutions + solver.solves);
}

void check_memory(const comm::job& j, const settings& s, const lattice::decomposition& cut, const coordinate& blocks) {
    check_host_memory(
        j, cut, [&](int rank) { return bytes_of_rank(s, cut, blocks, rank); },
        at_once(s) > 1
            ? "take fewer right-hand sides at once (--at-once 1), a smaller lattice, more hosts, or fewer vectors"
            : "take a smaller lattice, more hosts, or fewer vectors");
}

} // namespace halocline::app
