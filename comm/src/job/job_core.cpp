// SPDX-License-Identifier: Apache-2.0
#include "job_core.hpp"

#include "mpi/world.hpp"
#include "watchdog.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/option_keys.hpp>

#include <exception>
#include <mutex>
#include <unistd.h>
#include <utility>
#include <vector>

namespace halocline::comm {

std::string host_name() {
    char name[256]{};
    if (gethostname(name, sizeof name - 1) != 0) return "localhost";
    return name;
}

namespace {

/// For the rest of the process: MPI may write there in any later call.
void keep_mapped(std::shared_ptr<node_slab> slab) {
    static std::mutex mutex;
    static auto* const kept = new std::vector<std::shared_ptr<node_slab>>; // never destroyed, not even by exit()
    const std::lock_guard lock(mutex);
    kept->push_back(std::move(slab));
}

} // namespace

job_core::job_core(int own_rank, int job_ranks, job_options choices, std::string started_by,
                   std::shared_ptr<node_slab> own_slab)
    : rank(own_rank), ranks(job_ranks), options(within_ranges(std::move(choices))), launcher(std::move(started_by)),
      members(static_cast<std::size_t>(job_ranks)), memory(std::move(own_slab)),
      peer_base(static_cast<std::size_t>(job_ranks), nullptr), stall_reports(*this, job_ranks) {
    for (int r = 0; r < ranks; ++r) members[r].rank = r;
    members[rank] = {rank, static_cast<int>(getpid()), host_name(), "self", ""};
    peer_base[rank] = memory->base();
    seconds_per_tick(); // measured now rather than in the first wait
}

job_core::~job_core() {
    if (in_forked_child()) {
        leave_to_parent(parked);
        leave_to_parent(alive);
        leave_to_parent(networks);
        return;
    }
    const closing_scope closing(own_activity);
    // Farewells of closed channels, and the last messages before them, may still be under way.
    const auto over = [&] {
        if (alive) alive->look();
        return failed() != status::ok;
    };
    const auto alone = [&] {
        const bool ended = over();
        bool somebody = false;
        for (int r = 0; r < ranks; ++r) somebody = somebody || (r != rank && alive && !alive->left(r));
        return ended || !somebody;
    };
    networks.finish(over, alone);
    if (networks.mpi && networks.mpi->holds_memory()) keep_mapped(memory);
    // An exception is destroying the last handle of the job.
    const bool gives_up =
        own_activity.threw_job_error.load(std::memory_order_relaxed) && std::uncaught_exceptions() > 0;
    if (networks.mpi && gives_up) networks.mpi->give_up();
    if (own_watchdog) own_watchdog->stop_looking();
    // While the watchdog still runs, because these libraries may not return. Memory registered with them goes first.
    parked.clear();
    alive.reset();
    networks.close();
}

void job_core::sweep() noexcept {
    if (in_forked_child()) return; // the libraries, and the letters, are its parent's
    networks.sweep();
    if (parked.expects_letters()) windows.look_for_letters(setup_mail);
    parked.sweep(*memory, windows.letters);
}

void job_core::make_progress() noexcept {
    networks.poll();
    windows.push_due_in_wait();
}

void job_core::park(parked_block block) {
    parked.park(std::move(block));
    sweep();
}

bool job_core::in_forked_child() const noexcept { return getpid() != members[rank].pid; }

std::string job_core::name_of(int r) const {
    if (r < 0) return "a rank";
    const rank_info& m = members[r];
    std::string s = "rank " + std::to_string(r);
    if (m.pid != 0) s += " (pid " + std::to_string(m.pid) + (m.host.empty() ? "" : " on " + m.host) + ")";
    return s;
}

} // namespace halocline::comm
