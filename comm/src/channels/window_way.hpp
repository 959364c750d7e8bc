// SPDX-License-Identifier: Apache-2.0
// What window_end asks of the ways in which a window's messages travel.
#pragma once

#include "control/wire.hpp"

#include <halocline/comm/status.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

namespace halocline::comm {

inline constexpr std::uint64_t no_stamp = 0; ///< on a channel's messages: nobody asks when a window's sender began

/// One end of a window on one transport. Steps count from 1; token k is the receiver's word that it has begun step k.
template <class W>
concept window_way = requires(W& w, const W& fixed, wire_writer& own_card, wire_reader& card, int peer,
                              std::uint32_t id, std::uint64_t step, std::uint64_t token, std::byte* to,
                              const std::byte* from, std::size_t bytes, status& state) {
    // Set-up. tell() writes where the peer may write; connect() reads what the other end's tell() wrote. refuse(): both
    // ends refuse each other, and the peer never writes here. is_connected(): may this end write yet? `state` becomes
    // bad if that can't be found out any more.
    fixed.tell(own_card);
    w.connect(card, peer, id);
    w.refuse();
    { w.is_connected(state) } -> std::same_as<bool>;

    // Either end: has what it sent in that step left? Is the message, or token, of that step intact?
    { w.sent(step) } -> std::same_as<bool>;
    { w.check(step) } -> std::same_as<status>;

    // The sender: token_to_fill(step) permits writing at target(step), token_to_send(step) sending what is there; 0: none
    // is needed. has_token(): has it come?
    { fixed.token_to_fill(step) } -> std::same_as<std::uint64_t>;
    { fixed.token_to_send(step) } -> std::same_as<std::uint64_t>;
    { w.has_token(token) } -> std::same_as<bool>;
    // Where a message is written: by write(), a thread's part of it, or by copy(), all of it; pieces that the receiver
    // copies may follow until is_copied(). send_message() says that it is there.
    { w.target(step) } -> std::same_as<std::byte*>;
    w.write(to, from, bytes);
    w.copy(step, from, bytes);
    { w.is_copied(step, bytes) } -> std::same_as<bool>;
    w.send_message(step, bytes);
    // Called when a step begins, when it has ended, and before [to, to + bytes) is written for a step: to fetch lines, and to
    // measure how far away the peer is.
    w.step_begins(step);
    w.step_ended(step);
    w.look_for_peer(step, to, bytes);

    // The receiver: says that it has begun a step. Is that step's message here, or its sender gone? While it is not,
    // help() copies a part of it.
    w.send_token(step);
    { w.arrived(step) } -> std::same_as<bool>;
    w.help(step);
    // Where it is and how long; take() copies it to the user's buffer, unless it arrived there.
    { w.received(step) } -> std::same_as<const std::byte*>;
    { w.bytes(step) } -> std::same_as<std::size_t>;
    w.take(step, bytes);

    /// How the bytes go, for window::describe().
    { fixed.describe() } -> std::same_as<std::string>;
};

} // namespace halocline::comm
