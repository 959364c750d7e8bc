// SPDX-License-Identifier: Apache-2.0
#include "local_ranks.hpp"

#include "control/descriptor.hpp"
#include "job/process_look.hpp"
#include "pause_watch.hpp"
#include "read_pipe.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/detail/launch.hpp>
#include <halocline/comm/processor_quota.hpp>
#include <halocline/comm/processors.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <span>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace halocline::app {

using comm::look_at;
using comm::process_look;
namespace launch = comm::launch;

local_ranks::local_ranks(group_plan plan, rank_events& events, const sigset_t& signals)
    : plan_(std::move(plan)), events_(events), signals_(signals),
      job_(std::to_string(getpid()) + "." +
           std::to_string(std::chrono::steady_clock::now().time_since_epoch().count())),
      ranks_(static_cast<std::size_t>(plan_.count)) {
    if (plan_.bind != binding::none) choose_processors();
}

/// The next processors in the order of use (comm/processors.hpp), one per thread, if enough are not used by another
/// job; or all of them, if the same number of single-threaded ranks can share each. If a quota leaves less time than
/// they have, the machine is shared with others that this process can't see, in containers that may be bound to the
/// same first processors. Then ranks are left to the scheduler, unless the user demands otherwise, and OpenMP's runtime
/// would start as many threads as it sees processors.
void local_ranks::choose_processors() {
    const std::vector<int> usable = comm::usable_processors();
    const auto threads = static_cast<std::size_t>(comm::threads_per_rank());
    const std::size_t needed = ranks_.size() * threads;
    if (plan_.bind == binding::demanded) {
        processors_ = claims_.take(usable, needed);
        if (processors_.empty()) refuse(needed, usable.size());
        return;
    }
    const std::vector<comm::processor_quota> quotas = comm::processor_quotas();
    const auto too_small = [&](const auto& q) { return q.processors < static_cast<double>(usable.size()); };
    const bool rationed = std::ranges::any_of(quotas, too_small);
    const bool can_share = !usable.empty() && ranks_.size() % usable.size() == 0; // ranks of one thread
    if (!rationed && needed > usable.size() && !(threads == 1 && can_share)) {
        if (threads > 1 && (ranks_.size() <= usable.size() || can_share)) say_unbound(threads, usable.size());
        return;
    }
    if (!rationed) processors_ = claims_.take(usable, std::min(needed, usable.size()));
    one_thread_ = processors_.empty();
}

void local_ranks::refuse(std::size_t needed, std::size_t usable) const {
    const std::size_t each = needed / ranks_.size();
    throw input_error("--bind: the " + std::to_string(ranks_.size()) + " ranks here take " + std::to_string(needed) +
                      " processors" + (each > 1 ? ", " + std::to_string(each) + " each ($OMP_NUM_THREADS)" : "") +
                      "; " + std::to_string(usable) + " may be used" +
                      (needed <= usable ? ", and other jobs of halocline-run have bound ranks to some of them" : "") +
                      "; start fewer ranks, or leave --bind out");
}

void local_ranks::say_unbound(std::size_t threads, std::size_t usable) const {
    std::fprintf(stderr,
                 "halocline-run: ranks on %s are not bound: %zu of %zu threads ($OMP_NUM_THREADS) take %zu processors, "
                 "%zu may be used; set OMP_NUM_THREADS to what they use (coarse_solve: 1), or give --no-bind\n",
                 name().c_str(), ranks_.size(), threads, ranks_.size() * threads, usable);
}

std::string local_ranks::name() const {
    std::array<char, 256> text{};
    return gethostname(text.data(), text.size() - 1) == 0 ? text.data() : "localhost";
}

void local_ranks::start() {
    // Three or four per rank, and those of this program. Ranks inherit the limit, and the other ranks' lifelines.
    comm::make_descriptor_room(64 + 4 * static_cast<std::uint64_t>(plan_.count));
    caretaker_.start(job_);
    make_lifelines();
    for (int i = 0; i < plan_.count; ++i) spawn(i);
    close_lifelines();
}

