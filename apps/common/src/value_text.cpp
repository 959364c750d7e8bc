// SPDX-License-Identifier: Apache-2.0
#include <halocline_app/value_text.hpp>

#include <algorithm>

namespace halocline::app {

lattice::coordinate read_coordinate(const std::string& text) {
    const auto c = lattice::parse_coordinate(text);
    if (!c || std::ranges::any_of(*c, [](int e) { return e < 1; }))
        expected("four whole numbers >= 1 in the order x, y, z, t, like 8.8.8.16");
    return *c;
}

} // namespace halocline::app
