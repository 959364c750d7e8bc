// SPDX-License-Identifier: Apache-2.0
#include "job_core.hpp"
#include "say.hpp"
#include "watchdog.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/bad_input.hpp>
#include <halocline/comm/detail/launch.hpp>
#include <halocline/comm/out_of_memory.hpp>
#include <halocline/comm/run_job.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace halocline::comm {
namespace {

using launch::bad_input, launch::failed, launch::job_ended;

constexpr int nobody = -1; // need be named
constexpr const char* unknown = "an exception of unknown type";

std::string line_of(int rank, const std::string& what) {
    const std::string who = "rank " + std::to_string(rank);
    const bool named = rank == nobody || what.starts_with(who + " ("); // by comm, with its process
    return std::string(program_invocation_short_name) + ": error: " + (named ? "" : who + ": ") + what;
}

/// What every rank has found.
int told_by_rank_0(int rank, const std::string& what, int code) {
    if (rank == 0)
        say(line_of(nobody, what));
    else
        wait_for_rank_0_to_report();
    return code;
}

/// Tells it, and then ends the job because of it, unless it has ended: who learns of that may end this rank, too. Peers
/// that have found the farewells of what this rank had wait a moment for the cause (job_core::raise()).
void tell_and_give_up(job_core& core, int named, const std::string& what) {
    const std::string line = line_of(core.ranks == 1 ? nobody : named, what);
    if (core.own_watchdog) core.own_watchdog->leave_report_to_rank(line);
    say(line);
    core.own_activity.knows_of_end.store(true, std::memory_order_relaxed);
    core.publish(status::aborted, core.rank, what);
}

/// Waits for a rank that finds the same and tells it; what all ranks find they find at about the same time. False if
/// there is none.
bool is_told_by_another(job_core& core, const std::string& what) {
    // By turns: when the first one gives up, the others have found it, too.
    const int looks = core.ranks == 1 ? 0 : 100 + 25 * std::min(core.rank, 4);
    for (int i = 0; i < looks && core.find_failure(-1, ticks(), false) == status::ok; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const job_end* const end = core.memory->record().end_soon();
    if (end == nullptr || end->why != status::aborted ||
        std::string_view(end->text) != std::string_view(what).substr(0, sizeof end->text - 1))
        return false;
    core.note_rank_knows();
    return true;
}

std::string with_remedy(const std::string& what) {
    return what + "; raise 'ulimit -v' if it is set, or take more nodes or a smaller lattice";
}

/// The exception under way, which job::from_environment() has thrown: all ranks know of it, or none can.
int ended_without_job() {
    const int rank = launched_rank();
    const auto told_by_itself = [&](const std::string& what, int code) {
        say(line_of(rank, what));
        return code;
    };
    try {
        throw;
    } catch (const unshared_input_error& e) {
        return told_by_itself(e.what(), bad_input);
    } catch (const input_error& e) {
        return told_by_rank_0(rank, e.what(), bad_input);
    } catch (const out_of_memory& e) {
        return told_by_rank_0(rank, with_remedy(e.what()), failed);
    } catch (const job_error& e) {
        return told_by_itself(e.what(), job_ended);
    } catch (const std::bad_alloc&) {
        return told_by_itself(with_remedy("out of memory"), failed);
    } catch (const std::exception& e) {
        return told_by_itself(e.what(), failed);
    } catch (...) {
        return told_by_itself(unknown, failed);
    }
}

/// The exception under way, which this rank has thrown.
int ended_by_exception(job_core& core) {
    core.own_activity.tells_end_itself.store(true, std::memory_order_relaxed);
    const auto ended_by = [&](const std::string& what, int code) {
        tell_and_give_up(core, core.rank, what);
        return code;
    };
    const auto ended_by_all = [&](const std::string& what, int code) {
        if (is_told_by_another(core, what))
            wait_for_rank_0_to_report();
        else
            tell_and_give_up(core, core.rank == 0 ? nobody : core.rank, what);
        return code;
    };
    try {
        throw;
    } catch (const job_error& e) { // of this rank alone, or of all, such as of calls that don't belong together
        return ended_by_all(e.what(), job_ended);
    } catch (const out_of_memory& e) {
        return told_by_rank_0(core.rank, with_remedy(e.what()), failed);
    } catch (const input_error& e) {
        return ended_by_all(e.what(), bad_input);
    } catch (const error& e) { // a slab that is full, for one: where ranks decide together all throw it
        return ended_by_all(e.what(), failed);
    } catch (const std::bad_alloc&) {
        return ended_by(with_remedy("out of memory"), failed);
    } catch (const std::exception& e) {
        return ended_by(e.what(), failed);
    } catch (...) {
        return ended_by(unknown, failed);
    }
}

} // namespace

int end_by_exception(const job* j) { return j != nullptr ? ended_by_exception(j->core()) : ended_without_job(); }

int run_body(const std::function<int(const job&)>& body, const job_options& options) {
    std::optional<job> j;
    try {
        j.emplace(job::from_environment(options));
        return body(*j);
    } catch (...) {
        return end_by_exception(j ? &*j : nullptr);
    }
}

} // namespace halocline::comm
