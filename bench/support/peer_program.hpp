// SPDX-License-Identifier: Apache-2.0
// Foreign programs that take part in the rounds of a bench: each answers every order, a line on its standard input, with
// one line of times. They are separate programs because two MPI libraries can't share a process.
// Between orders they sleep; while one works, the ranks of the bench sleep.
#pragma once

#include "support/rounds.hpp"

#include <cstddef>
#include <cstdio>
#include <deque>
#include <string>
#include <sys/types.h>
#include <vector>

namespace halocline::bench {

/// What --peer says.
struct peer_description {
    std::string name, command;
    std::vector<std::string> modes{}; ///< those that it names; empty: none
};

/// Reads "NAME=COMMAND", or with `modes` also "NAME:MODE,MODE…=COMMAND".
/// Err: input_error: anything else, such as an empty list of modes.
peer_description described_peer(const std::string& text, bool modes);

class peer_program {
  public:
    explicit peer_program(peer_description d) : description_(std::move(d)) {}
    /// Closes its input, which tells it to end, and waits for that. Whatever of its command still runs 5 s later is ended
    /// by a signal.
    ~peer_program();
    peer_program(const peer_program&) = delete;
    peer_program& operator=(const peer_program&) = delete;

    [[nodiscard]] const std::string& name() const { return description_.name; }
    [[nodiscard]] const std::vector<std::string>& modes() const { return description_.modes; }
    /// On rank 0: runs the command with /bin/sh, in a process group of its own, on `usable`: the processors of all ranks
    /// of the bench, though this rank may be bound to one. `own`: one for each rank of the bench, to which the peer's
    /// ranks bind themselves; empty if some share. A signal that ends this process ends that group, too.
    void start(const std::vector<int>& usable, const std::vector<int>& own);
    /// Collective: rank 0 gives the order; every rank gets the answer: numbers, `measures` lists separated by ';'.
    /// Err: error if the program has ended or answers something else.
    slice_times ask(const comm::job& j, const std::string& order, std::size_t measures);

  private:
    [[nodiscard]] std::string answer_to(const std::string& order);
    /// The shell and whatever it has started.  Pre: start() was called.
    [[nodiscard]] bool all_ended() const;

    peer_description description_;
    pid_t process_ = -1;
    std::FILE *orders_ = nullptr, *answers_ = nullptr;
};

/// All peers of a bench, in the order of --peer.
class peer_set {
  public:
    /// Collective: rank 0 starts them, then each rank of the bench is bound (pin_ranks).  Err: input_error
    /// (described_peer), error.
    peer_set(const comm::job& j, const std::vector<std::string>& texts, bool modes = false);
    [[nodiscard]] std::deque<peer_program>& all() { return programs_; }
    /// Collective, when the last order is answered: ends them, before ranks leave the job. Their launchers take a while,
    /// during which nobody should wait for rank 0's farewells.
    void leave();

  private:
    comm::job job_;
    std::deque<peer_program> programs_;
};

} // namespace halocline::bench
