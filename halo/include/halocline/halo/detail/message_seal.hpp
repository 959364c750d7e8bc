// SPDX-License-Identifier: Apache-2.0
// A checksum after the values of each message of a plan (docs/decisions/0021-checksums-behind-the-message.md).
#pragma once

#include <cstddef>
#include <cstdint>

namespace halocline::comm {
class job;
}

namespace halocline::halo {

class message_seal {
  public:
    /// Does not seal messages.
    message_seal() = default;
    /// `sealed`: are checksums wanted? Not over transport mock, whose messages are zeros.
    message_seal(const comm::job& j, bool sealed);

    [[nodiscard]] bool seals() const noexcept { return sealed_; }
    /// Bytes of the checksum after the values; 0 without checksums.
    [[nodiscard]] std::size_t bytes() const noexcept { return sealed_ ? sizeof(std::uint32_t) : 0; }
    /// Seals a message with `value_bytes` bytes of values.
    void put(std::byte* message, std::size_t value_bytes, std::uint64_t epoch) const noexcept {
        if (sealed_) write(message, value_bytes, epoch);
    }
    /// Are these the values that were sealed for this exchange? Always true without seals.
    [[nodiscard]] bool is_intact(const std::byte* message, std::size_t value_bytes,
                                 std::uint64_t epoch) const noexcept {
        return !sealed_ || matches(message, value_bytes, epoch);
    }

  private:
    static void write(std::byte* message, std::size_t value_bytes, std::uint64_t epoch) noexcept;
    static bool matches(const std::byte* message, std::size_t value_bytes, std::uint64_t epoch) noexcept;

    bool sealed_ = false;
};

} // namespace halocline::halo