local_ranks::~local_ranks() {
    signal(SIGKILL);
    caretaker_.dismiss(); // it would count as left
    static_cast<void>(leftovers_.kill());
    for (const child& c : ranks_)
        if (c.running) remove_shared_files_of(c.pid);
}

std::string local_ranks::end_leftovers(std::chrono::steady_clock::time_point until) {
    caretaker_.dismiss(); // it would count as left
    pause_watch pauses;
    std::string killed;
    while (leftovers_.any()) {
        until += pauses.missed();
        if (std::chrono::steady_clock::now() >= until) {
            killed = leftovers_.kill();
            break;
        }
        std::vector<pollfd> polled;
        watch(polled);
        poll(polled.data(), polled.size(), 2); // milliseconds
        serve();
        events_.leftovers_end();
    }
    for (int i = 0; i < plan_.count; ++i) { // their last words
        take_output(i);
        end_line(i);
    }
    events_.leftovers_end();
    return killed;
}

void local_ranks::bind(int i) const {
    if (one_thread_) setenv("OMP_NUM_THREADS", "1", 0);
    if (processors_.empty()) return;
    const std::size_t each = std::max<std::size_t>(1, processors_.size() / ranks_.size());
    const std::size_t first = static_cast<std::size_t>(i) * processors_.size() / ranks_.size();
    comm::bind_to(std::span(processors_).subspan(first, each));
}

void local_ranks::make_lifelines() {
    lifelines_.resize(ranks_.size());
    for (auto& line : lifelines_) {
        if (pipe2(line.data(), O_CLOEXEC) != 0)
            throw input_error("no more descriptors for " + std::to_string(ranks_.size()) +
                              " ranks: " + std::strerror(errno) + "; raise 'ulimit -n'");
    }
}

/// A rank calls this: its own writing end and the others' reading ends stay open in the program, the rest are closed.
void local_ranks::keep_lifelines(int i) const {
    const std::int32_t pid = getpid();
    // Nobody reads yet, so a full pipe must not block. A user with many pipes gets small ones, of 8 KiB.
    fcntl(lifelines_[i][1], F_SETFL, O_NONBLOCK);
    std::string list;
    for (int r = 0; r < plan_.total; ++r) {
        const int other = r - plan_.first;
        if (r != 0) list += ',';
        if (other < 0 || other >= plan_.count) {
            list += "-1"; // on another host
            continue;
        }
        const int kept = lifelines_[other][other == i ? 1 : 0];
        fcntl(kept, F_SETFD, 0);
        list += std::to_string(kept);
        if (other != i) [[maybe_unused]]
            const ssize_t n = ::write(lifelines_[i][1], &pid, sizeof pid);
    }
    setenv(launch::lifelines_variable, list.c_str(), 1);
}

void local_ranks::close_lifelines() {
    for (const auto& line : lifelines_)
        for (const int end : line) ::close(end);
    lifelines_.clear();
}

void local_ranks::become_rank(int i, int socket, int output) const {
    bind(i);
    sigprocmask(SIG_SETMASK, &signals_, nullptr);
    for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_DFL);
    if (output >= 0) dup2(output, STDOUT_FILENO);
    if (i != 0 || !plan_.reads_input) {
        const int null = open("/dev/null", O_RDONLY);
        dup2(null, STDIN_FILENO);
        ::close(null);
    }
    fcntl(socket, F_SETFD, 0);
    for (const char* other : launch::others_variables) unsetenv(other);
    setenv(launch::rank_variable, std::to_string(plan_.first + i).c_str(), 1);
    setenv(launch::ranks_variable, std::to_string(plan_.total).c_str(), 1);
    setenv(launch::socket_variable, std::to_string(socket).c_str(), 1);
    setenv(launch::job_variable, job_.c_str(), 1);
    keep_lifelines(i);
    std::vector<char*> words;
    for (const std::string& word : plan_.command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    if (errno != ENOENT || plan_.otherwise.empty()) return;
    words[0] = const_cast<char*>(plan_.otherwise.c_str());
    execvp(words[0], words.data());
}

