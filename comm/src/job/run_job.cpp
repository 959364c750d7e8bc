// SPDX-License-Identifier: Apache-2.0
#include "job_core.hpp"
#include "say.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/bad_input.hpp>
#include <halocline/comm/out_of_memory.hpp>
#include <halocline/comm/run_job.hpp>

#include <chrono>
#include <algorithm>
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

/// What every rank has found.
int told_by_rank_0(int rank, const std::string& what, int code) {
    if (rank == 0)
        tell(nobody, what);
    else
        wait_for_rank_0_to_report();
    return code;
}

/// Ends the job because of this, unless it has ended. Peers that have found the farewells of what this rank had wait a
/// moment for that (job_core::raise()).
void give_up(job_core& core, const std::string& what) {
    core.own_activity.knows_of_end.store(true, std::memory_order_relaxed);
    core.publish(status::aborted, core.rank, what);
}

/// Waits for a rank that finds the same bad input and tells it; what all ranks find they find at about the same time.
/// True if there is one, else ends the job.
bool is_told_by_another(job_core& core, const std::string& what) {
    core.own_activity.knows_of_end.store(true, std::memory_order_relaxed); // the watchdog need not tell it
    // By turns: when the first one gives up, the others have found it, too.
    const int looks = 40 + 25 * std::min(core.rank, 8);
    for (int i = 0; i < looks && core.find_failure(-1, ticks(), false) == status::ok; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    give_up(core, what);
    const job_end* const end = core.memory->record().end_soon();
    return end != nullptr && end->culprit != core.rank && end->why == status::aborted &&
           std::string_view(end->text) == std::string_view(what).substr(0, sizeof end->text - 1);
}

/// The exception under way, which a rank of this job has thrown.
int ended_by_exception(job_core& core) {
    const int self = core.ranks == 1 ? nobody : core.rank;
    const auto ended_by = [&](const std::string& what, int code) {
        give_up(core, what);
        tell(self, what);
        return code;
    };
    try {
        throw;
    } catch (const input_error& e) {
        if (core.ranks > 1 && is_told_by_another(core, e.what()))
            wait_for_rank_0_to_report();
        else
            tell(core.rank == 0 ? nobody : self, e.what());
        return bad_input;
    } catch (const job_error& e) { // perhaps only this rank's
        return ended_by(e.what(), job_ended);
    } catch (const out_of_memory& e) {
        return told_by_rank_0(core.rank, e.what(), failed);
    } catch (const std::bad_alloc&) {
        return ended_by("out of memory", failed);
    } catch (const std::exception& e) {
        return ended_by(e.what(), failed);
    } catch (...) {
        return ended_by("an exception of unknown type", failed);
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
    } catch (const input_error& e) {
        return told_by_rank_0(launched_rank(), e.what(), bad_input);
    } catch (const out_of_memory& e) {
        return told_by_rank_0(launched_rank(), e.what(), failed);
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
