// SPDX-License-Identifier: Apache-2.0
// How two ranks of different nodes connect: the higher rank calls, the lower one listens (far_door.hpp).
#include "socket_plane.hpp"

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <list>
#include <optional>
#include <sys/socket.h>

namespace halocline::comm {
namespace {

using clock_type = std::chrono::steady_clock;
constexpr auto stranger_time = std::chrono::seconds(2); // until a caller must have proved itself
constexpr std::size_t most_callers = 256;               // unproved at a time; the oldest makes room
constexpr auto ask_after = std::chrono::milliseconds(500);
// A call that a door crowded by strangers has dropped would be repeated by the kernel after 1, 3 and 7 s only.
constexpr auto call_again_after = std::chrono::milliseconds(200);
constexpr int look_ms = 5;

int error_of(int socket) {
    int error = 0;
    socklen_t n = sizeof error;
    return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &n) == 0 ? error : errno;
}

} // namespace

/// Connects this rank with those of other nodes.
class socket_plane::far_greeting {
  public:
    far_greeting(socket_plane& plane, far_door door, const std::vector<far_address>& peers, const std::string& secret);
    void meet_all();

  private:
    using time = clock_type::time_point;
    /// An attempt to connect to a peer.
    struct attempt {
        attempt(std::size_t to, bool asks) : peer(to), only_asks(asks) {}
        std::size_t peer; // position in peers_
        bool only_asks;   // whether somebody lives there
        descriptor socket{};
        std::optional<proof> proving{};
        time since = clock_type::now(), next = since, called{};
    };

    void sleep_until_something_comes();
    bool advance(attempt& a, time now);
    bool reached(attempt& a, time now);
    bool proved(attempt& a, time now);
    bool hear(proof& caller, time now);
    void let_callers_in();
    void ask_after_silent_callers(time now);
    void drop_needless_questions();
    void check_job();

    void met(int rank, descriptor socket);
    void died(int rank, const std::string& how);
    [[nodiscard]] bool calls_already(int rank) const;

    static constexpr const char* operation = "the ranks of other nodes to connect";
    socket_plane& plane_;
    job_core& core_;
    far_door door_;
    const std::vector<far_address>& peers_;
    const std::string& secret_;
    std::uint64_t since_ = ticks();
    std::list<attempt> attempts_;
    std::list<proof> callers_;
    std::vector<time> asked_; // by position in peers_: when last somebody was seen to live there
    std::size_t missing_;
    std::vector<pollfd> polled_;
};

socket_plane::far_greeting::far_greeting(socket_plane& plane, far_door door, const std::vector<far_address>& peers,
                                         const std::string& secret)
    : plane_(plane), core_(plane.core_), door_(std::move(door)), peers_(peers), secret_(secret),
      asked_(peers.size(), clock_type::now()), missing_(peers.size()) {
    for (std::size_t i = 0; i < peers.size(); ++i) {
        plane.link_of_[peers[i].rank] = static_cast<int>(plane.links_.size());
        link& l = plane.links_.emplace_back();
        l.rank = peers[i].rank;
        l.pid = core_.members[l.rank].pid;
        l.far = true;
        l.raw.reserve(4096); // see socket_plane::read()
        l.address = peers[i].door.substr(0, peers[i].door.find(' '));
        l.own_address = door_.name().substr(0, door_.name().find(' '));
        if (l.rank < plane.rank_) attempts_.emplace_back(i, false);
    }
    plane.watch_all();
}

void socket_plane::far_greeting::meet_all() {
    while (missing_ > 0) {
        sleep_until_something_comes();
        const time now = clock_type::now();
        for (auto a = attempts_.begin(); a != attempts_.end();)
            a = advance(*a, now) ? attempts_.erase(a) : std::next(a);
        for (auto c = callers_.begin(); c != callers_.end();) c = hear(*c, now) ? callers_.erase(c) : std::next(c);
        let_callers_in();
        ask_after_silent_callers(now);
        drop_needless_questions();
        check_job();
    }
}

void socket_plane::far_greeting::sleep_until_something_comes() {
    polled_.assign(1, {door_.fd(), POLLIN, 0});
    for (const attempt& a : attempts_) {
        const int fd = a.proving ? a.proving->fd() : a.socket.fd();
        polled_.push_back({fd, static_cast<short>(a.proving ? POLLIN : POLLOUT), 0});
    }
    for (const proof& p : callers_) polled_.push_back({p.fd(), POLLIN, 0});
    poll(polled_.data(), polled_.size(), look_ms);
}

