// SPDX-License-Identifier: Apache-2.0
// A foreign program that takes part in the rounds of a bench: it answers each order, a line on its standard input, with
// one line of times. It is a separate program because two MPI libraries can't share a process.
// Between orders it sleeps; while it works, the ranks of the bench sleep.
#pragma once

#include "support/rounds.hpp"

#include <cstdio>
#include <string>
#include <sys/types.h>
#include <vector>

namespace halocline::bench {

class peer_program {
  public:
    /// "NAME=COMMAND".  Err: input_error otherwise.
    explicit peer_program(const std::string& name_and_command);
    /// Closes its input, which tells it to end, and waits for that.
    ~peer_program();
    peer_program(const peer_program&) = delete;
    peer_program& operator=(const peer_program&) = delete;

    [[nodiscard]] const std::string& name() const { return name_; }
    /// On rank 0: runs the command with /bin/sh on these processors: those of all ranks of the bench, though this rank
    /// may be bound to one.
    void start(const std::vector<int>& processors);
    /// Collective: rank 0 gives the order; every rank gets the answer: numbers, measures separated by ';'.
    /// Err: error if the program has ended or answers something else.
    slice_times ask(const comm::job& j, const std::string& order);

  private:
    [[nodiscard]] std::string answer_to(const std::string& order);

    std::string name_, command_;
    pid_t process_ = -1;
    std::FILE *orders_ = nullptr, *answers_ = nullptr;
};

} // namespace halocline::bench
