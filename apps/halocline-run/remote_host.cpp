// SPDX-License-Identifier: Apache-2.0
#include "remote_host.hpp"

#include "frames.hpp"
#include "watched_signals.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/detail/launch.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sstream>
#include <sys/socket.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace halocline::app {

namespace {

std::string working_directory() {
    std::error_code failed;
    const std::filesystem::path path = std::filesystem::current_path(failed);
    if (failed)
        throw input_error("the working directory, where ranks on other hosts start, too, can't be told: " +
                          failed.message() + "; start from another");
    return path.string();
}

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

/// What to do about a host on which the remote shell started no agent.
std::string remedy() {
    if (own_path().find_first_of(" \t\n") != std::string::npos)
        return "the path of halocline-run has a blank, at which ssh's shell there splits it; install it, on every "
               "host, under a path without one";
    return "check the name, that the host is up, that the shell asks no password, and that halocline-run is at this "
           "path there";
}

std::vector<std::string> words_of(const std::string& shell, const std::string& host_name) {
    std::vector<std::string> words;
    std::istringstream in(shell.find("{host}") == std::string::npos ? shell + " {host}" : shell);
    for (std::string word; in >> word;) {
        for (std::size_t at = 0; (at = word.find("{host}", at)) != std::string::npos; at += host_name.size())
            word.replace(at, 6, host_name);
        words.push_back(word);
    }
    words.push_back(own_path());
    words.emplace_back("--agent");
    return words;
}

/// The variables passed to ranks on other hosts without being asked for.
std::vector<std::string> usual_variables() {
    std::vector<std::string> chosen;
    for (char** v = environ; *v != nullptr; ++v) {
        const std::string_view text(*v);
        for (const std::string_view prefix : {"HALOCLINE_", "OMP_", "FI_", "LD_LIBRARY_PATH="}) {
            if (text.starts_with(prefix)) chosen.emplace_back(text);
        }
    }
    return chosen;
}

} // namespace

remote_host::remote_host(std::string host_name, const std::string& shell, const std::vector<std::string>& variables,
                         const group_plan& plan, rank_events& events, const sigset_t& signals)
    : name_(std::move(host_name)), events_(events), first_(plan.first),
      running_(static_cast<std::size_t>(plan.count), true) {
    const std::vector<std::string> words = words_of(shell, name_);
    frames::start_order order{plan, working_directory(), usual_variables()};
    order.variables.insert(order.variables.end(), variables.begin(), variables.end()); // these override
    for (const std::string& w : words) shell_ += (shell_.empty() ? "" : " ") + w;
    std::array<int, 2> pair{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
        throw input_error("no more descriptors for host " + name_ + ": " + std::strerror(errno) +
                          "; raise 'ulimit -n'");
    }
    pid_ = fork();
    if (pid_ < 0) throw input_error("cannot start '" + shell_ + "': " + std::strerror(errno) + "; raise 'ulimit -u'");
    // Called by both: a terminal's signals go only to the launcher, which passes them on; and see abandon().
    setpgid(pid_, pid_);
    if (pid_ == 0) {
        sigprocmask(SIG_SETMASK, &signals, nullptr);
        block_signals_for_ranks(); // sent to all processes of a job they would end a shell, and so its ranks
        dup2(pair[1], STDIN_FILENO);
        dup2(pair[1], STDOUT_FILENO);
        std::vector<char*> arguments;
        for (const std::string& w : words) arguments.push_back(const_cast<char*>(w.c_str()));
        arguments.push_back(nullptr);
        execvp(arguments[0], arguments.data());
        _exit(127);
    }
    ::close(pair[1]);
    socket_ = pair[0];
    fcntl(socket_, F_SETFL, O_NONBLOCK);

    frames::append(outgoing_, frames::start, comm::to_wire(order));
}

remote_host::~remote_host() {
    if (socket_ >= 0) ::close(socket_); // which ends the agent
}

void remote_host::watch(std::vector<pollfd>& polled) const {
    const int events = (events_.has_room() ? POLLIN : 0) | (outgoing_.empty() ? 0 : POLLOUT);
    polled.push_back({events == 0 ? -1 : socket_, static_cast<short>(events), 0}); // its end would be reported always
}

void remote_host::serve() {
    outgoing_.send_to(socket_);
    receive();
}

