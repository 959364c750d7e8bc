// SPDX-License-Identifier: Apache-2.0
// Memory that neighbours write: put, put with a signal, and epochs of post, start, complete, wait. Neighbours that map
// each other's slabs (self, shm) write in place, bypassing their cache for large puts where cores are far apart. Over
// verbs, ofi and mpi the origin sends the bytes, and the target stores them in its next call here or its next wait on
// anything; large puts go straight into the target's memory, as RDMA writes (verbs, ofi) or receives (mpi).
//
// Each object has two independent kinds of epoch, as in MPI: a target posts and waits, an origin starts and completes.
// Each pair of neighbours counts its epochs in 64 bits that are never reset, so a fast neighbour can't be mistaken for
// a late one.
#pragma once

#include <halocline/base/checked_pointer.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/comm/wrong_call.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace halocline::comm {

class rma_segment; // private: comm/src/one_sided/rma_segment.hpp

struct exposure_options {
    std::string name = "exposure"; ///< in error messages and reports
    int signals = 0;               ///< number of counters that neighbours can raise with put_signal
    /// Smallest put over a network, in bytes, that goes straight into the neighbour's memory; smaller ones are copied
    /// at both ends. Each origin decides for its own puts.
    std::size_t direct_bytes = 32 * 1024;
};

/// This rank's puts. Over networks:
struct exposure_counts {
    std::uint64_t direct = 0;         ///< puts straight into the neighbour's memory
    std::uint64_t writes = 0;         ///< RDMA writes of these
    std::uint64_t framed = 0;         ///< pieces of puts that were copied at both ends
    std::uint64_t not_registered = 0; ///< large puts among these whose memory could not be registered
    // Into memory shared with the neighbour:
    std::uint64_t streamed = 0; ///< puts that bypassed this core's cache
};

/// After construction every member but pending() is noexcept and neither allocates nor locks; over self and shm only
/// waits that exceed their spin budget (or a millisecond), and fruitless test() and ready() now and then, make system
/// calls, and look for deaths, which locks. A bad status stays bad.
class exposure {
  public:
    /// Exposes `bytes` of this rank's slab, zeroed, to the neighbours, which may include this rank itself. Sizes may
    /// differ between ranks. Collective over the job.
    /// Err: input_error: ranks that don't name each other, a neighbour named twice; slab_full; job_error.
    exposure(const job& j, std::span<const int> neighbours, std::size_t bytes, exposure_options options = {});
    exposure(exposure&&) noexcept;
    exposure& operator=(exposure&&) noexcept;
    /// Never waits for the neighbours. One that still waits for this rank gets status::aborted. One in the middle of a
    /// large put to it over MPI, or over a provider of libfabric without RMA, then loses all its connections over that
    /// network, because nothing else keeps it from reading the put's bytes: end epochs, or meet, before that.
    ~exposure();

    [[nodiscard]] std::span<std::byte> memory() const noexcept;
    [[nodiscard]] std::size_t neighbours() const noexcept;
    /// Bytes that neighbour n exposes.  Pre: n < neighbours().
    [[nodiscard]] std::size_t bytes_at(std::size_t n) const noexcept;

    // Calls of a target.
    /// Begins an epoch: every neighbour may write until it completes.
    void post() noexcept;
    /// True if wait() would return at once.
    [[nodiscard]] bool test() noexcept;
    /// Ends the epoch: waits until every neighbour has completed; everything they put has then arrived.
    [[nodiscard]] status wait() noexcept;

    // Calls of an origin; n is a position in the list of neighbours.
    /// Begins an epoch.
    void start() noexcept;
    /// True if neighbour n has posted; serve those first.  Err: misused, in state(): no neighbour n.
    [[nodiscard]] bool ready(std::size_t n) noexcept;
    /// Waits until neighbour n has posted.  Err: misused: no neighbour n.
    [[nodiscard]] status await(std::size_t n) noexcept;
    /// Writes `from` into neighbour n's memory, `offset` bytes from its start. `from` may be changed when this returns.
    /// Over a network this may wait for room, and a large put waits until the network has read `from`. There, puts to
    /// overlapping memory may take effect in any order, unless the target has meanwhile told this rank that the first
    /// has arrived. What is put to a neighbour that has ended its exposure is lost, which later waits for it tell.
    /// Err: status::misused outside of an epoch; before neighbour n has posted (ready(n) or await(n)); if the bytes don't
    /// all lie inside the neighbour's memory; if there is no neighbour n.
    status put(std::size_t n, std::span<const std::byte> from, std::size_t offset) noexcept;
    /// Ends the epoch: all neighbours may read what was put to them. Waits for those that have not posted yet.
    [[nodiscard]] status complete() noexcept;

    // Without epochs: the caller ensures that nobody reads what is being written.
    /// put(), then adds 1 to neighbour n's counter `signal`: whoever sees the counter sees the bytes.
    status put_signal(std::size_t n, std::span<const std::byte> from, std::size_t offset, int signal) noexcept;
    /// The value of this rank's counter; it is never reset.  Pre: 0 <= signal < exposure_options::signals.
    [[nodiscard]] std::uint64_t signals(int signal) const noexcept;
    /// Waits until that value is at least `at_least`.  Err: status::aborted if all neighbours have left before that.
    [[nodiscard]] status wait_signals(int signal, std::uint64_t at_least) noexcept;

    [[nodiscard]] status state() const noexcept { return status_; }
    [[nodiscard]] exposure_counts counts() const noexcept;
    /// What the last failed wait was waiting for; after a misuse, which call was wrong.
    [[nodiscard]] std::string pending() const;

  private:
    /// What a wait is for: a neighbour's completion or post, or a signal that reaches `value`.
    struct awaited {
        enum class kind : std::uint8_t { nothing, completion, post, signal } of = kind::nothing;
        std::size_t which = 0; // neighbour or signal
        std::uint64_t value = 0;
    };
    template <class Done>
    status wait_until(const awaited& what, Done done) noexcept;
    /// put() and put_signal(), whatever the epoch.  Pre: there is such a neighbour.
    status write(std::size_t n, std::span<const std::byte> from, std::size_t offset) noexcept;
    bool came(std::size_t n, int half, std::uint64_t epoch) noexcept;
    [[nodiscard]] bool completed(std::size_t& n) noexcept;
    [[nodiscard]] bool failed_meanwhile(std::size_t n) noexcept;
    void misuse(const char* call) noexcept { wrong_call_.note_first(call, status_); }
    [[nodiscard]] bool has_neighbour(std::size_t n) noexcept;
    [[nodiscard]] bool has_signal(int signal) noexcept;
    [[nodiscard]] int left_by_all() const noexcept;

    exposure_options options_;
    checked_pointer<std::unique_ptr<rma_segment>> segment_;
    std::uint64_t posted_ = 0, waited_ = 0, started_ = 0, completed_ = 0; // epochs
    std::uint64_t fruitless_tests_ = 0;
    awaited failed_; // the wait that made status_ bad
    status status_ = status::ok;
    wrong_call wrong_call_; ///< why status_ is misused
};

} // namespace halocline::comm
