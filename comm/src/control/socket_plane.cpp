// SPDX-License-Identifier: Apache-2.0
#include "socket_plane.hpp"

#include "wire.hpp"

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace halocline::comm {
namespace {

// Frames: a length, then so many bytes. In place of a length: words that are no mail.
constexpr std::uint64_t goodbye_length = ~std::uint64_t{0};
constexpr std::uint64_t end_of_job_length = goodbye_length - 1; // a frame follows: why, culprit, text
constexpr std::uint64_t far_word_length = goodbye_length - 2;   // a frame follows: the word, about whom
constexpr std::uint64_t letter_mark = std::uint64_t{1} << 63;   // in the length of a letter
constexpr int patience_ms = 20; // a failure record is looked at this often while nothing comes

/// Messages and letters.
constexpr bool is_mail(std::uint64_t mark) { return mark < far_word_length; }

struct frame {
    std::uint64_t mark;    // its first word
    std::string_view body; // of mail, a letter or the end of the job
    std::size_t bytes;     // all of it
};

/// None: it is not complete.
std::optional<frame> first_frame(std::string_view bytes) {
    constexpr std::size_t word = sizeof(std::uint64_t);
    const auto word_at = [&](std::size_t at) {
        std::uint64_t w = 0;
        std::memcpy(&w, bytes.data() + at, word);
        return w;
    };
    if (bytes.size() < word) return std::nullopt;
    const std::uint64_t mark = word_at(0);
    if (mark == goodbye_length) return frame{mark, {}, word};
    const std::size_t head = is_mail(mark) ? word : 2 * word;
    if (bytes.size() < head) return std::nullopt;
    const std::uint64_t length = is_mail(mark) ? mark & ~letter_mark : word_at(word);
    if (bytes.size() - head < length) return std::nullopt;
    return frame{mark, bytes.substr(head, length), head + length};
}

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
        // Older kernels, and a rank of another pid namespace: the socket alone. ESRCH: dead already; its socket, which
        // nobody answers, says the same.
    }
    connect_near(std::move(own), peers, secret);
    watch_all();
}

void socket_plane::watch_all() {
    watched_.clear();
    for (const link& l : links_)
        watched_.push_back({l.gone ? -1 : l.socket.fd(), static_cast<short>(l.far ? POLLIN : POLLRDHUP), 0});
    for (const link& l : links_) watched_.push_back({l.gone ? -1 : l.process.fd(), POLLIN, 0});
}

void socket_plane::leave_to_parent() noexcept {
    for (link& l : links_) {
        l.socket = descriptor();
        l.process = descriptor();
        l.gone = l.goodbye = true;
    }
    watched_.clear();
}

socket_plane::~socket_plane() {
    const int patience = std::uncaught_exceptions() > 0 ? 0 : 200;
    for (link& l : links_) {
        if (l.gone || !l.socket) continue;
        l.unsent.append(reinterpret_cast<const char*>(&goodbye_length), sizeof goodbye_length);
        write(l);
        pollfd p{l.socket.fd(), POLLOUT, 0};
        if (!l.unsent.empty() && poll(&p, 1, patience) > 0) write(l);
    }
}

socket_plane::link& socket_plane::to(int r) {
    if (r < 0 || r >= ranks_ || link_of_[r] < 0) {
        throw job_error("rank " + std::to_string(rank_) + " has no connection to rank " + std::to_string(r));
    }
    return links_[link_of_[r]];
}

bool socket_plane::left(int r) const noexcept {
    const std::lock_guard lock(mutex_);
    return link_of_[r] >= 0 && links_[link_of_[r]].goodbye && links_[link_of_[r]].came.empty() &&
           links_[link_of_[r]].heard_mail == 0;
}

void socket_plane::write(link& l) {
    while (!l.unsent.empty()) {
        const ssize_t n = ::send(l.socket.fd(), l.unsent.data(), l.unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN) l.unsent.clear(); // the reader is gone: reading tells how
            return;
        }
        l.unsent.erase(0, static_cast<std::size_t>(n));
    }
}

void socket_plane::append(link& l, std::uint64_t mark, std::string_view text) {
    const std::uint64_t length = text.size() | mark;
    l.unsent.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
    write(l);
}

