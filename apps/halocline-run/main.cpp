// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of a program on this host or on several, lets them meet (comm/launch.hpp), and ends when they have.
#include "agent.hpp"
#include "command_line.hpp"
#include "control/wire.hpp"
#include "local_ranks.hpp"
#include "remote_host.hpp"
#include "watched_signals.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/launch.hpp>
#include <halocline/config/reader.hpp>
#include <halocline_app/standard_streams.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace {

using namespace halocline;
using clock_type = std::chrono::steady_clock;

constexpr int bad_input = 2, rank_lost = comm::launch::rank_lost;

class launcher final : public rank_events {
  public:
    explicit launcher(settings s) : settings_(std::move(s)), ranks_(static_cast<std::size_t>(settings_.ranks)) {}

    int run() {
        const sigset_t watched = watched_signals();
        sigprocmask(SIG_BLOCK, &watched, &before_);
        signals_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
        if (signals_ < 0) throw input_error(std::string("signalfd: ") + std::strerror(errno) + "; raise 'ulimit -n'");
        std::signal(SIGPIPE, SIG_IGN);
        if (settings_.timeout > 0) {
            deadline_ = clock_type::now() + std::chrono::duration_cast<clock_type::duration>(
                                                std::chrono::duration<double>(settings_.timeout));
        }
        start();
        while (std::any_of(hosts_.begin(), hosts_.end(), [](const auto& h) { return h->running() > 0; })) {
            wait();
            reap();
            for (const auto& h : hosts_) h->serve();
            if (in_trouble() && !killing_) kill_all(); // nobody waits for ranks that never come
            meet();
            keep_time();
        }
        for (const remote_host* h : remote_)
            if (!h->trouble().empty()) std::fprintf(stderr, "halocline-run: %s\n", h->trouble().c_str());
        return in_trouble() ? bad_input : exit_code_;
    }

    void part(int rank, std::string bytes) override { ranks_[rank].part = std::move(bytes); }

    void ended(int rank, const ending& how) override {
        ranks_[rank].how = how;
        ranks_[rank].ended_as = ends_++;
        if (how.code > 128 && !killing_) {
            const int number = how.code - 128;
            std::fprintf(stderr, "halocline-run: rank %d (pid %d) was ended by signal %d (%s)%s\n", rank, how.pid,
                         number, strsignal(number),
                         number == SIGKILL ? "; if nobody sent it, memory ran out (dmesg)" : "");
        }
        const bool same_host_again = rank > 0 && ranks_[rank - 1].at == ranks_[rank].at && ranks_[rank - 1].how;
        if (how.pid == 0 && !same_host_again && !in_trouble())
            std::fprintf(stderr, "halocline-run: rank %d %s\n", rank, how.text.c_str());
        if (how.code == 0) return;
        const bool by_signal = exit_code_ > 128 && !interrupted();
        const bool of_its_own = how.code < 128 && how.code != rank_lost;
        if (exit_code_ == 0 || (by_signal && how.code == rank_lost) ||
            (exit_code_ == rank_lost && !cause_known_ && of_its_own))
            exit_code_ = how.code;
        cause_known_ |= how.code > 128;
        start_grace();
    }

    void printed(std::string_view text) override {
        while (!text.empty()) {
            const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return;
            text.remove_prefix(static_cast<std::size_t>(n));
        }
    }

  private:
    /// A rank's part of the gather under way, and its end.
    struct rank_state {
        std::optional<std::string> part;
        std::optional<ending> how;
        int ended_as = 0; ///< which end of all it was
        const host* at = nullptr;
    };

    void start() {
        if (!settings_.config.empty()) setenv(config::file_variable, settings_.config.c_str(), 1);
        if (!settings_.network.empty()) setenv("HALOCLINE_NETWORK", settings_.network.c_str(), 1);
        group_plan plan;
        plan.total = settings_.ranks;
        plan.bind = settings_.bind;
        plan.command = settings_.command;
        if (settings_.hosts.empty()) {
            plan.count = settings_.ranks;
            plan.reads_input = true;
            auto here = std::make_unique<local_ranks>(plan, *this, before_);
            here->start();
            hosts_.push_back(std::move(here));
        }
        for (const host_share& h : settings_.hosts) {
            plan.count = h.ranks;
            auto there = std::make_unique<remote_host>(h.name, settings_.remote_shell, plan, *this, before_);
            remote_.push_back(there.get());
            hosts_.push_back(std::move(there));
            plan.first += h.ranks;
        }
        std::size_t r = 0;
        if (settings_.hosts.empty()) {
            for (rank_state& rank : ranks_) rank.at = hosts_[0].get();
        }
        for (std::size_t h = 0; h < settings_.hosts.size(); ++h) {
            for (int n = 0; n < settings_.hosts[h].ranks; ++n) ranks_[r++].at = hosts_[h].get();
        }
    }

    void signal_all(int n) {
        for (const auto& h : hosts_) h->signal(n);
    }
    void kill_all() {
        killing_ = true;
        kill_at_.reset();
        signal_all(SIGCONT);
        signal_all(SIGKILL);
        abandon_at_ = clock_type::now() + std::chrono::seconds(2);
    }
    /// Can a host not start its ranks?
    [[nodiscard]] bool in_trouble() const {
        return std::ranges::any_of(remote_, [](const remote_host* h) { return !h->trouble().empty(); });
    }

