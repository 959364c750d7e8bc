// SPDX-License-Identifier: Apache-2.0
// Fields that a network's device reads and writes itself: registered with it, and pinned in their slab for as long as a
// peer may write them. Both ends of a direct channel over a network have such memory, and state what is written where.
#pragma once

#include <halocline/comm/job.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace halocline::comm {

/// One write of a direct message: into the peer's field `field`, counted from the field that both ends agree on in each
/// epoch.
struct direct_write {
    std::uint32_t field = 0;
    std::size_t from = 0, to = 0; ///< offsets in this rank's field and in the peer's
    std::size_t bytes = 0;

    friend bool operator==(const direct_write&, const direct_write&) = default;
};

/// Registered fields. Whoever holds one keeps their memory: the plan, then each channel until its peer's farewell.
class direct_memory;

/// Registers fields of this rank's slab for the peers that `transport` serves. Local.
/// Pre: all fields lie in the slab.  Err: job_error: the network can't take them.
/// Cost: a system call per field, which locks its pages in memory where a device reads them.
[[nodiscard]] std::shared_ptr<const direct_memory> register_fields(const job& j, const std::string& transport,
                                                                   std::span<const std::span<std::byte>> fields);

/// Why fields can't be written in place between this rank and that peer ("over mpi ..."); empty if they can.
/// Both ends get the same answer.
[[nodiscard]] std::string direct_obstacle(const job& j, int peer);

} // namespace halocline::comm
