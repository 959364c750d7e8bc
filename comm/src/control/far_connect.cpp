// SPDX-License-Identifier: Apache-2.0
// How two ranks of different nodes connect: the higher rank connects, the lower one listens (tcp_link.hpp).
#include "socket_plane.hpp"

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <list>
#include <optional>
#include <sys/socket.h>
#include <utility>

namespace halocline::comm {
namespace {

using clock_type = std::chrono::steady_clock;
constexpr auto time_to_authenticate = std::chrono::seconds(2);
/// Unauthenticated connections at a time, besides one per missing rank; a new one displaces the oldest.
constexpr std::size_t most_strangers = 256;
constexpr auto probe_after = std::chrono::milliseconds(500);
// The kernel would repeat a SYN dropped by a full backlog only after 1, 3 and 7 s.
constexpr auto reconnect_after = std::chrono::milliseconds(200);
/// A turn takes longer only if this process, or its machine, was stopped. Times that others are given don't count then.
constexpr auto longest_turn = std::chrono::milliseconds(250);
constexpr int look_ms = 5;

int error_of(int socket) {
    int error = 0;
    socklen_t n = sizeof error;
    return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &n) == 0 ? error : errno;
}

} // namespace

/// Connects this rank with those of other nodes.
class socket_plane::far_connector {
  public:
    far_connector(socket_plane& plane, tcp_listener own, const std::vector<far_address>& peers,
                  const std::string& secret);
    void connect_all();
    /// Before this rank gives up: lets those that have not joined it yet do so and learn why. Otherwise they would take
    /// this rank, which stops listening, for the dead one.
    void tell_others();

  private:
    using time = clock_type::time_point;
    /// An attempt to connect to a peer.
    struct attempt {
        attempt(std::size_t to, bool is_probe) : peer(to), only_probes(is_probe) {}
        std::size_t peer;     // position in peers_
        bool only_probes;     // only whether the peer still listens
        bool is_held = false; // the peer's kernel holds the other end of a probe
        descriptor socket{};
        std::optional<authentication> handshake{};
        time since = clock_type::now(), next = since, started{};
    };

    void wait_for_events();
    void forgive(clock_type::duration pause);
    void look_at_held(attempt& probe, time now);
    bool advance(attempt& a, time now);
    bool connected(attempt& a, time now);
    bool authenticated(attempt& a, time now);
    bool read(authentication& peer, time now);
    void accept_all();
    void probe_silent_peers(time now);
    void drop_needless_probes();
    void check_job();

    void joined(int rank, descriptor socket);
    void died(int rank, const std::string& how);

    static constexpr const char* operation = "the ranks of other nodes to connect";
    socket_plane& plane_;
    job_core& core_;
    tcp_listener listener_;
    const std::vector<far_address>& peers_;
    const std::string& secret_;
    std::uint64_t since_ = ticks();
    std::list<attempt> attempts_;
    std::list<authentication> accepted_;
    time probes_due_ = clock_type::now() + probe_after;
    bool probes_ = false;
    std::size_t missing_;
    std::vector<pollfd> polled_;
};

socket_plane::far_connector::far_connector(socket_plane& plane, tcp_listener own, const std::vector<far_address>& peers,
                                           const std::string& secret)
    : plane_(plane), core_(plane.core_), listener_(std::move(own)), peers_(peers), secret_(secret),
      missing_(peers.size()) {
    for (std::size_t i = 0; i < peers.size(); ++i) {
        plane.link_of_[peers[i].rank] = static_cast<int>(plane.links_.size());
        link& l = plane.links_.emplace_back();
        l.rank = peers[i].rank;
        l.pid = core_.members[l.rank].pid;
        l.far = true;
        l.received.reserve(4096); // see socket_plane::receive()
        l.address = peers[i].endpoint.substr(0, peers[i].endpoint.find(' '));
        l.own_address = listener_.name().substr(0, listener_.name().find(' '));
        if (l.rank < plane.rank_) attempts_.emplace_back(i, false);
    }
    plane.watch_all();
}

