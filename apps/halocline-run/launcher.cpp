// SPDX-License-Identifier: Apache-2.0
#include "launcher.hpp"

#include "control/wire.hpp"
#include "environment.hpp"
#include "local_ranks.hpp"
#include "remote_host.hpp"
#include "watched_signals.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/detail/launch.hpp>
#include <halocline/config/reader.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <poll.h>
#include <sstream>
#include <string_view>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace halocline::app {

using comm::launch::bad_input, comm::launch::job_ended;

namespace {

/// Does that signal end a rank by somebody's wish?
bool is_interruption(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGQUIT; }

/// $PATH of the ranks: with `variables` of their own, or that of this process.
std::string path_of_ranks(const std::vector<std::string>& variables) {
    constexpr std::string_view name = "PATH=";
    const auto own =
        std::find_if(variables.rbegin(), variables.rend(), [](const auto& v) { return v.starts_with(name); });
    if (own != variables.rend()) return own->substr(name.size());
    const char* const path = std::getenv("PATH");
    return path != nullptr ? path : "/bin:/usr/bin";
}

/// The absolute name of the program that execvp() would run here: $PATH on another host may lack its folder. As given
/// if there is none, or if it has a slash.
std::string program_here(const std::string& name, const std::string& path) {
    if (name.find('/') != std::string::npos) return name;
    std::istringstream folders(path);
    for (std::string folder; std::getline(folders, folder, ':');) {
        std::error_code none;
        const auto file = std::filesystem::absolute(folder.empty() ? "." : folder, none) / name;
        if (std::filesystem::is_regular_file(file, none) && access(file.c_str(), X_OK) == 0) return file.string();
    }
    return name;
}

} // namespace

launcher::launcher(launch_settings s) : settings_(std::move(s)), ranks_(static_cast<std::size_t>(settings_.ranks)) {}

int launcher::run() {
    const sigset_t watched = watched_signals();
    sigprocmask(SIG_BLOCK, &watched, &before_);
    signals_ = descriptor_of(watched);
    std::signal(SIGPIPE, SIG_IGN); // write_output() reports it
    if (settings_.timeout > 0)
        deadline_ = clock_type::now() +
                    std::chrono::duration_cast<clock_type::duration>(std::chrono::duration<double>(settings_.timeout));
    start();
    while (anybody_runs() || !output_.empty()) turn();
    end_leftovers();
    while (!output_.empty()) turn();
    name_the_failed();
    for (const remote_host* h : remote_)
        if (!h->trouble().empty()) std::fprintf(stderr, "halocline-run: %s\n", h->trouble().c_str());
    if (lost_output_ != 0 && lost_output_ != EPIPE) { // a reader that left has read enough
        std::fprintf(stderr, "halocline-run: standard output can't be written: %s\n", std::strerror(lost_output_));
        if (exit_code_ == 0) exit_code_ = comm::launch::failed;
    }
    return in_trouble() ? bad_input : exit_code_;
}

void launcher::turn() {
    wait();
    forgive_pause();
    take_signals();
    reap();
    for (const auto& h : hosts_) h->serve();
    if (in_trouble() && !killing_) kill_all(); // nobody should wait for ranks that never come
    meet();
    write_output();
    keep_time();
}

void launcher::start() {
    if (!settings_.config.empty()) setenv(config::file_variable, settings_.config.c_str(), 1);
    // The first overrides the file and whatever the second was; the second is for options that are fixed.
    for (const char* variable : {"HALOCLINE_COMM_NETWORK", "HALOCLINE_NETWORK"})
        if (!settings_.network.empty()) setenv(variable, settings_.network.c_str(), 1);
    group_plan plan;
    plan.total = settings_.ranks;
    plan.bind = settings_.bind;
    plan.label = settings_.label;
    plan.command = settings_.command;
    if (settings_.hosts.empty()) {
        plan.count = settings_.ranks;
        plan.reads_input = true;
        set_variables(settings_.variables);
        auto here = std::make_unique<local_ranks>(plan, *this, before_);
        here->start();
        add(std::move(here), plan);
    }
    plan.otherwise = std::exchange(plan.command[0], program_here(plan.command[0], path_of_ranks(settings_.variables)));
    for (const host_share& h : settings_.hosts) {
        plan.count = h.ranks;
        auto there =
            std::make_unique<remote_host>(h.name, settings_.remote_shell, settings_.variables, plan, *this, before_);
        remote_.push_back(there.get());
        add(std::move(there), plan);
        plan.first += h.ranks;
    }
}

