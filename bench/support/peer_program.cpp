// SPDX-License-Identifier: Apache-2.0
#include "support/peer_program.hpp"

#include <halocline/comm/processors.hpp>

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

peer_program::peer_program(const std::string& name_and_command) {
    const auto equals = name_and_command.find('=');
    name_ = name_and_command.substr(0, equals);
    command_ = equals == std::string::npos ? "" : name_and_command.substr(equals + 1);
    if (name_.empty() || command_.empty()) throw input_error("--peer " + name_and_command + ": expected NAME=COMMAND");
}

peer_program::~peer_program() {
    if (orders_) std::fclose(orders_);
    if (answers_) std::fclose(answers_);
    // A peer may wait in its MPI_Finalize forever (MPICH over UCX does): after 5 s its launcher is asked to end it.
    for (int tenths = 0; process_ > 0 && waitpid(process_, nullptr, WNOHANG) == 0; ++tenths) {
        if (tenths == 50) kill(process_, SIGTERM);
        if (tenths == 100) kill(process_, SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
}

void peer_program::start(const std::vector<int>& processors) {
    int orders[2], answers[2];
    if (pipe2(orders, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0)
        throw error(std::string("pipe: ") + std::strerror(errno));
    process_ = fork();
    if (process_ < 0) throw error(std::string("fork: ") + std::strerror(errno));
    if (process_ == 0) {
        dup2(orders[0], STDIN_FILENO);
        dup2(answers[1], STDOUT_FILENO);
        comm::bind_to(processors);
        execl("/bin/sh", "sh", "-c", ("exec " + command_).c_str(), nullptr);
        _exit(127);
    }
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
    if (!there) throw error("peer " + name_ + " ended at order '" + order + "': " + command_);
    return answer;
}

slice_times peer_program::ask(const comm::job& j, const std::string& order) {
    std::string answer;
    j.collectively([&] { // the other ranks sleep
        if (j.rank() == 0) answer = answer_to(order);
    });
    std::stringstream measures(j.broadcast(answer));
    slice_times times;
    for (std::string measure; std::getline(measures, measure, ';');) {
        std::stringstream numbers(measure);
        times.emplace_back();
        for (double value = 0; numbers >> value;) times.back().push_back(value);
        if (times.back().empty()) throw error("peer " + name_ + " answered '" + answer + "' to order '" + order + "'");
    }
    return times;
}

} // namespace halocline::bench
