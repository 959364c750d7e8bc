// SPDX-License-Identifier: Apache-2.0
// Pages that show code which tests compile and run. Paths count from the root of the project.
#pragma once

#include <halocline_test/run_command.hpp>

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace halocline_test {

/// The lines from the one that starts with `first` to the one that equals `last`, inclusive; a failure if there are none.
inline std::string passage(const std::string& path, const std::string& first, const std::string& last) {
    const std::string text = read_text(std::string(HALOCLINE_SOURCE_DIR) + "/" + path);
    const std::size_t begin = text.find("\n" + first), end = text.find("\n" + last + "\n", begin + 1);
    if (begin != std::string::npos && end != std::string::npos)
        return text.substr(begin + 1, end + last.size() + 1 - begin);
    ADD_FAILURE() << path << " has no lines from '" << first << "' to '" << last << "'";
    return {};
}

inline void expect_page_shows(const std::string& page, std::initializer_list<std::string> passages) {
    const std::string text = read_text(std::string(HALOCLINE_SOURCE_DIR) + "/" + page);
    for (const std::string& part : passages) EXPECT_NE(text.find(part), std::string::npos) << page << ": " << part;
}

} // namespace halocline_test
