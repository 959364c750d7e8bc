// SPDX-License-Identifier: Apache-2.0
// What the kernel reports about a process or one of its threads.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

namespace halocline::comm {

struct process_look {
    char state = '?';   ///< 'R' running or ready to run, 'T' stopped, 'Z' ended
    double seconds = 0; ///< processor time used
};

/// Reads /proc/`which`, "4711" or "4711/task/4712". State '?' if it does not exist.
inline process_look look_at(const std::string& which) {
    std::ifstream file("/proc/" + which + "/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')'); // the name may contain anything
    if (name_end == std::string::npos) return {};
    std::istringstream rest(line.substr(name_end + 1));
    process_look look;
    rest >> look.state;
    std::string skipped;
    for (int field = 4; field < 14; ++field) rest >> skipped; // proc(5)
    double user = 0, system = 0;
    rest >> user >> system;
    look.seconds = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
    return look;
}

} // namespace halocline::comm
