// SPDX-License-Identifier: Apache-2.0
// One rank's state, shared by its job handles, plans, sums, windows and messengers: memory, peers, the control plane, the
// failure record.
#pragma once

#include "activity.hpp"
#include "background_work.hpp"
#include "control/control_plane.hpp"
#include "crossed_waits.hpp"
#include "networks.hpp"
#include "node/node_slab.hpp"
#include "open_windows.hpp"
#include "parked_memory.hpp"
#include "spinning.hpp"
#include "stall_watch.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline/comm/job.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace halocline::comm {

class watchdog;

/// 11 days: added to any clock's time, it does not overflow. No deadline is longer, and no time beyond it.
inline constexpr std::chrono::milliseconds longest_deadline{1'000'000'000};

/// Why transports are not used, as determined when the job was joined.
struct refusals {
    std::vector<std::string> shm; ///< by peer; read only where the peer's slab is not mapped
    /// By transport, verbs or ofi, and peer; "": it is reached.
    std::map<std::string, std::vector<std::string>> networks;
};

/// One rank's state. Its members are written by the thread that makes set-up calls, while no other thread of the rank
/// is in a call (job.hpp), except: own_activity, farewell_of, cause_awaited_of, progress_calls and the records in slabs
/// are atomic; `alive` has a lock; stall_reports, crossed, spin and windows.driver have rules of their own. The
/// watchdog's thread reads options, members, memory, peer_base, networks.mpi, own_activity, stall_reports and alive.
/// next_plan_id and `measured` are the same on all ranks.
class job_core {
  public:
    job_core(int own_rank, int job_ranks, job_options choices, std::string started_by,
             std::shared_ptr<node_slab> own_slab);
    ~job_core();
    job_core(const job_core&) = delete;
    job_core& operator=(const job_core&) = delete;

    // Fixed at set-up.
    int rank = 0, ranks = 1;
    job_options options;
    std::string launcher;
    std::vector<rank_info> members;
    std::shared_ptr<node_slab> memory;
    std::vector<slab_mapping> mappings; // keeps peer_base alive; empty with threads
    std::vector<std::byte*> peer_base;  // each rank's slab as mapped here; nullptr: not on this node
    job_networks networks;
    bool all_share_memory = true;   // all ranks of the job reach each other through it
    bool some_share_memory = false; // some rank reaches another one through it
    bool all_have_own_cores = true;
    std::unique_ptr<liveness> alive; // tells when a rank ends or falls silent
    mail* setup_mail = nullptr;      // the same control plane, for letters between set-up calls
    mutable activity own_activity;
    std::atomic<std::uint64_t> progress_calls{0};
    stall_watch stall_reports;
    std::unique_ptr<watchdog> own_watchdog; // only for ranks that are processes, if there is a grace time
    int known_threads = 1;        // of the process: its ranks, and what libraries started on joining; not the watchdog
    int processor = -1;           // given to no other rank of the job (one_processor_each); -1: shared
    spinning spin{options, true}; // replaced if ranks are known to share processors

    // What this rank's objects leave to each other.
    std::uint32_t next_plan_id = 1; // plans are made collectively, so the count is the same on every rank
    std::optional<costs> measured;  // measured_costs()
    background_work background;
    open_windows windows;
    crossed_waits crossed;
    parked_memory parked;
    std::atomic<std::int64_t> more_time{0}; // milliseconds that calls under way may wait beyond the deadline
    std::atomic<int> farewell_of{failure_record::nobody}; // the rank that closed its end of what this rank waited for
    mutable std::atomic<int> cause_awaited_of{failure_record::nobody}; // await_cause()

    /// Chooses each peer's transport, by options.transports.  Err: input_error (the same on every rank only if
    /// collective).
    void choose_transports(const refusals& refused);
    /// Tells of networks that the options name before a transport that was chosen, and that reach none of this rank's
    /// peers.  Pre: transports are chosen.
    void tell_passed_over(const refusals& refused) const;
    /// Determines all_share_memory, some_share_memory and all_have_own_cores. Collective.  Pre: transports and `spin` are chosen.
    void compare_transports();
    /// Keeps the block for as long as peers may write there.
    void park(parked_block block);
    /// Gives back the memory of closed objects that nobody will write any more.
    void sweep() noexcept;

    /// The failure record in the slab of rank r.  Pre: peer_base[r] is not nullptr.
    [[nodiscard]] failure_record& record_of(int r) const noexcept {
        return *reinterpret_cast<failure_record*>(peer_base[r]);
    }
    /// Writes the end of the job into every record that can be reached, unless it already holds one.
    void publish(status why, int culprit, std::string_view text) noexcept;
    /// Publishes that a wait has lasted for longest_wait(), of which peers learn with the end of the job.
    void time_out(int culprit) noexcept;
    /// A transport reports that `peer` can't be reached. If a death is found within half a second, that is the cause;
    /// otherwise this is the end of the job: "can't be reached: " and `why`.
    [[nodiscard]] status lost(int peer, std::string_view why) noexcept;
    /// A peer closed its end of what this rank waits for; raise() will say so.  Returns status::aborted.
    status left_by(int peer) noexcept {
        farewell_of.store(peer, std::memory_order_relaxed);
        return status::aborted;
    }
    /// The status with which the job ended, if it has; the first writer's.
    [[nodiscard]] status failed() const noexcept;
    /// failed() for a call that will report it: this rank knows then.
    [[nodiscard]] status failed_for_call() noexcept {
        const status s = failed();
        if (s != status::ok) note_rank_knows();
        return s;
    }
    /// What ended the job, in this rank's words, up to " while this rank ...".
    struct ending {
        status why = status::ok;
        int culprit = -1;
        std::string text;
    };
    [[nodiscard]] ending end_of_job(std::string_view sentence_end) const;
    /// A peer has closed its end: waits until the end of the job is known, for up to 0.3 s, and once per peer.
    void await_cause() const noexcept;
    [[noreturn]] void raise(status why, std::string_view operation) const;
    /// Notes which rank this one waits for, so that the watchdog and the peers can tell who holds up the job. Called
    /// again while a wait lasts.
    void awaits(int peer) noexcept;
    /// Advances messages that a network or a peer moves only while this rank is in calls: polls networks, and sends what
    /// is due on windows.
    void make_progress() noexcept;
    /// Slow path of a wait for `peer` (-1: for nobody in particular) that began at `since` (ticks). `peer_had_left`: it
    /// was seen to have left before the caller checked, in vain, for what it may have sent last.
    [[nodiscard]] status check_wait(int peer, std::uint64_t since, bool peer_had_left) noexcept;
    /// The longest wait, which is longer than options.deadline while a call was given more time.
    [[nodiscard]] std::chrono::milliseconds longest_wait() const noexcept {
        return options.deadline + std::chrono::milliseconds(more_time.load(std::memory_order_relaxed));
    }
    /// check_wait() for callers that can't pass the result on to the program: the rank does not count as informed, so
    /// its watchdog reports the end of the job.
    status find_failure(int peer, std::uint64_t since, bool peer_had_left) noexcept;
    /// Notes that this rank knows of the end of the job.
    void note_rank_knows() noexcept;
    /// check_wait() that throws, for set-up waits.
    void check_or_raise(int peer, std::uint64_t since, std::string_view operation, bool peer_had_left = false);
    /// The text for publish() when the link to `peer` has been silent for too long.
    [[nodiscard]] std::string cut_link(int peer, std::string_view own_address, std::string_view address) const;
    /// "rank 3 (pid 4711 on hostA)"
    [[nodiscard]] std::string name_of(int r) const;
    /// Is this process a child of fork(), with copies of the rank's objects? What they share with peers, and what
    /// libraries share with the parent, is not the child's to close: destructors leave it alone.
    [[nodiscard]] bool in_forked_child() const noexcept;

  private:
    /// The end of the chain of ranks that wait for each other and are awake, as far as their memory is mapped here;
    /// `peer` if the chain is a circle.
    [[nodiscard]] int silent_behind(int peer) const noexcept;
    /// Empty if the transport reaches the peer.
    [[nodiscard]] std::string why_not(const std::string& transport, int peer, const refusals& refused) const;
};

/// In a forked child: keeps what `object` holds from ever being destroyed.
template <class T>
void leave_to_parent(T& object) {
    new T(std::move(object)); // NOLINT: lost on purpose
}

/// For the duration of a set-up wait in which awaits() is called.
class awaiting_scope {
  public:
    explicit awaiting_scope(job_core& core) noexcept : core_(core) {}
    ~awaiting_scope() { core_.awaits(failure_record::nobody); }
    awaiting_scope(const awaiting_scope&) = delete;
    awaiting_scope& operator=(const awaiting_scope&) = delete;

  private:
    job_core& core_;
};

/// Throws input_error if a transport is unknown or not built in, or if none of them can work in this job.
void check_transport_names(const std::vector<std::string>& names, bool mpi_there, int ranks);
std::string host_name();
/// The sum of a number over all ranks, modulo 2^64; the same on every rank (collectives.cpp). Collective.
/// Err: rank_failure.  Cost: O(log ranks) messages.
std::uint64_t set_up_sum(const job& j, std::uint64_t mine);

} // namespace halocline::comm
