// SPDX-License-Identifier: Apache-2.0
#include <halocline/amg/options.hpp>
#include <halocline/lattice/field.hpp>

#include <array>
#include <cstdio>

namespace halocline::amg {

lattice::coordinate default_blocks(const lattice::coordinate& global) {
    lattice::coordinate block = global;
    for (int& extent : block)
        for (int b : {4, 3, 5, 2})
            if (extent % (2 * b) == 0) {
                extent = b;
                break;
            }
    return block;
}

std::int64_t most_vectors(const lattice::coordinate& block) {
    constexpr int complex_per_chirality = lattice::spinor_components / 4;
    return complex_per_chirality * lattice::volume(block);
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
    return "iteration " + step + ": residual " + residual.data();
}

} // namespace halocline::amg
