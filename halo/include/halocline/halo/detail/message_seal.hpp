// SPDX-License-Identifier: Apache-2.0
// A checksum after the values of each message of a plan (docs/decisions/0021-checksums-behind-the-message.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

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
    [[nodiscard]] std::size_t bytes() const noexcept { return sealed_ ? sizeof(std::uint64_t) : 0; }
    /// What a message of these values is sealed with (message_sum.hpp).
    [[nodiscard]] static std::uint64_t sum_of(const std::byte* values, std::size_t bytes) noexcept;
    /// Seals, behind its values, a message of this exchange and with this sum of its values.  Pre: seals().
    static void put(std::byte* behind, std::uint64_t sum, std::uint64_t epoch) noexcept {
        const std::uint64_t s = seal_of(sum, epoch);
        std::memcpy(behind, &s, sizeof s);
    }
    /// Is that the seal of a message of this exchange and with this sum?  Pre: seals().
    [[nodiscard]] static bool is_at(const std::byte* behind, std::uint64_t sum, std::uint64_t epoch) noexcept {
        const std::uint64_t s = seal_of(sum, epoch);
        return std::memcmp(behind, &s, sizeof s) == 0;
    }

  private:
    /// Exchanges begin with 1, so the seal of zeros isn't 0; that of each exchange is another one.
    static std::uint64_t seal_of(std::uint64_t sum, std::uint64_t epoch) noexcept {
        return sum + epoch * 0x9e3779b97f4a7c15U;
    }

    bool sealed_ = false;
};

} // namespace halocline::halo