void launcher::add(std::unique_ptr<host> h, const group_plan& ranks) {
    for (int i = 0; i < ranks.count; ++i) ranks_[ranks.first + i].at = h.get();
    hosts_.push_back(std::move(h));
}

bool launcher::anybody_runs() const {
    return std::ranges::any_of(hosts_, [](const auto& h) { return h->running() > 0; });
}

bool launcher::in_trouble() const {
    return std::ranges::any_of(remote_, [](const remote_host* h) { return !h->trouble().empty(); });
}

void launcher::wait() {
    std::vector<pollfd> polled{{signals_, POLLIN, 0}, {output_.empty() ? -1 : STDOUT_FILENO, POLLOUT, 0}};
    for (const auto& h : hosts_) h->watch(polled);
    poll(polled.data(), polled.size(), patience());
}

void launcher::forgive_pause() {
    const auto missed = pauses_.missed();
    if (drop_at_) *drop_at_ += missed;
    if (!kill_at_) return;
    *kill_at_ += missed;
    grace_began_ += missed;
}

int launcher::patience() const {
    int least = kill_at_ || drop_at_ ? 100 : -1; // forgive_pause() depends on it
    for (const auto& end : {deadline_, kill_at_, abandon_at_, drop_at_}) {
        if (!end) continue;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end - clock_type::now()).count();
        const int ms = static_cast<int>(std::clamp<long>(left, 0, 60'000));
        least = least < 0 ? ms : std::min(least, ms);
    }
    return least;
}

void launcher::take_signals() {
    signalfd_siginfo s{};
    while (::read(signals_, &s, sizeof s) == static_cast<ssize_t>(sizeof s)) {
        if (s.ssi_signo == SIGCHLD) continue;
        // SIGHUP comes to the leader of a session alone.
        const bool of_terminal = s.ssi_code == SI_KERNEL && (s.ssi_signo == SIGINT || s.ssi_signo == SIGQUIT);
        signal_all(static_cast<int>(s.ssi_signo), of_terminal);
        if (is_for_ranks(s.ssi_signo)) continue;
        told_to_end_ = true;
        if (exit_code_ == 0) exit_code_ = 128 + static_cast<int>(s.ssi_signo);
        start_grace();
    }
}

void launcher::reap() {
    int how = 0;
    for (pid_t pid; (pid = waitpid(-1, &how, WNOHANG)) > 0;) {
        for (const auto& h : hosts_) {
            if (h->reaped(pid, how)) break;
        }
    }
}

// The gather: once every rank's part is there, all ranks get all parts; if one will never come, the waiting ranks are
// informed.

void launcher::part(int rank, std::string bytes) {
    ranks_[rank].part = std::move(bytes);
    anybody_joined_ = true;
}

void launcher::asked_who(int rank) {
    const auto first = std::ranges::find_if(ranks_, [](const rank_state& r) { return !r.part; });
    if (!ranks_[rank].part || first == ranks_.end()) return; // the answer is on its way
    const auto missing = static_cast<std::int32_t>(first - ranks_.begin());
    comm::wire_writer answer;
    answer.number(comm::launch::missing).number(missing).number<std::int32_t>(first->at->pid_of(missing));
    answer_all(answer.text(first->at->name()).text(name_the_missing()).take());
}

std::string launcher::name_the_missing() const {
    constexpr int most = 8; // names
    std::string names;
    int missing = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (ranks_[r].part || ++missing > most) continue;
        const host& h = *ranks_[r].at;
        names += (names.empty() ? "" : ", ") + h.describe(static_cast<int>(r)) + " on " + h.name();
    }
    return missing > most ? names + " and " + std::to_string(missing - most) + " more" : names;
}

