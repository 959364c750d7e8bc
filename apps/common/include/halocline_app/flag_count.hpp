// SPDX-License-Identifier: Apache-2.0
// What the parser has to say of a flag that was given too often, or without its value.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace halocline::app {

/// "--m0 needs a value" for the parser's "--m0: 1 required TEXT missing"; "--m0 is given once" for its "--m0: At Most 1
/// required but received 2".
inline std::string describe(const CLI::ArgumentMismatch& wrong) {
    const std::string what = wrong.what();
    return what.substr(0, what.find(':')) + (what.ends_with("missing") ? " needs a value" : " is given once");
}

} // namespace halocline::app