/// Takes the attempt as far as it goes now.  Returns true if it is over.
bool socket_plane::far_greeting::advance(attempt& a, time now) {
    const int rank = peers_[a.peer].rank;
    if (!a.proving && reached(a, now)) {
        if (a.only_asks) {
            asked_[a.peer] = now;
            return true;
        }
        a.proving.emplace(std::move(a.socket), secret_, plane_.rank_, rank);
        a.since = now;
    }
    if (a.proving) return proved(a, now);
    if (now - a.since >= core_.options.link_timeout) {
        died(rank, core_.cut_link(rank, plane_.to(rank).own_address, plane_.to(rank).address));
    }
    return false;
}

/// Calls, again if that failed; true if the other side has accepted.
bool socket_plane::far_greeting::reached(attempt& a, time now) {
    if (!a.socket && now >= a.next) {
        a.socket = call(peers_[a.peer].door);
        a.called = now;
    }
    if (!a.socket) return false;
    pollfd p{a.socket.fd(), POLLOUT, 0};
    if (poll(&p, 1, 0) <= 0) {
        if (now - a.called >= call_again_after) a.socket = descriptor();
        return false;
    }
    const int error = (p.revents & (POLLERR | POLLHUP)) != 0 ? error_of(a.socket.fd()) : 0;
    if (error == ECONNREFUSED) died(peers_[a.peer].rank, ""); // its door is open as long as it lives and waits
    if (error == 0 && (p.revents & POLLHUP) == 0) return true;
    a.socket = descriptor();
    a.next = now + ask_after;
    return false;
}

/// True if both ends have proved themselves.
bool socket_plane::far_greeting::proved(attempt& a, time now) {
    const proof::state s = a.proving->step();
    if (s == proof::state::done) {
        met(peers_[a.peer].rank, a.proving->take());
        return true;
    }
    if (s == proof::state::refused) { // made room for another, or its process has ended: then the next call tells
        a.proving.reset();
        a.next = now + std::chrono::milliseconds(20);
    }
    return false;
}

/// Reads from a caller.  Returns true if there is nothing more to read.
bool socket_plane::far_greeting::hear(proof& caller, time now) {
    const proof::state s = caller.step();
    const int rank = caller.peer();
    const bool expected = rank > plane_.rank_ && rank < plane_.ranks_ && plane_.link_of_[rank] >= 0 &&
                          plane_.to(rank).far && !plane_.to(rank).socket;
    if (s == proof::state::done && expected) met(rank, caller.take());
    return s != proof::state::going || now - caller.since() >= stranger_time || (rank >= 0 && !expected);
}

void socket_plane::far_greeting::let_callers_in() {
    for (int n = 0; n < 64; ++n) {
        descriptor caller = door_.accept();
        if (!caller) return;
        if (callers_.size() >= most_callers) callers_.pop_front();
        callers_.emplace_back(std::move(caller), secret_, plane_.rank_);
    }
}

/// A caller that never comes may be dead, with nobody left on its node to say so. So ask whether its door is still
/// open.
void socket_plane::far_greeting::ask_after_silent_callers(time now) {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        const int rank = peers_[i].rank;
        const bool asking =
            std::any_of(attempts_.begin(), attempts_.end(), [&](const attempt& a) { return a.peer == i; });
        if (rank < plane_.rank_ || plane_.to(rank).socket || asking || calls_already(rank) ||
            now - asked_[i] < ask_after)
            continue;
        attempts_.emplace_back(i, true);
    }
}

/// A rank that has connected in the meantime has closed its door.
void socket_plane::far_greeting::drop_needless_questions() {
    std::erase_if(attempts_, [&](const attempt& a) {
        const int rank = peers_[a.peer].rank;
        return a.only_asks && (plane_.to(rank).socket || calls_already(rank));
    });
}

/// Err: rank_failure: the job has failed, or its deadline has passed.
void socket_plane::far_greeting::check_job() {
    const auto& links = plane_.links_;
    const auto late = std::find_if(links.begin(), links.end(), [](const link& l) { return !l.socket; });
    core_.check_or_raise(late == links.end() ? -1 : late->rank, since_, operation);
}

void socket_plane::far_greeting::met(int rank, descriptor socket) {
    link& l = plane_.to(rank);
    watch_link(socket.fd(), core_.options.link_timeout);
    l.own_address = address_at(socket.fd(), true);
    l.socket = std::move(socket);
    --missing_;
    plane_.watch_all();
}

void socket_plane::far_greeting::died(int rank, const std::string& how) {
    core_.publish(status::peer_died, rank, how);
    core_.check_or_raise(rank, since_, operation);
}

bool socket_plane::far_greeting::calls_already(int rank) const {
    return std::any_of(callers_.begin(), callers_.end(), [&](const proof& p) { return p.peer() == rank; });
}

void socket_plane::connect_far(far_door door, const std::vector<far_address>& peers, const std::string& secret) {
    far_greeting(*this, std::move(door), peers, secret).meet_all();
}

} // namespace halocline::comm
