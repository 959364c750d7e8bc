// SPDX-License-Identifier: Apache-2.0
// How a job ends prematurely: who notices, who is informed, and what each rank reports.
#include "job_core.hpp"
#include "mpi/world.hpp"
#include "ofi/world.hpp"
#include "watchdog.hpp"

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <ctime>
#include <sched.h>

namespace halocline::comm {

void job_core::publish(status why, int culprit, std::string_view text) noexcept {
    job_end mine{.why = why, .culprit = culprit};
    if (culprit >= 0) {
        mine.pid = members[culprit].pid;
        std::strncpy(mine.host, members[culprit].host.c_str(), sizeof mine.host - 1);
    }
    text.copy(mine.text, sizeof mine.text - 1);
    (void)memory->record().write(0, mine);
    if (in_forked_child()) return;           // only for the child, whose slab is a copy: the job is not its to end
    if (networks.mpi) networks.mpi->leave(); // MPI_Finalize would wait for the dead
    // This rank reports what the others get, even if another's record came first.
    const job_end& first = memory->record().settle(mine);
    if (alive) alive->tell_far(first);
    for (int r = 0; r < ranks; ++r) {
        if (r == rank || peer_base[r] == nullptr) continue;
        (void)record_of(r).write(0, first);
    }
}

void job_core::time_out(int culprit) noexcept {
    std::array<char, 24> ms;
    const auto end = std::to_chars(ms.data(), ms.data() + ms.size(), longest_wait().count()).ptr;
    publish(status::timed_out, culprit, {ms.data(), end});
}

status job_core::failed() const noexcept {
    const auto* end = memory->record().end();
    return end != nullptr ? end->why : status::ok;
}

status job_core::check_wait(int peer, std::uint64_t since, bool peer_had_left) noexcept {
    if (find_failure(peer, since, peer_had_left) == status::ok) return status::ok;
    return failed_for_call();
}

void job_core::note_rank_knows() noexcept {
    own_activity.knows_of_end.store(true, std::memory_order_relaxed);
    if (in_forked_child()) return;           // the libraries are its parent's
    if (networks.mpi) networks.mpi->leave(); // even if another rank wrote the record
    // Before this rank's buffers are released, and before libfabric closes the connections of the dead.
    if (networks.ofi) networks.ofi->leave();
}

status job_core::find_failure(int peer, std::uint64_t since, bool peer_had_left) noexcept {
    if (const status s = failed(); s != status::ok) return s;
    if (in_forked_child()) {
        publish(status::aborted, rank, "this process is a child of fork(), and the job is its parent's");
        return failed();
    }
    memory->record().awake.store(ticks(), std::memory_order_relaxed);
    if (alive) {
        alive->look(); // first, so that a network's library learns of a peer's death as late as possible
        if (const status s = failed(); s != status::ok) return s;
    }
    make_progress();
    if (alive && peer_had_left) {
        publish(status::peer_died, peer, "left the job");
        return failed();
    }
    const double waited = stall_reports.waited(since);
    stall_reports.look(peer, waited);
    if (waited > std::chrono::duration<double>(longest_wait()).count()) {
        time_out(silent_behind(peer));
        return failed();
    }
    return status::ok;
}

void job_core::awaits(int peer) noexcept {
    if (peer == failure_record::nobody) stall_reports.over();
    failure_record& mine = memory->record();
    mine.awake.store(ticks(), std::memory_order_relaxed);
    mine.awaited.store(peer, std::memory_order_release);
}

int job_core::silent_behind(int peer) const noexcept {
    const double asleep = std::chrono::duration<double>(longest_wait()).count() / 2;
    int last = peer;
    for (int hops = 0; hops < ranks; ++hops) {
        if (last < 0 || peer_base[last] == nullptr) return last;
        const failure_record& record = record_of(last);
        const int next = record.awaited.load(std::memory_order_acquire); // `awake` belongs to this wait, or a later one
        if (next < 0 || seconds(ticks() - record.awake.load(std::memory_order_relaxed)) > asleep) return last;
        last = next;
    }
    return peer;
}

status job_core::lost(int peer, std::string_view why) noexcept {
    const std::uint64_t since = ticks();
    while (failed() == status::ok && alive && seconds(ticks() - since) < 0.5) {
        alive->look();
        sched_yield();
    }
    if (failed() == status::ok) publish(status::peer_died, peer, "can't be reached: " + std::string(why));
    note_rank_knows();
    return failed();
}

void job_core::check_or_raise(int peer, std::uint64_t since, std::string_view operation, bool peer_had_left) {
    background.run_all();
    if (const status s = check_wait(peer, since, peer_had_left); s != status::ok) raise(s, operation);
}

std::string job_core::cut_link(int peer, std::string_view own_address, std::string_view address) const {
    return "can't be reached any more: the link from " + members[rank].host + " (" + std::string(own_address) +
           ") to " + members[peer].host + " (" + std::string(address) + ") has been silent for " +
           std::to_string(options.link_timeout.count()) + " ms";
}

job_core::ending job_core::end_of_job(std::string_view sentence_end) const {
    const job_end& written = *memory->record().end();
    ending end{written.why, written.culprit,
               "rank " + std::to_string(rank) + " (pid " + std::to_string(members[rank].pid) + "): "};
    const std::string how = written.text;
    switch (end.why) {
    case status::peer_died: end.text += name_of(end.culprit) + " " + (how.empty() ? "died" : how); break;
    case status::timed_out: {
        const std::string deadline = how + " ms";
        if (end.culprit == rank && ranks == 1)
            end.text += "nothing came from this rank itself within " + deadline + ",";
        else if (end.culprit == rank)
            end.text += "another rank waited for this one for " + deadline + " and gave up,";
        else
            end.text += "nothing came" + (end.culprit >= 0 ? " from " + name_of(end.culprit) : std::string()) +
                        " within " + deadline + ", although nobody died,";
        break;
    }
    default:
        if (!how.empty()) {
            end.text += name_of(end.culprit) + " gave up" + std::string(sentence_end) + ": " + how;
            return end;
        }
        end.text += name_of(end.culprit) + " gave up";
    }
    end.text += sentence_end;
    return end;
}

void job_core::await_cause() const noexcept {
    const int peer = farewell_of.load(std::memory_order_relaxed);
    if (in_forked_child() || cause_awaited_of.exchange(peer, std::memory_order_relaxed) == peer) return;
    constexpr int milliseconds = 300;
    for (int i = 0; i < milliseconds && memory->record().end() == nullptr; ++i) {
        if (alive) alive->look();
        if (alive && peer >= 0 && alive->left(peer)) return; // in good order
        background.run_all();                                // what other peers wait for
        const timespec nap{0, 1'000'000};
        nanosleep(&nap, nullptr);
    }
}

void job_core::raise(status why, std::string_view operation) const {
    const std::string waited = " while this rank waited for " + std::string(operation);
    const bool own = why == status::wrong_data || why == status::misused;
    // A peer that ends the job may have closed its end before all records are written. If an exception ends it, it closes
    // what it has first, and then tells why.
    if (why == status::aborted) await_cause();
    const bool ended = memory->record().end_soon() != nullptr;
    own_activity.threw_job_error.store(true, std::memory_order_relaxed);
    // Otherwise the program may catch this and continue with the job.
    if (ended) own_activity.knows_of_end.store(true, std::memory_order_relaxed);
    if (ended && networks.mpi) networks.mpi->leave();
    ending end;
    if (!own && ended) {
        end = end_of_job(waited);
    } else {
        end = {why, -1, "rank " + std::to_string(rank) + " (pid " + std::to_string(members[rank].pid) + "): "};
        switch (why) {
        case status::misused: end.text += "a wrong call: " + std::string(operation); break;
        case status::wrong_data:
            end.text += "what came is not what was agreed (other plan, epoch or size)" + waited;
            break;
        case status::aborted:
            end.culprit = farewell_of.load(std::memory_order_relaxed);
            end.text += (end.culprit >= 0 ? name_of(end.culprit) : std::string("a peer")) + " closed its end" + waited +
                        "; it failed by itself, or takes fewer steps than this rank";
            break;
        default: end.text += std::string(to_string(why)) + waited;
        }
    }
    if (ended && own_watchdog) own_watchdog->leave_report_to_rank(end.text);
    throw rank_failure(end.text, end.why, end.culprit, end.culprit >= 0 ? members[end.culprit].pid : 0,
                       end.culprit >= 0 ? members[end.culprit].host : std::string(), std::string(operation));
}

} // namespace halocline::comm
