// SPDX-License-Identifier: Apache-2.0
// Who started this program, and how it joins the others.
#include "bootstrap.hpp"
#include "business_card.hpp"
#include "environment.hpp"
#include "process_look.hpp"
#include "say.hpp"
#include "watchdog.hpp"

#include <halocline/base/check.hpp>
#include <halocline/comm/bad_input.hpp>
#include <halocline/comm/detail/launch.hpp>
#include <halocline/comm/option_keys.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <fcntl.h>

namespace halocline::comm {
namespace {

struct launcher_kind {
    std::string_view name; ///< as in job_options::bootstrap
    const char* started_by;
    std::optional<comm::bootstrap> (*start)(const job_options&); ///< nullopt: it did not start this process
};
/// Listed in the order in which they are tried.
constexpr launcher_kind launchers[]{{"local", "halocline-run", local_bootstrap},
                                    {"pmix", "a launcher with a PMIx server (PMIX_RANK is not set)", pmix_bootstrap},
                                    {"mpi", "the launcher of an MPI", mpi_bootstrap}};

/// Err: input_error: no such launcher, or it did not start this program.
bootstrap started_by(const std::string& wanted, const job_options& options) {
    const auto* const l = std::ranges::find(launchers, wanted, &launcher_kind::name);
    if (l == std::end(launchers)) throw input_error("unknown bootstrap '" + wanted + "'; known are local, pmix, mpi");
    if (wanted == "pmix" && !pmix_is_built())
        throw input_error("bootstrap 'pmix' is not built in; install libpmix-dev and configure again");
    if (auto start = l->start(options)) return std::move(*start);
    throw input_error("bootstrap '" + wanted + "': this program was not started by " + l->started_by);
}

/// nullopt if no launcher started this process.  Err: input_error.
std::optional<bootstrap> launched(const job_options& options) {
    const std::string wanted = options.bootstrap.empty() ? short_variable("BOOTSTRAP") : options.bootstrap;
    if (!wanted.empty()) return started_by(wanted, options);
    const bool needs_mpi = std::ranges::count(options.transports, "mpi") > 0; // its world, which PMIx does not provide
    for (const launcher_kind& l : launchers) {
        if (l.start == pmix_bootstrap && needs_mpi) continue;
        if (auto start = l.start(options)) return start;
    }
    if (needs_mpi) { // No MPI started it (srun --mpi=pmix, prterun): transport mpi serves nobody, but the others may.
        if (auto start = pmix_bootstrap(options)) return start;
    }
    if (!pmix_is_built() && std::getenv("PMIX_RANK") != nullptr && std::getenv("PMIX_NAMESPACE") != nullptr)
        throw input_error("PMIX_RANK=" + environment_text("PMIX_RANK") +
                          ": a launcher with a PMIx server started this program, but this build can't join through it; "
                          "install libpmix-dev and configure again, or start the program by halocline-run");
    return std::nullopt;
}

/// Slurm starts tasks with or without a PMI. Without one each is a job of its own, which its user may not have meant.
/// No error: a program started in a shell of `srun --pty` looks the same.
void tell_single_tasks() {
    const int tasks = std::atoi(environment_text("SLURM_STEP_NUM_TASKS").c_str());
    if (tasks < 2 || environment_text("SLURM_PROCID") != "0") return;
    say("halocline: srun started " + std::to_string(tasks) +
        " tasks (SLURM_STEP_NUM_TASKS), but gave this one no way to the others: it is a job of one rank; for one job "
        "of all of them use srun --mpi=pmix, or halocline-run --hosts instead of srun");
}

/// A way to the other ranks for one that can't join them. nullopt: none.
std::optional<bootstrap> for_a_report() {
    const job_options unknown;
    if (auto start = local_bootstrap(unknown)) return start;
    const bool ended_by_launcher = std::getenv("PMIX_RANK") != nullptr; // together with this rank: nobody waits for it
    if (!ended_by_launcher) return mpi_bootstrap(unknown);
    job_options soon;
    soon.deadline = std::chrono::seconds(1);
    return pmix_is_built() ? pmix_bootstrap(soon) : std::nullopt;
}

/// Ends this rank with `what`, and the others with what they share of it, as far as `start` leads to them.
[[noreturn]] void report(std::string_view what, const std::optional<bootstrap>& start) {
    const unshared_input_error of_this_rank{std::string(what)};
    try {
        if (start) (void)swap_cards(*start, own_card(*start, {}, "", std::string(what))); // throws what the ranks share
    } catch (const unshared_input_error&) {
        throw of_this_rank;
    } catch (const input_error&) {
        throw;
    } catch (const std::exception&) { // another rank has died, for instance
        throw of_this_rank;
    }
    throw input_error(std::string(what));
}

} // namespace

int launched_rank() {
    struct launched {
        const char *rank, *ranks, *descriptor; // nullptr: unknown
    };
    for (const auto& l : {launched{launch::rank_variable, launch::ranks_variable, launch::socket_variable},
                          launched{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
                          launched{"PMIX_RANK", nullptr, nullptr}, launched{"PMI_RANK", "PMI_SIZE", "PMI_FD"}}) {
        const char* const rank = std::getenv(l.rank);
        if (rank == nullptr) continue;
        const char* const descriptor = l.descriptor != nullptr ? std::getenv(l.descriptor) : nullptr;
        if (l.descriptor != nullptr && (descriptor == nullptr || ::fcntl(std::atoi(descriptor), F_GETFD) < 0)) continue;
        const char* const ranks = l.ranks != nullptr ? std::getenv(l.ranks) : nullptr;
        const bool is_there = ranks == nullptr || std::atoi(rank) < std::atoi(ranks);
        return is_there ? std::atoi(rank) : 0; // 0: so that one rank reports the error
    }
    return 0;
}

void wait_for_rank_0_to_report() {
    if (std::getenv("PMIX_RANK") != nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(500));
}

void share_bad_input(std::string_view what) {
    std::optional<bootstrap> start;
    try {
        start = for_a_report();
    } catch (const std::exception&) { // of the two errors, `what` is the user's
        throw unshared_input_error(std::string(what));
    }
    report(what, start);
}

void share_bad_input(std::string_view what, const void* communicator, std::size_t bytes) {
    std::optional<bootstrap> start;
    try {
        start = mpi_bootstrap(communicator, bytes, {});
    } catch (const error&) { // of the two errors, `what` is the user's
    }
    report(what, start);
}

job job::from_environment(const job_options& given) {
    job_options options;
    std::optional<bootstrap> start;
    const int threads_before = look_at("self").threads;
    try {
        options = configured(given);
        start = launched(options);
    } catch (const input_error& e) { // possibly on this rank only
        share_bad_input(e.what());
    }
    if (start) {
        auto core = join(std::move(*start), options);
        core->known_threads += std::max(0, look_at("self").threads - threads_before - (core->own_watchdog ? 1 : 0));
        return job(std::move(core));
    }
    (void)default_checks(); // a bad variable is an error with one rank, too
    (void)watchdog::grace_of_environment();
    (void)stall_watch::time_of_environment();
    tell_single_tasks();
    return single(options);
}

job job::from_mpi_handle(const void* communicator, std::size_t bytes, const job_options& given) {
    job_options options;
    try {
        options = configured(given);
    } catch (const input_error& e) { // possibly on this rank only
        share_bad_input(e.what(), communicator, bytes);
    }
    return job(join(mpi_bootstrap(communicator, bytes, options), options));
}

} // namespace halocline::comm
