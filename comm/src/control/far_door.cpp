// SPDX-License-Identifier: Apache-2.0
#include "far_door.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <sys/socket.h>

namespace halocline::comm {
namespace {

constexpr std::array<char, 8> magic{'h', 'a', 'l', 'o', 'f', 'a', 'r', '1'};

[[noreturn]] void fail_system(const std::string& what) { throw error(what + ": " + std::strerror(errno)); }

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

} // namespace

far_door::far_door(const std::string& address, int backlog) {
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

descriptor far_door::accept() const {
    descriptor caller(accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (caller) no_delay(caller.fd());
    return caller;
}

descriptor call(const std::string& door_name) {
    const std::size_t space = door_name.find(' ');
    if (space == std::string::npos) throw error("'" + door_name + "' is no address and port");
    const address_list where = numeric(door_name.substr(0, space), door_name.substr(space + 1));
    descriptor s(::socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!s) fail_system("cannot make a socket to " + door_name);
    no_delay(s.fd());
    // Errors that come at once, such as an unreachable network, are seen like the later ones: the socket hangs up.
    [[maybe_unused]] const int under_way = ::connect(s.fd(), where->ai_addr, where->ai_addrlen);
    return s;
}

void watch_link(int socket, std::chrono::milliseconds patience) {
    // Probes are due at whole seconds since the last sign of life; the half second makes the one at `patience` count.
    const auto give_up = static_cast<unsigned>(std::max<long>(patience.count() - 500, 500));
    const int on = 1, second = 1, many = 100;
    setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up, sizeof give_up);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &second, sizeof second);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &second, sizeof second);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &many, sizeof many);
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

std::string address_at(int socket, bool own_end) {
    sockaddr_storage a{};
    socklen_t length = sizeof a;
    auto* const at = reinterpret_cast<sockaddr*>(&a);
    if ((own_end ? getsockname(socket, at, &length) : getpeername(socket, at, &length)) != 0) return "?";
    return numbers_of(a, length, nullptr);
}

proof::proof(descriptor socket, std::string_view secret, int own_rank, int peer)
    : socket_(std::move(socket)), secret_(secret), calls_(true), own_rank_(own_rank), peer_(peer) {}

proof::proof(descriptor socket, std::string_view secret, int own_rank)
    : socket_(std::move(socket)), secret_(secret), calls_(false), own_rank_(own_rank) {}

proof::number proof::signature(std::string_view role) const {
    std::string text(role);
    text.append(reinterpret_cast<const char*>(&hello_), sizeof hello_);
    text.append(reinterpret_cast<const char*>(answer_.data()), answer_.size());
    number out{};
    unsigned length = 0;
    if (HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data(), &length) == nullptr ||
        length != out.size()) {
        throw error("libcrypto has no HMAC-SHA-256");
    }
    return out;
}

/// True once all of it is there.
bool proof::receive(void* to, std::size_t bytes) {
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
bool proof::send(const void* from, std::size_t bytes) {
    if (::send(socket_.fd(), from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes)) return true;
    broken_ = true;
    return false;
}

proof::state proof::step() {
    static_assert(sizeof(hello_message) <= sizeof incoming_);
    const auto fresh = [](number& n) {
        if (getrandom(n.data(), n.size(), 0) != static_cast<ssize_t>(n.size())) fail_system("getrandom");
    };
    const auto verdict = [&] { return broken_ ? state::refused : state::going; };
    number theirs{};
    if (calls_) {
        if (step_ == 0) {
            hello_ = {magic, own_rank_, peer_, {}};
            fresh(hello_.nonce);
            if (!send(&hello_, sizeof hello_)) return verdict();
            step_ = 1;
        }
        std::array<number, 2> answer{};
        if (!receive(answer.data(), sizeof answer)) return verdict();
        answer_ = answer[0];
        const number expected = signature("door");
        if (CRYPTO_memcmp(answer[1].data(), expected.data(), expected.size()) != 0) return state::refused;
        const number mine = signature("caller");
        return send(mine.data(), mine.size()) ? state::done : state::refused;
    }
    if (step_ == 0) {
        if (!receive(&hello_, sizeof hello_)) return verdict();
        if (hello_.magic != magic || hello_.to != own_rank_ || hello_.from < 0) return state::refused;
        peer_ = hello_.from;
        fresh(answer_);
        const std::array<number, 2> answer{answer_, signature("door")};
        if (!send(answer.data(), sizeof answer)) return verdict();
        step_ = 1;
    }
    if (!receive(theirs.data(), sizeof theirs)) return verdict();
    const number expected = signature("caller");
    return CRYPTO_memcmp(theirs.data(), expected.data(), expected.size()) == 0 ? state::done : state::refused;
}

} // namespace halocline::comm
