// SPDX-License-Identifier: Apache-2.0
// The job: which rank this is, who the other ranks are, and who is alive. A value, without globals: ranks may be
// processes under halocline-run or an MPI launcher, or threads of one process (tests, thread sanitizer). Everything
// here is set-up or slow path. The data path is channels (channel_set.hpp), which poll memory.
#pragma once

#include <halocline/base/checked_pointer.hpp>
#include <halocline/base/error.hpp>
#include <halocline/comm/path.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/comm/status.hpp>

#include <chrono>
#include <cstdint>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace halocline::comm {

class job_core; // private: comm/src/job/job_core.hpp

/// Options of transport "verbs". They may differ between ranks.
struct verbs_options {
    std::string device{}; ///< "mlx5_0", which must exist; "": the first device whose port is active
    int port = 1;         ///< of the device, counted from 1
    /// GID index of the port. -1 chooses: on RoCE the first v2 entry over IPv4, else the first v2 entry, else any; on
    /// InfiniBand none (LIDs).
    int gid_index = -1;
    int mtu = 0; ///< path MTU in bytes: 256, 512, 1024, 2048 or 4096; 0: the largest that both ports support
    /// Bytes; longer messages are split into several RDMA writes. 0: the device's limit.
    std::size_t largest_write = 0;
    /// Messages up to this size, including their label of 32 bytes, travel in the work request.
    int inline_bytes = 256;
};

/// The transports that a job tries if its options name none, as far as this build has them: "shm" within a node;
/// between nodes "verbs", "mpi" (if an MPI launcher started the job), "ofi".
[[nodiscard]] std::vector<std::string> default_transports();

/// How transport "mpi" moves the messages of plans and sums. Windows of connections are always two-sided.
enum class mpi_mode {
    two_sided, ///< persistent requests
    one_sided, ///< MPI_Put in epochs of post, start, complete and wait
};
[[nodiscard]] std::string_view to_string(mpi_mode m);
/// Err: input_error: neither "two-sided" nor "one-sided".
[[nodiscard]] mpi_mode mpi_mode_of(std::string_view text);

