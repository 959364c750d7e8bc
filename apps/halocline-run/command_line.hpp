// SPDX-License-Identifier: Apache-2.0
// The command line of halocline-run.
#pragma once

#include "local_ranks.hpp"

#include <string>
#include <vector>

namespace halocline::app {

struct host_share {
    std::string name;
    int ranks = 1;
};

struct launch_settings {
    int ranks = 0;
    double timeout = 0; ///< seconds, 0: none
    binding bind = binding::if_possible;
    std::vector<host_share> hosts;      ///< empty: this host
    std::string remote_shell;           ///< "{host}" stands for the name
    bool label = false;                 ///< does each line of a rank's output begin with its number?
    std::vector<std::string> variables; ///< for the ranks: "NAME=value"
    std::string network;
    std::string config; ///< absolute; "": none
    std::vector<std::string> command;
};

/// Prints the help and exits if requested.  Err: input_error.
launch_settings parse(int argc, char** argv);

} // namespace halocline::app
