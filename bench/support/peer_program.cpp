// SPDX-License-Identifier: Apache-2.0
#include "support/peer_program.hpp"

#include "support/command_line.hpp"
#include "support/machine.hpp"
#include "support/peer_names.hpp"

#include <halocline/comm/processors.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace halocline::bench {
namespace {

/// The process groups of peers, and zeros. Those of the terminal's signals that end this process don't reach them.
std::array<std::atomic<pid_t>, 64> groups{};

void replace_group(pid_t from, pid_t to) {
    const auto place = std::ranges::find_if(groups, [&](const std::atomic<pid_t>& group) { return group == from; });
    if (place != groups.end()) *place = to;
}

/// A handler: ends all groups, then this process by the same signal.
void end_groups(int signal) {
    for (const std::atomic<pid_t>& group : groups)
        if (group > 0) kill(-group, SIGTERM);
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

} // namespace

peer_description described_peer(const std::string& text, bool modes) {
    const auto refuse = [&] {
        throw input_error("--peer " + text + ": expected " + (modes ? "NAME[:MODE,MODE]=COMMAND" : "NAME=COMMAND"));
    };
    const auto equals = text.find('=');
    if (equals == std::string::npos) refuse();
    peer_description d{.name = text.substr(0, equals), .command = text.substr(equals + 1)};
    if (const auto colon = d.name.find(':'); modes && colon != std::string::npos) {
        std::stringstream list(d.name.substr(colon + 1));
        for (std::string mode; std::getline(list, mode, ',');) d.modes.push_back(mode);
        if (d.modes.empty() || std::ranges::count(d.modes, "") > 0) refuse();
        d.name.resize(colon);
    }
    if (d.name.empty() || d.command.empty()) refuse();
    require_distinct("--peer " + d.name, d.modes);
    return d;
}

peer_program::~peer_program() {
    if (orders_) std::fclose(orders_);
    if (answers_) std::fclose(answers_);
    // A peer may wait in its MPI_Finalize forever (MPICH over UCX does): after 5 s its launcher is asked to end it, and
    // with it whatever else the command has started.
    for (int tenths = 0; process_ > 0 && !all_ended() && tenths < 150; ++tenths) {
        if (tenths == 50) kill(-process_, SIGTERM);
        if (tenths == 100) kill(-process_, SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    if (process_ > 0) replace_group(process_, 0);
}

bool peer_program::all_ended() const {
    // Whom the shell leaves behind stays in its group.
    return waitpid(process_, nullptr, WNOHANG) != 0 && kill(-process_, 0) != 0;
}

void peer_program::start(const std::vector<int>& usable, const std::vector<int>& own) {
    std::string line = description_.command;
    if (!own.empty()) { // for mpi_peer.hpp
        std::string list;
        for (const int processor : own) list += (list.empty() ? "" : ",") + std::to_string(processor);
        line = "export " + std::string(processors_variable) + "=" + list + "; " + line;
    }
    int orders[2], answers[2];
    if (pipe2(orders, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0)
        throw error(std::string("pipe: ") + std::strerror(errno));
    process_ = fork();
    if (process_ < 0) throw error(std::string("fork: ") + std::strerror(errno));
    if (process_ == 0) {
        setpgid(0, 0);
        dup2(orders[0], STDIN_FILENO);
        dup2(answers[1], STDOUT_FILENO);
        comm::bind_to(usable);
        execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
        _exit(127);
    }
    setpgid(process_, process_); // here and there: whoever comes first
    replace_group(0, process_);
    for (const int ending : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
        if (std::signal(ending, end_groups) == SIG_IGN) std::signal(ending, SIG_IGN);
    std::signal(SIGPIPE, SIG_IGN); // ask() reports a peer that has ended
    close(orders[0]);
    close(answers[1]);
    orders_ = fdopen(orders[1], "w");
    answers_ = fdopen(answers[0], "r");
}

std::string peer_program::answer_to(const std::string& order) {
    std::fprintf(orders_, "%s\n", order.c_str());
    bool there = std::fflush(orders_) == 0;
    std::string answer; // a complete line: a remainder would be taken for the next answer
    for (char part[4096]; there && !answer.ends_with('\n');) {
        there = std::fgets(part, sizeof part, answers_) != nullptr;
        if (there) answer += part;
    }
    if (there) answer.pop_back();
    if (!there) throw error("peer " + name() + " ended at order '" + order + "': " + description_.command);
    return answer;
}

slice_times peer_program::ask(const comm::job& j, const std::string& order, std::size_t measures) {
    std::string answer;
    j.collectively([&] { // the other ranks sleep
        if (j.rank() == 0) answer = answer_to(order);
    });
    answer = j.broadcast(answer);
    std::stringstream lists(answer);
    slice_times times;
    bool good = true;
    for (std::string list; std::getline(lists, list, ';');) {
        std::stringstream numbers(list);
        times.emplace_back();
        for (double value = 0; numbers >> value;) times.back().push_back(value);
        good = good && numbers.eof() && !times.back().empty();
    }
    if (!good || times.size() != measures)
        throw error("peer " + name() + " answered '" + answer.substr(0, 200) + "' to order '" + order + "': expected " +
                    std::to_string(measures) + (measures == 1 ? " list" : " lists") + " of numbers");
    return times;
}

peer_set::peer_set(const comm::job& j, const std::vector<std::string>& texts, bool modes) : job_(j) {
    const std::vector<int> usable = processors_of(j), own = own_processors_of(j);
    j.collectively([&] {
        std::vector<std::string> names;
        for (const std::string& text : texts) {
            names.push_back(programs_.emplace_back(described_peer(text, modes)).name());
            if (is_taken(names.back()))
                throw input_error("--peer " + names.back() + ": this is the name of what the bench itself measures");
        }
        require_distinct("--peer", names);
        if (j.rank() != 0) return;
        for (peer_program& program : programs_) program.start(usable, own);
    });
    pin_ranks(j);
}

void peer_set::leave() {
    programs_.clear();
    job_.barrier();
}

} // namespace halocline::bench
