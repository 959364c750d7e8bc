// SPDX-License-Identifier: Apache-2.0
// What the kernel reports about a process or one of its threads.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <unistd.h>

namespace halocline::comm {

struct process_look {
    char state = '?';   ///< 'R' running or ready to run, 'T' stopped, 'Z' ended
    int parent = 0;     ///< process that started it
    double seconds = 0; ///< processor time used
    int threads = 0;    ///< of the process
    bool ends = false;  ///< it is being ended, or has ended: it runs no more of its program
};

/// Reads /proc/`which`: "self", "4711" or "4711/task/4712". State '?' if it does not exist.
inline process_look look_at(const std::string& which) {
    std::ifstream file("/proc/" + which + "/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')'); // the name may contain anything
    if (name_end == std::string::npos) return {};
    std::istringstream rest(line.substr(name_end + 1));
    process_look look;
    rest >> look.state >> look.parent;
    std::string skipped;
    for (int field = 5; field < 9; ++field) rest >> skipped; // proc(5)
    unsigned long flags = 0;
    rest >> flags;
    constexpr unsigned long exiting = 0x4; // PF_EXITING
    look.ends = (flags & exiting) != 0;
    for (int field = 10; field < 14; ++field) rest >> skipped;
    double user = 0, system = 0;
    rest >> user >> system;
    look.seconds = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
    for (int field = 16; field < 20; ++field) rest >> skipped;
    rest >> look.threads;
    return look;
}

/// 'T' if any thread is stopped; else 'R' if any runs, else 'D' if any waits in the kernel; else the state of the
/// process. '?': there is none.
inline char state_of(int pid) {
    const std::string process = std::to_string(pid);
    char state = look_at(process).state;
    std::error_code gone; // by ++ of a range's loop it would be thrown
    for (std::filesystem::directory_iterator thread("/proc/" + process + "/task", gone), end; !gone && thread != end;
         thread.increment(gone)) {
        const char s = look_at(process + "/task/" + thread->path().filename().string()).state;
        if (s == 'T' || s == 't') return 'T';
        if (s == 'R' || (s == 'D' && state != 'R')) state = s;
    }
    return state;
}

} // namespace halocline::comm
