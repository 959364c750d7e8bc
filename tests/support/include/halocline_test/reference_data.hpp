// SPDX-License-Identifier: Apache-2.0
// The location of the public gauge configurations, if available: tests that need them are skipped with a message
// otherwise.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace halocline_test {

/// Path of a reference file, empty if it does not exist. Looks in $HALOCLINE_TEST_CONFIGS, then in ../shared/configs
/// next to the source tree.
inline std::string reference_file(const std::string& name) {
    const char* configured = std::getenv("HALOCLINE_TEST_CONFIGS");
    const std::filesystem::path path =
        (configured ? std::filesystem::path(configured)
                    : std::filesystem::path(HALOCLINE_SOURCE_DIR) / "../shared/configs") /
        name;
    return std::filesystem::exists(path) ? path.string() : std::string();
}

} // namespace halocline_test