void launcher::meet() {
    const auto gave = [](const rank_state& r) { return r.part.has_value(); };
    if (std::ranges::none_of(ranks_, gave)) return;
    comm::wire_writer answer;
    if (std::ranges::all_of(ranks_, gave)) {
        answer.number(comm::launch::gathered);
        for (const rank_state& r : ranks_) answer.text(*r.part);
        return answer_all(answer.take());
    }
    const rank_state* const dead = missing();
    if (dead == nullptr) return;
    answer.number(comm::launch::died).number(static_cast<std::int32_t>(dead - ranks_.data()));
    answer.number<std::int32_t>(dead->how->pid);
    answer_all(answer.text(dead->at->name()).text(dead->how->text).take());
}

template <class Predicate>
const launcher::rank_state* launcher::first_to_end(Predicate is_meant) const {
    const rank_state* first = nullptr;
    const auto place = [](const rank_state& r) { return std::pair(r.how->code == job_ended, r.ended_as); };
    for (const rank_state& r : ranks_)
        if (r.how && is_meant(r) && (first == nullptr || place(r) < place(*first))) first = &r;
    return first;
}

const launcher::rank_state* launcher::missing() const {
    return first_to_end([](const rank_state& r) { return !r.part; });
}

void launcher::answer_all(const std::string& bytes) {
    for (const auto& h : hosts_) h->answer(bytes);
    for (rank_state& r : ranks_) r.part.reset();
}

// Ranks that end.

void launcher::ended(int rank, const ending& how) {
    rank_state& r = ranks_[rank];
    r.how = how;
    r.ended_as = ends_++;
    report_end(rank, how);
    if (how.code == 0) return;
    const int before = exit_code_;
    take_exit_code(how);
    // With a code of its own a program may have said nothing; 1 to 3 are those of this library, which says why.
    if (exit_code_ != before && how.signal == 0 && how.code > job_ended && anybody_joined_)
        std::fprintf(stderr, "halocline-run: rank %d (pid %d) %s\n", rank, how.pid, how.text.c_str());
    start_grace();
}

void launcher::report_end(int rank, const ending& how) {
    const bool all_got_it = how.signal != 0 && how.signal == sent_to_all_;
    const bool told = all_got_it && std::exchange(told_sent_to_all_, true);
    if (how.signal != 0 && !killing_ && !told)
        std::fprintf(stderr, "halocline-run: rank %d (pid %d) was ended by signal %d (%s)%s\n", rank, how.pid,
                     how.signal, strsignal(how.signal),
                     all_got_it              ? ", which was sent to all ranks"
                     : how.signal == SIGKILL ? "; if nobody sent it, memory ran out (dmesg)"
                                             : "");
    const auto r = ranks_.begin() + rank;
    const bool same_host_again = rank > 0 && (r - 1)->at == r->at && (r - 1)->how;
    if (how.pid == 0 && !same_host_again && !in_trouble())
        std::fprintf(stderr, "halocline-run: rank %d %s\n", rank, how.text.c_str());
}

void launcher::take_exit_code(const ending& how) {
    const bool crashed = how.signal != 0 && !is_interruption(how.signal);
    const bool of_its_own = how.code != job_ended && !crashed;
    if (exit_code_ == 0 || (code_of_crash_ && how.code == job_ended) ||
        (exit_code_ == job_ended && !cause_known_ && of_its_own)) {
        exit_code_ = how.code;
        code_of_crash_ = crashed;
    }
    cause_known_ |= how.signal != 0;
}

void launcher::start_grace() {
    if (kill_at_ || killing_) return;
    grace_began_ = clock_type::now();
    // Survivors on another host may need the time-out of a cut link to find out.
    kill_at_ = grace_began_ + std::chrono::seconds(settings_.hosts.empty() ? 2 : 8);
    for (const auto& h : hosts_) h->survivors_end();
}

void launcher::keep_time() {
    const auto now = clock_type::now();
    if (deadline_ && now >= *deadline_) {
        std::fprintf(stderr, "halocline-run: not done after %g s (--timeout); %s\n", settings_.timeout,
                     anybody_runs() ? "ending all ranks" : "all ranks have ended, but their output is not read");
        if (exit_code_ == 0) exit_code_ = job_ended;
        cause_known_ = true;
        told_to_end_ = true;
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
        for (const auto& h : hosts_)
            if (h->running() > 0) h->abandon();
    }
    limit_output(now);
}

