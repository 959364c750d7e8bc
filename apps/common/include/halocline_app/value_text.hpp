// SPDX-License-Identifier: Apache-2.0
// Values as text: those of the library, plus coordinates.
#pragma once

#include <halocline/config/value_text.hpp>
#include <halocline/lattice/geometry.hpp>

#include <string>

namespace halocline::app {

using config::choice;
using config::expected;
using config::read_choice;
using config::read_integer;
using config::read_list;
using config::read_real;
using config::show_choice;
using config::show_list;
using config::show_real;

/// Four whole numbers >= 1, like 8.8.8.16.  Err: std::invalid_argument.
lattice::coordinate read_coordinate(const std::string& text);

} // namespace halocline::app
