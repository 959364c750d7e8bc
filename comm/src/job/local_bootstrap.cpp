// SPDX-License-Identifier: Apache-2.0
// The rank's side of halocline-run (launch.hpp).
#include "bootstrap.hpp"

#include "control/descriptor.hpp"
#include "control/wire.hpp"

#include <halocline/comm/detail/launch.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace halocline::comm {
namespace {

int number_in(const char* variable) {
    const char* text = std::getenv(variable);
    int value = -1;
    if (text != nullptr) {
        const char* end = text + std::strlen(text);
        const auto [rest, bad] = std::from_chars(text, end, value);
        if (bad == std::errc() && rest == end && value >= 0) return value;
    }
    throw input_error(std::string(variable) + (text == nullptr ? " is not set" : "='" + std::string(text) + "'") +
                      ": a number that halocline-run sets is expected; start the program by halocline-run, or unset " +
                      launch::rank_variable + " for a job of one rank");
}

/// One gather through the launcher.
class launcher_gather {
  public:
    /// lifelines: a descriptor per rank (launch.hpp); not owned, open as long as the process.
    launcher_gather(int fd, int rank, int ranks, std::vector<int> lifelines, std::chrono::milliseconds deadline)
        : fd_(fd), rank_(rank), ranks_(ranks), lifelines_(std::move(lifelines)), deadline_(deadline),
          too_long_("not every rank came within " + std::to_string(deadline_.count()) + " ms") {}

    std::vector<std::string> operator()(std::string_view mine) const {
        const auto end = std::chrono::steady_clock::now() + deadline_;
        std::string out = wire_writer().text(mine).take();
        for (std::size_t at = 0; at < out.size();) {
            if (!is_ready(POLLOUT, end)) lost(too_long_, status::timed_out);
            at += moved(::send(fd_, out.data() + at, out.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT));
        }
        const bool late = !is_ready(POLLIN, end);
        if (late) ask_who_is_missing();
        // Answers that are there, or asked for, may still take a second to be read.
        const auto last = std::max(end, std::chrono::steady_clock::now() + std::chrono::seconds(1));
        std::uint64_t length = 0;
        receive(&length, sizeof length, last);
        std::string answer(length, '\0');
        receive(answer.data(), length, last);
        wire_reader reader(answer);
        if (const auto what = reader.number<launch::answer_kind>(); what != launch::gathered) {
            const int culprit = reader.number<std::int32_t>();
            const int pid = reader.number<std::int32_t>();
            const std::string host = reader.text();
            if (what == launch::died) dead(culprit, pid, host, reader.text());
            lost((late ? too_long_ : "another rank has waited too long") + ", missing: " + reader.text() + ",",
                 status::timed_out, culprit, pid, host);
        }
        std::vector<std::string> all(static_cast<std::size_t>(ranks_));
        for (std::string& part : all) part = reader.text();
        return all;
    }

