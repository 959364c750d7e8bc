// SPDX-License-Identifier: Apache-2.0
// What every transport's channel can do: the concept that the lanes of a channel_set model. A channel joins one end
// here with one end at a peer, in both directions, with two slots per direction.
//
// Epochs count 1, 2, 3, … In epoch k: fill target(k), then send(k). Once arrived(k) is true, received(k) may be read
// until this rank calls send(k+1).
#pragma once

#include <halocline/comm/detail/channel_kind.hpp>
#include <halocline/comm/detail/control_line.hpp>
#include <halocline/comm/status.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

namespace halocline::comm {

/// Connecting may block, allocate and throw (channel_set does it); every member is noexcept and allocation-free.
/// C::transport is the name used in options and reports; C::path_name ("self", "direct", "joint", "packed") is how
/// reports describe the way its messages take; C::kind is what requests ask for. C::in_peer_memory: target() lies in
/// another rank's memory, written by this core.
// clang-format off
template <class C>
concept channel = std::movable<C> && requires(C& c, const C& view, std::uint64_t epoch, std::uint64_t stamp) {
    { view.index() } noexcept -> std::same_as<std::size_t>;   ///< position of its request in the set
    { view.peer() } noexcept -> std::same_as<int>;            ///< rank at the other end
    { c.target(epoch) } noexcept -> std::same_as<std::byte*>; ///< where the payload goes, aligned to 64 (immediate: 16)
    { c.send(epoch, stamp) } noexcept;                        ///< publish: all of this epoch is in target(epoch)
    { c.sent(epoch) } noexcept -> std::same_as<bool>;         ///< may target(epoch) be filled again?
    { c.arrived(epoch) } noexcept -> std::same_as<bool>;      ///< has the peer's epoch arrived, or its farewell?
    { c.check(epoch) } noexcept -> std::same_as<status>;      ///< is it what the plan says?  Pre: arrived(epoch)
    { c.received(epoch) } noexcept -> std::same_as<const std::byte*>;
    { view.label(epoch) } noexcept -> std::convertible_to<const message_label&>; ///< the label of that message
};
// clang-format on

/// A channel between ranks that can't map each other's memory (channels without cards are joined through mapped slabs).
/// Set-up, in this order:
///   C(world, …)              makes this rank's end, in its world of the transport
///   world.complete(plan id)  only for transports that make something for all ends of a plan together
///   card()                   what the peer's end needs in order to connect; the two ends swap cards
///   connect(peer's card)     or connect_all(lane, cards), if the order among a plan's ends matters
///   connected()              polled until it is true
// clang-format off
template <class C>
concept carded_channel = std::movable<C> && requires(C& c, const C& view, const std::string& card) {
    typename C::world_type;
    { view.index() } noexcept -> std::same_as<std::size_t>;
    { view.peer() } noexcept -> std::same_as<int>;
    { view.card() } -> std::same_as<std::string>;
    c.connect(card);                                  ///< local
    { c.connected() } noexcept -> std::same_as<bool>; ///< asked of all ends, then polled: connected, or trouble()
    { view.trouble() } -> std::same_as<std::string>;  ///< the transport's error message if it failed; else empty
};
// clang-format on

} // namespace halocline::comm
