// SPDX-License-Identifier: Apache-2.0
// Ranks of another host, through an agent (agent.hpp) that the remote shell starts there. They communicate over the
// shell's standard input and output: no port is opened for it, and the shell authenticates both ends.
#pragma once

#include "byte_queue.hpp"
#include "host.hpp"
#include "local_ranks.hpp"

#include <optional>

namespace halocline::app {

class remote_host final : public host {
  public:
    /// shell: a command line in which "{host}" stands for the name; without it the name is appended.  variables: more of
    /// them for the ranks, "NAME=value".
    /// Err: input_error.
    remote_host(std::string host_name, const std::string& shell, const std::vector<std::string>& variables,
                const group_plan& plan, rank_events& events, const sigset_t& signals);
    ~remote_host() override;
    remote_host(const remote_host&) = delete;
    remote_host& operator=(const remote_host&) = delete;

    void watch(std::vector<pollfd>& polled) const override;
    void serve() override;
    bool reaped(int pid, int how) override;
    void answer(std::string_view bytes) override;
    void signal(int number) override;
    [[nodiscard]] int running() const override;
    [[nodiscard]] std::string unfinished() const override;
    /// Gives up on ranks whose agent has not spoken. If it starts them all the same, they end with its connection.
    void survivors_end() override;
    void abandon() override;
    [[nodiscard]] std::string name() const override { return name_; }
    /// Why there is no agent, or why it can't start the ranks: bad input of the user.
    [[nodiscard]] const std::string& trouble() const { return trouble_; }

  private:
    void receive();
    void understand();
    /// Passes on whole lines, so that lines of different hosts are not torn apart. A line waits for its end until it is
    /// long, or until no rank here could print that.
    void print(std::string_view text);
    void print_unfinished_line();
    void rank_ended(int rank, const ending& how);
    /// The shell has ended, and so has the agent.
    void gone();
    /// The ranks that run have ended like this.
    void lost(int code, const std::string& text);

    std::string name_, shell_, trouble_;
    rank_events& events_;
    int first_;
    std::vector<bool> running_;
    int pid_ = -1, socket_ = -1;
    bool spoke_ = false;
    std::optional<int> shell_ended_; // with that exit code
    std::string incoming_, line_;
    byte_queue outgoing_;
};

} // namespace halocline::app