void socket_plane::far_connector::connect_all() {
    const awaiting_scope waits(core_);
    time turn = clock_type::now();
    while (missing_ > 0) {
        wait_for_events();
        const time now = clock_type::now();
        if (const auto took = now - std::exchange(turn, now); took > longest_turn) forgive(took);
        for (auto a = attempts_.begin(); a != attempts_.end();)
            a = advance(*a, now) ? attempts_.erase(a) : std::next(a);
        for (auto c = accepted_.begin(); c != accepted_.end();) c = read(*c, now) ? accepted_.erase(c) : std::next(c);
        accept_all();
        probe_silent_peers(now);
        drop_needless_probes();
        check_job();
    }
}

void socket_plane::far_connector::tell_others() {
    const job_end* const end = core_.memory->record().end();
    if (end == nullptr) return;
    std::erase_if(attempts_, [](const attempt& a) { return a.only_probes; });
    const auto is_expected = [end](const link& l) {
        return l.far && !l.socket && (end->why != status::peer_died || l.rank != end->culprit);
    };
    constexpr auto patience = std::chrono::milliseconds(400);
    const time begin = clock_type::now();
    for (time now = begin; now - begin < patience; now = clock_type::now()) {
        if (std::ranges::none_of(plane_.links_, is_expected)) return;
        const auto is_over = [&](attempt& a) {
            try {
                return advance(a, now);
            } catch (const error&) { // this rank reports the first one
                return true;
            }
        };
        for (auto a = attempts_.begin(); a != attempts_.end();) a = is_over(*a) ? attempts_.erase(a) : std::next(a);
        for (auto c = accepted_.begin(); c != accepted_.end();) c = read(*c, now) ? accepted_.erase(c) : std::next(c);
        accept_all();
        wait_for_events();
    }
}

void socket_plane::far_connector::wait_for_events() {
    polled_.assign(1, {listener_.fd(), POLLIN, 0});
    for (const attempt& a : attempts_) {
        const int fd = a.handshake ? a.handshake->fd() : a.socket.fd();
        if (fd < 0) continue; // poll() refuses more entries than the process may have descriptors
        polled_.push_back({fd, static_cast<short>(a.handshake || a.is_held ? POLLIN : POLLOUT), 0});
    }
    for (const authentication& p : accepted_) polled_.push_back({p.fd(), POLLIN, 0});
    poll(polled_.data(), polled_.size(), look_ms);
}

void socket_plane::far_connector::forgive(clock_type::duration pause) {
    for (attempt& a : attempts_) {
        a.since += pause;
        a.started += pause;
    }
    for (authentication& c : accepted_) c.forgive(pause);
}

/// Advances the attempt as far as possible now.  Returns true if it is over.
bool socket_plane::far_connector::advance(attempt& a, time now) {
    const int rank = peers_[a.peer].rank;
    if (a.is_held) {
        look_at_held(a, now);
        return false;
    }
    if (!a.handshake && connected(a, now)) {
        watch_link(a.socket.fd(), core_.options.link_timeout);
        if (a.only_probes) {
            a.is_held = true;
            return false;
        }
        a.handshake.emplace(std::move(a.socket), secret_, plane_.rank_, rank);
        a.since = now;
    }
    if (a.handshake) return authenticated(a, now);
    if (now - a.since >= core_.options.link_timeout) {
        died(rank, core_.cut_link(rank, plane_.link_to(rank).own_address, plane_.link_to(rank).address));
    }
    return false;
}

/// Connects, and retries after failures; true once the kernel of the other side has accepted.
bool socket_plane::far_connector::connected(attempt& a, time now) {
    if (!a.socket && now >= a.next) {
        try {
            a.socket = connect_to(peers_[a.peer].endpoint);
        } catch (const error&) { // strangers may hold the descriptors to spare, for a while
            if (!a.only_probes) throw;
            a.since = now;
            a.next = now + probe_after;
        }
        a.started = now;
    }
    if (!a.socket) return false;
    pollfd p{a.socket.fd(), POLLOUT, 0};
    if (poll(&p, 1, 0) <= 0) {
        if (now - a.started >= reconnect_after) a.socket = descriptor();
        return false;
    }
    const int error = (p.revents & (POLLERR | POLLHUP)) != 0 ? error_of(a.socket.fd()) : 0;
    if (error == 0 && (p.revents & POLLHUP) == 0) return true;
    a.socket = descriptor();
    if (error == ECONNREFUSED) died(peers_[a.peer].rank, ""); // a living rank listens until all others have joined it
    a.next = now + probe_after;
    return false;
}

