// SPDX-License-Identifier: Apache-2.0
// Ranks of this host as child processes: processors, lifelines (comm/launch.hpp), the socket for the gather, their
// ends.
#pragma once

#include "byte_queue.hpp"
#include "caretaker.hpp"
#include "host.hpp"
#include "leftovers.hpp"
#include "processor_claims.hpp"

#include <array>
#include <csignal>
#include <sys/types.h>

namespace halocline::app {

/// Do ranks get processors of their own? demanded: it is an error if they can't.
enum class binding : char { none, if_possible, demanded };

/// Which ranks of a job this host runs.
struct group_plan {
    int first = 0, count = 0, total = 0;
    binding bind = binding::if_possible;
    bool reads_input = false; ///< does the first of them?
    int output = -1;          ///< replaces standard output
    bool label = false;       ///< is it read here, so that each line gets the rank's number?
    std::vector<std::string> command;
    std::string otherwise; ///< the program if there is none of the command's name here; "": there is no other
};

class local_ranks final : public host {
  public:
    /// signals: those blocked in the ranks.  Err: input_error: processors are demanded, and too few are free.
    local_ranks(group_plan plan, rank_events& events, const sigset_t& signals);
    /// Err: input_error if the program can't be run; no rank is left then.
    void start();
    /// Ends what is left of the ranks.
    ~local_ranks() override;
    local_ranks(const local_ranks&) = delete;
    local_ranks& operator=(const local_ranks&) = delete;

    void watch(std::vector<pollfd>& polled) const override;
    void serve() override;
    bool reaped(int pid, int how) override;
    void answer(std::string_view bytes) override;
    void signal(int number) override;
    void signal_of_terminal(int number) override;
    [[nodiscard]] int running() const override;
    void survivors_end() override;
    std::string end_leftovers(std::chrono::steady_clock::time_point until) override;
    [[nodiscard]] bool starved() const override;
    [[nodiscard]] int pid_of(int rank) const override;
    [[nodiscard]] std::string describe(int rank) const override;
    [[nodiscard]] std::string unfinished() const override;
    [[nodiscard]] std::string name() const override;

  private:
    struct child {
        pid_t pid = -1;
        int socket = -1;
        std::string incoming;
        byte_queue outgoing;
        int output = -1;  // with labels: what it prints
        std::string line; // whose end it has not printed yet
        bool cut = false; // was its begin passed on, as a line of its own?
        bool gave_part = false, running = false;
        double used = 0; // processor time, in seconds, when survivors_end() was called
    };
    void spawn(int i);
    void become_rank(int i, int socket, int output) const;
    void choose_processors();
    /// Err: always input_error: `needed` of the usable processors are required.
    [[noreturn]] void refuse(std::size_t needed, std::size_t usable) const;
    /// For ranks that only their threads keep from being bound.
    void say_unbound(std::size_t threads, std::size_t usable) const;
    void bind(int i) const;
    void make_lifelines();
    void keep_lifelines(int i) const;
    void close_lifelines();
    void take(int i);
    /// Labels what rank i has printed. A line that does not end is passed on in pieces, and the last line as it is once
    /// nobody can print more of it: a rank that has ended may have left a `tee` behind.
    void take_output(int i);
    /// Passes on the line of rank i that has not ended.
    void end_line(int i);
    /// Takes a whole frame from those that were received. False if there is none.
    bool take_frame(int i);

    group_plan plan_;
    rank_events& events_;
    sigset_t signals_;
    std::string job_; // the value of launch::job_variable
    // Processors that ranks are bound to: the same number for each, or one for the same number of ranks; empty: none.
    std::vector<int> processors_;
    bool one_thread_ = false; // given to OpenMP, unless the user says otherwise
    processor_claims claims_;
    std::vector<child> ranks_;
    leftovers leftovers_;
    caretaker caretaker_;
    std::vector<std::array<int, 2>> lifelines_; // reading, writing end; open here only while ranks are being started
};

} // namespace halocline::app
