// SPDX-License-Identifier: Apache-2.0
#include "watchdog.hpp"

#include "environment.hpp"
#include "job_core.hpp"
#include "mpi/world.hpp"
#include "process_look.hpp"
#include "say.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/detail/launch.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace halocline::comm {
namespace {

/// So that the rank's signals go to its own threads.
class all_signals_blocked {
  public:
    all_signals_blocked() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~all_signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    all_signals_blocked(const all_signals_blocked&) = delete;
    all_signals_blocked& operator=(const all_signals_blocked&) = delete;

  private:
    sigset_t before_{};
};

} // namespace

std::chrono::milliseconds watchdog::grace_of_environment() {
    return environment_time("HALOCLINE_GRACE_MS", std::chrono::milliseconds(500));
}

watchdog::watchdog(job_core& core, std::chrono::milliseconds grace, bool at_once, int launcher_end)
    : core_(core), grace_(grace), at_once_(at_once), process_(getpid()), rank_thread_(gettid()),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_) throw error(std::string("eventfd: ") + std::strerror(errno));
    watched_.push_back({launcher_end, 0, 0});            // only its hanging up matters
    const std::vector<pollfd> ends = core.alive->ends(); // now, because the thread may start after the job is over
    watched_.insert(watched_.end(), ends.begin(), ends.end());
    watched_.push_back({wake_.fd(), POLLIN, 0});
    const all_signals_blocked inherited;
    try {
        thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& e) {
        throw error(std::string("no thread that watches over the rank: ") + e.what() +
                    "; raise 'ulimit -u', or 'ulimit -v'");
    }
}

watchdog::~watchdog() {
    if (process_ != getpid()) { // a forked child has the object, but not the thread
        thread_.detach();
        return;
    }
    stop_.store(true, std::memory_order_relaxed);
    eventfd_write(wake_.fd(), 1);
    thread_.join();
}

void watchdog::leave_report_to_rank(const std::string& text) {
    const std::lock_guard lock(reporting_); // never released by a watchdog that reports
    report_of_rank_ = text;
}

void watchdog::stop_looking() {
    const std::lock_guard lock(looking_);
    blind_ = true;
}

bool watchdog::stopped_within(int ms) const {
    pollfd wake{wake_.fd(), POLLIN, 0};
    poll(&wake, 1, ms);
    return stop_.load(std::memory_order_relaxed);
}

void watchdog::run() {
    if (!await_death()) return;
    const activity& rank = core_.own_activity;
    if (at_once_ && !rank.knows_of_end.load(std::memory_order_relaxed) &&
        !rank.tells_end_itself.load(std::memory_order_relaxed)) {
        said_at_once_ = own_report(time::none);
        say(said_at_once_);
    }
    await_end();
}

/// Sleeps until a peer dies or a blocking call lasts too long; false if the watchdog is stopped first.
bool watchdog::await_death() {
    const bool may_block = core_.networks.mpi && core_.networks.mpi->mode() == mpi_mode::one_sided;
    while (!stop_.load(std::memory_order_relaxed)) {
        poll(watched_.data(), watched_.size(), may_block ? look_ms : -1);
        const std::lock_guard lock(looking_);
        if (blind_) return core_.failed() != status::ok; // the rank may have noticed first
        if ((watched_[0].revents & POLLHUP) != 0) end_without_launcher();
        core_.alive->look();
        if (may_block) look_at_call();
        if (core_.failed() != status::ok) return true;
        for (pollfd& p : watched_)
            if (p.revents != 0) p.fd = -1; // a peer that left in good order
    }
    return false;
}

/// Checks are counted, not time: a process that was stopped did not wait meanwhile.
void watchdog::look_at_call() noexcept {
    const std::uint64_t now = core_.own_activity.library_calls.load(std::memory_order_acquire);
    looks_ = now % 2 != 0 && now == call_ ? looks_ + 1 : 0;
    call_ = now;
    if (looks_ <= core_.longest_wait().count() / look_ms || core_.failed() != status::ok) return;
    core_.time_out(core_.own_activity.library_call_for.load(std::memory_order_relaxed));
}

/// Gives the rank its grace time to report the end of the job itself and to get through its destructors; then ends it.
/// Counts only a part of a step that lasts long: this process was stopped, or its machine was, and the rank with it.
void watchdog::await_end() {
    const double grace = std::chrono::duration<double>(grace_).count();
    const double cpu_before = look_at(std::to_string(process_) + "/task/" + std::to_string(rank_thread_)).seconds;
    const int step_ms = static_cast<int>(std::clamp<long>(grace_.count() / 50, 1, 50));
    double waited = 0, waited_before = 0; // seconds since the death was seen; and when the destructor began
    std::uint64_t last = ticks(), closing = 0;
    while (!stopped_within(step_ms)) {
        const bool noticed = core_.own_activity.knows_of_end.load(std::memory_order_relaxed);
        // A waiting rank checks every millisecond, unless a library call does not return.
        const bool waits = core_.memory->record().awaited.load(std::memory_order_relaxed) != failure_record::nobody;
        const double patience = waits && !noticed ? grace / 8 : grace;
        const std::uint64_t now = ticks();
        waited += std::min(seconds(now - std::exchange(last, now)), patience / 5);
        if (const auto since = core_.own_activity.closing.load(std::memory_order_relaxed); since != closing) {
            closing = since;
            waited_before = waited;
        }
        if (noticed ? closing == 0 || waited - waited_before < patience : waited < patience) continue;
        constexpr double most = 8; // seconds
        if (waited > most || !starved(cpu_before, patience)) report_and_exit();
    }
}

/// True if the rank is ready to run but has hardly been given a core since: on a loaded machine that is not a hang.
bool watchdog::starved(double cpu_before, double grace) const {
    const process_look now = look_at(std::to_string(process_) + "/task/" + std::to_string(rank_thread_));
    return now.state == 'R' && now.seconds < cpu_before + grace / 4;
}

void watchdog::report_and_exit() {
    reporting_.lock();
    const std::string report = report_of_rank_.empty() ? own_report(time::enough) : report_of_rank_;
    if (report != said_at_once_) say(report);
    _exit(launch::job_ended);
}

/// A rank that halocline-run itself has started is killed together with it, or has ended; this one was started by such
/// a process, for instance a shell, and would go on for ever.
void watchdog::end_without_launcher() {
    say("rank " + std::to_string(core_.rank) + " (pid " + std::to_string(process_) +
        "): halocline-run has ended, or the process that it started as this rank; this process ends, too");
    _exit(launch::job_ended);
}

std::string watchdog::own_report(time given) const {
    int awaited = core_.memory->record().awaited.load(std::memory_order_relaxed);
    const bool in_library = core_.own_activity.library_calls.load(std::memory_order_acquire) % 2 != 0;
    if (in_library) awaited = core_.own_activity.library_call_for.load(std::memory_order_relaxed);
    const bool waits = awaited != failure_record::nobody;
    std::string doing;
    if (waits)
        doing = " while this rank waited for " + (awaited >= 0 ? core_.name_of(awaited)
                                                  : in_library ? "several ranks"
                                                               : "any rank");
    if (given == time::enough) // a rank that waits looks every millisecond, unless a library keeps it
        doing += waits ? ": a call of a network's library (MPI, libfabric, libibverbs) did not return"
                       : " while this rank computed, or was in a call of another library: it did not ask for its "
                         "messages since";
    return core_.end_of_job(doing).text;
}

} // namespace halocline::comm
