// SPDX-License-Identifier: Apache-2.0
// Coordinates, boxes and faces of a 4-dimensional lattice.
// Everywhere in Halocline the order of dimensions is x, y, z, t (index 0..3), and "lexicographic" means x fastest.
// Gauge files use other orders; only their readers know.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace halocline::lattice {

inline constexpr int dimensions = 4;

/// One integer per dimension, in the order x, y, z, t: a site, or the extents of a box.
using coordinate = std::array<int, dimensions>;

/// The name of a dimension, by its index.
inline constexpr std::string_view dimension_name = "xyzt";

/// How the lattice closes on itself in one dimension.
/// Antiperiodic is a sign on the links in dirac::, so plans of halos treat it as periodic; stencils change the sign.
enum class boundary : std::uint8_t { periodic, antiperiodic, open };
/// The enumerator's name; "?" for a number that is none.
constexpr std::string_view to_string(boundary b) {
    switch (b) {
    case boundary::periodic: return "periodic";
    case boundary::antiperiodic: return "antiperiodic";
    case boundary::open: return "open";
    }
    return "?";
}

/// Product of the extents, in sites.
constexpr std::int64_t volume(const coordinate& extents) {
    std::int64_t v = 1;
    for (int e : extents) v *= e;
    return v;
}

/// The product, unless it is more than `most`: for extents that a caller gives, whose product could overflow.
/// Pre: no extent is negative; 0 <= most < 2^32.
constexpr std::optional<std::int64_t> volume_up_to(std::int64_t most, const coordinate& extents) {
    for (const int e : extents)
        if (e == 0) return 0;
    std::int64_t v = 1;
    for (const int e : extents)
        if ((v *= e) > most) return std::nullopt; // v was below 2^32
    return v;
}

/// Position of `c` in the lexicographic order of a box of these extents.  Pre: 0 <= c[mu] < extents[mu].
constexpr std::int64_t lexicographic_index(const coordinate& c, const coordinate& extents) {
    return c[0] +
           std::int64_t{extents[0]} * (c[1] + std::int64_t{extents[1]} * (c[2] + std::int64_t{extents[2]} * c[3]));
}

/// Inverse of lexicographic_index().
constexpr coordinate lexicographic_coordinate(std::int64_t index, const coordinate& extents) {
    coordinate c{};
    for (int mu = 0; mu < dimensions; ++mu) {
        c[mu] = static_cast<int>(index % extents[mu]);
        index /= extents[mu];
    }
    return c;
}

/// The site of a periodic lattice of these extents that `x` stands for, however far it is beyond the edge.
constexpr coordinate wrapped(coordinate x, const coordinate& extents) {
    for (int mu = 0; mu < dimensions; ++mu) {
        x[mu] %= extents[mu];
        if (x[mu] < 0) x[mu] += extents[mu];
    }
    return x;
}

/// 0 for even sites, 1 for odd ones.
constexpr int parity(const coordinate& c) { return (c[0] + c[1] + c[2] + c[3]) & 1; }

/// A half-open box of sites: [origin, origin + extents).
struct box {
    coordinate origin{};
    coordinate extents{};

    [[nodiscard]] constexpr std::int64_t volume() const { return lattice::volume(extents); }
    [[nodiscard]] constexpr bool contains(const coordinate& c) const {
        for (int mu = 0; mu < dimensions; ++mu)
            if (c[mu] < origin[mu] || c[mu] >= std::int64_t{origin[mu]} + extents[mu]) return false;
        return true;
    }
    /// The site with this lexicographic index in the box.  Pre: 0 <= index < volume().
    [[nodiscard]] constexpr coordinate site(std::int64_t index) const {
        coordinate c = lexicographic_coordinate(index, extents);
        for (int mu = 0; mu < dimensions; ++mu) c[mu] += origin[mu];
        return c;
    }
    /// Inverse of site().  Pre: contains(c).
    [[nodiscard]] constexpr std::int64_t index(coordinate c) const {
        for (int mu = 0; mu < dimensions; ++mu) c[mu] -= origin[mu];
        return lexicographic_index(c, extents);
    }
    friend constexpr bool operator==(const box&, const box&) = default;
};

/// The low or the high end of a dimension.
enum class side : std::uint8_t { low = 0, high = 1 };
/// The end of a dimension that `s` is not.
constexpr side opposite(side s) { return s == side::low ? side::high : side::low; }

/// One of the eight faces of a box.  index() runs x-low, x-high, y-low, … t-high.
struct face {
    int mu = 0;
    side end = side::low;

    [[nodiscard]] constexpr int index() const { return 2 * mu + static_cast<int>(end); }
    [[nodiscard]] constexpr face opposite() const { return {mu, lattice::opposite(end)}; }
    friend constexpr bool operator==(const face&, const face&) = default;
};
/// Number of faces of a box.
inline constexpr int faces = 2 * dimensions;
/// Inverse of face::index().  Pre: 0 <= index < faces.
constexpr face face_of(int index) { return {index / 2, static_cast<side>(index % 2)}; }

/// "8.8.8.16", as in the flags and error messages.
std::string to_string(const coordinate& c);
/// "x-low" … "t-high".
std::string to_string(face f);
/// Reads "8.8.8.16" (also separated by 'x' or ',').  Empty if the text is anything else.
std::optional<coordinate> parse_coordinate(std::string_view text);

} // namespace halocline::lattice
