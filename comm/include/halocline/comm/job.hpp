// SPDX-License-Identifier: Apache-2.0
// The job: who am I, who are my peers, who is alive. A value without globals: ranks may be processes under
// halocline-run, processes under an MPI launcher, or threads of one process (tests, TSan).
// Everything here is set-up and slow path; the data path is channels (channel_set.hpp), which poll memory.
#pragma once

#include <halocline/base/error.hpp>
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

class slab;
class job_core; // private: comm/src/job/job_core.hpp

/// Of transport "verbs". Unlike other options, ranks may differ in these.
struct verbs_options {
    std::string device{}; ///< "mlx5_0"; "": the first whose port is active
    int port = 1;
    int gid_index = -1; ///< of the port; -1: RoCE: the first of v2 over IPv4, else of v2; InfiniBand: none (LIDs)
    int mtu = 0;        ///< of the path, in bytes: 256, 512, 1024, 2048, 4096; 0: what both ports can do
    std::size_t largest_write = 0; ///< longer messages are several writes; 0: what the device can do
    int inline_bytes = 256;        ///< messages up to this, label of 32 bytes included, travel in the work request
};

/// What is tried without a choice: "shm" within a node; between nodes "verbs", "mpi" (where an MPI launcher started the
/// job), "ofi". Those that this build has.
[[nodiscard]] std::vector<std::string> default_transports();

/// How transport "mpi" moves the messages of plans and sums. Windows of connections are two-sided in both.
enum class mpi_mode {
    two_sided, ///< persistent requests
    one_sided, ///< MPI_Put between post, start, complete and wait
};
[[nodiscard]] std::string_view to_string(mpi_mode m);
/// Err: input_error: neither "two-sided" nor "one-sided".
[[nodiscard]] mpi_mode mpi_mode_of(std::string_view text);

/// Do messages between ranks that share memory bypass the cache of who writes them?
enum class streaming : std::uint8_t {
    automatic, ///< where it was measured to be faster (costs.hpp)
    always,
    never
};

