// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/stencil.hpp>

#include "format_checks.hpp"

#include <cstdint>
#include <cstdio>
#include <limits>

namespace halocline::halo {

using lattice::coordinate;
using lattice::dimensions;
using lattice::side;

namespace {

/// A star_table numbers the sites behind a face with 32 bits; beyond an open edge no box bounds their number.
/// Err: input_error.
void check_layers(const std::string& who, const coordinate& extents, int mu, int radius) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (lattice::volume(extents) / extents[mu] <= most / radius) return;
    throw input_error(who + std::to_string(radius) + " layers in " + lattice::dimension_name[mu] +
                      " of a local box of " + lattice::to_string(extents) + " have more than " + std::to_string(most) +
                      " sites; cut the lattice over more ranks");
}

/// "(0, -1) in z", by a format for both parts of the phase and the dimension.
std::string text_of(const boundary_phases& phases, int mu, const char* format) {
    char text[96];
    std::snprintf(text, sizeof text, format, phases[mu].real(), phases[mu].imag(), lattice::dimension_name[mu]);
    return text;
}

/// The phases beyond the upper edges.
boundary_phases phases_of(const stencil_options& options) { return with_signs(options.phases, options.boundaries); }

/// Is the field multiplied at the edge in mu?
bool is_twisted(const stencil_options& options, int mu) {
    return options.boundaries[mu] != lattice::boundary::open && phases_of(options)[mu] != 1.0;
}

} // namespace

std::array<bool, dimensions> agreed_twists(const comm::job& j, const stencil_options& options) {
    std::array<bool, dimensions> twists{};
    std::string all;
    for (int mu = 0; mu < dimensions; ++mu) {
        all += text_of(phases_of(options), mu, mu == 0 ? "(%.17g, %.17g) in %c" : ", (%.17g, %.17g) in %c");
        twists[mu] = is_twisted(options, mu);
    }
    j.agree("the phases and messages of stencil '" + options.name + "'",
            all + ", messages " + format_text(options.format, options.scale));
    return twists;
}

star_edges::star_edges(const comm::job& j, const lattice::decomposition& cut, const stencil_options& options, star s,
                       std::size_t real_bytes) {
    phases.fill(1);
    const boundary_phases asked = phases_of(options);
    j.collectively([&] {
        if (options.format != message_format::as_stored && real_bytes != sizeof(float))
            throw input_error("stencil '" + options.name + "': " + std::string(to_string(options.format)) +
                              " messages are made of floats; its fields " +
                              (real_bytes == 0 ? "are not of float or double" : "are of double"));
        check_phases_finite("stencil '" + options.name + "': ", options.phases);
        for (int mu = 0; mu < dimensions; ++mu) {
            const bool open = options.boundaries[mu] == lattice::boundary::open, twisted = is_twisted(options, mu);
            leaves[mu] = cut.rank_grid()[mu] > 1 || open || twisted || options.self_exchange;
            if (leaves[mu])
                check_layers("stencil '" + options.name + "': ", cut.local_box(j.rank()).extents, mu, s.radius);
            if (!twisted) continue;
            const bool by_sign = options.phases[mu] == 1.0; // antiperiodic: the user gave no phase
            const std::string who = "stencil '" + options.name + "': " +
                                    (by_sign ? std::string("antiperiodic in ") + lattice::dimension_name[mu] + ": "
                                             : text_of(asked, mu, "phase (%g, %g) in %c: "));
            if (real_bytes == 0) throw input_error(who + "its fields are not of float or double");
            if (asked[mu].imag() != 0 && s.components % 2 != 0)
                throw input_error(who + std::to_string(s.components) + " components per site are no pairs (re, im)");
            for (const side end : {side::low, side::high})
                if (const lattice::face f{mu, end}; cut.wraps(j.rank(), f))
                    phases[f.index()] = end == side::low ? std::conj(asked[mu]) : asked[mu];
        }
    });
}

star_table::star_table(const coordinate& extents, const std::array<bool, dimensions>& leaves, int radius)
    : extents_(extents), leaves_(leaves), radius_(radius) {
    std::int64_t stride = 1;
    for (int mu = 0; mu < dimensions; ++mu) {
        const int n = extents[mu];
        for (int p = 0; p < n; ++p)
            for (int k = -radius; k <= radius; ++k) {
                const std::int64_t wrapped = ((std::int64_t{p} + k) % n + n) % n;
                steps_[mu].push_back(stride * (wrapped - p));
            }
        stride *= n;
    }

    // Rows whose neighbours in y are all adjacent form one block; every other row is a block of its own.
    const int first = std::min(radius, extents[1]), last = std::max(first, extents[1] - radius);
    coordinate x{};
    for (x[3] = 0; x[3] < extents[3]; ++x[3])
        for (x[2] = 0; x[2] < extents[2]; ++x[2])
            for (int end = x[1] = 0; end < extents[1]; x[1] = end) {
                end = x[1] == first && first < last ? last : x[1] + 1;
                bool interior = true;
                for (int mu = 1; mu < dimensions; ++mu)
                    interior = interior && interior_first(mu) <= x[mu] && x[mu] < interior_last(mu);
                if (!interior || leaves[0]) add_boundary(x, end - x[1], !interior);
            }
}

void star_table::add_boundary(const coordinate& first, int rows, bool whole) {
    boundary_.push_back({static_cast<std::int32_t>(lattice::lexicographic_index(first, extents_)), rows, whole});
    boundary_sites_ += std::int64_t{rows} * row_sites(boundary_.back());
    for (int mu = 1; mu < dimensions; ++mu)
        for (int k = -radius_; k <= radius_; ++k) places_.push_back(neighbour(first, mu, k));
}

star_table::place star_table::neighbour(coordinate x, int mu, int k) const {
    const int p = x[mu] + k;
    const bool below = p < 0, inside = !below && p < extents_[mu];
    if (inside || !leaves_[mu]) {
        const std::int64_t here = lattice::lexicographic_index(x, extents_);
        return {0, static_cast<std::int32_t>(here + step(mu, x[mu], k))};
    }
    const lattice::face f{mu, below ? side::low : side::high};
    coordinate layers = extents_;
    layers[mu] = radius_;
    x[mu] = below ? p + radius_ : p - extents_[mu];
    return {1 + f.index(), static_cast<std::int32_t>(lattice::lexicographic_index(x, layers))};
}

} // namespace halocline::halo
