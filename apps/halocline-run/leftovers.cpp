// SPDX-License-Identifier: Apache-2.0
#include "leftovers.hpp"

#include "job/process_look.hpp"

#include <halocline/comm/detail/launch.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace halocline::app {
namespace {

using clock_type = std::chrono::steady_clock;
constexpr auto patience = std::chrono::seconds(2);

std::string name_of(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/comm");
    std::string name;
    std::getline(file, name);
    return name;
}

bool is_caretaker(pid_t process) { return name_of(process) == caretakers_name; }

/// All processes of the machine that this one can see.
std::vector<pid_t> processes() {
    std::vector<pid_t> all;
    std::error_code none;
    for (std::filesystem::directory_iterator at("/proc", none), end; !none && at != end; at.increment(none)) {
        const std::string name = at->path().filename();
        pid_t process = 0;
        const char* last = name.data() + name.size();
        if (std::from_chars(name.data(), last, process).ptr == last && process > 0) all.push_back(process);
    }
    return all;
}

/// In ticks since the machine started; "": it does not exist.
std::string start_of(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string line, field;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')'); // the name may contain anything
    if (name_end == std::string::npos) return "";
    std::istringstream rest(line.substr(name_end + 1));
    for (int number = 3; number <= 22; ++number) rest >> field; // proc(5)
    return field;
}

/// Those that have not ended, except those for which `leave_out` is true, and their descendants.
template <class Predicate>
std::vector<pid_t> descendants(Predicate leave_out) {
    std::map<pid_t, pid_t> parents;
    std::vector<pid_t> found;
    for (const pid_t p : processes()) {
        const comm::process_look look = comm::look_at(std::to_string(p));
        if (look.state != 'Z' && !leave_out(p)) parents[p] = look.parent;
    }
    for (const auto& [p, parent] : parents) {
        pid_t ancestor = parent;
        // Processes may have ended, and their numbers may have been given away, between two looks: no endless chain.
        for (std::size_t steps = 0; ancestor != getpid() && steps < parents.size(); ++steps) {
            const auto next = parents.find(ancestor);
            ancestor = next == parents.end() ? 0 : next->second;
        }
        if (ancestor == getpid()) found.push_back(p);
    }
    return found;
}

std::vector<pid_t> processes_with(const std::string& variable) {
    std::vector<pid_t> found = processes();
    std::erase_if(found, [&](pid_t p) {
        if (is_caretaker(p)) return true;
        std::ifstream file("/proc/" + std::to_string(p) + "/environ", std::ios::binary);
        for (std::string entry; std::getline(file, entry, '\0');)
            if (entry == variable) return false;
        return true;
    });
    return found;
}

/// "heat4d (pid 4711), cat (pid 4712) and 2 more"
std::string names_of(const std::vector<pid_t>& some) {
    constexpr std::size_t most = 8;
    std::string names;
    for (std::size_t i = 0; i < std::min(most, some.size()); ++i)
        names += (i == 0 ? "" : ", ") + name_of(some[i]) + " (pid " + std::to_string(some[i]) + ")";
    return some.size() > most ? names + " and " + std::to_string(some.size() - most) + " more" : names;
}

void wait_a_moment() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

} // namespace

leftovers::leftovers() {
    for (const pid_t p : descendants([](pid_t) { return false; })) before_[p] = start_of(p);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

bool leftovers::was_there_before(pid_t process) const {
    const auto p = before_.find(process);
    return p != before_.end() && p->second == start_of(process);
}

bool leftovers::any() const {
    pid_t ended = 0;
    while ((ended = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (ended != 0 || before_.empty()) return ended == 0;
    return !descendants([&](pid_t p) { return was_there_before(p); }).empty();
}

std::string leftovers::kill() const {
    std::string killed;
    for (const auto end = clock_type::now() + patience; any() && clock_type::now() < end; wait_a_moment()) {
        const std::vector<pid_t> left = descendants([&](pid_t p) { return is_caretaker(p) || was_there_before(p); });
        if (killed.empty()) killed = names_of(left);
        std::ranges::for_each(left, [](pid_t p) { ::kill(p, SIGKILL); });
    }
    return killed;
}

void kill_job(const std::string& job) {
    const std::string variable = comm::launch::job_variable + ("=" + job);
    const auto begin = clock_type::now();
    for (auto now = begin; now < begin + 2 * patience; now = clock_type::now()) {
        const std::vector<pid_t> left = processes_with(variable);
        if (left.empty()) return;
        if (now >= begin + patience) std::ranges::for_each(left, [](pid_t p) { kill(p, SIGKILL); });
        wait_a_moment();
    }
}

} // namespace halocline::app
