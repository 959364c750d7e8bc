// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of a job, lets them meet (comm/launch.hpp), and ends when they have.
#pragma once

#include "byte_queue.hpp"
#include "command_line.hpp"
#include "host.hpp"
#include "pause_watch.hpp"

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace halocline::app {

class remote_host;

class launcher final : public rank_events {
  public:
    explicit launcher(launch_settings s);
    /// Runs the job. Returns its exit code (docs/decisions/0035-exit-codes.md).  Err: input_error.
    int run();

    void part(int rank, std::string bytes) override;
    void asked_who(int rank) override;
    void ended(int rank, const ending& how) override;
    void printed(std::string_view text) override;
    [[nodiscard]] bool has_room() const override;
    void leftovers_end() override { write_output(); }

  private:
    using clock_type = std::chrono::steady_clock;

    /// A rank's part of the gather under way, and its end.
    struct rank_state {
        std::optional<std::string> part;
        std::optional<ending> how;
        int ended_as = 0; ///< its position in the order of ends
        const host* at = nullptr;
    };

    void start();
    void add(std::unique_ptr<host> h, const group_plan& ranks);
    [[nodiscard]] bool anybody_runs() const;
    /// Can a host not start its ranks?
    [[nodiscard]] bool in_trouble() const;

    /// One turn of run()'s loop.
    void turn();
    // Its steps.
    void wait();
    /// Adds a pause of this process to the time that ranks have to end.
    void forgive_pause();
    void take_signals();
    void reap();
    void meet();
    void write_output();
    void keep_time();

    /// Milliseconds until the next turn is due: keep_time() has to check the time; -1: it has not.
    [[nodiscard]] int patience() const;
    /// Among the ranks that have ended and satisfy `is_meant`, the first, preferably one that did not end for losing
    /// another; nullptr if there is none.
    template <class Predicate>
    [[nodiscard]] const rank_state* first_to_end(Predicate is_meant) const;
    /// The rank to blame if a gather can't be completed; nullptr if it still can.
    [[nodiscard]] const rank_state* missing() const;
    void answer_all(const std::string& bytes);
    /// The ranks that have not given a part: "rank 2 (pid 4711, stopped) on nodeA, rank 5 on nodeB and 2 more".
    [[nodiscard]] std::string name_the_missing() const;

    /// Of the ranks that a signal to all has ended, only the first is reported: ^C is not as many errors.
    void report_end(int rank, const ending& how);
    void take_exit_code(const ending& how);
    /// From now on ranks have a limited time to end on their own; then they are killed.
    void start_grace();
    /// On a loaded machine a survivor may not have had its turn yet.
    [[nodiscard]] bool wants_more_time(clock_type::time_point now) const;
    /// Names the rank that failed first if none has joined the job: those that join report each other.
    void name_the_failed() const;
    /// Names survivors that could not report, for instance because a library waits for the dead inside a call, or
    /// because they are stopped.
    void name_the_unfinished() const;
    void signal_all(int number, bool of_terminal = false);
    void kill_all();
    /// Output that nobody reads does not keep a job that was told to end: once all ranks have ended, it has a limited
    /// time, too.
    void limit_output(clock_type::time_point now);
    /// Ends what ranks have started and not waited for. The rest of the grace time is theirs: a `tee` may have to write
    /// its last lines.
    void end_leftovers();

    launch_settings settings_;
    std::vector<std::unique_ptr<host>> hosts_;
    std::vector<const remote_host*> remote_;
    std::vector<rank_state> ranks_;
    sigset_t before_{}; // signals blocked when the launcher started
    int signals_ = -1;
    int exit_code_ = 0;
    bool code_of_crash_ = false; // is it that of a rank which a signal ended, and nobody's wish?
    byte_queue output_;          // of ranks on other hosts or with labels, to be passed on
    int lost_output_ = 0;        // errno for output that could not be
    int ends_ = 0;               // number of ranks that have ended
    // Is the cause of the job's end known: a signal, or the time limit? Otherwise it is the rank that ends with its own
    // code.
    bool cause_known_ = false;
    bool anybody_joined_ = false; // has a rank ever given a part of a gather?
    bool told_to_end_ = false;    // by a signal, or by the time limit
    bool killing_ = false;
    bool leftovers_end_ = false; // have they their time now?
    int sent_to_all_ = 0;        // the last signal
    bool told_sent_to_all_ = false;
    pause_watch pauses_;
    clock_type::time_point grace_began_{};
    std::optional<clock_type::time_point> deadline_, kill_at_, abandon_at_, drop_at_;
};

} // namespace halocline::app
