// SPDX-License-Identifier: Apache-2.0
#include <halocline/amg/options.hpp>
#include <halocline/lattice/field.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

namespace halocline::amg {
namespace {

int default_block_extent(int extent) {
    if (extent == 2) return extent;
    const int parts = extent % 2 == 0 ? extent / 2 : extent; // an even number of blocks, where that is possible
    for (const int b : {4, 3, 5, 2})
        if (parts % b == 0) return b;
    for (int b = 7; b <= parts / b; b += 2)
        if (parts % b == 0) return b;
    return parts; // a prime
}

} // namespace

lattice::coordinate default_blocks(const lattice::coordinate& global) {
    lattice::coordinate block{};
    std::ranges::transform(global, block.begin(), default_block_extent);
    return block;
}

std::int64_t most_vectors(const lattice::coordinate& block) {
    constexpr int complex_per_chirality = lattice::spinor_components / 4;
    double sites = 1; // blocks may come from a user, before anything else is known about the lattice
    for (const int extent : block) sites *= extent;
    constexpr double beyond_any_memory = 1e15;
    if (sites > beyond_any_memory) return std::numeric_limits<std::int64_t>::max();
    return complex_per_chirality * lattice::volume(block);
}

std::vector<int> even_groups(int count, int most) {
    const int groups = count / most + (count % most != 0 ? 1 : 0);
    std::vector<int> sizes;
    for (int g = 0; g < groups; ++g) sizes.push_back(count / groups + (g < count % groups ? 1 : 0));
    return sizes;
}

std::string to_string(const progress& p) {
    const std::string step = std::to_string(p.step), of = " of " + std::to_string(p.steps);
    switch (p.where) {
    case progress::phase::initial_vectors: return "set-up: test vector " + step + of + " smoothed";
    case progress::phase::setup_iteration: return "set-up: iteration " + step + of;
    case progress::phase::solve: break;
    }
    std::array<char, 32> residual{};
    std::snprintf(residual.data(), residual.size(), "%.3e", p.residual);
    if (p.systems == 1) return "iteration " + step + ": residual " + residual.data();
    return "iteration " + step + ": residuals of " + std::to_string(p.systems) + " solves up to " + residual.data();
}

} // namespace halocline::amg