/// Run-time choices of a job. Whoever runs a program can override what it sets here without recompiling: the keys of
/// [comm] and [faults] in the file that $HALOCLINE_CONFIG names override these options, and variables HALOCLINE_COMM_…
/// and HALOCLINE_FAULTS_… override the file (option_keys.hpp, configs/demo.toml).
/// The choices must be equal on all ranks, which is checked when the job starts; only spin_polls, network, bootstrap,
/// verbs and may_sleep may differ.
struct job_options {
    /// Transports in order of preference; each peer is served by the first that reaches it ("self" always serves the
    /// rank itself). A peer that none of them reaches is an error; there is no silent fallback.
    std::vector<std::string> transports = default_transports();
    std::chrono::milliseconds deadline{60'000}; ///< longest wait for a peer that is alive, at most 11 days
    /// Longest silence of the link to another node, 2 s to an hour. The kernels watch it, so ranks may compute or be
    /// stopped.
    std::chrono::milliseconds link_timeout{5'000};
    /// Plans append a checksum to each message and verify it before the ghosts may be read (halo::plan).
    bool checksums = false;
    /// Virtual size of each rank's slab; 0: 64 GiB (sparse: only what is used takes memory).
    std::size_t slab_bytes = 0;
    /// Default for plans that leave `path` automatic: how messages are written into memory that ranks share. packed
    /// applies only to ghosts inside fields.
    comm::path path = path::automatic;
    /// Polls of a wait before it yields its core; it looks for deaths and at the clock all the same. 1000 or more also
    /// states that this rank has a core of its own. 0: chosen from the numbers of ranks and cores
    /// (docs/decisions/0029-waiting.md).
    int spin_polls = 0;
    /// libfabric's provider for transport "ofi", e.g. "tcp;ofi_rxm" or "shm", which must exist; "": the first that
    /// can do RMA writes with remote completion data, or "net" where that is "tcp;ofi_rxm"
    /// (docs/decisions/0008-ofi.md).
    std::string ofi_provider{};
    mpi_mode mpi = mpi_mode::two_sided;
    /// Where ranks of several nodes meet: an interface ("eth0"), an address of this host, or a network that contains
    /// one ("10.0.0.0/8").
    /// "": $HALOCLINE_NETWORK; if that is empty too, the first network in which every node has a distinct address.
    std::string network{};
    /// Who starts the job: "local" (halocline-run), "pmix" (a launcher's PMIx server, without MPI) or "mpi".
    /// "": $HALOCLINE_BOOTSTRAP; if that is empty too, whatever started this program (of "mpi" and "pmix", where both
    /// did, "mpi" if that is among the transports).
    std::string bootstrap{};
    verbs_options verbs{};
    bool may_sleep = false; ///< waits of more than 1 ms sleep between polls: kinder to other jobs, slower to wake
    /// Ignore the config file and the environment: set when the program has already applied them (configured()), or
    /// wants exactly these values. $HALOCLINE_NETWORK and $HALOCLINE_BOOTSTRAP count all the same where `network` and
    /// `bootstrap` are empty.
    bool fixed = false;
};

/// What a rank knows about another one (or itself).
struct rank_info {
    int rank = 0;
    int pid = 0;
    std::string host;
    std::string transport; ///< the one used from this rank: "self", "shm", "verbs", "ofi", "mpi"
    /// Why the preferred transports before that one were not used; empty if it is the first.
    std::string refused;
    int node = 0; ///< nodes are numbered from 0, in the order of their lowest ranks
};

/// A rank died, or a wait failed. Of a death, a deadline and abort() every rank throws this with the same culprit. A rank
/// that merely closes its end, because an exception ends it, is the culprit for those that wait for it; they may become
/// that for others.
class rank_failure : public job_error {
  public:
    rank_failure(const std::string& text, status why, int culprit, int pid, std::string host, std::string operation)
        : job_error(text), why_(why), culprit_(culprit), pid_(pid), host_(std::move(host)),
          operation_(std::move(operation)) {}
    [[nodiscard]] status why() const { return why_; }
    [[nodiscard]] int culprit() const { return culprit_; } ///< rank, -1 if unknown
    [[nodiscard]] int pid() const { return pid_; }
    [[nodiscard]] const std::string& host() const { return host_; }
    [[nodiscard]] const std::string& operation() const { return operation_; } ///< what this rank was waiting for

  private:
    status why_;
    int culprit_, pid_;
    std::string host_, operation_;
};

/// A handle to this rank's place in the job; copies share it.
/// Threads: while one thread of a rank makes set-up calls, or destroys what they made, no other one is in a call.
/// Otherwise several may be in calls at once if they use different plans and sums, and all peers are reached through
/// shared memory. Windows, messages and one-sided calls, and all that goes over networks, are for one thread at a time;
/// while it is in a call for messages, no other one is in any call. What one thread has begun (an exchange, a step of a
/// window) another may finish while the first waits for something else; statistics of it are for the one in its calls.
class job {
  public:
    /// The job of the launcher that started this process: halocline-run, an MPI launcher (its MPI is loaded as a
    /// module), or a PMIx server without any MPI (job_options::bootstrap); without a launcher, a job of one rank.
    /// A config file and the environment override `options`. Collective.
    /// Err: input_error (unusable transport, a bad key of the file, options that differ between ranks), job_error.
    static job from_environment(const job_options& options = {});
    /// Inside an MPI program: a job of the ranks of one of its communicators. The job duplicates the communicator, so
    /// its messages never match the program's receives. A config file and the environment override `options`.
    /// Collective over the communicator.
    /// Pre:  MPI_Init was called; the job, and everything made from it, is destroyed before MPI_Finalize (which warns).
    /// Err:  input_error: there is no module for this MPI; an intercommunicator; job_error.
    /// Cost: two MPI communicators while the job lasts; if MPI is one-sided, until MPI_Finalize.
    template <class Communicator> // MPI_Comm: this header needs no mpi.h
    requires(std::is_pointer_v<Communicator> || std::is_integral_v<Communicator>) static job
        from_mpi(Communicator communicator, const job_options& options = {}) {
        return from_mpi_handle(&communicator, sizeof communicator, options);
    }
    /// from_mpi() given the address and size of the MPI_Comm.
    static job from_mpi_handle(const void* communicator, std::size_t bytes, const job_options& options = {});
    /// A job of one rank.
    static job single(const job_options& options = {});

    [[nodiscard]] int rank() const;
    [[nodiscard]] int ranks() const;
    [[nodiscard]] const job_options& options() const;
    /// All ranks of the job, by rank.
    [[nodiscard]] const std::vector<rank_info>& members() const;
    /// The node of each rank, in the form that lattice::rank_order_by_nodes() takes.
    [[nodiscard]] std::vector<int> nodes() const;
    /// The transports that serve this rank's peers, joined by '+': "shm", "shm+ofi", …; "self" in a job of one rank.
    [[nodiscard]] std::string transport() const;
    /// "halocline-run", "OpenPMIx 4.2.2", "Open MPI 4.1.4", "threads", "single".
    [[nodiscard]] std::string launcher() const;
    /// This rank's slab, which the peers of its node map. What lies there goes before the last handle of the job.
    [[nodiscard]] slab& memory() const;

    // Set-up collectives, called by all ranks of the job: they block until the deadline or a death, and send O(log
    // ranks) messages.  Err: rank_failure; input_error: no such rank.
    /// Every rank's bytes, by rank.  Cost: O(ranks).
    [[nodiscard]] std::vector<std::string> gather(std::string_view mine) const;
    /// The bytes of `root`, on every rank.  Err: input_error on every rank, naming two ranks and both roots, if they
    /// differ.
    [[nodiscard]] std::string broadcast(std::string_view mine, int root = 0) const;
    void barrier() const;
    /// Sends out[i] to peers[i], and returns what they sent. A peer may appear several times (order is kept), and may
    /// be this rank itself. Only ranks that name each other take part.  Cost: O(peers).
    [[nodiscard]] std::vector<std::string> exchange(std::span<const int> peers, std::span<const std::string> out) const;
    /// Checks that `value` is the same on all ranks.
    /// Err: input_error on every rank, naming `what`, two ranks and both values.
    void agree(std::string_view what, std::string_view value) const;
    /// Runs `work` on every rank. If it threw on any, every rank throws the error of the lowest rank that failed
    /// (input_error and file_error as input_error, job_error and rank_failure as job_error, slab_full as itself, others
    /// as error). So nothing hangs, and the job reports one error.
    /// `more_time`: how much longer than options().deadline ranks may wait for one that is still at `work`, such as
    /// reading a large file, at most 11 days; the same on all ranks.
    void collectively(const std::function<void()>& work, std::chrono::milliseconds more_time = {}) const;

    /// Advances what peers wait for while this rank waits for something outside of halocline: call it in loops around
    /// MPI_Test, for example. Every wait and test of halocline does so, too. Never waits, but yields where ranks share
    /// cores. If a rank dies, this one's watchdog ends the process.  Cost: as one poll of a wait.
    void progress() const noexcept;
    /// Writes a line on stderr that names this rank, for what no call can report.
    void warn(std::string_view text) const noexcept;
    /// Reports to every rank that this one gives up, and why. The next waits of all, this one's included, end with
    /// status::aborted, whatever has arrived.
    void abort(std::string_view why) const noexcept;
    /// Throws the exception for a hot-path object's bad status; `operation` is what was waited for.
    [[noreturn]] void fail(status why, std::string_view operation) const;

    /// For the library's own classes.
    [[nodiscard]] job_core& core() const { return *core_; }
    [[nodiscard]] std::shared_ptr<job_core> share() const { return core_.pointer(); }
    explicit job(std::shared_ptr<job_core> core) : core_("a job", std::move(core)) {}

  private:
    checked_pointer<std::shared_ptr<job_core>> core_;
};

/// Runs `body` once per rank, with ranks as threads of this process; returns when all are done. An exception on one
/// rank aborts the waits of the others; once all threads have ended, what went wrong is rethrown: of the lowest rank
/// whose exception is not about another rank (rank_failure), otherwise of the lowest rank.
/// Err: error: no thread for a rank.
void run_threads(int ranks, const std::function<void(const job&)>& body, const job_options& options = {});

} // namespace halocline::comm
