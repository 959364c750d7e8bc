// SPDX-License-Identifier: Apache-2.0
#include "job_core.hpp"
#include "say.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/bad_input.hpp>
#include <halocline/comm/out_of_memory.hpp>
#include <halocline/comm/run_job.hpp>

#include <chrono>
#include <cerrno>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace halocline::comm {
namespace {

constexpr int failed = 1, bad_input = 2, job_ended = 3;

void tell(int rank, const std::string& what) {
    const std::string who = "rank " + std::to_string(rank);
    const bool named = what.starts_with(who + " (") || rank < 0; // by comm, with its process, or not to be named
    say(std::string(program_invocation_short_name) + ": error: " + (named ? "" : who + ": ") + what);
}
constexpr int nobody = -1; // need be named

/// Aborts the job because of this. False if another rank did, for the same reason: then that one tells it.
bool gives_up_first(job_core& core, const std::string& what) {
    // Ranks that find the same do so at about the same time. Rank 0 waits, so that the others may find it; the others
    // longer, so that it may tell.
    const int looks = core.rank == 0 ? 50 : 150;
    for (int i = 0; i < looks && core.find_failure(-1, ticks(), false) == status::ok; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    core.own_activity.knows_of_end.store(true, std::memory_order_relaxed);
    core.publish(status::aborted, core.rank, what);
    const job_end* const end = core.memory->record().end_soon();
    return end == nullptr || end->culprit == core.rank || end->why != status::aborted ||
           std::string_view(end->text) != std::string_view(what).substr(0, sizeof end->text - 1);
}

/// The exception under way, which a rank of this job has thrown.
int ended_by_exception(job_core& core) {
    const auto give_up = [&](const std::string& what, int code) {
        if (core.ranks == 1 || gives_up_first(core, what)) tell(core.ranks == 1 ? nobody : core.rank, what);
        return code;
    };
    try {
        throw;
    } catch (const job_error& e) { // all ranks know that the job ends
        tell(core.rank, e.what());
        return job_ended;
    } catch (const input_error& e) {
        return give_up(e.what(), bad_input);
    } catch (const out_of_memory& e) { // the same on every rank
        if (core.rank == 0) tell(nobody, e.what());
        return failed;
    } catch (const std::bad_alloc&) {
        return give_up("out of memory", failed);
    } catch (const std::exception& e) {
        return give_up(e.what(), failed);
    } catch (...) {
        return give_up("an exception of unknown type", failed);
    }
}

} // namespace

int run_body(const std::function<int(const job&)>& body, const job_options& options) {
    std::optional<job> j;
    try {
        j.emplace(job::from_environment(options));
    } catch (const unshared_input_error& e) {
        tell(launched_rank(), e.what());
        return bad_input;
    } catch (const input_error& e) { // every rank's
        if (launched_rank() == 0)
            tell(nobody, e.what());
        else
            wait_for_rank_0_to_report();
        return bad_input;
    } catch (const std::exception& e) {
        tell(launched_rank(), e.what());
        return dynamic_cast<const job_error*>(&e) != nullptr ? job_ended : failed;
    }
    try {
        return body(*j);
    } catch (...) {
        return ended_by_exception(j->core());
    }
}

} // namespace halocline::comm
