// SPDX-License-Identifier: Apache-2.0
#include "missing_ranks.hpp"

#include "job/job_core.hpp"
#include "job/process_look.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>
#include <system_error>
#include <unistd.h>

namespace halocline::comm {
namespace {

/// How a launcher tells a process its place. Open MPI first, as in library.cpp.
struct place_variables {
    const char *rank, *ranks, *on_host;
};
constexpr place_variables known[]{{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                  {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"}};

std::optional<int> number(std::string_view text) {
    int value = 0;
    const auto [rest, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (bad != std::errc() || rest != text.data() + text.size() || value < 0) return std::nullopt;
    return value;
}

std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A number in the environment that a process was started with. nullopt also if it may not be read.
std::optional<int> environment_number(int pid, std::string_view name) {
    const std::string all = content("/proc/" + std::to_string(pid) + "/environ");
    for (std::string_view rest = all; !rest.empty();) {
        const std::string_view entry = rest.substr(0, rest.find('\0'));
        rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
        if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
            return number(entry.substr(name.size() + 1));
    }
    return std::nullopt;
}

std::string name_of(const std::string& process) { // a path below /proc
    std::string name = content("/proc/" + process + "/comm");
    if (name.ends_with('\n')) name.pop_back();
    return name;
}

bool joins(int pid) {
    const std::string process = std::to_string(pid);
    std::error_code gone;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/" + process + "/task", gone))
        if (name_of(process + "/task/" + thread.path().filename().string()) == joining_thread) return true;
    return false;
}

/// The process that started this rank: the first above it without a rank. 0 if none is visible.
int launcher_above(int pid, const char* rank_variable) {
    while (pid > 1 && environment_number(pid, rank_variable)) pid = look_at(std::to_string(pid)).parent;
    return pid;
}

/// Steps from a process up to another one; -1 if that is not above it.
int steps_up(int pid, int to) {
    for (int steps = 0; pid > 0 && steps < 64; ++steps) {
        if (pid == to) return steps;
        pid = look_at(std::to_string(pid)).parent;
    }
    return -1;
}

std::string described(const seen_rank& r, const std::string& host) {
    const char* const doing = r.state == 'T' ? "stopped" : r.state == 'R' || r.state == 'D' ? "running" : "asleep";
    return "rank " + std::to_string(r.rank) + " (pid " + std::to_string(r.pid) + " on " + host + ", '" + r.program +
           "', " + doing + ")";
}

} // namespace

std::optional<ranks_of_host> ranks_on_this_host() {
    const int self = static_cast<int>(getpid());
    const auto* const variables = std::ranges::find_if(
        known, [&](const place_variables& v) { return environment_number(self, v.rank).has_value(); });
    if (variables == std::end(known)) return std::nullopt;
    const std::optional<int> ranks = environment_number(self, variables->ranks),
                             here = environment_number(self, variables->on_host);
    const int launcher = launcher_above(self, variables->rank);
    if (!ranks || !here || launcher == 0) return std::nullopt;

    struct process {
        int pid, steps;
        bool joins;
    };
    std::map<int, process> by_rank; // of a rank's processes the one that joins, else the last one that it started
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
        const std::optional<int> pid = number(entry.path().filename().string());
        if (!pid) continue;
        const std::optional<int> rank = environment_number(*pid, variables->rank);
        if (!rank) continue;
        const process found{*pid, steps_up(*pid, launcher), comm::joins(*pid)};
        if (found.steps < 0) continue;
        const auto [at, is_first] = by_rank.try_emplace(*rank, found);
        if (!is_first && !at->second.joins && (found.joins || found.steps > at->second.steps)) at->second = found;
    }
    ranks_of_host host{.host = host_name(), .ranks = *ranks, .here = *here};
    for (const auto& [rank, p] : by_rank)
        host.seen.push_back({rank, p.pid, p.joins, state_of(p.pid), name_of(std::to_string(p.pid))});
    return host;
}

std::string missing_ranks(const ranks_of_host& h) {
    constexpr std::size_t most_named = 8;
    std::vector<std::string> late;
    for (const seen_rank& r : h.seen)
        if (!r.joins) late.push_back(described(r, h.host));
    std::string text;
    for (std::size_t i = 0; i < std::min(late.size(), most_named); ++i) text += (i == 0 ? "" : ", ") + late[i];
    if (late.size() > most_named) text += " and " + std::to_string(late.size() - most_named) + " more";
    if (!late.empty()) text += late.size() == 1 ? " has not called it" : " have not called it";

    const int ended = h.here - static_cast<int>(h.seen.size()), elsewhere = h.ranks - h.here;
    std::string which;
    for (int r = 0, next = 0; r < h.ranks && elsewhere == 0; ++r) {
        if (next < static_cast<int>(h.seen.size()) && h.seen[static_cast<std::size_t>(next)].rank == r)
            ++next;
        else
            which += (which.empty() ? "rank " : ", rank ") + std::to_string(r);
    }
    if (ended > 0) {
        if (which.empty()) which = std::to_string(ended) + " of the ranks on " + h.host;
        text += (text.empty() ? "" : "; ") + which + (ended == 1 && elsewhere == 0 ? " has" : " have") +
                " ended without it";
    }
    const std::string others =
        std::to_string(elsewhere) + (elsewhere == 1 ? " rank is" : " ranks are") + " on other hosts";
    if (!text.empty()) return elsewhere > 0 ? text + "; " + others + ", where those that wait report theirs" : text;
    if (elsewhere > 0) return "all " + std::to_string(h.here) + " ranks on " + h.host + " have called it; " + others;
    return "all " + std::to_string(h.ranks) + " ranks have called it, so MPI itself is slow or stuck";
}

} // namespace halocline::comm
