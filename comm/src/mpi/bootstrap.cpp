// SPDX-License-Identifier: Apache-2.0
// A job under an MPI launcher: rank, size and the first gather come from MPI's world.
#include "job/bootstrap.hpp"
#include "job/say.hpp"
#include "job/stall_watch.hpp"
#include "missing_ranks.hpp"
#include "world.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/detail/launch.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <stop_token>
#include <thread>
#include <unistd.h>

namespace halocline::comm {

namespace {

/// A wait over MPI does nothing between polls, except to call `look` every millisecond.
template <class Look>
mpi_world::progress every_millisecond(Look look) {
    const auto interval = static_cast<std::uint64_t>(1e-3 / seconds_per_tick());
    return [look = std::move(look), interval, last = ticks()]() mutable {
        if (ticks() - last < interval) return;
        last = ticks();
        look();
    };
}

/// Used before ranks know each other: checks only the clock; the launcher takes care of the dead.
mpi_world::progress until(std::chrono::milliseconds deadline, std::string operation) {
    return every_millisecond([deadline, operation = std::move(operation), since = ticks()] {
        if (seconds(ticks() - since) < std::chrono::duration<double>(deadline).count()) return;
        throw rank_failure("nothing came within " + std::to_string(deadline.count()) +
                               " ms while this rank waited for " + operation,
                           status::timed_out, -1, 0, {}, operation);
    });
}

/// While it lives, a thread reports a long wait on stderr, once, and ends the process at the deadline. MPI_Init_thread
/// waits inside MPI for every rank of the launcher; there is no other way out of it. The thread's name shows peers that
/// this rank has come.
class watched_joining {
  public:
    watched_joining(const std::string& evidence, std::chrono::milliseconds deadline) {
        const auto patience = stall_watch::time_of_environment();
        thread_ = std::jthread([patience, deadline, evidence](const std::stop_token& over) {
            pthread_setname_np(pthread_self(), joining_thread);
            std::mutex mutex;
            std::unique_lock lock(mutex);
            std::condition_variable_any sleep;
            const auto begin = std::chrono::steady_clock::now();
            const auto is_over_by = [&](std::chrono::milliseconds time) {
                return sleep.wait_until(lock, over, begin + time, [&] { return over.stop_requested(); });
            };
            const auto told = [&](std::chrono::milliseconds time, const std::string& more) {
                say("halocline: pid " + std::to_string(getpid()) + " has waited in MPI_Init for " +
                    std::to_string(time.count()) + " ms for the other ranks of its launcher (" + evidence +
                    "): " + missing() + "; " + more);
            };
            if (patience.count() > 0 && patience < deadline) {
                if (is_over_by(patience)) return;
                told(patience, "the deadline is " + std::to_string(deadline.count()) + " ms");
            }
            if (is_over_by(deadline)) return;
            told(deadline, "that is the deadline ([faults] deadline_ms), and ends this rank");
            _exit(launch::job_ended);
        });
    }

  private:
    static std::string missing() {
        const auto host = ranks_on_this_host();
        return host ? missing_ranks(*host)
                    : "one of them has not called it: is it another program, or stopped, or on a host that is slow?";
    }
    std::jthread thread_;
};

bootstrap bootstrap_over(const mpi_launch& launch, const job_options& options) {
    const std::string joined = launch.communicator ? "all ranks of the communicator" : "all ranks to join MPI's world";
    auto world = std::make_shared<mpi_world>(launch, until(options.deadline, joined));
    bootstrap start;
    start.rank = world->rank();
    start.ranks = world->ranks();
    start.launcher = world->version();
    start.gather = [world, deadline = options.deadline](std::string_view mine) {
        return world->allgather(mine, until(deadline, "every rank's address"));
    };
    start.mpi = std::move(world);
    return start;
}

} // namespace

std::optional<bootstrap> mpi_bootstrap(const job_options& options) {
    const auto launch = mpi_launch_from_environment();
    if (!launch) return std::nullopt;
    const watched_joining joining(launch->evidence, options.deadline);
    return bootstrap_over(*launch, options);
}

bootstrap mpi_bootstrap(const void* communicator, std::size_t bytes, const job_options& options) {
    auto launch = mpi_of_program();
    if (!launch) {
        throw input_error("a job of an MPI communicator: no MPI is seen in this program; name the one it uses in "
                          "HALOCLINE_MPI (openmpi, mpich, or a module's path)");
    }
    launch->communicator = communicator;
    launch->communicator_bytes = bytes;
    return bootstrap_over(*launch, options);
}

} // namespace halocline::comm
