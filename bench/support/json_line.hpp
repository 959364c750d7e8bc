// SPDX-License-Identifier: Apache-2.0
// One JSON object in a line: what a bench prints for machines.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace halocline::bench {

class json_line {
  public:
    json_line& add(std::string_view key, std::string_view text) {
        std::string quoted = "\"";
        for (const char c : text) {
            if (c == '"' || c == '\\') quoted += '\\';
            if (static_cast<unsigned char>(c) >= 0x20) quoted += c;
        }
        return raw(key, quoted + '"');
    }
    json_line& add(std::string_view key, const char* text) { return add(key, std::string_view(text)); }
    json_line& add(std::string_view key, std::integral auto value) { return raw(key, std::to_string(value)); }
    json_line& add(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
    /// JSON has no representation of NaN and infinity: null.
    json_line& add(std::string_view key, double value) {
        if (!std::isfinite(value)) return raw(key, "null");
        char text[32];
        std::snprintf(text, sizeof text, "%.5g", value);
        return raw(key, text);
    }
    json_line& add(std::string_view key, double value, int decimals) {
        if (!std::isfinite(value)) return raw(key, "null");
        char text[340]; // the largest double has 309 digits before the point
        std::snprintf(text, sizeof text, "%.*f", decimals, value);
        return raw(key, text);
    }
    json_line& add(std::string_view key, std::span<const int> values) {
        std::string list;
        for (const int v : values) list += (list.empty() ? "" : ",") + std::to_string(v);
        return raw(key, "[" + list + "]");
    }
    json_line& add_object(std::string_view key, const json_line& object) { return raw(key, object.text()); }
    /// All members of another one.
    json_line& add(const json_line& more) {
        members_ += (members_.empty() || more.members_.empty() ? "" : ",") + more.members_;
        return *this;
    }
    [[nodiscard]] std::string text() const { return "{" + members_ + "}"; }

  private:
    json_line& raw(std::string_view key, const std::string& value) {
        members_ += (members_.empty() ? "\"" : ",\"") + std::string(key) + "\":" + value;
        return *this;
    }
    std::string members_;
};

} // namespace halocline::bench
