// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/detail/message_seal.hpp>

#include "message_checksum.hpp"

#include <halocline/comm/detail/mock_channel.hpp>
#include <halocline/comm/job.hpp>

#include <cstring>

namespace halocline::halo {

message_seal::message_seal(const comm::job& j, bool sealed)
    : sealed_(sealed && j.members()[j.rank()].transport != comm::mock_channel::transport) {}

void message_seal::write(std::byte* message, std::size_t value_bytes, std::uint64_t epoch) noexcept {
    const std::uint32_t sum = message_checksum(message, value_bytes, epoch);
    std::memcpy(message + value_bytes, &sum, sizeof sum);
}

bool message_seal::matches(const std::byte* message, std::size_t value_bytes, std::uint64_t epoch) noexcept {
    const std::uint32_t sum = message_checksum(message, value_bytes, epoch);
    return std::memcmp(message + value_bytes, &sum, sizeof sum) == 0;
}

} // namespace halocline::halo
