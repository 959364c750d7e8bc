// SPDX-License-Identifier: Apache-2.0
// How the sockets between nodes come to be: the higher rank calls, the lower one opens.
#include "socket_plane.hpp"

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <cerrno>
#include <list>
#include <optional>
#include <sys/socket.h>

namespace halocline::comm {
namespace {

using clock_type = std::chrono::steady_clock;
constexpr auto stranger_time = std::chrono::seconds(2); // until a caller must have proved itself
constexpr std::size_t most_callers = 256;               // unproved at a time; the oldest makes room
constexpr auto ask_after = std::chrono::milliseconds(500);
constexpr int look_ms = 5;

/// An outgoing connection that this rank tries to make.
struct attempt {
    attempt(std::size_t to, bool asks) : peer(to), only_asks(asks) {}
    std::size_t peer; // position in the list of peers
    bool only_asks;   // whether somebody lives there
    descriptor socket{};
    std::optional<proof> proving{};
    clock_type::time_point since = clock_type::now(), next = since;
};

int error_of(int socket) {
    int error = 0;
    socklen_t n = sizeof error;
    return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &n) == 0 ? error : errno;
}

} // namespace

void socket_plane::connect_far(far_door door, const std::vector<far_address>& peers, const std::string& secret) {
    const std::string operation = "the ranks of other nodes to connect";
    const std::uint64_t since = ticks();
    std::list<attempt> attempts;
    std::list<proof> callers;
    std::vector<clock_type::time_point> asked(peers.size(), clock_type::now());
    std::size_t missing = peers.size();

    for (std::size_t i = 0; i < peers.size(); ++i) {
        link_of_[peers[i].rank] = static_cast<int>(links_.size());
        link& l = links_.emplace_back();
        l.rank = peers[i].rank;
        l.pid = core_.members[l.rank].pid;
        l.far = true;
        l.address = peers[i].door.substr(0, peers[i].door.find(' '));
        l.own_address = door.name().substr(0, door.name().find(' '));
        if (l.rank < rank_) attempts.emplace_back(i, false);
    }
    watch_all();
    const auto died = [&](int rank, const std::string& how) {
        core_.publish(status::peer_died, rank, how);
        core_.check_or_raise(rank, since, operation);
    };
    const auto established = [&](descriptor socket, int rank) {
        link& l = to(rank);
        watch_link(socket.fd(), core_.options.link_timeout);
        l.own_address = address_at(socket.fd(), true);
        l.socket = std::move(socket);
        --missing;
        watch_all();
    };
    const auto calls_already = [&](int rank) {
        return std::any_of(callers.begin(), callers.end(), [&](const proof& p) { return p.peer() == rank; });
    };

    std::vector<pollfd> polled;
    while (missing > 0) {
        polled.assign(1, {door.fd(), POLLIN, 0});
        for (const attempt& a : attempts) {
            const int fd = a.proving ? a.proving->fd() : a.socket.fd();
            polled.push_back({fd, static_cast<short>(a.proving ? POLLIN : POLLOUT), 0});
        }
        for (const proof& p : callers) polled.push_back({p.fd(), POLLIN, 0});
        poll(polled.data(), polled.size(), look_ms);
        const auto now = clock_type::now();

        for (auto a = attempts.begin(); a != attempts.end();) {
            const int rank = peers[a->peer].rank;
            if (!a->proving && !a->socket && now >= a->next) a->socket = call(peers[a->peer].door);
            if (!a->proving && a->socket) {
                pollfd p{a->socket.fd(), POLLOUT, 0};
                if (poll(&p, 1, 0) > 0) {
                    const int error = (p.revents & (POLLERR | POLLHUP)) != 0 ? error_of(a->socket.fd()) : 0;
                    if (error == ECONNREFUSED) died(rank, ""); // its door is open as long as it lives and waits
                    if (error != 0 || (p.revents & POLLHUP) != 0) {
                        a->socket = descriptor();
                        a->next = now + ask_after;
                    } else if (a->only_asks) {
                        asked[a->peer] = now;
                        a = attempts.erase(a);
                        continue;
                    } else {
                        a->proving.emplace(std::move(a->socket), secret, rank_, rank);
                        a->since = now;
                    }
                }
            }
            if (a->proving) {
                const proof::state s = a->proving->step();
                if (s == proof::state::done) {
                    established(a->proving->take(), rank);
                    a = attempts.erase(a);
                    continue;
                }
                if (s == proof::state::
                             refused) { // made room for another, or its process has ended: then the next call tells
                    a->proving.reset();
                    a->next = now + std::chrono::milliseconds(20);
                }
            } else if (now - a->since >= core_.options.link_timeout) {
                died(rank, core_.cut_link(rank, to(rank).own_address, to(rank).address));
            }
            ++a;
        }
        for (auto p = callers.begin(); p != callers.end();) {
            const proof::state s = p->step();
            const int rank = p->peer();
            const bool expected =
                rank > rank_ && rank < ranks_ && link_of_[rank] >= 0 && to(rank).far && !to(rank).socket;
            if (s == proof::state::done && expected) established(p->take(), rank);
            if (s != proof::state::going || now - p->since() >= stranger_time || (rank >= 0 && !expected)) {
                p = callers.erase(p);
            } else {
                ++p;
            }
        }
        for (int n = 0; n < 64; ++n) {
            descriptor caller = door.accept();
            if (!caller) break;
            if (callers.size() >= most_callers) callers.pop_front();
            callers.emplace_back(std::move(caller), secret, rank_);
        }
        // A caller that never comes may be dead, and nobody left on its node to say so: is its door still open?
        for (std::size_t i = 0; i < peers.size(); ++i) {
            const int rank = peers[i].rank;
            const bool asking =
                std::any_of(attempts.begin(), attempts.end(), [&](const attempt& a) { return a.peer == i; });
            if (rank < rank_ || to(rank).socket || asking || calls_already(rank) || now - asked[i] < ask_after)
                continue;
            attempts.emplace_back(i, true);
        }
        // One that has come in the meantime has closed its door.
        std::erase_if(attempts, [&](const attempt& a) {
            return a.only_asks && (to(peers[a.peer].rank).socket || calls_already(peers[a.peer].rank));
        });
        const auto late = std::find_if(links_.begin(), links_.end(), [](const link& l) { return !l.socket; });
        core_.check_or_raise(late == links_.end() ? -1 : late->rank, since, operation);
    }
}

} // namespace halocline::comm
