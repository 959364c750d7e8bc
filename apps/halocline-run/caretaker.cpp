// SPDX-License-Identifier: Apache-2.0
#include "caretaker.hpp"

#include "leftovers.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/detail/launch.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <string>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace halocline::app {
namespace {

/// All but standard input. Kernels before 5.9 have no close_range(), and a container's seccomp profile may forbid it.
void close_the_rest() {
    if (close_range(1, ~0U, 0) == 0) return;
    std::vector<int> rest;
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd", none))
        rest.push_back(std::atoi(file.path().filename().c_str()));
    for (const int file : rest)
        if (file > 0) ::close(file);
}

[[noreturn]] void take_care(int lifeline, const std::string& job) {
    prctl(PR_SET_NAME, caretakers_name);
    std::vector<pid_t> ranks;
    std::vector<pollfd> ends;
    for (pid_t rank = 0;;) {
        const ssize_t n = ::read(lifeline, &rank, sizeof rank);
        if (n < 0 && errno == EINTR) continue;
        if (n != static_cast<ssize_t>(sizeof rank)) break; // the launcher has ended
        ranks.push_back(rank);
        ends.push_back({static_cast<int>(syscall(SYS_pidfd_open, rank, 0)), POLLIN, 0});
    }
    constexpr int most_ms = 5000; // they are killed together with their launcher
    for (pollfd& end : ends) poll(&end, 1, most_ms);
    for (const pid_t rank : ranks) remove_shared_files_of(rank);
    kill_job(job);
    _exit(0);
}

} // namespace

void remove_shared_files_of(pid_t rank) {
    const std::string start = comm::launch::shared_file_prefix + std::to_string(rank) + '-';
    std::error_code none; // nothing there, or another user's: nothing to remove
    for (const auto& file : std::filesystem::directory_iterator("/dev/shm", none))
        if (file.path().filename().string().starts_with(start)) std::filesystem::remove(file, none);
}

void caretaker::start(const std::string& job) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
        throw input_error(std::string("no pipe to a caretaker: ") + std::strerror(errno) + "; raise 'ulimit -n'");
    lifeline_ = ends[1];
    process_ = fork();
    if (process_ < 0)
        throw input_error(std::string("no process for a caretaker: ") + std::strerror(errno) + "; raise 'ulimit -u'");
    if (process_ == 0) {
        setsid(); // a terminal's signals to the launcher are not meant for it
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, nullptr);
        dup2(ends[0], 0);
        ::close(ends[1]); // or it would wait for its own end
        close_the_rest(); // so that readers of the launcher's output see its end
        take_care(0, job);
    }
    ::close(ends[0]);
}

void caretaker::add(pid_t rank) const { [[maybe_unused]] const ssize_t n = ::write(lifeline_, &rank, sizeof rank); }

bool caretaker::reaped(pid_t pid) {
    if (process_ <= 0 || pid != process_) return false;
    ::close(lifeline_);
    process_ = lifeline_ = -1;
    return true;
}

caretaker::~caretaker() { dismiss(); }

void caretaker::dismiss() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL); // the launcher has removed the files
    waitpid(process_, nullptr, 0);
    ::close(lifeline_);
    process_ = lifeline_ = -1;
}

} // namespace halocline::app