/// True once both ends are authenticated, and the other one has taken the connection.
bool socket_plane::far_connector::authenticated(attempt& a, time now) {
    const authentication::state s = a.handshake->step();
    if (s == authentication::state::done) {
        joined(peers_[a.peer].rank, a.handshake->take());
        return true;
    }
    if (s == authentication::state::refused) {
        // Displaced by another, too late because this process was stopped, or the peer's process or link has ended: the
        // next attempt will show.
        a.handshake.reset();
        a.since = now;
        a.next = now + std::chrono::milliseconds(20);
    }
    return false;
}

/// Reads from an accepted connection.  Returns true if there is nothing more to read.
bool socket_plane::far_connector::read(authentication& peer, time now) {
    const authentication::state s = peer.step();
    const int rank = peer.peer();
    const bool expected = rank > plane_.rank_ && rank < plane_.ranks_ && plane_.link_of_[rank] >= 0 &&
                          plane_.link_to(rank).far && !plane_.link_to(rank).socket;
    if (s == authentication::state::done && expected && peer.admit()) joined(rank, peer.take());
    return s != authentication::state::going || now - peer.since() >= time_to_authenticate || (rank >= 0 && !expected);
}

void socket_plane::far_connector::accept_all() {
    for (int n = 0; n < 64; ++n) {
        descriptor peer = listener_.accept();
        if (!peer) return;
        watch_link(peer.fd(), core_.options.link_timeout);
        if (accepted_.size() >= missing_ + most_strangers) accepted_.pop_front();
        accepted_.emplace_back(std::move(peer), secret_, plane_.rank_);
    }
}

/// A higher rank that never connects may be dead, with nobody left on its node to report it. So hold a connection to its
/// listener, which the kernel ends with the rank. One only: those that a stopped rank does not accept fill its backlog,
/// behind which it can't be told from a dead one.
void socket_plane::far_connector::probe_silent_peers(time now) {
    if (probes_ || now < probes_due_) return;
    probes_ = true;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        const int rank = peers_[i].rank;
        if (rank > plane_.rank_ && !plane_.link_to(rank).socket) attempts_.emplace_back(i, true);
    }
}

/// A living rank also closes a probe, which never says who it is: after a while, or to make room. A new one shows.
void socket_plane::far_connector::look_at_held(attempt& probe, time now) {
    pollfd p{probe.socket.fd(), POLLIN, 0};
    if (poll(&p, 1, 0) <= 0) return;
    probe.socket = descriptor();
    probe.is_held = false;
    probe.since = now;
    probe.next = now + probe_after;
}

/// A rank that has joined may have stopped listening.
void socket_plane::far_connector::drop_needless_probes() {
    std::erase_if(attempts_,
                  [&](const attempt& a) { return a.only_probes && plane_.link_to(peers_[a.peer].rank).socket; });
}

/// Err: rank_failure: the job has failed, or its deadline has passed.
void socket_plane::far_connector::check_job() {
    const auto& links = plane_.links_;
    const auto late = std::find_if(links.begin(), links.end(), [](const link& l) { return !l.socket; });
    if (late != links.end()) core_.awaits(late->rank);
    core_.check_or_raise(late == links.end() ? -1 : late->rank, since_, operation);
}

void socket_plane::far_connector::joined(int rank, descriptor socket) {
    link& l = plane_.link_to(rank);
    l.own_address = address_at(socket.fd(), true);
    l.socket = std::move(socket);
    --missing_;
    plane_.watch_all();
    if (const job_end* const end = core_.memory->record().end()) plane_.tell(l, frame_kind::end_of_job, frame_of(*end));
}

void socket_plane::far_connector::died(int rank, const std::string& how) {
    core_.publish(status::peer_died, rank, how);
    core_.check_or_raise(rank, since_, operation);
}

void socket_plane::connect_far(tcp_listener own, const std::vector<far_address>& peers, const std::string& secret) {
    far_connector connector(*this, std::move(own), peers, secret);
    try {
        connector.connect_all();
    } catch (const rank_failure&) {
        connector.tell_others();
        throw;
    } catch (const error& e) { // this rank can't go on, which the others should not take for a death
        core_.publish(status::aborted, rank_, e.what());
        connector.tell_others();
        throw;
    }
}

void socket_plane::tell_end(tcp_listener own, const std::vector<far_address>& peers, const std::string& secret) {
    far_connector(*this, std::move(own), peers, secret).tell_others();
}

} // namespace halocline::comm
