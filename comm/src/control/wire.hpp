// SPDX-License-Identifier: Apache-2.0
// Numbers and strings in a row of bytes: the format of set-up messages between ranks of one program on similar
// machines.
#pragma once

#include <halocline/base/error.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace halocline::comm {

class wire_writer {
  public:
    template <class T>
    requires std::is_trivially_copyable_v<T> wire_writer& number(T value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
        return *this;
    }
    wire_writer& text(std::string_view s) {
        number<std::uint64_t>(s.size());
        bytes_.append(s);
        return *this;
    }
    [[nodiscard]] std::string take() { return std::move(bytes_); }

  private:
    std::string bytes_;
};

/// Err: error if the bytes end early.
class wire_reader {
  public:
    explicit wire_reader(std::string_view bytes) : rest_(bytes) {}
    template <class T>
    requires std::is_trivially_copyable_v<T> T number() {
        T value;
        std::memcpy(&value, piece(sizeof value).data(), sizeof value);
        return value;
    }
    std::string text() { return std::string(piece(number<std::uint64_t>())); }
    [[nodiscard]] bool empty() const { return rest_.empty(); }

  private:
    std::string_view piece(std::size_t n) {
        if (n > rest_.size()) throw error("set-up message of a peer is too short: the ranks run different programs");
        const std::string_view p = rest_.substr(0, n);
        rest_.remove_prefix(n);
        return p;
    }
    std::string_view rest_;
};

} // namespace halocline::comm
