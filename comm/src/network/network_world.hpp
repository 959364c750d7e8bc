// SPDX-License-Identifier: Apache-2.0
// What a channel over a network requires of its world, and of the end that the world opened for it: the members that
// ofi_world, verbs_world and mpi_world have in common.
#pragma once

#include "network_end.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>

namespace halocline::comm {

/// A network_end, with what its world knows about messages.
template <class End>
concept network_world_end = std::derived_from<End, network_end> && requires(const End& end, std::uint64_t epoch) {
    { end.has(epoch) } -> std::same_as<bool>;      ///< is the peer's message of that epoch here?
    { end.has_room() } -> std::same_as<bool>;      ///< may a message be handed to the library?
    { end.over() } -> std::same_as<bool>;          ///< has everything arrived that the peer will ever send?
    { end.greeting_done() } -> std::same_as<bool>; ///< has this end's greeting left?
};

// clang-format off
/// A rank's place on a network. A failure after set-up becomes the end's `error`.
template <class World, class End>
concept network_world = network_world_end<End> &&
    requires(World& world, End& end, const End& same, std::pmr::memory_resource& memory, int peer,
             std::uint32_t plan_id, std::size_t bytes, std::uint64_t epoch, const std::string& peer_card) {
    { world.open(memory, peer, plan_id, bytes, bytes) } -> std::same_as<End&>; ///< for payloads of n bytes, out and in
    { world.card(same) } -> std::same_as<std::string>;     ///< what the other end needs to connect
    world.connect(end, peer_card);
    { world.greet(end) } noexcept;                         ///< sends the first message, which proves the connection
    { world.send(end, epoch, bytes) } noexcept;            ///< label and payload.  Pre: end.has_room()
    { world.poll(end) } noexcept;                          ///< notes what has arrived and what has left
    { world.say_farewell(end) } noexcept;                  ///< sends the last message
    { world.release(end) } noexcept;                       ///< the channel is gone; the end goes once its peer is done
    { world.describe(same) } -> std::same_as<std::string>; ///< the text for its `error`
};

/// A network that can also write from field to field or from array to array, in addition to the labels.
template <class World, class End>
concept direct_network_world = network_world<World, End> &&
    requires(World& world, End& end, const End& same, std::span<const direct_write> writes, std::uint64_t epoch) {
    world.open_values(end, writes);                        ///< what each message writes.  Pre: the end has its fields
    { world.send_values(end) } noexcept;                   ///< values.writes, never more than in open_values()
    { same.values_gone() } -> std::same_as<bool>;          ///< have the values of the last message left?
    { same.has_values(epoch) } -> std::same_as<bool>;      ///< have those of the peer's message of that epoch arrived?
    { same.values_came[epoch & 1] } -> std::convertible_to<std::uint64_t>; ///< that have arrived, by epoch parity
    { same.parts_came[epoch & 1] } -> std::convertible_to<std::uint64_t>;  ///< of messages shorter than planned
    { End::counted_values(epoch) } -> std::same_as<std::uint64_t>; ///< what a message of n writes adds to these
};
// clang-format on

} // namespace halocline::comm