void remote_host::receive() {
    std::array<char, 4096> buffer;
    ssize_t n = 1;
    while (socket_ >= 0 && n > 0) {
        if (!events_.has_room()) return;
        n = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (n <= 0) break;
        incoming_.append(buffer.data(), static_cast<std::size_t>(n));
        understand();
    }
    if (socket_ < 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;
    ::close(socket_);
    socket_ = -1;
    if (shell_ended_) gone();
}

void remote_host::understand() {
    if (!spoke_) {
        const std::size_t n = std::min(incoming_.size(), frames::greeting.size());
        if (incoming_.compare(0, n, frames::greeting, 0, n) != 0) {
            trouble_ = "host " + name_ + ": '" + shell_ + "' says '" + incoming_.substr(0, incoming_.find('\n')) +
                       "' instead of starting an agent of this version";
            return abandon();
        }
        if (n < frames::greeting.size()) return;
        incoming_.erase(0, n);
        spoke_ = true;
    }
    frames::kind what{};
    for (std::string bytes; frames::take(incoming_, what, bytes);) {
        if (what == frames::output) {
            print(bytes);
        } else if (what == frames::part) {
            auto [rank, part] = comm::from_wire<frames::part_of_rank>(bytes);
            events_.part(rank, std::move(part));
        } else if (what == frames::who) {
            events_.asked_who(comm::from_wire<frames::rank_or_signal>(bytes).value);
        } else if (what == frames::ended) {
            const auto [rank, how] = comm::from_wire<frames::end_of_rank>(bytes);
            rank_ended(rank, how);
        } else if (what == frames::trouble) {
            trouble_ = "host " + name_ + ": " + bytes;
            running_.assign(running_.size(), false);
        }
    }
}

void remote_host::print(std::string_view text) {
    line_.append(text);
    const std::size_t last = line_.rfind('\n');
    const std::size_t whole = last == std::string::npos ? 0 : last + 1;
    if (whole > 0) {
        events_.printed(std::string_view(line_).substr(0, whole));
        line_.erase(0, whole);
    }
    if (line_.size() >= longest_line || running() == 0) print_unfinished_line();
}

void remote_host::print_unfinished_line() {
    if (!line_.empty()) events_.printed(line_);
    line_.clear();
}

void remote_host::rank_ended(int rank, const ending& how) {
    running_.at(static_cast<std::size_t>(rank - first_)) = false;
    if (running() == 0) print_unfinished_line();
    events_.ended(rank, how);
}

void remote_host::gone() {
    const std::string how = "'" + shell_ + "' ended with exit code " + std::to_string(*shell_ended_);
    if (running() == 0) return;
    if (spoke_) return lost(comm::launch::job_ended, "is lost with its host " + name_ + ": the remote shell " + how);
    trouble_ = "host " + name_ + " can't be reached: " + how + "; " + remedy();
    running_.assign(running_.size(), false);
}

void remote_host::lost(int code, const std::string& text) {
    for (std::size_t i = 0; i < running_.size(); ++i)
        if (running_[i]) rank_ended(first_ + static_cast<int>(i), {0, code, 0, text});
}

bool remote_host::reaped(int pid, int how) {
    if (pid != pid_) return false;
    shell_ended_ = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
    pid_ = -1;
    receive(); // its last words
    if (socket_ < 0) gone();
    return true;
}

void remote_host::answer(std::string_view bytes) {
    frames::append(outgoing_, frames::answer, bytes);
    outgoing_.send_to(socket_);
}

void remote_host::signal(int number) {
    frames::append(outgoing_, frames::signal, comm::to_wire(frames::rank_or_signal{number}));
    outgoing_.send_to(socket_);
}

std::string remote_host::unfinished() const {
    std::string all;
    for (std::size_t i = 0; i < running_.size(); ++i)
        if (running_[i]) all += (all.empty() ? "" : ", ") + describe(first_ + static_cast<int>(i)) + " on " + name_;
    return all;
}

int remote_host::running() const { return static_cast<int>(std::count(running_.begin(), running_.end(), true)); }

void remote_host::survivors_end() {
    if (!spoke_) receive(); // it may have spoken by now
    if (!spoke_) abandon();
}

void remote_host::abandon() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
    if (pid_ > 0) kill(-pid_, SIGKILL); // the shell's process group: it may be a child that does not answer
    if (!trouble_.empty()) running_.assign(running_.size(), false);
    if (spoke_) return lost(comm::launch::job_ended, "is lost with its host " + name_ + ": it does not answer");
    lost(0, "was not started: host " + name_ + " has not answered"); // the exit code is that of what ended the job
}

} // namespace halocline::app