/// To a rank of another node: what is no mail.
void socket_plane::append_words(link& l, std::uint64_t mark, std::string_view text) {
    if (!l.far || l.gone || !l.socket) return;
    l.unsent.append(reinterpret_cast<const char*>(&mark), sizeof mark);
    append(l, 0, text);
}

std::vector<pollfd> socket_plane::ends() const {
    const std::lock_guard lock(mutex_);
    std::vector<pollfd> all;
    for (const link& l : links_) {
        if (l.gone) continue;
        all.push_back({l.socket.fd(), POLLRDHUP, 0});
        all.push_back({l.process.fd(), POLLIN, 0});
    }
    return all;
}

void socket_plane::send_letter(int peer, std::string_view text) {
    const std::lock_guard lock(mutex_);
    append(to(peer), letter_mark, text);
}

std::optional<letter> socket_plane::take_letter() {
    const std::lock_guard lock(mutex_);
    look();
    std::vector<pollfd> polled;
    for (const link& l : links_) polled.push_back({l.gone ? -1 : l.socket.fd(), POLLIN, 0});
    poll(polled.data(), polled.size(), 0);
    std::optional<letter> first;
    for (std::size_t i = 0; i < links_.size(); ++i) {
        link& l = links_[i];
        if (polled[i].revents != 0) read(l);
        take_mail(l);
        if (!l.unsent.empty()) write(l);
        if (first || l.letters.empty()) continue;
        first = letter{l.rank, std::move(l.letters.front())};
        l.letters.pop_front();
    }
    return first;
}

