// SPDX-License-Identifier: Apache-2.0
// The raw limit of a network that uses TCP: the same messages through one socket on loopback, without a library. Both
// ends poll, like all contenders here, and know what to expect: no frames, no matching.
#pragma once

#include "../support/huge_pages.hpp"
#include "../support/rounds.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory_resource>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <vector>

namespace halocline::bench::p2p {

class socket_endpoint {
  public:
    /// Collective.  Err: error, on both ranks.
    explicit socket_endpoint(const comm::job& j) : job_(j) {
        int listener = -1;
        j.collectively([&] {
            if (rank() == 0) listener = listen_on_loopback();
        });
        const std::string port = j.broadcast(std::to_string(listener < 0 ? 0 : port_of(listener)));
        j.collectively([&] {
            socket_ = rank() == 0 ? accept4(listener, nullptr, nullptr, SOCK_CLOEXEC) : connect_to(std::stoi(port));
            if (socket_ < 0) fail("connection");
            const int on = 1;
            if (setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("TCP_NODELAY");
        });
        if (listener >= 0) close(listener);
    }
    ~socket_endpoint() { close(socket_); }
    socket_endpoint(const socket_endpoint&) = delete;
    socket_endpoint& operator=(const socket_endpoint&) = delete;

    [[nodiscard]] int rank() const { return job_.rank(); }
    std::byte* out(std::size_t bytes) { return of(out_, bytes); }
    std::byte* in(std::size_t bytes) { return of(in_, bytes); }
    std::vector<double> slowest(const std::vector<double>& mine) { return bench::slowest(job_, mine); }
    void send(const std::byte* p, std::size_t n) { move(p, n, nullptr, 0); }
    const std::byte* recv(std::byte* p, std::size_t n) {
        move(nullptr, 0, p, n);
        return p;
    }
    const std::byte* exchange(const std::byte* out, std::byte* in, std::size_t n) {
        move(out, n, in, n);
        return in;
    }

  private:
    [[noreturn]] static void fail(const char* what) {
        throw error(std::string("TCP socket on loopback: ") + what + ": " + std::strerror(errno));
    }
    static sockaddr_in loopback(int port) {
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        a.sin_port = htons(static_cast<std::uint16_t>(port));
        return a;
    }
    static int listen_on_loopback() {
        const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const sockaddr_in any = loopback(0);
        const timeval longest{.tv_sec = 10, .tv_usec = 0}; // for accept: the other rank may have failed
        setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
        if (s < 0 || bind(s, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 || listen(s, 1) != 0)
            fail("listen");
        return s;
    }
    static int port_of(int listener) {
        sockaddr_in a{};
        socklen_t size = sizeof a;
        if (getsockname(listener, reinterpret_cast<sockaddr*>(&a), &size) != 0) fail("getsockname");
        return ntohs(a.sin_port);
    }
    static int connect_to(int port) {
        const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const sockaddr_in peer = loopback(port);
        if (s < 0 || connect(s, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) fail("connect");
        return s;
    }
    /// Both directions at once, as far as the socket's buffers permit.
    void move(const std::byte* out, std::size_t to_send, std::byte* in, std::size_t to_receive) {
        while (to_send > 0 || to_receive > 0) {
            if (to_send > 0) {
                const ssize_t n = ::send(socket_, out, to_send, MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n < 0 && errno != EAGAIN) fail("send");
                if (n > 0) {
                    out += n;
                    to_send -= static_cast<std::size_t>(n);
                }
            }
            if (to_receive > 0) {
                const ssize_t n = ::recv(socket_, in, to_receive, MSG_DONTWAIT);
                if (n == 0) throw error("TCP socket on loopback: the other rank has closed it");
                if (n < 0 && errno != EAGAIN) fail("recv");
                if (n > 0) {
                    in += n;
                    to_receive -= static_cast<std::size_t>(n);
                }
            }
        }
    }
    static std::byte* of(std::pmr::vector<std::byte>& b, std::size_t n) {
        if (b.size() < n) b.resize(n);
        return b.data();
    }

    comm::job job_;
    int socket_ = -1;
    huge_memory memory_;
    std::pmr::vector<std::byte> out_{&memory_}, in_{&memory_};
};

} // namespace halocline::bench::p2p
