// SPDX-License-Identifier: Apache-2.0
// The witness speaks for a rank that can't: it is a thread that sleeps until a peer dies. If its rank does not notice
// the death within the grace time, because it computes or because a library call does not return, the witness reports
// who died and ends the process (docs/decisions/0034-witness.md).
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

class witness {
  public:
    /// $HALOCLINE_GRACE_MS, by default 500; 0: no witness.  Err: input_error.
    static std::chrono::milliseconds grace_of_environment();
    /// Watches over the calling thread.  `grace`: the time it has to notice a death.  `at_once`: the launcher may end
    /// this rank as soon as it sees the death, so the witness names the dead rank without waiting, whatever the rank
    /// says.
    /// Pre: core.watch and core.members are complete.  Err: error: no thread or descriptor to be had.
    witness(job_core& core, std::chrono::milliseconds grace, bool at_once);
    ~witness();
    witness(const witness&) = delete;
    witness& operator=(const witness&) = delete;

    /// Called by the rank when it reports the end of the job itself, with these words. Does not return if the witness
    /// has begun to speak.
    void leave_to_rank(const std::string& words);
    /// Called before the job's liveness object is destroyed. From then on only a death that was seen before matters.
    void stop_looking();

  private:
    void run();
    bool await_death();
    void await_end();
    [[nodiscard]] bool starved(double cpu_before) const;
    [[nodiscard]] bool stopped_within(int ms) const;
    [[noreturn]] void speak_and_end();
    void say(std::string words) const;
    [[nodiscard]] std::string own_words() const;

    job_core& core_;
    std::chrono::milliseconds grace_;
    bool at_once_;
    pid_t process_, rank_thread_;
    descriptor wake_; // eventfd
    std::vector<pollfd> watched_;
    std::mutex looking_, speaking_;
    bool resting_ = false; // by looking_
    std::string words_;    // by speaking_: the rank's own
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

} // namespace halocline::comm