bool launcher::wants_more_time(clock_type::time_point now) const {
    return now < grace_began_ + std::chrono::seconds(10) &&
           std::ranges::any_of(hosts_, [](const auto& h) { return h->starved(); });
}

void launcher::name_the_failed() const {
    if (anybody_joined_ || cause_known_ || told_to_end_ || in_trouble()) return; // reported already, or wanted
    const rank_state* const failed = first_to_end([](const rank_state& r) { return r.how->code != 0; });
    // Programs of this library say what was bad about their input themselves, perhaps before they join.
    if (failed == nullptr || failed->how->pid == 0 || failed->how->code == bad_input) return;
    std::fprintf(stderr, "halocline-run: rank %d (pid %d) on %s %s, before any rank had joined the job\n",
                 static_cast<int>(failed - ranks_.data()), failed->how->pid, failed->at->name().c_str(),
                 failed->how->text.c_str());
}

void launcher::name_the_unfinished() const {
    std::string dead, unfinished;
    for (std::size_t r = 0; r < ranks_.size() && dead.empty(); ++r) {
        const auto& how = ranks_[r].how;
        if (how && how->code != 0)
            dead = "rank " + std::to_string(r) + " (pid " + std::to_string(how->pid) + ") " + how->text;
    }
    if (dead.empty())
        dead = "the ranks were told to end"; // by a signal or the time limit; those left are stopped, or ignore it
    for (const auto& h : hosts_)
        if (h->running() > 0) unfinished += (unfinished.empty() ? "" : ", ") + h->unfinished();
    if (unfinished.empty()) return;
    const double s = std::chrono::duration<double>(clock_type::now() - grace_began_).count();
    std::fprintf(stderr, "halocline-run: %s; not ended %.0f s later, and killed now: %s\n", dead.c_str(), s,
                 unfinished.c_str());
}

void launcher::signal_all(int number, bool of_terminal) {
    sent_to_all_ = number;
    told_sent_to_all_ = false;
    for (const auto& h : hosts_) {
        if (of_terminal)
            h->signal_of_terminal(number);
        else
            h->signal(number);
    }
}

void launcher::kill_all() {
    killing_ = true;
    kill_at_.reset();
    for (const auto& h : hosts_) h->survivors_end(); // a host that has not answered gets no signals
    signal_all(SIGCONT);
    signal_all(SIGKILL);
    abandon_at_ = clock_type::now() + std::chrono::seconds(2);
}

void launcher::end_leftovers() {
    const auto now = clock_type::now();
    const auto until = killing_ ? now : kill_at_.value_or(now + std::chrono::seconds(2));
    leftovers_end_ = true;
    for (const auto& h : hosts_) {
        const std::string killed = h->end_leftovers(until);
        if (!killed.empty() && !killing_)
            std::fprintf(stderr, "halocline-run: killed what ranks had started and not waited for: %s\n",
                         killed.c_str());
    }
    leftovers_end_ = false;
}

// Output that passes through the launcher.

void launcher::printed(std::string_view text) {
    if (lost_output_ == 0) output_.append(text);
}

/// The end of a rank comes behind what it has printed. So while the job ends, each host may report what its agent and
/// the remote shell still have; all of it once the ranks are killed, because they print no more then. What they have
/// started may print for ever: when all ranks have ended, it has only the time of leftovers for that.
bool launcher::has_room() const {
    if (leftovers_end_) return output_.size() <= most_output;
    const std::size_t most = kill_at_ ? most_output * (1 + 4 * hosts_.size()) : most_output;
    return anybody_runs() && (killing_ || output_.size() <= most);
}

void launcher::write_output() {
    lost_output_ = lost_output_ != 0 ? lost_output_ : output_.write_to(STDOUT_FILENO);
    if (lost_output_ != 0) output_.clear();
}

void launcher::limit_output(clock_type::time_point now) {
    if (!told_to_end_ || output_.empty() || anybody_runs()) return;
    if (!drop_at_) drop_at_ = now + std::chrono::seconds(2);
    if (now < *drop_at_) return;
    std::fprintf(stderr, "halocline-run: standard output is not read; %zu bytes that ranks printed are dropped\n",
                 output_.size());
    output_.clear();
}

} // namespace halocline::app