void socket_plane::read(link& l) {
    if (l.gone) return;
    std::array<char, 65536> buffer;
    while (true) {
        const ssize_t n = ::recv(l.socket.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        const int error = n < 0 ? errno : 0;
        if (error == EINTR) continue;
        if (n > 0) {
            l.raw.append(buffer.data(), static_cast<std::size_t>(n));
            continue;
        }
        hear(l);
        if (error != EAGAIN) ended(l, error);
        return;
    }
}

void socket_plane::hear(link& l) {
    while (const std::optional<frame> f = first_frame(std::string_view(l.raw).substr(l.heard))) {
        l.heard += f->bytes;
        if (f->mark == goodbye_length) {
            l.goodbye = true;
        } else if (f->mark == end_of_job_length) {
            wire_reader end(f->body);
            const auto why = end.number<status>();
            const int culprit = end.number<std::int32_t>();
            core_.publish(why, culprit >= 0 && culprit < ranks_ ? culprit : -1, end.text());
        } else if (f->mark == far_word_length) {
            wire_reader said(f->body);
            const auto word = said.number<far_word>();
            l.is_asked = l.is_asked && word != far_word::awake;
            l.asks = l.asks || word == far_word::are_you_awake;
            asked_ = asked_ || l.asks;
            core_.stalls.heard(l.rank, word, said.number<std::int32_t>());
        } else {
            l.heard_mail += (f->mark & letter_mark) == 0;
        }
    }
}

void socket_plane::take_mail(link& l) {
    if (l.heard == 0) return;
    for (std::string_view left(l.raw.data(), l.heard); !left.empty();) {
        const frame f = *first_frame(left);
        left.remove_prefix(f.bytes);
        if (!is_mail(f.mark)) continue;
        ((f.mark & letter_mark) != 0 ? l.letters : l.came).emplace_back(f.body);
    }
    l.raw.erase(0, l.heard);
    l.heard = l.heard_mail = 0;
}

/// error: how the socket ended, 0 in good order.
void socket_plane::ended(link& l, int error) noexcept {
    if (l.gone) return;
    l.gone = true;
    const std::size_t n = links_.size();
    const std::size_t i = static_cast<std::size_t>(&l - links_.data());
    if (watched_.size() == 2 * n) watched_[i].fd = watched_[n + i].fd = -1; // nothing more to see
    if (l.goodbye) return;
    const bool cut = l.far && (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH);
    core_.publish(status::peer_died, l.rank, cut ? core_.cut_link(l.rank, l.own_address, l.address) : std::string());
}

void socket_plane::tell_far(const failure_record& end) noexcept {
    const std::lock_guard lock(mutex_);
    if (std::exchange(told_far_, true)) return;
    const std::string text = wire_writer().number(end.why).number(end.culprit).text(end.text).take();
    for (link& l : links_) append_words(l, end_of_job_length, text);
}

void socket_plane::say_far(int r, far_word word, int about) noexcept {
    const std::lock_guard lock(mutex_);
    const std::string text = wire_writer().number(word).number(static_cast<std::int32_t>(about)).take();
    for (link& l : links_) {
        if (r >= 0 && l.rank != r) continue;
        if (word == far_word::are_you_awake && std::exchange(l.is_asked, true)) continue;
        append_words(l, far_word_length, text);
    }
}

int socket_plane::pid_here(int r) const noexcept {
    const int i = link_of_[static_cast<std::size_t>(r)];
    if (i < 0) return 0;
    const link& l = links_[static_cast<std::size_t>(i)];
    return l.far ? 0 : l.pid;
}

void socket_plane::look() noexcept {
    const std::lock_guard lock(mutex_);
    if (std::exchange(asked_, false)) {
        for (link& l : links_)
            if (std::exchange(l.asks, false)) say_far(l.rank, far_word::awake, rank_);
    }
    if (poll(watched_.data(), watched_.size(), 0) <= 0) return;
    const std::size_t n = links_.size();
    for (std::size_t i = 0; i < n; ++i) {
        if (watched_[i].revents == 0 && watched_[n + i].revents == 0) continue;
        const bool process_ended = watched_[n + i].revents != 0;
        read(links_[i]); // its last words may be a goodbye
        if (process_ended) ended(links_[i], 0);
    }
}

/// Takes the messages of `from` that have come, in that order. Returns the rank that this one waits for now: for its
/// message, or for it to read; none: all messages have come and gone.
std::optional<int> socket_plane::take_messages(std::span<const int> from, std::vector<std::string>& in) {
    const std::lock_guard lock(mutex_);
    for (link& l : links_) take_mail(l);
    while (in.size() < from.size()) {
        std::deque<std::string>& came = to(from[in.size()]).came;
        if (came.empty()) return from[in.size()];
        in.push_back(std::move(came.front()));
        came.pop_front();
    }
    const auto unsent = std::find_if(links_.begin(), links_.end(), [](const link& l) { return !l.unsent.empty(); });
    return unsent == links_.end() ? std::nullopt : std::optional(unsent->rank);
}

/// Waits for at most `ms` until sockets can be read or written, and does that. True if `peer` had left in good order
/// before: what it sent first has been read now.
bool socket_plane::read_and_write(int peer, bool awaits_message, int ms) {
    std::vector<pollfd> polled;
    {
        const std::lock_guard lock(mutex_);
        for (link& l : links_) {
            take_mail(l);
            const int events = POLLIN | (l.unsent.empty() ? 0 : POLLOUT);
            polled.push_back({l.gone ? -1 : l.socket.fd(), static_cast<short>(events), 0});
        }
        if (awaits_message && !to(peer).came.empty()) ms = 0; // the look for deaths has read it
    }
    poll(polled.data(), polled.size(), ms);
    const bool had_left = left(peer);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < links_.size(); ++i) {
        if (polled[i].revents & (POLLIN | POLLHUP | POLLERR)) read(links_[i]);
        if (polled[i].revents & POLLOUT) write(links_[i]);
    }
    return had_left;
}

std::vector<std::string> socket_plane::transfer(std::span<const int> peers_to, std::span<const std::string> out,
                                                std::span<const int> from, std::string_view operation) {
    {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < peers_to.size(); ++i) append(to(peers_to[i]), 0, out[i]);
    }
    std::vector<std::string> in;
    const awaiting_scope waits(core_);
    const std::uint64_t since = ticks();
    using steady = std::chrono::steady_clock;
    const steady::time_point start = steady::now();
    int gone = -1;
    while (const std::optional<int> peer = take_messages(from, in)) {
        core_.awaits(*peer);
        core_.check_or_raise(*peer, since, operation, gone);
        // Whoever has a core of its own stays awake for what takes less time than falling asleep and waking up.
        const bool soon = core_.spin.has_own_core() && steady::now() - start < std::chrono::microseconds(100);
        gone = read_and_write(*peer, in.size() < from.size(), soon ? 0 : patience_ms) ? *peer : -1;
    }
    return in;
}

} // namespace halocline::comm