void local_ranks::spawn(int i) {
    std::array<int, 2> pair{}, report{}, output{-1, plan_.output};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0 || pipe2(report.data(), O_CLOEXEC) != 0 ||
        (plan_.label && pipe2(output.data(), O_CLOEXEC) != 0)) {
        throw input_error("no more descriptors for rank " + std::to_string(plan_.first + i) + ": " +
                          std::strerror(errno) + "; raise 'ulimit -n'");
    }
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) {
        signal(SIGKILL);
        throw input_error("cannot start rank " + std::to_string(plan_.first + i) + ": " + std::strerror(errno) +
                          "; raise 'ulimit -u' or start fewer");
    }
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // no rank outlives the launcher
        if (getppid() != parent) _exit(127);
        become_rank(i, pair[1], output[1]);
        const int why = errno;
        [[maybe_unused]] const ssize_t n = ::write(report[1], &why, sizeof why);
        _exit(127);
    }
    ::close(pair[1]);
    ::close(report[1]);
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    if (plan_.label) {
        ::close(output[1]);
        fcntl(output[0], F_SETFL, O_NONBLOCK);
    }
    child& c = ranks_[i];
    c.pid = pid;
    c.socket = pair[0];
    c.output = output[0];
    c.running = true;
    caretaker_.add(pid);
    int why = 0;
    const bool failed = ::read(report[0], &why, sizeof why) == static_cast<ssize_t>(sizeof why); // closed by exec
    ::close(report[0]);
    if (!failed) return;
    signal(SIGKILL);
    for (child& each : ranks_) {
        if (each.pid > 0) waitpid(each.pid, nullptr, 0);
        each.running = false;
    }
    throw input_error("cannot run '" + plan_.command[0] + "': " + std::strerror(why));
}

void local_ranks::watch(std::vector<pollfd>& polled) const {
    const bool has_room = events_.has_room();
    for (const child& c : ranks_) {
        polled.push_back({c.socket, static_cast<short>(POLLIN | (c.outgoing.empty() ? 0 : POLLOUT)), 0});
        if (c.output >= 0 && has_room) polled.push_back({c.output, POLLIN, 0});
    }
}

void local_ranks::serve() {
    for (int i = 0; i < plan_.count; ++i) {
        ranks_[i].outgoing.send_to(ranks_[i].socket);
        take(i);
        if (ranks_[i].output >= 0 && events_.has_room()) take_output(i);
    }
}

void local_ranks::take_output(int i) {
    child& c = ranks_[i];
    if (c.output < 0) return;
    const std::string label = std::to_string(plan_.first + i) + ": ";
    std::string text;
    const auto split = [&](std::string_view more) {
        if (std::exchange(c.cut, false) && more.starts_with('\n')) more.remove_prefix(1);
        c.line.append(more);
        std::size_t begin = 0;
        for (std::size_t end = 0; (end = c.line.find('\n', begin)) != std::string::npos; begin = end + 1)
            text.append(label).append(c.line, begin, end + 1 - begin);
        c.line.erase(0, begin);
        if (c.line.size() < longest_line) return;
        text.append(label).append(c.line).append("\n");
        c.line.clear();
        c.cut = true;
    };
    const bool more = read_pipe(c.output, split);
    if (!text.empty()) events_.printed(text);
    if (more) return;
    end_line(i);
    ::close(c.output); // what a rank has started may have it longer than the rank itself
    c.output = -1;
}

void local_ranks::end_line(int i) {
    std::string& line = ranks_[i].line;
    if (!line.empty()) events_.printed(std::to_string(plan_.first + i) + ": " + line + "\n");
    line.clear();
}

