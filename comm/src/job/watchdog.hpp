// SPDX-License-Identifier: Apache-2.0
// The watchdog of a rank: a thread that sleeps until a peer dies. If the rank does not notice the death within the
// grace time, because it is computing or because a library call does not return, the watchdog reports who died and ends
// the process (docs/decisions/0034-watchdog.md). It also ends a process that its launcher has given up, or left.
#pragma once

#include "activity.hpp"
#include "control/descriptor.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <poll.h>
#include <string>
#include <sys/types.h>
#include <thread>
#include <vector>

namespace halocline::comm {

class job_core;

class watchdog {
  public:
    /// $HALOCLINE_GRACE_MS, by default 500; 0: no watchdog.  Err: input_error.
    static std::chrono::milliseconds grace_of_environment();
    /// Watches over the calling thread.  `grace`: the time it has to notice a death.  `at_once`: report who died
    /// without waiting, even if the rank reports it too: for launchers that may end this rank as soon as they see the
    /// death.  `launcher_end`: a socket that hangs up when this process has no launcher any more; -1: none.
    /// Pre: core.alive and core.members are complete.  Err: error: no thread or descriptor available.
    watchdog(job_core& core, std::chrono::milliseconds grace, bool at_once, int launcher_end);
    ~watchdog();
    watchdog(const watchdog&) = delete;
    watchdog& operator=(const watchdog&) = delete;

    /// Called by the rank when it reports the end of the job itself, with this text. Does not return if the watchdog
    /// has begun its own report.
    void leave_report_to_rank(const std::string& text);
    /// Called before the job's liveness object is destroyed. From then on only a death that somebody saw before
    /// matters.
    void stop_looking();

  private:
    void run();
    bool await_death();
    /// Called every `look_ms`: ends the job once the rank has been in one blocking call for the length of its deadline.
    void look_at_call() noexcept;
    void await_end();
    [[nodiscard]] bool starved(double cpu_before, double grace) const;
    [[nodiscard]] bool stopped_within(int ms) const;
    [[noreturn]] void report_and_exit();
    [[noreturn]] void end_without_launcher();
    /// What ended the job, and what the rank does; if it was given `time` to notice, also what it did not do.
    enum class time : bool { none, enough };
    [[nodiscard]] std::string own_report(time given) const;

    job_core& core_;
    std::chrono::milliseconds grace_;
    bool at_once_;
    pid_t process_, rank_thread_;
    descriptor wake_; // eventfd
    std::vector<pollfd> watched_;
    std::mutex looking_, reporting_;
    bool blind_ = false;         // guarded by looking_: stop_looking() was called
    std::string report_of_rank_; // guarded by reporting_: the argument of leave_report_to_rank()
    std::string said_at_once_;
    static constexpr int look_ms = 100;
    std::uint64_t call_ = 0; // activity::library_calls when last checked
    int looks_ = 0;          // checks during that call
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

} // namespace halocline::comm
