// SPDX-License-Identifier: Apache-2.0
// Variables of the environment that ranks get.
#pragma once

#include <cstdlib>
#include <span>
#include <string>

namespace halocline::app {

/// Sets these, each "NAME=value", for this process and those that it will start.
inline void set_variables(std::span<const std::string> variables) {
    for (const std::string& v : variables) {
        const std::size_t equals = v.find('=');
        setenv(v.substr(0, equals).c_str(), v.substr(equals + 1).c_str(), 1);
    }
}

} // namespace halocline::app
