// SPDX-License-Identifier: Apache-2.0
// A variable of this process's environment that is put back as it was.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace halocline_test {

/// An environment variable with this value, or without one, for the lifetime of this object.
class environment_variable {
  public:
    environment_variable(std::string name, const std::optional<std::string>& value) : name_(std::move(name)) {
        if (const char* const now = std::getenv(name_.c_str())) before_ = now;
        set(value);
    }
    ~environment_variable() { set(before_); }
    environment_variable(const environment_variable&) = delete;
    environment_variable& operator=(const environment_variable&) = delete;

  private:
    void set(const std::optional<std::string>& value) const {
        if (value)
            ::setenv(name_.c_str(), value->c_str(), 1);
        else
            ::unsetenv(name_.c_str());
    }

    std::string name_;
    std::optional<std::string> before_;
};

} // namespace halocline_test