  private:
    using time_point = std::chrono::steady_clock::time_point;
    [[nodiscard]] std::string me() const {
        return "rank " + std::to_string(rank_) + " (pid " + std::to_string(getpid()) + "): ";
    }
    [[noreturn]] void lost(const std::string& why, status s, int culprit = -1, int pid = 0,
                           const std::string& host = host_name()) const {
        throw rank_failure(me() + why + " while this rank waited for every rank to join the job", s, culprit, pid, host,
                           "every rank to join the job");
    }
    [[noreturn]] void dead(int culprit, int pid, const std::string& host, const std::string& how) const {
        throw rank_failure(me() + "rank " + std::to_string(culprit) + " (pid " + std::to_string(pid) + " on " + host +
                               ") " + how + " while this rank waited for every rank to join the job",
                           status::peer_died, culprit, pid, host, "every rank to join the job");
    }
    /// poll() refuses more entries than the process may have descriptors, although these are open: inherited.
    [[noreturn]] void cannot_watch(std::size_t sockets) const {
        throw input_error(me() + "the other ranks of this host can't be watched, " + std::to_string(sockets) +
                          " pipes and sockets at a time (" + std::strerror(errno) + "); raise 'ulimit -n'");
    }
    /// The launcher knows; if it is stopped, nobody answers.
    void ask_who_is_missing() const {
        [[maybe_unused]] const ssize_t n =
            ::send(fd_, &launch::asks_who, sizeof launch::asks_who, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    /// Waits for the launcher's socket. False if `end` has passed.  Err: rank_failure: a rank has ended.
    [[nodiscard]] bool is_ready(int events, time_point end) const {
        std::vector<pollfd> polled{{fd_, static_cast<short>(events), 0}};
        std::vector<int> rank_of{rank_}; // by place in `polled`
        for (int r = 0; r < ranks_; ++r) {
            if (r == rank_ || lifelines_[r] < 0) continue;
            polled.push_back({lifelines_[r], 0, 0}); // only its closing matters
            rank_of.push_back(r);
        }
        while (true) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
            if (left.count() <= 0) return false;
            const int ready =
                poll(polled.data(), polled.size(), static_cast<int>(std::min<long>(left.count(), 60'000)));
            if (ready < 0 && errno != EINTR) cannot_watch(polled.size());
            if (ready <= 0) continue;
            if (polled[0].revents != 0) return true;
            for (std::size_t i = 1; i < polled.size(); ++i) {
                if (polled[i].revents == 0) continue;
                // The launcher knows how it ended, or has the answer already, unless it is stopped.
                constexpr std::chrono::milliseconds patience(200);
                if (poll_in_spite_of_signals(std::span(polled).first(1), patience) > 0) return true;
                const int r = rank_of[i];
                std::int32_t pid = -1;
                const bool known = ::read(lifelines_[r], &pid, sizeof pid) == static_cast<ssize_t>(sizeof pid);
                dead(r, known ? pid : -1, host_name(), "ended");
            }
        }
    }
    [[nodiscard]] std::size_t moved(ssize_t n) const {
        if (n > 0) return static_cast<std::size_t>(n);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
        lost("halocline-run has ended, or the process that it started as this rank,", status::peer_died);
    }
    void receive(void* to, std::size_t bytes, time_point end) const {
        for (std::size_t at = 0; at < bytes;) {
            if (!is_ready(POLLIN, end)) lost(too_long_, status::timed_out);
            at += moved(::recv(fd_, static_cast<char*>(to) + at, bytes - at, MSG_DONTWAIT));
        }
    }

    int fd_, rank_, ranks_;
    std::vector<int> lifelines_;
    std::chrono::milliseconds deadline_;
    std::string too_long_;
};

/// The descriptors in $HALOCLINE_LIFELINES, one per rank; programs started by a rank don't inherit them.
std::vector<int> lifelines_of(int ranks) {
    const char* text = std::getenv(launch::lifelines_variable);
    std::vector<int> lines;
    std::istringstream in(text == nullptr ? "" : text);
    for (std::string item; std::getline(in, item, ',');) lines.push_back(std::atoi(item.c_str()));
    const bool open = std::all_of(lines.begin(), lines.end(), [](int fd) {
        return fd == -1 || fcntl(fd, F_SETFD, FD_CLOEXEC) == 0; // -1: on another host
    });
    if (!open || lines.size() != static_cast<std::size_t>(ranks)) {
        throw input_error(
            std::string(launch::lifelines_variable) + "='" + (text == nullptr ? "" : text) +
            "': one open descriptor per rank is expected; start the program by halocline-run of this version");
    }
    return lines;
}

} // namespace

std::optional<bootstrap> local_bootstrap(const job_options& options) {
    if (std::getenv(launch::rank_variable) == nullptr) return std::nullopt;
    bootstrap start;
    start.rank = number_in(launch::rank_variable);
    start.ranks = number_in(launch::ranks_variable);
    for (const char* other : launch::others_variables) {
        if (const char* rank = std::getenv(other))
            throw input_error("two launchers: halocline-run started rank " + std::to_string(start.rank) +
                              ", which started the launcher of an MPI, which started this program (" + other + "=" +
                              rank + "); leave one of them out, or take " + launch::rank_variable +
                              " out of the environment of the second");
    }
    const int fd = number_in(launch::socket_variable);
    if (start.rank >= start.ranks) {
        throw input_error(std::string(launch::rank_variable) + "=" + std::to_string(start.rank) + ", but " +
                          launch::ranks_variable + "=" + std::to_string(start.ranks));
    }
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) { // programs started by a rank are not ranks
        throw input_error(std::string(launch::socket_variable) + "=" + std::to_string(fd) +
                          " is not open: the program was not started by halocline-run itself; unset " +
                          launch::rank_variable + " for a job of one rank");
    }
    start.launcher = local_launcher;
    start.launcher_end = fd;
    start.gather = launcher_gather(fd, start.rank, start.ranks, lifelines_of(start.ranks), options.deadline);
    return start;
}

} // namespace halocline::comm
