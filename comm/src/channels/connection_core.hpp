// SPDX-License-Identifier: Apache-2.0
// What a connection's handle and its windows share.
#pragma once

#include <halocline/comm/connection.hpp>
#include <halocline/comm/element_type.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace halocline::comm {

class window_end;

/// One end of a window, as requested by the user.
struct window_request {
    bool sends = false;
    element_type element{};
    std::size_t count = 0;
    std::byte* buffer = nullptr; // the user's; nullptr: the channel's slots are the buffer

    [[nodiscard]] std::size_t bytes() const noexcept { return element.bytes * count; }
    [[nodiscard]] std::size_t bytes_out() const noexcept { return sends ? bytes() : 0; }
    [[nodiscard]] std::size_t bytes_in() const noexcept { return sends ? 0 : bytes(); }
};

/// The kinds of letters that a connection's ends exchange. Those of windows are about the n-th send or receive window of
/// their sender.
enum class letter_kind : char {
    window_counts = 'c',          ///< in the n-th call of connect()
    send_card = 's',              ///< the card of a send window
    receive_card = 'r',           ///< the card of a receive window
    send_connected = 'S',         ///< over verbs, where the other end must not write before
    receive_connected = 'R',      ///< likewise
    send_never_connected = 'g',   ///< destroyed before it was connected, so it says no farewell
    receive_never_connected = 'G' ///< likewise
};
constexpr letter_kind card_of(bool sends) { return sends ? letter_kind::send_card : letter_kind::receive_card; }
constexpr letter_kind connected(bool sends) {
    return sends ? letter_kind::send_connected : letter_kind::receive_connected;
}
constexpr letter_kind never_connected(bool sends) {
    return sends ? letter_kind::send_never_connected : letter_kind::receive_never_connected;
}

class connection_core {
  public:
    connection_core(const comm::job& j, int to, connection_options o);
    ~connection_core();
    connection_core(const connection_core&) = delete;
    connection_core& operator=(const connection_core&) = delete;

    /// "connection 'x-low' of rank 0 with rank 1"
    [[nodiscard]] std::string title() const;
    /// The key of a letter written by this end; peers_key(): by the peer.
    [[nodiscard]] std::string own_key(letter_kind kind, std::uint32_t n) const;
    [[nodiscard]] std::string peers_key(letter_kind kind, std::uint32_t n) const;
    void send_letter(letter_kind kind, std::uint32_t n, const std::string& body);
    /// The number by which both ends identify the n-th send or receive window in the labels of its messages.
    [[nodiscard]] std::uint32_t agreed_id(bool outgoing, std::uint32_t n) const;

    comm::job job;
    int peer;
    connection_options options;
    std::uint32_t ordinal;              // among the connections to this peer with these tags
    std::uint32_t connects = 0;         // calls of connect()
    std::vector<window_end*> windows;   // not connected yet, in the order in which they were made
    std::uint32_t sends = 0, recvs = 0; // windows ever made
    bool was_refused = false;           // a call of connect()
};

} // namespace halocline::comm