    void wait() {
        std::vector<pollfd> polled{{signals_, POLLIN, 0}};
        for (const auto& h : hosts_) h->watch(polled);
        int patience = -1;
        for (const auto& end : {deadline_, kill_at_, abandon_at_}) {
            if (!end) continue;
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end - clock_type::now()).count();
            const int ms = static_cast<int>(std::clamp<long>(left, 0, 60'000));
            patience = patience < 0 ? ms : std::min(patience, ms);
        }
        poll(polled.data(), polled.size(), patience);
        signalfd_siginfo s{};
        while (::read(signals_, &s, sizeof s) == static_cast<ssize_t>(sizeof s)) {
            if (s.ssi_signo == SIGCHLD) continue;
            signal_all(static_cast<int>(s.ssi_signo));
            if (exit_code_ == 0) exit_code_ = 128 + static_cast<int>(s.ssi_signo);
            start_grace();
        }
    }

    /// Survivors of another host may need a cut link's time to find out.
    void start_grace() {
        if (kill_at_ || killing_) return;
        grace_began_ = clock_type::now();
        kill_at_ = grace_began_ + std::chrono::seconds(settings_.hosts.empty() ? 2 : 8);
        for (const auto& h : hosts_) h->survivors_end();
    }
    /// On a loaded machine a survivor may not have had its turn yet.
    [[nodiscard]] bool wants_more_time(clock_type::time_point now) const {
        return now < grace_began_ + std::chrono::seconds(10) &&
               std::any_of(hosts_.begin(), hosts_.end(), [](const auto& h) { return h->starved(); });
    }
    /// Survivors that could not report, for instance because a library waits for the dead in a call of theirs.
    void name_the_unfinished() const {
        std::string ended, unfinished;
        for (std::size_t r = 0; r < ranks_.size() && ended.empty(); ++r) {
            const auto& how = ranks_[r].how;
            if (how && how->code != 0)
                ended = "rank " + std::to_string(r) + " (pid " + std::to_string(how->pid) + ") " + how->text;
        }
        for (const auto& h : hosts_) unfinished += h->unfinished();
        if (ended.empty() || unfinished.empty()) return;
        const double s = std::chrono::duration<double>(clock_type::now() - grace_began_).count();
        std::fprintf(stderr, "halocline-run: %s; not ended %.0f s later, and killed now: %s\n", ended.c_str(), s,
                     unfinished.c_str());
    }

    void reap() {
        int how = 0;
        for (pid_t pid; (pid = waitpid(-1, &how, WNOHANG)) > 0;) {
            for (const auto& h : hosts_) {
                if (h->reaped(pid, how)) break;
            }
        }
    }
    /// Was the job's end asked for, by a signal to the launcher?
    [[nodiscard]] bool interrupted() const { return exit_code_ == 128 + SIGINT || exit_code_ == 128 + SIGTERM; }

    void answer_all(const std::string& bytes) {
        for (const auto& h : hosts_) h->answer(bytes);
        for (rank_state& r : ranks_) r.part.reset();
    }

    /// The gather: when every rank's part is there, everybody gets all; when one will never come, who waits is told.
    void meet() {
        const auto gave = [](const rank_state& r) { return r.part.has_value(); };
        if (std::none_of(ranks_.begin(), ranks_.end(), gave)) return;
        if (std::all_of(ranks_.begin(), ranks_.end(), gave)) {
            comm::wire_writer all;
            all.number(comm::launch::gathered);
            for (const rank_state& r : ranks_) all.text(*r.part);
            return answer_all(all.take());
        }
        // Of those who will never come the first is named, unless it ended because it lost another.
        const rank_state* dead = nullptr;
        const auto place = [](const rank_state& r) { return std::pair(r.how->code == rank_lost, r.ended_as); };
        for (const rank_state& r : ranks_)
            if (r.how && !r.part && (dead == nullptr || place(r) < place(*dead))) dead = &r;
        if (dead == nullptr) return;
        comm::wire_writer w;
        w.number(comm::launch::died).number(static_cast<std::int32_t>(dead - ranks_.data()));
        w.number<std::int32_t>(dead->how->pid);
        return answer_all(w.text(dead->at->name()).text(dead->how->text).take());
    }

    void keep_time() {
        const auto now = clock_type::now();
        if (deadline_ && now >= *deadline_) {
            std::fprintf(stderr, "halocline-run: not done after %g s (--timeout); ending all ranks\n",
                         settings_.timeout);
            if (exit_code_ == 0) exit_code_ = rank_lost;
            cause_known_ = true;
            deadline_.reset();
            signal_all(SIGTERM);
            start_grace();
        }
        if (kill_at_ && now >= *kill_at_ && wants_more_time(now)) {
            kill_at_ = now + std::chrono::milliseconds(200);
        } else if (kill_at_ && now >= *kill_at_) {
            name_the_unfinished();
            kill_all();
        }
        if (abandon_at_ && now >= *abandon_at_) {
            abandon_at_.reset();
            for (const auto& h : hosts_) h->abandon();
        }
    }

    settings settings_;
    std::vector<std::unique_ptr<host>> hosts_;
    std::vector<const remote_host*> remote_;
    std::vector<rank_state> ranks_;
    sigset_t before_{};
    int signals_ = -1;
    int exit_code_ = 0;
    int ends_ = 0; ///< of ranks, so far
    bool cause_known_ =
        false; ///< of rank_lost: a signal or the time; else it is the rank that ends with a code of its own
    bool killing_ = false;
    clock_type::time_point grace_began_{};
    std::optional<clock_type::time_point> deadline_, kill_at_, abandon_at_;
};

} // namespace

int main(int argc, char** argv) {
    halocline::app::keep_standard_streams();
    try {
        if (argc == 2 && std::strcmp(argv[1], "--agent") == 0) return run_agent();
        return launcher(parse(argc, argv)).run();
    } catch (const halocline::input_error& e) {
        std::fprintf(stderr, "halocline-run: %s\n", e.what());
        return bad_input;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "halocline-run: %s\n", e.what());
        return 1;
    }
}
