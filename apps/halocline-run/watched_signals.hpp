// SPDX-License-Identifier: Apache-2.0
// The signals that the launcher and its agents take from a descriptor.
#pragma once

#include <csignal>

/// Before a rank is started: SIGCHLD, and those that ask for the job's end. Not those that whoever started us has
/// ignored, as `nohup` and shells do: a signal that is blocked, as it must be for a descriptor, arrives there although
/// it is ignored. An ignored SIGCHLD, which some parents leave behind, is not: ranks would end without a trace.
inline sigset_t watched_signals() {
    sigset_t watched;
    sigemptyset(&watched);
    std::signal(SIGCHLD, SIG_DFL);
    sigaddset(&watched, SIGCHLD);
    for (const int n : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction now {};
        if (sigaction(n, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&watched, n);
    }
    return watched;
}
