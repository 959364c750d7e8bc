// SPDX-License-Identifier: Apache-2.0
#include "socket_plane.hpp"

#include "descriptor.hpp"
#include "job/process_look.hpp"
#include "wire.hpp"

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <optional>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace halocline::comm {
namespace {

/// How often failure records are checked while nothing arrives over sockets.
constexpr int look_every_ms = 20;
/// How often a link is asked whether its other end has read, for which there is no event.
constexpr int room_every_ms = 1;
/// The longest wait, when this rank closes its job, for each peer to take the goodbye.
constexpr int goodbye_patience_ms = 200;
constexpr std::string_view lost_descriptors =
    "its program closed the job's descriptors, which it had not opened (closefrom(), or a loop of close()), or became "
    "another program (exec())";

} // namespace

socket_plane::socket_plane(job_core& core, unix_listener own, const std::vector<peer_address>& peers,
                           const std::string& secret)
    : pairwise_mail(core.rank, core.ranks), core_(core), link_of_(static_cast<std::size_t>(core.ranks), -1) {
    for (const peer_address& p : peers) {
        link_of_[p.rank] = static_cast<int>(links_.size());
        link& l = links_.emplace_back();
        l.rank = p.rank;
        l.pid = p.pid;
        if (p.pid != 0) l.process = descriptor(static_cast<int>(syscall(SYS_pidfd_open, p.pid, 0)));
        // Older kernels, and a rank of another pid namespace: only the socket is watched. ESRCH: it is dead already,
        // which connect_near() finds out.
    }
    connect_near(std::move(own), peers, secret);
    watch_all();
}

/// Only what is open: poll() refuses more entries than the process may have descriptors, even if they name none.
void socket_plane::watch_all() {
    watched_.clear();
    watched_links_.clear();
    const auto add = [this](const link& l, const descriptor& d, int events) {
        if (l.gone || !d) return;
        watched_.push_back({d.fd(), static_cast<short>(events), 0});
        watched_links_.push_back(static_cast<int>(&l - links_.data()));
    };
    for (const link& l : links_) add(l, l.socket, l.far ? POLLIN : POLLRDHUP);
    for (const link& l : links_) add(l, l.process, POLLIN);
}

void socket_plane::leave_to_parent() noexcept {
    for (link& l : links_) {
        l.socket = descriptor();
        l.process = descriptor();
        l.gone = l.goodbye = true;
    }
    watched_.clear();
    watched_links_.clear();
    is_child_ = true;
}

socket_plane::~socket_plane() { say_goodbye(); }

void socket_plane::say_goodbye() noexcept {
    const std::unique_lock lock = lock_at_exit(mutex_); // the watchdog may just be looking
    if (!lock) return;
    const std::chrono::milliseconds patience(std::uncaught_exceptions() > 0 ? 0 : goodbye_patience_ms);
    for (link& l : links_) {
        if (l.gone || !l.socket || std::exchange(l.told_goodbye, true)) continue;
        if (l.far) be_patient(l.socket.fd()); // the kernel keeps what this process can't wait to deliver
        send_frame(l, frame_kind::goodbye, {});
        pollfd p{l.socket.fd(), POLLOUT, 0};
        if (!l.unsent.empty() && poll_in_spite_of_signals({&p, 1}, patience) > 0) write_unsent(l);
    }
}

const socket_plane::link* socket_plane::find(int rank) const noexcept {
    const int i = link_of_[rank];
    return i < 0 ? nullptr : &links_[i];
}

socket_plane::link& socket_plane::link_to(int rank) {
    if (rank < 0 || rank >= ranks_ || find(rank) == nullptr)
        throw job_error("rank " + std::to_string(rank_) + " has no connection to rank " + std::to_string(rank));
    return links_[link_of_[rank]];
}

bool socket_plane::left(int rank) const noexcept {
    const std::lock_guard lock(mutex_);
    const link* const l = find(rank);
    return l != nullptr && l->goodbye && l->messages.empty() && l->heard_messages == 0;
}

/// The kernel takes what waits for a peer's window to open for a sign that the peer is lost (watch_link()). So mail for
/// one that computes, or is stopped, waits here. The last words don't: afterwards the link need not last.
void socket_plane::write_unsent(link& l) {
    const std::size_t before = l.unsent.size();
    l.held_back = false;
    while (!l.unsent.empty()) {
        std::size_t bytes = l.unsent.size();
        if (must_hold_back(l)) bytes = std::min(bytes, room_on_link(l.socket.fd()));
        l.held_back = bytes == 0;
        if (l.held_back) break;
        const ssize_t n = ::send(l.socket.fd(), l.unsent.data(), bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno != EAGAIN) l.unsent.remove(l.unsent.size()); // the reader is gone: reading will show how
        if (n < 0) break;
        l.unsent.remove(static_cast<std::size_t>(n));
    }
    if (before > large_mail) l.mail_moved += before - l.unsent.size();
}

void socket_plane::send_frame(link& l, frame_kind kind, std::string_view body) {
    append_frame(l.unsent.bytes(), kind, body);
    write_unsent(l);
}

void socket_plane::tell(link& l, frame_kind kind, std::string_view body) {
    if (l.far && !l.gone && l.socket) send_frame(l, kind, body);
}

std::vector<pollfd> socket_plane::ends() const {
    const std::lock_guard lock(mutex_);
    std::vector<pollfd> all;
    for (const link& l : links_) {
        if (l.gone) continue;
        all.push_back({l.socket.fd(), POLLRDHUP, 0});
        if (l.process) all.push_back({l.process.fd(), POLLIN, 0});
    }
    return all;
}

void socket_plane::send_letter(int peer, std::string_view text) {
    const std::lock_guard lock(mutex_);
    send_frame(link_to(peer), frame_kind::letter, text);
}

std::optional<letter> socket_plane::take_letter() {
    const std::lock_guard lock(mutex_);
    look();
    polled_.clear();
    for (const link& l : links_) polled_.push_back({l.gone ? -1 : l.socket.fd(), POLLIN, 0});
    poll(polled_.data(), polled_.size(), 0);
    std::optional<letter> first;
    for (std::size_t i = 0; i < links_.size(); ++i) {
        link& l = links_[i];
        if (polled_[i].revents != 0) receive(l);
        take_mail(l);
        if (!l.unsent.empty()) write_unsent(l);
        if (first || l.letters.empty()) continue;
        first = letter{l.rank, std::move(l.letters.front())};
        l.letters.pop_front();
    }
    return first;
}

void socket_plane::receive(link& l) {
    if (l.gone) return;
    std::array<char, 65536> buffer;
    std::size_t came = 0;
    while (true) {
        const ssize_t n = ::recv(l.socket.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        const int error = n < 0 ? errno : 0;
        if (error == EINTR) continue;
        if (n > 0) {
            l.received.append(buffer.data(), static_cast<std::size_t>(n));
            came += static_cast<std::size_t>(n);
            continue;
        }
        hear(l);
        if (l.received.size() > l.heard_bytes) l.mail_moved += came;
        if (error != EAGAIN) note_end(l, error);
        return;
    }
}

void socket_plane::hear(link& l) {
    while (const std::optional<socket_frame> f = first_frame(std::string_view(l.received).substr(l.heard_bytes))) {
        l.heard_bytes += f->bytes;
        wire_reader body(f->body);
        switch (f->kind) {
        case frame_kind::message: ++l.heard_messages; break;
        case frame_kind::letter: break;
        case frame_kind::goodbye: l.goodbye = true; break;
        case frame_kind::end_of_job: {
            const auto why = body.number<status>();
            const int culprit = body.number<std::int32_t>();
            core_.publish(why, culprit >= 0 && culprit < ranks_ ? culprit : -1, body.text());
            break;
        }
        case frame_kind::far_word: {
            const auto word = body.number<far_word>();
            if (word == far_word::awake) l.awaits = false;
            if (word == far_word::are_you_awake) l.owes = owes_ = true; // answered in look(), once this rank waits
            core_.stall_reports.heard(l.rank, word, body.number<std::int32_t>());
            break;
        }
        }
    }
}

void socket_plane::take_mail(link& l) {
    if (l.heard_bytes == 0) return;
    for (std::string_view heard(l.received.data(), l.heard_bytes); !heard.empty();) {
        const socket_frame f = *first_frame(heard);
        heard.remove_prefix(f.bytes);
        if (is_mail(f.kind)) (f.kind == frame_kind::letter ? l.letters : l.messages).emplace_back(f.body);
    }
    l.received.erase(0, l.heard_bytes);
    l.heard_bytes = l.heard_messages = 0;
}

bool socket_plane::lives_on(const link& l) noexcept {
    constexpr std::chrono::milliseconds patience(500); // a dying process closes its sockets first
    if (l.far || !l.process) return false;
    pollfd p{l.process.fd(), POLLIN, 0};
    if (poll_in_spite_of_signals({&p, 1}, patience) != 0) return false;
    try {
        return !look_at(std::to_string(l.pid)).ends; // it may take long to free its memory
    } catch (const std::exception&) {                // no memory for it
        return true;
    }
}

void socket_plane::note_end(link& l, int error) noexcept {
    if (l.gone) return;
    l.gone = true;
    l.unsent.remove(l.unsent.size()); // nobody reads it any more, so nobody waits until it has left
    l.held_back = false;
    for (std::size_t i = 0; i < watched_.size(); ++i)
        if (&links_[watched_links_[i]] == &l) watched_[i].fd = -1; // nothing more to watch
    if (l.goodbye) return;
    if (error == EBADF || error == ENOTSOCK) return core_.publish(status::aborted, rank_, lost_descriptors);
    if (error == 0 && lives_on(l)) return core_.publish(status::aborted, l.rank, lost_descriptors);
    const bool cut = l.far && (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH);
    // What a rank has to tell goes behind its mail, which may not have left it.
    const bool amid_mail = l.far && l.received.size() > l.heard_bytes;
    core_.publish(status::peer_died, l.rank,
                  cut ? core_.cut_link(l.rank, l.own_address, l.address)
                  : amid_mail
                      ? std::string("ended in the middle of a message of a set-up call: it has died or given up")
                      : std::string());
}

std::string socket_plane::frame_of(const job_end& end) {
    return wire_writer().number(end.why).number(end.culprit).text(end.text).take();
}

void socket_plane::tell_far(const job_end& end) noexcept {
    const std::lock_guard lock(mutex_);
    if (std::exchange(told_far_, true)) return;
    const std::string text = frame_of(end);
    for (link& l : links_) {
        if (l.held_back) be_patient(l.socket.fd());
        tell(l, frame_kind::end_of_job, text);
    }
}

void socket_plane::say_far(int rank, far_word word, int about) noexcept {
    const std::lock_guard lock(mutex_);
    const std::string text = wire_writer().number(word).number(static_cast<std::int32_t>(about)).take();
    for (link& l : links_) {
        if (rank >= 0 && l.rank != rank) continue;
        if (word == far_word::are_you_awake && std::exchange(l.awaits, true)) continue;
        tell(l, frame_kind::far_word, text);
    }
}

int socket_plane::pid_here(int rank) const noexcept {
    const link* const l = find(rank);
    return l == nullptr || l->far ? 0 : l->pid;
}

void socket_plane::look() noexcept {
    const std::lock_guard lock(mutex_);
    if (std::exchange(owes_, false)) {
        for (link& l : links_)
            if (std::exchange(l.owes, false)) say_far(l.rank, far_word::awake, rank_);
    }
    for (link& l : links_)
        if (l.held_back) write_unsent(l);
    if (poll(watched_.data(), watched_.size(), 0) <= 0) return;
    for (std::size_t i = 0; i < watched_.size(); ++i) {
        if (watched_[i].revents == 0) continue;
        link& l = links_[watched_links_[i]];
        const bool process_ended = watched_[i].fd == l.process.fd();
        receive(l); // its last words may be a goodbye
        if (process_ended) note_end(l, 0);
    }
}

std::optional<int> socket_plane::take_messages(std::span<const int> from, std::vector<std::string>& in) {
    const std::lock_guard lock(mutex_);
    for (link& l : links_) take_mail(l);
    while (in.size() < from.size()) {
        std::deque<std::string>& messages = link_to(from[in.size()]).messages;
        if (messages.empty()) return from[in.size()];
        in.push_back(std::move(messages.front()));
        messages.pop_front();
    }
    const auto unsent = std::find_if(links_.begin(), links_.end(), [](const link& l) { return !l.unsent.empty(); });
    return unsent == links_.end() ? std::nullopt : std::optional(unsent->rank);
}

std::uint64_t socket_plane::mail_moved(int peer) {
    const std::lock_guard lock(mutex_);
    return link_to(peer).mail_moved;
}

bool socket_plane::read_and_write(int peer, bool awaits_message, int ms) {
    std::vector<pollfd> polled;
    {
        const std::lock_guard lock(mutex_);
        for (link& l : links_) {
            take_mail(l);
            // While it is held back, the kernel would take more at any time.
            const int events = POLLIN | (l.unsent.empty() || l.held_back ? 0 : POLLOUT);
            polled.push_back({l.gone ? -1 : l.socket.fd(), static_cast<short>(events), 0});
            if (l.held_back) ms = std::min(ms, room_every_ms);
        }
        if (awaits_message && !link_to(peer).messages.empty()) ms = 0; // the look for deaths has read it already
    }
    poll(polled.data(), polled.size(), ms);
    const bool had_left = left(peer);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < links_.size(); ++i) {
        if (polled[i].revents & (POLLIN | POLLHUP | POLLERR)) receive(links_[i]);
        if (polled[i].fd >= 0 && !links_[i].unsent.empty()) write_unsent(links_[i]);
    }
    return had_left;
}

std::vector<std::string> socket_plane::transfer(std::span<const int> peers_to, std::span<const std::string> out,
                                                std::span<const int> from, std::string_view operation) {
    if (is_child_)
        throw job_error(std::string(operation) + ": this process is a child of fork(), and the job is its parent's");
    {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < peers_to.size(); ++i) send_frame(link_to(peers_to[i]), frame_kind::message, out[i]);
    }
    std::vector<std::string> in;
    const awaiting_scope waits(core_);
    std::uint64_t since = ticks(), moved = 0;
    using steady = std::chrono::steady_clock;
    const steady::time_point start = steady::now();
    int had_left = -1;
    while (const std::optional<int> peer = take_messages(from, in)) {
        core_.awaits(*peer);
        // As long as it moves, large mail may take longer than the deadline.
        if (const std::uint64_t now = mail_moved(*peer); std::exchange(moved, now) != now) since = ticks();
        core_.check_or_raise(*peer, since, operation, *peer == had_left);
        // A rank with a core of its own stays awake for what takes less time than falling asleep and waking up.
        const bool soon = core_.spin.has_own_core() && steady::now() - start < std::chrono::microseconds(100);
        had_left = read_and_write(*peer, in.size() < from.size(), soon ? 0 : look_every_ms) ? *peer : -1;
    }
    return in;
}

} // namespace halocline::comm
