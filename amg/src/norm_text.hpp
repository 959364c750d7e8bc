// SPDX-License-Identifier: Apache-2.0
// Norms in error messages.  Private to amg/.
#pragma once

#include <cmath>
#include <sstream>
#include <string>

namespace halocline::amg {

/// "0.25", "infinite" or "not a number".
inline std::string norm_text(double norm) {
    if (std::isnan(norm)) return "not a number";
    if (std::isinf(norm)) return "infinite";
    std::ostringstream text;
    text << norm;
    return text.str();
}

} // namespace halocline::amg
