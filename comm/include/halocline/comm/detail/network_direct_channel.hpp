// SPDX-License-Identifier: Apache-2.0
// A direct channel over a network: the sender's device writes from its field straight into the peer's, so nothing is
// packed or unpacked. A field exists only once, so its owner first announces that it may be written ("free k"): that is
// the message of epoch k on the underlying channel, a label without payload. The values follow as separate writes.
#pragma once

#include <halocline/comm/detail/direct_memory.hpp>
#include <halocline/comm/detail/network_channel.hpp>
#include <halocline/comm/status.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace halocline::comm {

/// Epochs count 1, 2, 3, … Call free(k, i) when fields i, i + 1, … may be written; once freed(k), send(k, …) writes the
/// peer's, beginning with its peer_field(). What the peer wrote here is complete once arrived(k).
// clang-format off
template <class C>
concept rdma_channel = std::movable<C> && requires(C& c, const C& view, std::uint64_t epoch, std::uint32_t field) {
    { c.free(epoch, std::uint64_t{}, field) } noexcept;            ///< the peer may now write this rank's fields
    { c.freed(epoch) } noexcept -> std::same_as<bool>;             ///< may the peer's fields be written?
    { view.peer_field(epoch) } noexcept -> std::same_as<std::uint32_t>; ///< the first of them.  Pre: freed(epoch)
    { c.send(epoch, field, field) } noexcept;                      ///< writes from this rank's fields to the peer's
    { view.given(epoch) } noexcept -> std::same_as<bool>;          ///< was send() called?
    { c.sent(epoch) } noexcept -> std::same_as<bool>;              ///< all has left this rank's fields, or never will
    { c.arrived(epoch) } noexcept -> std::same_as<bool>;           ///< is all of it in place, or will it never be?
    { c.check(epoch) } noexcept -> std::same_as<status>;           ///< Pre: arrived(epoch)
};
// clang-format on

/// World and End: as for network_channel.
template <class World, class End>
class network_direct_channel : public network_channel<World, End> {
    using base = network_channel<World, End>;

  public:
    static constexpr channel_kind kind = channel_kind::direct;
    /// Makes this end: the slots of its labels from `memory`, and what each message writes. Local.
    /// Pre: the writes lie inside the fields.  Err: job_error.
    network_direct_channel(World& world, std::pmr::memory_resource& memory, std::size_t index, int peer,
                           std::uint32_t plan_id, std::span<const direct_write> writes,
                           std::shared_ptr<const direct_memory> fields);

    std::byte* target(std::uint64_t) = delete; // there are no slots for values
    const std::byte* received(std::uint64_t) = delete;

    /// Pre: arrived(epoch - 1) and sent(epoch - 1).
    void free(std::uint64_t epoch, std::uint64_t start_stamp, std::uint32_t field) noexcept {
        base::send(epoch, start_stamp, field);
    }
    [[nodiscard]] bool freed(std::uint64_t epoch) noexcept;
    [[nodiscard]] std::uint32_t peer_field(std::uint64_t epoch) const noexcept {
        return base::label(epoch).field_index;
    }
    /// Pre: freed(epoch), not given(epoch).
    void send(std::uint64_t epoch, std::uint32_t own_field, std::uint32_t peer_field) noexcept;
    [[nodiscard]] bool given(std::uint64_t epoch) const noexcept;
    [[nodiscard]] bool sent(std::uint64_t epoch) noexcept;
    [[nodiscard]] bool arrived(std::uint64_t epoch) noexcept;
    /// arrived(), as far as is known without polling the network.
    [[nodiscard]] bool is_here(std::uint64_t epoch) const noexcept;
    [[nodiscard]] status check(std::uint64_t epoch) const noexcept;
};

} // namespace halocline::comm