/// Run-time choices of a job; equal on all ranks (agreed at start).
struct job_options {
    /// Transports for peers, in order of preference; for each peer the first that reaches it wins. "self" serves the
    /// own rank always. Naming one that can't be used and nothing that can is an error, never a silent fallback.
    std::vector<std::string> transports = default_transports();
    std::chrono::milliseconds deadline{60'000}; ///< longest wait for a peer that is alive
    /// Longest silence of the link to another node, at least 2 s. Kernels watch it: ranks may compute or be stopped.
    std::chrono::milliseconds link_timeout{5'000};
    /// Plans put a CRC32C behind each message and compare it before the ghosts may be read (halo::plan).
    bool checksums = false;
    std::size_t slab_bytes = 0; ///< virtual size of each rank's slab; 0 = 64 GiB sparse
    comm::streaming streaming = streaming::automatic;
    /// May fields whose ghosts lie in them be written in place by peers that share their memory, where that was measured
    /// to be faster? If not, such ghosts come through slots (halo: path packed).
    bool in_place = true;
    int spin_polls = 0; ///< polls before yielding; 0 = chosen from ranks and cores
    /// Provider of libfabric for transport "ofi", e.g. "tcp;ofi_rxm" or "shm"; "": libfabric's first that can
    /// do RMA writes with remote completion data.
    std::string ofi_provider{};
    mpi_mode mpi = mpi_mode::two_sided;
    /// Where ranks of several nodes meet: an interface ("eth0"), an address or a network ("10.1.0.0/16") of this host.
    /// "": $HALOCLINE_NETWORK; if that is empty too, the first network in which every node has an address of its own.
    std::string network{};
    /// Who starts the job: "local" (halocline-run), "pmix" (a launcher's PMIx server, no MPI involved) or "mpi". "":
    /// $HALOCLINE_BOOTSTRAP; if that is empty too, whatever started this program, pmix only if no transport is mpi.
    std::string bootstrap{};
    verbs_options verbs{};
    bool may_sleep = false; ///< waits of more than 1 ms sleep between polls: kinder to other jobs, slower to wake
};

/// Where a rank lives.
struct rank_info {
    int rank = 0;
    int pid = 0;
    std::string host;
    std::string transport; ///< what serves it from here: "self", "shm", "verbs", "ofi", "mpi"
    std::string refused;   ///< why the transports before that were not used; empty if the first was
    int node = 0;          ///< nodes are numbered from 0, by their lowest rank
};

/// A rank died, or a wait failed: what every survivor reports.
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

/// Handle of this rank's place in the job; copies share the place. Thread-compatible: one rank drives its job from one
/// thread at a time during set-up.
class job {
  public:
    /// Under halocline-run: that job. Under an MPI launcher: MPI's world (through the module of that MPI), or through
    /// its PMIx server without any MPI (job_options::bootstrap).
    /// Otherwise a job of one rank. Collective.  Err: input_error (unusable transport), job_error.
    static job from_environment(const job_options& options = {});
    /// Inside an MPI program: the ranks of one of its communicators, of which the job makes private duplicates, so that
    /// no message of one meets a receive of the other. Collective over it.
    /// Pre: MPI_Init was called; the job and all that was made of it are gone before MPI_Finalize.
    /// Err: input_error: no module of that MPI; job_error.
    /// Cost: two communicators of MPI, until MPI_Finalize.
    template <class Communicator> // MPI_Comm: this header needs no mpi.h
    requires(std::is_pointer_v<Communicator> || std::is_integral_v<Communicator>) static job
        from_mpi(Communicator communicator, const job_options& options = {}) {
        return from_mpi_handle(&communicator, sizeof communicator, options);
    }
    /// The same, by the address and size of the MPI_Comm.
    static job from_mpi_handle(const void* communicator, std::size_t bytes, const job_options& options = {});
    /// A job of one rank.
    static job single(const job_options& options = {});

    [[nodiscard]] int rank() const;
    [[nodiscard]] int ranks() const;
    [[nodiscard]] const job_options& options() const;
    /// One entry per rank.
    [[nodiscard]] const std::vector<rank_info>& members() const;
    /// The node of each rank: what lattice::rank_order_by_nodes() asks for.
    [[nodiscard]] std::vector<int> nodes() const;
    /// "self", "shm", "verbs", "ofi", "mpi", or joined with '+' when peers are served by several; "self" on one rank.
    [[nodiscard]] std::string transport() const;
    /// "halocline-run", "OpenPMIx 4.2.2", "Open MPI 4.1.4", "threads", "single".
    [[nodiscard]] std::string launcher() const;
    /// This rank's slab: mapped by the peers of its node.
    [[nodiscard]] slab& memory() const;

    /// Set-up collectives: blocking, with deadline and death check; O(log ranks) messages.  Err: rank_failure.
    /// Bytes of every rank, by rank.  Cost: O(ranks).
    [[nodiscard]] std::vector<std::string> gather(std::string_view mine) const;
    /// Bytes of `root` on every rank.
    [[nodiscard]] std::string broadcast(std::string_view mine, int root = 0) const;
    void barrier() const;
    /// Sends out[i] to peers[i] and returns what they sent; a peer may appear several times (kept in order), and may
    /// be the own rank. Cost: O(peers); only ranks that name each other take part.
    [[nodiscard]] std::vector<std::string> exchange(std::span<const int> peers, std::span<const std::string> out) const;
    /// Compares `value` on all ranks.  Err: input_error on every rank, naming `what`, two ranks and both values.
    void agree(std::string_view what, std::string_view value) const;
    /// Runs `work` here; if it threw on any rank, every rank throws: the error of the lowest rank that failed
    /// (input_error and file_error stay input_error, others become error). Nobody hangs, one message per job.
    void collectively(const std::function<void()>& work) const;

    /// Tells every rank that this one gives up, and why; their waits end with status::aborted.
    void abort(std::string_view why) const noexcept;
    /// Turns a bad status of a hot-path object into the exception; `operation` says what was waited for.
    [[noreturn]] void fail(status why, std::string_view operation) const;

    /// For channels, plans and sums.
    [[nodiscard]] job_core& core() const { return *core_; }
    [[nodiscard]] std::shared_ptr<job_core> share() const { return core_; }
    explicit job(std::shared_ptr<job_core> core) : core_(std::move(core)) {}

  private:
    std::shared_ptr<job_core> core_;
};

/// Runs `body` once per rank, ranks as threads of this process; returns when all are done. The first exception (by
/// rank) is rethrown after all threads ended; the others' waits are aborted.
void run_threads(int ranks, const std::function<void(const job&)>& body, const job_options& options = {});

} // namespace halocline::comm
