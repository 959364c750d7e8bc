// SPDX-License-Identifier: Apache-2.0
// How two ranks of a node connect: the higher rank connects to the lower one's listening Unix socket. The kernel tells
// each which process is at the other end, and both send the job's secret and their slab's descriptor.
#include "socket_plane.hpp"

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace halocline::comm {
namespace {

constexpr int look_ms = 20; // how often a failure record is checked while nothing arrives

/// First bytes on a connection, each way; the slab's descriptor travels with them.
struct hello {
    std::array<char, 8> magic{'h', 'a', 'l', 'o', 'c', 'l', '0', '1'};
    std::int32_t rank = -1;
    std::array<char, 32> secret{};
};

sockaddr_un address_of(const std::string& name, socklen_t& length) {
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    std::memcpy(a.sun_path + 1, name.data(), name.size()); // the leading 0 means the abstract namespace
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return a;
}

/// A hello with room for a descriptor, as sendmsg and recvmsg take them.
struct envelope {
    explicit envelope(hello& g) : part{&g, sizeof g} {
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
    }
    envelope(const envelope&) = delete;
    envelope& operator=(const envelope&) = delete;

    iovec part;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
};

bool send_hello(int socket, hello g, int slab) {
    envelope e(g);
    cmsghdr* c = CMSG_FIRSTHDR(&e.message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof slab);
    std::memcpy(CMSG_DATA(c), &slab, sizeof slab);
    return sendmsg(socket, &e.message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof g);
}

/// The slab's descriptor, or none if the other side is not who it should be.
descriptor receive_hello(int socket, hello& g) {
    envelope e(g);
    const ssize_t n = recvmsg(socket, &e.message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    descriptor slab;
    for (cmsghdr* c = CMSG_FIRSTHDR(&e.message); n > 0 && c != nullptr; c = CMSG_NXTHDR(&e.message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
        slab = descriptor(fd);
    }
    if (n != static_cast<ssize_t>(sizeof g) || g.magic != hello{}.magic) return descriptor();
    return slab;
}

/// Compares the user and the process at the other end, as reported by the kernel. `pid` 0: of another pid namespace,
/// for which the kernel also reports 0.
bool is_process(int socket, int pid) {
    ucred who{};
    socklen_t n = sizeof who;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &n) != 0) return false;
    return who.uid == geteuid() && (who.pid == pid || who.pid == 0 || pid == 0);
}

} // namespace

unix_listener::unix_listener(int backlog) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    if (!socket_) fail_system("cannot make a socket for the ranks of this node");
    std::array<unsigned char, 16> noise{};
    if (getrandom(noise.data(), noise.size(), 0) != static_cast<ssize_t>(noise.size())) fail_system("getrandom");
    name_ = "halocline-";
    for (const unsigned char c : noise) name_ += {"0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};
    socklen_t length = 0;
    const sockaddr_un a = address_of(name_, length);
    if (bind(socket_.fd(), reinterpret_cast<const sockaddr*>(&a), length) != 0 ||
        listen(socket_.fd(), std::max(backlog, 16)) != 0) {
        fail_system("cannot listen for the ranks of this node");
    }
}

/// Connects this rank with the others of its node.
class socket_plane::near_connector {
  public:
    near_connector(socket_plane& plane, unix_listener own, const std::string& secret);
    void connect_all(const std::vector<peer_address>& peers);

  private:
    void connect_until_all_are();
    void connect_to(link& l, const std::string& socket_name);
    void wait_for_events();
    void read_answers();
    void read_accepted();
    void identify(descriptor peer);
    void accept_all();
    void look_for_dead();
    [[nodiscard]] bool has_ended(const link& l) const;
    void answer_others();
    void connected(const link& l, const descriptor& slab);
    void died(const link& l);
    [[nodiscard]] std::size_t index(const link& l) const { return static_cast<std::size_t>(plane_.link_of_[l.rank]); }

    static constexpr const char* operation = "the ranks of this node to connect";
    socket_plane& plane_;
    job_core& core_;
    unix_listener listener_;
    hello mine_;
    std::uint64_t since_ = ticks();
    std::vector<bool> connected_; // by link: is its slab mapped?
    std::size_t missing_;
    std::vector<descriptor> accepted_; // their ranks are not known yet
    std::vector<pollfd> polled_;       // the listener, the accepted ones, then socket and process of each link
};

socket_plane::near_connector::near_connector(socket_plane& plane, unix_listener own, const std::string& secret)
    : plane_(plane), core_(plane.core_), listener_(std::move(own)), connected_(plane.links_.size(), false),
      missing_(plane.links_.size()) {
    mine_.rank = plane.rank_;
    std::copy_n(secret.begin(), std::min(secret.size(), mine_.secret.size()), mine_.secret.begin());
}

void socket_plane::near_connector::connect_all(const std::vector<peer_address>& peers) {
    try {
        // The higher rank connects; the backlog has room for all of them, so that nobody waits here.
        for (const peer_address& p : peers) {
            if (p.rank < plane_.rank_) connect_to(plane_.link_to(p.rank), p.socket_name);
        }
        connect_until_all_are();
    } catch (const rank_failure&) {
        answer_others();
        throw;
    }
}

void socket_plane::near_connector::connect_until_all_are() {
    while (missing_ > 0) {
        wait_for_events();
        read_answers();
        read_accepted();
        accept_all();
        look_for_dead();
        core_.check_or_raise(-1, since_, operation);
    }
}

void socket_plane::near_connector::connect_to(link& l, const std::string& socket_name) {
    l.socket = descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!l.socket) fail_system("cannot make a socket to " + core_.name_of(l.rank));
    socklen_t length = 0;
    const sockaddr_un a = address_of(socket_name, length);
    if (connect(l.socket.fd(), reinterpret_cast<const sockaddr*>(&a), length) == 0) {
        if (!is_process(l.socket.fd(), l.pid))
            throw error("the listening socket of " + core_.name_of(l.rank) +
                        " belongs to another process, or another user's: all ranks must be one user's");
        if (send_hello(l.socket.fd(), mine_, core_.memory->fd())) return;
    }
    if (errno != ECONNREFUSED && errno != EPIPE && errno != ECONNRESET) {
        fail_system("cannot connect to " + core_.name_of(l.rank));
    }
    died(l);
}

