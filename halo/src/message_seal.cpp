// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/detail/message_seal.hpp>

#include "message_sum.hpp"

#include <halocline/comm/detail/mock_channel.hpp>
#include <halocline/comm/job.hpp>

namespace halocline::halo {

message_seal::message_seal(const comm::job& j, bool sealed)
    : sealed_(sealed && j.members()[j.rank()].transport != comm::mock_channel::transport) {}

std::uint64_t message_seal::sum_of(const std::byte* values, std::size_t bytes) noexcept {
    return message_sum(values, bytes, 0);
}

} // namespace halocline::halo
