// SPDX-License-Identifier: Apache-2.0
// The right-hand sides of a run, and their names.
#pragma once

#include <halocline/lattice/geometry.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace halocline::app {

enum class source : std::uint8_t { ones, unit, random, point, file };

inline constexpr int spins = 4, colours = 3;

/// A right-hand side: made here, or a field from a spinor file.
struct right_hand_side {
    source kind = source::ones;
    std::string path{};         ///< for source::file
    lattice::coordinate site{}; ///< for source::point; components are at least 0
    int spin = 0, colour = 0;   ///< for source::point, in the basis of spinor files
    std::uint32_t number = 0;   ///< for source::random: which one of the seed's
};

/// One or more names, separated by commas: ones, unit, random, random:N, point:x.y.z.t:spin.colour, point:x.y.z.t for all
/// spins and colours, colours fastest, and file:PATH. A comma belongs to PATH unless another name follows it.
/// Err: std::invalid_argument.
std::vector<right_hand_side> read_right_hand_sides(const std::string& text);
/// The name of one.
std::string show(const right_hand_side& one);
/// In the form that read_right_hand_sides() accepts.
std::string show(const std::vector<right_hand_side>& all);

} // namespace halocline::app
