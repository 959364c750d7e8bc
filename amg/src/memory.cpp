// SPDX-License-Identifier: Apache-2.0
#include <halocline/amg/memory.hpp>

#include "kernels.hpp"

#include <halocline/amg/coarse_operator.hpp>
#include <halocline/dirac/wilson_clover.hpp>
#include <halocline/lattice/field.hpp>

#include <algorithm>

namespace halocline::amg {
namespace {

constexpr double links = lattice::gauge_components, spinor = lattice::spinor_components; // reals per site
constexpr double clover = 72;         // a packed Hermitian 6x6 matrix for each chirality
constexpr double columns_at_once = 4; // of the coarse operator

/// Neighbours of a coarse site, each of which has a matrix. An extent of 2 has the same one on both sides.
int neighbours(const lattice::coordinate& coarse) {
    int all = 0;
    for (const int e : coarse) all += std::min(e - 1, 2);
    return all;
}

/// Bytes per place of what the outer solve of one right-hand side needs.
double of_system(const solver_options& o) {
    const double x_and_b = 2 * spinor, krylov = spinor * (2 * o.restart_length + 1);
    return 8 * (krylov + x_and_b) + 4 * x_and_b;
}

/// Bytes per place of the operators, the smoother and P.
double of_fine_level(const solver_options& o) {
    const double d = links + clover;
    const double smoother = clover + 2 * spinor; // the term with its inverse; two fields
    const double interpolation = spinor * o.vectors;
    return 8 * d + 4 * (d + smoother + interpolation);
}

/// Bytes per place of what the set-up needs besides.
double of_set_up(const solver_options& o, int directions) {
    const double test_vectors = spinor * (o.vectors + std::min(o.vectors, o.at_once)), column = spinor;
    const double images = spinor * columns_at_once * (directions + 1);
    return 4 * (test_vectors + column + images);
}

/// Bytes per coarse site, and what the set-up needs besides.
struct coarse_bytes {
    double made, set_up;
};
coarse_bytes of_coarse_level(const solver_options& o, const lattice::coordinate& coarse, int directions) {
    const double n = 4.0 * o.vectors; // reals per site
    const auto matrix = static_cast<double>(kernels::matrix_reals(2 * o.vectors));
    const bool odd_even = std::ranges::all_of(coarse, [](int e) { return e % 2 == 0; });
    const double inverse = odd_even ? matrix / 2 : 0;
    const double krylov = n * (o.coarse_restart_length + 1) * (odd_even ? 0.5 : 1);
    const double fields = n * (odd_even ? 4 : 2); // x and b, whole and even; scratch on odd sites
    return {4 * (matrix * (directions + 1) + inverse + (krylov + fields) * o.at_once),
            4 * n * columns_at_once * (directions + 1)};
}

} // namespace

memory_estimate estimate_memory(const lattice::decomposition& cut, int rank, const solver_options& given, int at_once) {
    solver_options options = given;
    if (!options.coarse_level) options.vectors = options.at_once = 1; // of what nothing reads then
    const lattice::box local = cut.local_box(rank);
    const lattice::coordinate block = options.blocks.value_or(default_blocks(cut.global())),
                              coarse = coarse_decomposition(cut, block).global();
    const int directions = neighbours(coarse);
    const int lanes =
        options.lane_width != 0 ? options.lane_width : dirac::preferred_lane_width(local, cut.global(), block);
    const auto places = static_cast<double>(dirac::blocked_places(local, cut.global(), block, lanes)),
               coarse_sites = static_cast<double>(local.volume()) / static_cast<double>(lattice::volume(block));
    const coarse_bytes coarse_level = of_coarse_level(options, coarse, directions);
    return {.made = places * (of_fine_level(options) + of_system(options)) + coarse_sites * coarse_level.made,
            .set_up =
                given.coarse_level ? places * of_set_up(options, directions) + coarse_sites * coarse_level.set_up : 0,
            .solves = places * of_system(options) * (at_once - 1)};
}

} // namespace halocline::amg
