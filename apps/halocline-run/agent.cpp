// SPDX-License-Identifier: Apache-2.0
#include "agent.hpp"

#include "byte_queue.hpp"
#include "environment.hpp"
#include "frames.hpp"
#include "local_ranks.hpp"
#include "read_pipe.hpp"
#include "watched_signals.hpp"

#include <halocline/base/error.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace halocline::app {

using comm::from_wire;
using comm::to_wire;

namespace {

class agent final : public rank_events {
  public:
    int run() {
        const sigset_t watched = watched_signals();
        sigprocmask(SIG_BLOCK, &watched, &before_);
        for (const int n : {SIGUSR1, SIGUSR2}) sigdelset(&before_, n); // the launcher blocks them in a remote shell
        signals_ = descriptor_of(watched);
        if (pipe2(output_.data(), O_CLOEXEC) != 0) throw error(std::strerror(errno));
        fcntl(output_[0], F_SETFL, O_NONBLOCK);
        std::signal(SIGPIPE, SIG_IGN);
        outgoing_.append(frames::greeting);
        speak(); // before there are ranks: those of a host that has not spoken are given up at once
        while (!over_) {
            wait();
            listen();
            if (ranks_) {
                ranks_->serve();
                if (has_room()) pass_on_output();
                reap();
            }
            speak();
        }
        // As the launcher does; ranks that still run are killed with all that they have started.
        if (ranks_ && ranks_->running() == 0)
            ranks_->end_leftovers(std::chrono::steady_clock::now() + std::chrono::seconds(2));
        ranks_.reset();
        return 0;
    }

    void part(int rank, std::string bytes) override {
        frames::append(outgoing_, frames::part, to_wire(frames::part_of_rank{rank, std::move(bytes)}));
    }
    void asked_who(int rank) override { frames::append(outgoing_, frames::who, to_wire(frames::rank_or_signal{rank})); }
    void ended(int rank, const ending& how) override {
        pass_on_output(); // its output must be passed on before its end
        frames::append(outgoing_, frames::ended, to_wire(frames::end_of_rank{rank, how}));
    }
    void printed(std::string_view text) override { frames::append(outgoing_, frames::output, text); }
    [[nodiscard]] bool has_room() const override { return outgoing_.size() <= most_output; }
    /// The launcher, which got the end of every rank, may have gone. A `tee` must still be able to write its file.
    void leftovers_end() override {
        if (has_room()) pass_on_output();
        if (outgoing_.write_to(STDOUT_FILENO) != 0) outgoing_.clear();
    }

  private:
    void wait() {
        std::vector<pollfd> polled{{signals_, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
        polled.push_back({has_room() ? output_[0] : -1, POLLIN, 0});
        polled.push_back({outgoing_.empty() ? -1 : STDOUT_FILENO, POLLOUT, 0});
        if (ranks_) ranks_->watch(polled);
        poll(polled.data(), polled.size(), -1);
        signalfd_siginfo s{};
        while (::read(signals_, &s, sizeof s) == static_cast<ssize_t>(sizeof s)) {
            if (is_for_ranks(s.ssi_signo)) {
                if (ranks_) ranks_->signal(static_cast<int>(s.ssi_signo));
            } else if (s.ssi_signo != SIGCHLD) {
                over_ = true;
            }
        }
    }

    /// Reads what the launcher says; when the launcher ends, so does the job.
    void listen() {
        pollfd p{STDIN_FILENO, POLLIN, 0};
        while (!over_ && poll(&p, 1, 0) > 0) {
            std::array<char, 4096> buffer;
            const ssize_t n = ::read(STDIN_FILENO, buffer.data(), buffer.size());
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) over_ = true;
            if (n > 0) incoming_.append(buffer.data(), static_cast<std::size_t>(n));
        }
        frames::kind what{};
        for (std::string bytes; frames::take(incoming_, what, bytes);) {
            if (what == frames::start && !ranks_) start(bytes);
            if (what == frames::answer && ranks_) ranks_->answer(bytes);
            if (what == frames::signal && ranks_) ranks_->signal(from_wire<frames::rank_or_signal>(bytes).value);
        }
    }

    void start(const std::string& bytes) {
        try {
            auto [plan, folder, variables] = from_wire<frames::start_order>(bytes);
            set_variables(variables);
            plan.output = output_[1];
            if (chdir(folder.c_str()) != 0) throw error("cannot go to '" + folder + "': " + std::strerror(errno));
            ranks_ = std::make_unique<local_ranks>(std::move(plan), *this, before_);
            ranks_->start();
        } catch (const std::exception& e) {
            frames::append(outgoing_, frames::trouble, e.what());
        }
    }

    void pass_on_output() {
        read_pipe(output_[0], [&](std::string_view text) { printed(text); });
    }

    void reap() {
        int how = 0;
        for (pid_t pid; (pid = waitpid(-1, &how, WNOHANG)) > 0;) ranks_->reaped(pid, how);
    }

    void speak() { over_ = outgoing_.write_to(STDOUT_FILENO) != 0 || over_; }

    sigset_t before_{};
    int signals_ = -1;
    std::array<int, 2> output_{-1, -1};
    std::string incoming_;
    byte_queue outgoing_;
    std::unique_ptr<local_ranks> ranks_;
    bool over_ = false;
};

} // namespace

int run_agent() { return agent().run(); }

} // namespace halocline::app
