// SPDX-License-Identifier: Apache-2.0
// The error for a bad setting.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/config/value_text.hpp>

#include <string>
#include <utility>

namespace halocline {

/// A bad key or value in a config file, the environment or the command line; the text says where and which, and what
/// would be right.
class config_error : public input_error {
  public:
    config_error(std::string key, const std::string& text)
        : input_error(config::printable(text)), key_(std::move(key)) {}
    /// "comm.transports"; the name of a section or a variable if no key is to blame, "" if the whole file is.
    [[nodiscard]] const std::string& key() const { return key_; }

  private:
    std::string key_;
};

} // namespace halocline
