// SPDX-License-Identifier: Apache-2.0
// Ranks on a host, as the launcher sees them, whether it starts them itself or through an agent there.
#pragma once

#include <chrono>
#include <poll.h>
#include <string>
#include <string_view>
#include <vector>

namespace halocline::app {

/// How a rank ended.
struct ending {
    int pid = 0;
    int code = 0;     ///< its exit code, or 128 + signal
    int signal = 0;   ///< which ended it; 0: none, whatever its exit code is
    std::string text; ///< "died of signal 9", "ended with exit code 7"
};

/// Events reported by a host.
class rank_events {
  public:
    virtual ~rank_events() = default;
    /// A rank's part of a gather.
    virtual void part(int rank, std::string bytes) = 0;
    /// A rank that has given its part has waited too long, and asks who is missing.
    virtual void asked_who(int rank) = 0;
    virtual void ended(int rank, const ending& how) = 0;
    /// Ranks have written to standard output: those of a remote host, or with labels.
    virtual void printed(std::string_view text) = 0;
    /// May more be printed? Otherwise it waits in pipes.
    [[nodiscard]] virtual bool has_room() const { return true; }
    /// Called again and again while what ranks have left behind has time to end: passes on what it prints.
    virtual void leftovers_end() = 0;
};

class host {
  public:
    virtual ~host() = default;
    /// Appends the descriptors to be polled before the next serve().
    virtual void watch(std::vector<pollfd>& polled) const = 0;
    /// Reads and writes as much as possible without blocking.
    virtual void serve() = 0;
    /// A child process of the launcher has ended; `how` is waitpid's status. True if it was this host's.
    virtual bool reaped(int pid, int how) = 0;
    /// Answers all of its ranks that have given their part.
    virtual void answer(std::string_view bytes) = 0;
    virtual void signal(int number) = 0;
    /// One that a terminal has sent to the process group of this process, too.
    virtual void signal_of_terminal(int number) { signal(number); }
    /// Number of ranks whose end has not been reported yet.
    [[nodiscard]] virtual int running() const = 0;
    /// The job has failed: from now on survivors report and end.
    virtual void survivors_end() {}
    /// Is there a survivor that wants to run but has not been given a second of processor time since?
    [[nodiscard]] virtual bool starved() const { return false; }
    /// The pid of one of its ranks; 0: unknown.
    [[nodiscard]] virtual int pid_of(int) const { return 0; }
    /// "rank 2 (pid 4711, running)", or less.
    [[nodiscard]] virtual std::string describe(int rank) const { return "rank " + std::to_string(rank); }
    /// "rank 2 (pid 4711, running), rank 3 (pid 4712, sleeping)": the ranks that have not ended.
    [[nodiscard]] virtual std::string unfinished() const = 0;
    /// Waits until `until` for whatever its ranks have started to end, and kills the rest: "heat4d (pid 4711)", "":
    /// nothing was left.  Pre: its ranks have ended.
    virtual std::string end_leftovers(std::chrono::steady_clock::time_point) { return ""; }
    /// Gives up on ranks that can't be ended.
    virtual void abandon() {}
    [[nodiscard]] virtual std::string name() const = 0;
};

} // namespace halocline::app
