// SPDX-License-Identifier: Apache-2.0
// The signals that the launcher and its agents read from a descriptor.
#pragma once

#include <halocline/base/error.hpp>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <sys/signalfd.h>

namespace halocline::app {

/// To be called before a rank is started: SIGCHLD, those that ask for the job's end, and the user's own. Signals that
/// were ignored when we were started, as by `nohup` and shells, are left out: a blocked signal, as needed for a
/// descriptor, would arrive there although it is ignored. An ignored SIGCHLD, which some parents leave behind, is
/// watched: otherwise ranks would end unnoticed.
inline sigset_t watched_signals() {
    sigset_t watched;
    sigemptyset(&watched);
    std::signal(SIGCHLD, SIG_DFL);
    sigaddset(&watched, SIGCHLD);
    for (const int n : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
        struct sigaction now {};
        if (sigaction(n, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&watched, n);
    }
    return watched;
}

/// Is it a user's signal for the ranks, without meaning for whoever passes it on?
inline bool is_for_ranks(unsigned number) { return number == SIGUSR1 || number == SIGUSR2; }

/// Blocks them in this process, and in a program that it becomes.
inline void block_signals_for_ranks() {
    sigset_t users;
    sigemptyset(&users);
    for (const int n : {SIGUSR1, SIGUSR2}) sigaddset(&users, n);
    sigprocmask(SIG_BLOCK, &users, nullptr);
}

/// The descriptor on which they arrive.  Err: input_error.
inline int descriptor_of(const sigset_t& watched) {
    const int fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd >= 0) return fd;
    const bool forbidden = errno == EPERM || errno == EACCES || errno == ENOSYS;
    throw input_error(
        std::string("signalfd: ") + std::strerror(errno) +
        (forbidden ? "; allow that system call (a container's seccomp profile may forbid it), or start the ranks by an "
                     "MPI's launcher"
                   : "; raise 'ulimit -n'"));
}

} // namespace halocline::app