void socket_plane::near_connector::wait_for_events() {
    polled_.assign(1, {listener_.fd(), POLLIN, 0});
    for (const descriptor& v : accepted_) polled_.push_back({v.fd(), POLLIN, 0});
    for (const link& l : plane_.links_) {
        polled_.push_back({connected_[index(l)] ? -1 : l.socket.fd(), POLLIN, 0});
        polled_.push_back({connected_[index(l)] ? -1 : l.process.fd(), POLLIN, 0});
    }
    poll(polled_.data(), polled_.size(), look_ms);
}

/// Reads the hellos of ranks to which this one connected.
void socket_plane::near_connector::read_answers() {
    const pollfd* const of_links = polled_.data() + 1 + accepted_.size();
    for (const link& l : plane_.links_) {
        if (connected_[index(l)] || !l.socket) continue;
        if ((of_links[2 * index(l)].revents & (POLLIN | POLLHUP)) == 0) continue;
        hello theirs;
        const descriptor slab = receive_hello(l.socket.fd(), theirs);
        if (!slab || theirs.rank != l.rank || theirs.secret != mine_.secret) died(l);
        connected(l, slab);
    }
}

/// Reads the hellos of ranks that connected to this one.
void socket_plane::near_connector::read_accepted() {
    for (std::size_t v = accepted_.size(); v-- > 0;) {
        if (polled_[1 + v].revents == 0) continue;
        descriptor peer = std::move(accepted_[v]);
        accepted_.erase(accepted_.begin() + static_cast<std::ptrdiff_t>(v));
        identify(std::move(peer));
    }
}

/// Answers an expected rank. Anybody else is refused, by closing the descriptor.
void socket_plane::near_connector::identify(descriptor peer) {
    hello theirs;
    const descriptor slab = receive_hello(peer.fd(), theirs);
    const bool known = slab && theirs.secret == mine_.secret && theirs.rank > plane_.rank_ &&
                       theirs.rank < plane_.ranks_ && plane_.link_of_[theirs.rank] >= 0;
    if (!known) return;
    link& l = plane_.link_to(theirs.rank);
    if (connected_[index(l)] || !is_process(peer.fd(), l.pid)) return;
    l.socket = std::move(peer);
    const bool answered = send_hello(l.socket.fd(), mine_, core_.memory->fd());
    connected(l, slab);
    if (!answered) died(l);
}

void socket_plane::near_connector::accept_all() {
    while (true) {
        descriptor peer(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!peer) return;
        constexpr int any = 0;
        if (is_process(peer.fd(), any)) accepted_.push_back(std::move(peer)); // else closed at once: another user's
    }
}

void socket_plane::near_connector::look_for_dead() {
    for (const link& l : plane_.links_)
        if (!connected_[index(l)] && has_ended(l)) died(l);
}

bool socket_plane::near_connector::has_ended(const link& l) const {
    if (!l.process) return l.pid != 0 && kill(l.pid, 0) != 0 && errno == ESRCH; // ended before it could be watched
    pollfd process{l.process.fd(), POLLIN, 0};
    return poll(&process, 1, 0) > 0;
}

/// Before this rank ends because another has died: lets those that have not connected to it yet do so and learn who
/// has died, because otherwise they would take this rank for the dead one.
void socket_plane::near_connector::answer_others() {
    const auto is_expected = [this](const link& l) {
        return l.rank > plane_.rank_ && !connected_[index(l)] && !has_ended(l);
    };
    constexpr double patience = 0.4; // seconds
    for (const std::uint64_t begin = ticks(); seconds(ticks() - begin) < patience;) {
        if (std::ranges::none_of(plane_.links_, is_expected)) return;
        wait_for_events();
        try {
            read_accepted();
            accept_all();
        } catch (const rank_failure&) { // the one that this rank reports already
        }
        const end_words& end = *core_.memory->record().end();
        core_.publish(end.why, end.culprit, end.text); // to those that have connected since
    }
}

void socket_plane::near_connector::connected(const link& l, const descriptor& slab) {
    core_.mappings.emplace_back(slab.fd(), core_.memory->bytes());
    core_.peer_base[l.rank] = core_.mappings.back().base();
    connected_[index(l)] = true;
    --missing_;
    const auto& theirs = *reinterpret_cast<const failure_record*>(core_.peer_base[l.rank]);
    if (const end_words* end = theirs.end())
        core_.publish(end->why, end->culprit, end->text); // before it is itself taken for dead
}

void socket_plane::near_connector::died(const link& l) {
    core_.publish(status::peer_died, l.rank, "");
    core_.check_or_raise(l.rank, since_, operation);
}

void socket_plane::connect_near(unix_listener own, const std::vector<peer_address>& peers, const std::string& secret) {
    near_connector(*this, std::move(own), secret).connect_all(peers);
}

} // namespace halocline::comm
