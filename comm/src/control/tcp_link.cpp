// SPDX-License-Identifier: Apache-2.0
#include "tcp_link.hpp"

#include "random_value.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <linux/sockios.h>
#include <linux/tcp.h> // libc's tcp_info ends before tcpi_snd_wnd
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace halocline::comm {
namespace {

constexpr std::array<char, 8> magic{'h', 'a', 'l', 'o', 'f', 'a', 'r', '1'};
constexpr std::string_view connector = "connector",
                           acceptor = "acceptor"; // roles, so that neither end can reuse the other's signature

constexpr char admission = '+'; // the last byte of the accepting end

using address_list = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

address_list numeric(const std::string& address, const std::string& port) {
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int code = getaddrinfo(address.c_str(), port.c_str(), &hints, &found); code != 0) {
        throw error("address '" + address + "' port '" + port + "': " + gai_strerror(code));
    }
    return {found, freeaddrinfo};
}

void no_delay(int socket) {
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::string numbers_of(const sockaddr_storage& a, socklen_t length, std::string* port) {
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> service{};
    if (getnameinfo(reinterpret_cast<const sockaddr*>(&a), length, host.data(), host.size(), service.data(),
                    service.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return "?";
    }
    if (port != nullptr) *port = service.data();
    return host.data();
}

/// How many bytes the other end takes beyond those that it has acknowledged. Linux tells since 5.4; before, this is
/// less than any buffer for reading.
std::size_t window_of(const auto& info, std::size_t bytes) {
    if constexpr (requires { info.tcpi_snd_wnd; }) {
        if (bytes >= offsetof(std::remove_cvref_t<decltype(info)>, tcpi_snd_wnd) + sizeof info.tcpi_snd_wnd)
            return info.tcpi_snd_wnd;
    }
    return 48 << 10;
}

} // namespace

tcp_listener::tcp_listener(const std::string& address, int backlog) {
    const address_list where = numeric(address, "0");
    socket_ = descriptor(::socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_storage bound{};
    socklen_t length = sizeof bound;
    if (!socket_ || bind(socket_.fd(), where->ai_addr, where->ai_addrlen) != 0 || listen(socket_.fd(), backlog) != 0 ||
        getsockname(socket_.fd(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
        fail_system("cannot listen on " + address + " for the ranks of other nodes");
    }
    std::string port;
    numbers_of(bound, length, &port);
    name_ = address + " " + port;
}

descriptor tcp_listener::accept() const {
    descriptor peer(accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (peer) no_delay(peer.fd());
    return peer;
}

descriptor connect_to(const std::string& listener_name) {
    const std::size_t space = listener_name.find(' ');
    if (space == std::string::npos) throw error("'" + listener_name + "' is no address and port");
    const address_list where = numeric(listener_name.substr(0, space), listener_name.substr(space + 1));
    descriptor s(::socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!s) fail_system("cannot make a socket to " + listener_name);
    no_delay(s.fd());
    // Immediate errors, such as an unreachable network, show up like later ones: the socket hangs up.
    [[maybe_unused]] const int under_way = ::connect(s.fd(), where->ai_addr, where->ai_addrlen);
    return s;
}

void watch_link(int socket, std::chrono::milliseconds patience) {
    // Probes are due at whole seconds after the last sign of life; the half second makes the one at `patience` count.
    const auto give_up = static_cast<unsigned>(std::max<long>(patience.count() - 500, 500));
    const int on = 1, second = 1, many = 100;
    setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up, sizeof give_up);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &second, sizeof second);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &second, sizeof second);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &many, sizeof many);
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

std::size_t room_on_link(int socket) {
    // This order: what is acknowledged in between, and not read yet, makes the result too small, never too large.
    int unacknowledged = 0;
    tcp_info info{};
    socklen_t bytes = sizeof info;
    if (ioctl(socket, SIOCOUTQ, &unacknowledged) != 0 ||
        getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) {
        return 1; // no such socket: sending will tell
    }
    const std::size_t window = window_of(info, bytes), used = static_cast<std::size_t>(std::max(unacknowledged, 0));
    return window > used ? window - used : 0;
}

void be_patient(int socket) {
    const unsigned by_default = 0;
    setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &by_default, sizeof by_default);
}

std::string address_at(int socket, bool own_end) {
    sockaddr_storage a{};
    socklen_t length = sizeof a;
    auto* const at = reinterpret_cast<sockaddr*>(&a);
    if ((own_end ? getsockname(socket, at, &length) : getpeername(socket, at, &length)) != 0) return "?";
    return numbers_of(a, length, nullptr);
}

authentication::authentication(descriptor socket, std::string_view secret, int own_rank, int peer)
    : socket_(std::move(socket)), secret_(secret), connects_(true), own_rank_(own_rank), peer_(peer) {}

authentication::authentication(descriptor socket, std::string_view secret, int own_rank)
    : socket_(std::move(socket)), secret_(secret), connects_(false), own_rank_(own_rank) {}

authentication::number authentication::signature(std::string_view role) const {
    std::string text(role);
    text.append(reinterpret_cast<const char*>(&hello_), sizeof hello_);
    text.append(reinterpret_cast<const char*>(answer_nonce_.data()), answer_nonce_.size());
    number out{};
    unsigned length = 0;
    if (HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data(), &length) == nullptr ||
        length != out.size()) {
        throw error("libcrypto has no HMAC-SHA-256");
    }
    return out;
}

/// True once all bytes have arrived.
bool authentication::receive(void* to, std::size_t bytes) {
    while (came_ < bytes) {
        const ssize_t n = ::recv(socket_.fd(), incoming_.data() + came_, bytes - came_, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return false;
        if (n <= 0) {
            broken_ = true;
            return false;
        }
        came_ += static_cast<std::size_t>(n);
    }
    std::memcpy(to, incoming_.data(), bytes);
    came_ = 0;
    return true;
}

/// A fresh connection has room for these few bytes.
bool authentication::send(const void* from, std::size_t bytes) {
    if (::send(socket_.fd(), from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes)) return true;
    broken_ = true;
    return false;
}

bool authentication::is_signature(const number& signed_by_peer, std::string_view role) const {
    const number expected = signature(role);
    return CRYPTO_memcmp(signed_by_peer.data(), expected.data(), expected.size()) == 0;
}

authentication::state authentication::step() {
    const state s = connects_ ? step_of_connector() : step_of_acceptor();
    return broken_ ? state::refused : s;
}

bool authentication::admit() { return send(&admission, sizeof admission); }

/// Sends the hello; checks the signature that answers it, signs in turn, and waits to be admitted.
authentication::state authentication::step_of_connector() {
    if (!said_hello_) {
        hello_ = {magic, own_rank_, peer_, random_value<number>()};
        if (!send(&hello_, sizeof hello_)) return state::going;
        said_hello_ = true;
    }
    if (!has_signed_) {
        struct {
            number nonce, signature;
        } answer{};
        if (!receive(&answer, sizeof answer)) return state::going;
        answer_nonce_ = answer.nonce;
        if (!is_signature(answer.signature, acceptor)) return state::refused;
        const number mine = signature(connector);
        if (!send(mine.data(), mine.size())) return state::going;
        has_signed_ = true;
    }
    char last = 0;
    if (!receive(&last, sizeof last)) return state::going;
    return last == admission ? state::done : state::refused;
}

/// Answers the hello with a signature; checks the one that the connecting end then sends.
authentication::state authentication::step_of_acceptor() {
    static_assert(sizeof(hello_message) <= sizeof incoming_);
    if (!said_hello_) {
        if (!receive(&hello_, sizeof hello_)) return state::going;
        if (hello_.magic != magic || hello_.to != own_rank_ || hello_.from < 0) return state::refused;
        peer_ = hello_.from;
        answer_nonce_ = random_value<number>();
        const std::array<number, 2> answer{answer_nonce_, signature(acceptor)};
        if (!send(answer.data(), sizeof answer)) return state::going;
        said_hello_ = true;
    }
    number theirs{};
    if (!receive(theirs.data(), sizeof theirs)) return state::going;
    return is_signature(theirs, connector) ? state::done : state::refused;
}

} // namespace halocline::comm
