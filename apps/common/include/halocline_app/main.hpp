// SPDX-License-Identifier: Apache-2.0
// What all programs have in common: parse the command line, join the job, print once per job, map exceptions to exit
// codes. Invariant: an input error is the same on every rank (thanks to job::collectively, and to comm::share_bad_input
// before there is a job), so only rank 0 prints it; a job error differs from rank to rank, so each survivor prints its
// own.
#pragma once

#include <halocline/comm/job.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace halocline::app {

/// Exit codes of all programs.
enum exit_code : int {
    exit_success = 0,
    exit_failure = 1, ///< not converged, a result that could not be written, or an error that fits nowhere else
    exit_input = 2,   ///< bad flag, config, grid or file, reported before the work; the same on every rank
    exit_job = 3,     ///< a rank died or a deadline passed
};

/// Of all programs: "0.1.0".
std::string version();

/// This rank's run of a program.
class program {
  public:
    /// `name` opens error messages.
    explicit program(std::string name);
    /// Rank 0 speaks for the job. Before join() the rank is taken from the launcher's environment.
    [[nodiscard]] bool speaks() const { return rank_ == 0; }
    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] const std::string& name() const { return name_; }
    /// Reads the command line.  `--help` prints on rank 0 and ends the program with 0.  Err: input_error.
    void parse(CLI::App& cli, int argc, const char* const* argv) const;
    /// Joins the job of the environment.  Collective, once.  Err: input_error, job_error.
    const comm::job& join(const comm::job_options& options = {});
    /// Checks that all ranks have the same words on their command line. Collective, after join().  Err: input_error
    /// with those of two ranks that differ.
    void agree_on(int argc, const char* const* argv) const;
    [[nodiscard]] bool joined() const { return job_ != nullptr; }
    /// Was join() called? Then all ranks know of any exception that it threw.
    [[nodiscard]] bool met() const { return met_; }
    /// Pre: joined().
    [[nodiscard]] const comm::job& job() const { return *job_; }
    /// Prints a line on stdout, only on rank 0, at once (so that progress shows through a pipe).
    void print(std::string_view line) const;
    /// A result could not be written: `what` says where and why. The run continues, reports this at the end, and fails.
    void lose_output(std::string what) const;
    /// All outputs that were lost, each once.
    [[nodiscard]] const std::vector<std::string>& lost_outputs() const { return lost_outputs_; }
    /// True if stdout is a terminal.
    [[nodiscard]] static bool on_terminal();
    /// A line that replaces itself: redrawn in place on a terminal, otherwise not printed.  "" clears it.
    void print_progress(std::string_view line) const;

  private:
    std::string name_;
    int rank_ = 0;
    bool met_ = false;
    mutable std::vector<std::string> lost_outputs_;
    std::unique_ptr<comm::job> job_;
};

/// The job options of a program without a config file of its own: from $HALOCLINE_CONFIG, the environment, and its flag
/// --transport ("": not given).  Err: config_error.
comm::job_options job_options_of_environment(const std::string& transport_flag);

/// out += the formatted line and a line feed.
__attribute__((format(printf, 2, 3))) void append_line(std::string& out, const char* format, ...);

/// Runs `body` and returns the exit code of the program.  Exceptions become messages on stderr and a code: of an
/// input_error 2, told by rank 0 at once, because all ranks have found the same; of others that of
/// comm::end_by_exception().
int run_program(int argc, const char* const* argv,
                const std::function<int(program& p, int argc, const char* const* argv)>& body);

} // namespace halocline::app
