// SPDX-License-Identifier: Apache-2.0
// What every transport's channel can do: the interface that the lanes of a channel_set share, by shape and not by base
// class. A channel joins one end here with one end at a peer, both directions, two slots per direction.
//
// Epochs count 1, 2, 3, … Fill target(k), send(k); received(k) may be read once arrived(k), until this rank's
// send(k+1).
#pragma once

#include <halocline/comm/control_line.hpp>
#include <halocline/comm/status.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

namespace halocline::comm {

/// Connecting may block, allocate and throw (channel_set does it); every member is noexcept and allocation-free.
/// C::transport is its name in options and reports; C::path how a message travels: "self", "direct" (written in place
/// by the sender) or "packed".
// (clang-format 14 would tear the requirements apart.)
// clang-format off
template <class C>
concept channel = std::movable<C> && requires(C& c, const C& view, std::uint64_t epoch, std::uint64_t stamp) {
    { view.index() } noexcept -> std::same_as<std::size_t>;   ///< position of its request in the set
    { view.peer() } noexcept -> std::same_as<int>;            ///< rank at the other end
    { c.target(epoch) } noexcept -> std::same_as<std::byte*>; ///< where the payload goes, 64-byte aligned (immediate: 16)
    { c.send(epoch, stamp) } noexcept;                        ///< publish: all of this epoch is in target(epoch)
    { c.sent(epoch) } noexcept -> std::same_as<bool>;         ///< may target(epoch) be filled again?
    { c.arrived(epoch) } noexcept -> std::same_as<bool>;      ///< has the peer's epoch come, or its farewell?
    { c.check(epoch) } noexcept -> std::same_as<status>;      ///< what came is what the plan says.  Pre: arrived(epoch)
    { c.received(epoch) } noexcept -> std::same_as<const std::byte*>;
    { view.header(epoch) } noexcept -> std::convertible_to<const message_label&>; ///< that came with it
};
// clang-format on

/// A channel between memories that the two ranks can't both map. Each rank makes its end in its world of that
/// transport, the ends' cards cross, then each end connects to the other: C(world, memory, index, peer, plan id, send
/// bytes, receive bytes), complete(world, plan id) where a transport has something to make for all of a plan's ends,
/// card(), connect(peer's card) (connect_all(lane, cards) where the order among a plan's ends matters), connected().
/// Channels without cards are joined through mapped slabs.
// clang-format off
template <class C>
concept carded_channel = channel<C> && requires(C& c, const C& view, const std::string& card) {
    typename C::world_type;
    { view.card() } -> std::same_as<std::string>;
    c.connect(card);                                  ///< local
    { c.connected() } noexcept -> std::same_as<bool>; ///< asked of all, then of each until true: reached, or trouble()
    { view.trouble() } -> std::same_as<std::string>;  ///< what the transport said when it failed; else empty
};
// clang-format on

} // namespace halocline::comm
