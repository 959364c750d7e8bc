// SPDX-License-Identifier: Apache-2.0
// How ranks of different nodes connect: a TCP port that is open during set-up only, and a mutual proof, by HMAC-SHA-256
// over fresh random numbers, that both ends know the job's secret. The connecting end is done only when the accepting
// one has taken the connection, which it may also drop. Connections are authenticated, but not encrypted.
#pragma once

#include "descriptor.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace halocline::comm {

/// A socket that listens for connections from other nodes.
class tcp_listener {
  public:
    /// Listens on a free port of `address`, and on no other address.  Err: error.
    tcp_listener(const std::string& address, int backlog);
    /// Address and port: "10.1.0.7 40123".
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] int fd() const { return socket_.fd(); }
    /// The next connection, non-blocking; an empty descriptor if there is none.
    [[nodiscard]] descriptor accept() const;

  private:
    descriptor socket_;
    std::string name_;
};

/// Begins to connect to the listener of this name. The socket becomes writable on success, or has an error.
/// Err: error.
descriptor connect_to(const std::string& listener_name);
/// Makes the kernel declare the link dead, with ETIMEDOUT or an unreachable host, once the other kernel has been silent
/// for `patience`. It probes once a second while nothing is sent. The kernel still answers for a stopped or busy
/// process; but silent is also one that has no room for what waits to be sent, whatever it answers: see room_on_link().
void watch_link(int socket, std::chrono::milliseconds patience);
/// How many bytes the link takes now such that all of them travel at once, and none waits in this kernel for the process
/// at the other end to read. No event tells when there is more room.
std::size_t room_on_link(int socket);
/// What waits to be sent may wait for longer than watch_link() said: for a process that is stopped.
void be_patient(int socket);
/// The address of either end of a socket, "10.1.0.7"; "?" if it can't be found.
std::string address_at(int socket, bool own_end);

/// One end's part in the mutual authentication of a connection. It never blocks, and reads at most 80 bytes before the
/// other end has proved its identity.
class authentication {
  public:
    enum class state { going, done, refused };

    /// The connecting end: states its own rank, and the one it wants.
    authentication(descriptor socket, std::string_view secret, int own_rank, int peer);
    /// The accepting end.
    authentication(descriptor socket, std::string_view secret, int own_rank);

    /// Proceeds as far as the bytes that have arrived allow.
    state step();
    /// The accepting end takes the connection: only this makes the connecting end `done`.  False: it is broken.
    /// Pre: `done`.
    bool admit();
    [[nodiscard]] int fd() const { return socket_.fd(); }
    /// The other rank: as claimed while `going`, proved when `done`; -1 if it has not said yet.
    [[nodiscard]] int peer() const { return peer_; }
    [[nodiscard]] std::chrono::steady_clock::time_point since() const { return since_; }
    /// This process did not run for so long: that does not count as time that the other end took.
    void forgive(std::chrono::steady_clock::duration pause) { since_ += pause; }
    descriptor take() { return std::move(socket_); }

  private:
    static constexpr std::size_t number_bytes = 32;
    using number = std::array<unsigned char, number_bytes>;
    struct hello_message {
        std::array<char, 8> magic;
        std::int32_t from, to;
        number nonce;
    };
    state step_of_connector();
    state step_of_acceptor();
    /// HMAC of the role and both ends' nonces.
    [[nodiscard]] number signature(std::string_view role) const;
    [[nodiscard]] bool is_signature(const number& signed_by_peer, std::string_view role) const;
    bool receive(void* to, std::size_t bytes);
    bool send(const void* from, std::size_t bytes);

    descriptor socket_;
    std::string secret_;
    bool connects_;
    int own_rank_, peer_ = -1;
    bool said_hello_ = false; // or answered it
    bool has_signed_ = false; // the connecting end
    hello_message hello_{};
    number answer_nonce_{}; // the accepting end's
    std::array<unsigned char, 2 * number_bytes> incoming_{};
    std::size_t came_ = 0; // bytes received of the current message
    bool broken_ = false;
    std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

} // namespace halocline::comm
