// SPDX-License-Identifier: Apache-2.0
// How two ranks of a node connect: the higher rank connects to the lower one's listening Unix socket. The kernel tells
// each which process is at the other end, and both send the job's secret and their slab's descriptor.
#include "random_value.hpp"
#include "socket_plane.hpp"

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace halocline::comm {
namespace {

constexpr int look_ms = 20; // how often a failure record is checked while nothing arrives
constexpr int retry_ms = 1; // how often what the kernel refused for now is tried again

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

enum class sending { done, later, too_many_in_flight, failed };

sending send_hello(int socket, hello g, int slab) {
    envelope e(g);
    cmsghdr* c = CMSG_FIRSTHDR(&e.message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof slab);
    std::memcpy(CMSG_DATA(c), &slab, sizeof slab);
    if (sendmsg(socket, &e.message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(sizeof g))
        return sending::done;
    // Linux refuses to hold more descriptors of one user that were sent but not received than the user's RLIMIT_NOFILE.
    if (errno == ETOOMANYREFS) return sending::too_many_in_flight;
    return errno == EAGAIN || errno == EINTR ? sending::later : sending::failed;
}

/// The first bytes that the other side sent.
struct greeting {
    hello said;
    descriptor slab;            ///< none: the other side has ended, or is not who it should be
    bool nothing_yet = false;   ///< nothing has arrived so far
    bool slab_was_lost = false; ///< one arrived, for which this process has no descriptor
};

greeting receive_hello(int socket) {
    greeting g;
    envelope e(g.said);
    const ssize_t n = recvmsg(socket, &e.message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    g.nothing_yet = n < 0 && (errno == EAGAIN || errno == EINTR);
    for (cmsghdr* c = CMSG_FIRSTHDR(&e.message); n > 0 && c != nullptr; c = CMSG_NXTHDR(&e.message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
        g.slab = descriptor(fd);
    }
    const bool is_hello = n == static_cast<ssize_t>(sizeof g.said) && g.said.magic == hello{}.magic;
    g.slab_was_lost = is_hello && !g.slab && (e.message.msg_flags & MSG_CTRUNC) != 0;
    if (!is_hello) g.slab = descriptor();
    return g;
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
    name_ = "halocline-";
    for (const unsigned char c : random_value<std::array<unsigned char, 16>>())
        name_ += {"0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};
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
    near_connector(socket_plane& plane, unix_listener own, const std::vector<peer_address>& peers,
                   const std::string& secret);
    void connect_all();

  private:
    void connect_until_all_are();
    void connect_to_lower();
    void connect_to(link& l, const std::string& socket_name);
    void say_hellos();
    void say_hello(const link& l);
    void wait_for_events();
    void read_answers();
    void read_accepted();
    void identify(descriptor peer, const greeting& theirs);
    void accept_all();
    void look_for_dead();
    [[nodiscard]] bool has_ended(const link& l) const;
    /// Have both ends greeted each other?
    [[nodiscard]] bool is_done(const link& l) const { return said_[index(l)] && mapped_[index(l)]; }
    [[nodiscard]] bool awaits_hello(const link& l) const { return l.socket && !mapped_[index(l)]; }
    [[nodiscard]] bool is_from_job(const greeting& theirs) const;
    void answer_others();
    void map(const link& l, const greeting& theirs);
    [[nodiscard]] std::string how_missed(const link& l) const;
    void died(const link& l, std::string_view how = "");
    [[nodiscard]] std::size_t index(const link& l) const { return static_cast<std::size_t>(plane_.link_of_[l.rank]); }

    static constexpr const char *connecting = "the ranks of this node to connect",
                                *sending_slabs = "room to send its slab's descriptor (the user's limit 'ulimit -n' "
                                                 "also counts those that were sent but not yet received)";
    socket_plane& plane_;
    job_core& core_;
    unix_listener listener_;
    const std::vector<peer_address>& peers_;
    hello mine_;
    std::uint64_t since_ = ticks();
    const char* operation_ = connecting;
    bool must_retry_ = false;          // the kernel refused something for now
    std::vector<bool> said_, mapped_;  // by link: is this rank's hello sent, and is the peer's slab mapped?
    std::vector<descriptor> accepted_; // their ranks are not known yet
    std::vector<pollfd> polled_;       // the listener, the accepted ones, sockets that await a hello, processes
};

socket_plane::near_connector::near_connector(socket_plane& plane, unix_listener own,
                                             const std::vector<peer_address>& peers, const std::string& secret)
    : plane_(plane), core_(plane.core_), listener_(std::move(own)), peers_(peers), said_(plane.links_.size(), false),
      mapped_(plane.links_.size(), false) {
    mine_.rank = plane.rank_;
    std::copy_n(secret.begin(), std::min(secret.size(), mine_.secret.size()), mine_.secret.begin());
}

void socket_plane::near_connector::connect_all() {
    try {
        connect_until_all_are();
    } catch (const rank_failure&) {
        answer_others();
        throw;
    } catch (const error& e) { // this rank can't go on, which the others should not take for a death
        core_.publish(status::aborted, plane_.rank_, e.what());
        for (link& l : plane_.links_) l.process = descriptor(); // room to accept them, should that be what is lacking
        answer_others();
        throw;
    }
}

void socket_plane::near_connector::connect_until_all_are() {
    while (!std::ranges::all_of(plane_.links_, [this](const link& l) { return is_done(l); })) {
        must_retry_ = false;
        operation_ = connecting;
        connect_to_lower();
        say_hellos();
        wait_for_events();
        read_answers();
        read_accepted();
        accept_all();
        look_for_dead();
        core_.check_or_raise(-1, since_, operation_);
    }
}

/// The higher rank connects.
void socket_plane::near_connector::connect_to_lower() {
    for (const peer_address& p : peers_) {
        if (p.rank > plane_.rank_) continue;
        if (link& l = plane_.link_to(p.rank); !l.socket) connect_to(l, p.socket_name);
    }
}

void socket_plane::near_connector::connect_to(link& l, const std::string& socket_name) {
    descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) fail_system("cannot make a socket to " + core_.name_of(l.rank));
    socklen_t length = 0;
    const sockaddr_un a = address_of(socket_name, length);
    if (connect(socket.fd(), reinterpret_cast<const sockaddr*>(&a), length) != 0) {
        if (errno == ECONNREFUSED) died(l, how_missed(l));
        // EAGAIN: the backlog is full, which net.core.somaxconn may have made smaller than the number of ranks.
        if (errno != EAGAIN && errno != EINTR) fail_system("cannot connect to " + core_.name_of(l.rank));
        must_retry_ = true;
        return;
    }
    if (!is_process(socket.fd(), l.pid))
        throw error("the listening socket of " + core_.name_of(l.rank) +
                    " belongs to another process, or another user's: all ranks must be one user's");
    l.socket = std::move(socket);
}

void socket_plane::near_connector::say_hellos() {
    for (const link& l : plane_.links_)
        if (l.socket && !said_[index(l)]) say_hello(l);
}

/// Sends this rank's hello, now or when the kernel can take it.
void socket_plane::near_connector::say_hello(const link& l) {
    switch (send_hello(l.socket.fd(), mine_, core_.memory->fd())) {
    case sending::done: said_[index(l)] = true; return;
    case sending::too_many_in_flight: operation_ = sending_slabs; [[fallthrough]];
    case sending::later: must_retry_ = true; return;
    case sending::failed: break;
    }
    if (errno != EPIPE && errno != ECONNRESET) fail_system("cannot send to " + core_.name_of(l.rank));
    died(l);
}

void socket_plane::near_connector::wait_for_events() {
    polled_.assign(1, {listener_.fd(), POLLIN, 0});
    for (const descriptor& v : accepted_) polled_.push_back({v.fd(), POLLIN, 0});
    for (const link& l : plane_.links_)
        if (awaits_hello(l)) polled_.push_back({l.socket.fd(), POLLIN, 0});
    for (const link& l : plane_.links_)
        if (l.process && !is_done(l)) polled_.push_back({l.process.fd(), POLLIN, 0});
    poll(polled_.data(), polled_.size(), must_retry_ ? retry_ms : look_ms);
}

bool socket_plane::near_connector::is_from_job(const greeting& theirs) const {
    return theirs.said.secret == mine_.secret && (theirs.slab || theirs.slab_was_lost);
}

/// Reads the hellos of ranks to which this one connected.
void socket_plane::near_connector::read_answers() {
    const pollfd* of_link = polled_.data() + 1 + accepted_.size();
    for (const link& l : plane_.links_) {
        if (!awaits_hello(l) || (of_link++->revents & (POLLIN | POLLHUP)) == 0) continue;
        const greeting theirs = receive_hello(l.socket.fd());
        if (theirs.nothing_yet) continue;
        if (!is_from_job(theirs) || theirs.said.rank != l.rank) died(l);
        map(l, theirs);
    }
}

/// Reads the hellos of ranks that connected to this one.
void socket_plane::near_connector::read_accepted() {
    for (std::size_t v = accepted_.size(); v-- > 0;) {
        if (polled_[1 + v].revents == 0) continue;
        const greeting theirs = receive_hello(accepted_[v].fd());
        if (theirs.nothing_yet) continue;
        descriptor peer = std::move(accepted_[v]);
        accepted_.erase(accepted_.begin() + static_cast<std::ptrdiff_t>(v));
        identify(std::move(peer), theirs);
    }
}

/// Answers an expected rank. Anybody else is refused, by closing the descriptor.
void socket_plane::near_connector::identify(descriptor peer, const greeting& theirs) {
    const int rank = theirs.said.rank;
    if (!is_from_job(theirs) || rank <= plane_.rank_ || rank >= plane_.ranks_ || plane_.link_of_[rank] < 0) return;
    link& l = plane_.link_to(rank);
    if (mapped_[index(l)] || !is_process(peer.fd(), l.pid)) return;
    l.socket = std::move(peer);
    map(l, theirs);
    say_hello(l);
}

void socket_plane::near_connector::accept_all() {
    // Without a free descriptor accept4() fails even if nobody waits.
    for (pollfd waiting{listener_.fd(), POLLIN, 0}; poll(&waiting, 1, 0) > 0;) {
        descriptor peer(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!peer) {
            if (errno == EAGAIN) return;
            if (errno == EINTR || errno == ECONNABORTED) continue;
            fail_system("cannot accept the connections of the other ranks of this node");
        }
        constexpr int any = 0;
        if (is_process(peer.fd(), any)) accepted_.push_back(std::move(peer)); // else closed at once: another user's
    }
}

void socket_plane::near_connector::look_for_dead() {
    for (const link& l : plane_.links_)
        if (!is_done(l) && has_ended(l)) died(l, l.process ? "" : how_missed(l));
}

bool socket_plane::near_connector::has_ended(const link& l) const {
    if (!l.process) return l.pid != 0 && kill(l.pid, 0) != 0 && errno == ESRCH; // ended before it could be watched
    pollfd process{l.process.fd(), POLLIN, 0};
    return poll(&process, 1, 0) > 0;
}

/// Before this rank ends because another has died: lets those that have not connected to it yet do so and learn who
/// has died, because otherwise they would take this rank for the dead one.
void socket_plane::near_connector::answer_others() {
    const auto is_expected = [this](const link& l) { return l.rank > plane_.rank_ && !is_done(l) && !has_ended(l); };
    constexpr double patience = 0.4; // seconds
    for (const std::uint64_t begin = ticks(); seconds(ticks() - begin) < patience;) {
        if (std::ranges::none_of(plane_.links_, is_expected)) return;
        wait_for_events();
        try {
            read_accepted();
            accept_all();
            must_retry_ = false;
            say_hellos();
        } catch (const error&) { // this rank reports the first one
        }
        const job_end& end = *core_.memory->record().end();
        core_.publish(end.why, end.culprit, end.text); // to those that have connected since
    }
}

void socket_plane::near_connector::map(const link& l, const greeting& theirs) {
    if (theirs.slab_was_lost)
        throw error("the slab of " + core_.name_of(l.rank) +
                    " can't be received: this process has no descriptors left; raise 'ulimit -n'");
    core_.mappings.emplace_back(theirs.slab.fd(), core_.memory->bytes());
    core_.peer_base[l.rank] = core_.mappings.back().base();
    mapped_[index(l)] = true;
    if (const job_end* end = core_.record_of(l.rank).end())
        core_.publish(end->why, end->culprit, end->text); // before it is itself taken for dead
}

/// How to report a rank whose socket is not there, or whose process; "": it died. Boot and network namespace, by which
/// ranks are taken for those of one node, are also alike on virtual machines that were started from one snapshot.
std::string socket_plane::near_connector::how_missed(const link& l) const {
    if (l.socket || core_.members[l.rank].host == core_.members[core_.rank].host) return "";
    return "is not there: it died, or its host is another one with the same /proc/sys/kernel/random/boot_id, like a "
           "virtual machine of the same snapshot (then set HALOCLINE_NODE to another text on each host)";
}

void socket_plane::near_connector::died(const link& l, std::string_view how) {
    core_.publish(status::peer_died, l.rank, how);
    core_.check_or_raise(l.rank, since_, operation_);
}

void socket_plane::connect_near(unix_listener own, const std::vector<peer_address>& peers, const std::string& secret) {
    near_connector(*this, std::move(own), peers, secret).connect_all();
}

} // namespace halocline::comm