void local_ranks::take(int i) {
    child& c = ranks_[i];
    std::array<char, 4096> buffer;
    ssize_t n = 0;
    while (c.socket >= 0 && (n = ::recv(c.socket, buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0) {
        c.incoming.append(buffer.data(), static_cast<std::size_t>(n));
    }
    if (n == 0 && c.socket >= 0) { // closed: the rank, or the program it became, needs no more
        ::close(c.socket);
        c.socket = -1;
    }
    while (take_frame(i)) { // a question that crossed its answer comes together with the next part
    }
}

/// A rank gives one part, then waits for the answer, or asks who is missing.
bool local_ranks::take_frame(int i) {
    child& c = ranks_[i];
    std::uint64_t length = 0;
    if (c.incoming.size() < sizeof length) return false;
    std::memcpy(&length, c.incoming.data(), sizeof length);
    if (length == launch::asks_who) {
        c.incoming.erase(0, sizeof length);
        if (c.gave_part) events_.asked_who(plan_.first + i); // otherwise the answer is on its way
        return true;
    }
    if (c.gave_part || c.incoming.size() - sizeof length < length) return false;
    std::string part = c.incoming.substr(sizeof length, length);
    c.incoming.erase(0, sizeof length + length);
    c.gave_part = true;
    events_.part(plan_.first + i, std::move(part));
    return true;
}

bool local_ranks::reaped(int pid, int how) {
    if (caretaker_.reaped(pid)) return true;
    // A rank's pid may be another process's once it has ended: of one that a rank started, and that is reaped here.
    const auto c = std::ranges::find_if(ranks_, [&](const child& x) { return x.running && x.pid == pid; });
    if (c == ranks_.end()) return false;
    const int i = static_cast<int>(c - ranks_.begin());
    take(i);                                // giving its part may have been its last act
    if (c->socket >= 0) ::close(c->socket); // a program that it started, and did not wait for, learns that it is alone
    c->socket = -1;
    c->running = false;
    if (how != 0) remove_shared_files_of(pid);
    ending end;
    end.pid = pid;
    if (WIFSIGNALED(how)) {
        end.signal = WTERMSIG(how);
        end.code = 128 + end.signal;
        end.text = "died of signal " + std::to_string(end.signal);
    } else {
        end.code = WEXITSTATUS(how);
        end.text = "ended with exit code " + std::to_string(end.code);
    }
    take_output(i);
    if (plan_.output >= 0) end_line(i); // the launcher, on another host, may take no more after this end
    events_.ended(plan_.first + i, end);
    return true;
}

void local_ranks::answer(std::string_view bytes) {
    for (child& c : ranks_) {
        if (!c.gave_part) continue;
        c.gave_part = false;
        const std::uint64_t length = bytes.size();
        c.outgoing.append({reinterpret_cast<const char*>(&length), sizeof length}).append(bytes);
        if (c.socket >= 0) c.outgoing.send_to(c.socket);
    }
}

void local_ranks::signal(int number) {
    for (const child& c : ranks_) {
        if (c.running && c.pid > 0) kill(c.pid, number);
    }
}

void local_ranks::signal_of_terminal(int number) {
    for (const child& c : ranks_) {
        if (c.running && c.pid > 0 && getpgid(c.pid) != getpgrp()) kill(c.pid, number);
    }
}

void local_ranks::survivors_end() {
    for (child& c : ranks_) c.used = look_at(std::to_string(c.pid)).seconds;
}

bool local_ranks::starved() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const child& c) {
        const process_look now = look_at(std::to_string(c.pid));
        return c.running && now.state == 'R' && now.seconds < c.used + 1;
    });
}

std::string local_ranks::unfinished() const {
    std::string all;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
        const child& c = ranks_[i];
        if (c.running) all += (all.empty() ? "" : ", ") + describe(plan_.first + static_cast<int>(i));
    }
    return all;
}

int local_ranks::pid_of(int rank) const { return ranks_[rank - plan_.first].pid; }

std::string local_ranks::describe(int rank) const {
    const std::string pid = std::to_string(pid_of(rank));
    const char state = look_at(pid).state;
    return host::describe(rank) + " (pid " + pid +
           (state == 'R'   ? ", running)"
            : state == 'T' ? ", stopped)"
                           : ", sleeping)");
}

int local_ranks::running() const {
    return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(), [](const child& c) { return c.running; }));
}

} // namespace halocline::app
