// SPDX-License-Identifier: Apache-2.0
// Memory that neighbours write: put, put with a signal, and epochs of post, start, complete, wait. Neighbours that map
// each other's slabs (self, shm) write in place; over verbs, ofi and mpi they send what the target writes in its next
// call here or its next wait for anything, and large puts go straight into its memory: written there (verbs, ofi) or
// received there (mpi).
//
// Two independent epochs per object, as MPI has them: a target posts and waits, an origin starts and completes. Each
// pair of neighbours counts its epochs in 64 bits that are never reset, so a fast neighbour can't be mistaken for a
// late one.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace halocline::comm {

class neighbourhood; // private: comm/src/one_sided/neighbourhood.hpp

struct exposure_options {
    std::string name{}; ///< for messages
    int signals = 0;    ///< counters that put_signal adds to
    /// Smallest put over a network that goes straight into the neighbour's memory: written there (verbs, ofi), or
    /// received there (mpi); smaller ones are copied at both ends. Each origin decides for its own.
    std::size_t direct_bytes = 32 * 1024;
};

/// Of this rank's puts over networks.
struct exposure_counts {
    std::uint64_t direct = 0;         ///< straight into the neighbour's memory
    std::uint64_t writes = 0;         ///< RDMA writes that did so
    std::uint64_t framed = 0;         ///< pieces that were copied at both ends
    std::uint64_t not_registered = 0; ///< large ones among these, whose memory could not be registered
};

/// After construction every member is noexcept, allocates nothing and takes no lock; over self and shm no system call
/// but in a wait that exceeds its spin budget. A bad status is sticky.
class exposure {
  public:
    /// Exposes `bytes` of this rank's slab, zeroed, to the neighbours, which may include the own rank; sizes may differ
    /// between ranks. Collective over the job.
    /// Err: input_error: ranks that don't name each other, a neighbour named twice.
    exposure(const job& j, std::span<const int> neighbours, std::size_t bytes, exposure_options options = {});
    exposure(exposure&&) noexcept;
    exposure& operator=(exposure&&) noexcept;
    /// Says farewell and never waits for the neighbours'; a neighbour that waits for this rank gets status::aborted.
    ~exposure();

    [[nodiscard]] std::span<std::byte> memory() const noexcept;
    [[nodiscard]] std::size_t neighbours() const noexcept;
    /// Bytes that neighbour n exposes.
    [[nodiscard]] std::size_t bytes_at(std::size_t n) const noexcept;

    // Target.
    /// The neighbours may write from now on, once each has completed.
    void post() noexcept;
    /// Would wait() return at once?
    [[nodiscard]] bool test() noexcept;
    /// Until every neighbour has completed: what it put is here.
    [[nodiscard]] status wait() noexcept;

    // Origin. n is a position in the list of neighbours.
    /// Begins an epoch.
    void start() noexcept;
    /// Has neighbour n posted? Serve those first that have.
    [[nodiscard]] bool ready(std::size_t n) noexcept;
    /// Waits until it has.
    [[nodiscard]] status await(std::size_t n) noexcept;
    /// from -> neighbour n's memory, from `offset` on. `from` may be written again when this returns. Over a network it
    /// may wait for room; a large put waits until the network has read `from`. There, puts to overlapping memory may end
    /// in any order, unless the target has told this rank between them that it has the first.
    /// Pre: ready(n) or await(n).  Err: status::misused if that is not all inside the neighbour's memory.
    status put(std::size_t n, std::span<const std::byte> from, std::size_t offset) noexcept;
    /// All that was put to all neighbours may be read there. Waits for those that have not posted.
    [[nodiscard]] status complete() noexcept;

    // Outside epochs: who writes what when is the caller's business.
    /// put(), then 1 is added to neighbour n's counter: who sees the counter sees the bytes.
    status put_signal(std::size_t n, std::span<const std::byte> from, std::size_t offset, int signal) noexcept;
    /// Own counter, since the beginning.
    [[nodiscard]] std::uint64_t signals(int signal) const noexcept;
    /// Until it is at least that much.
    [[nodiscard]] status wait_signals(int signal, std::uint64_t at_least) noexcept;

    [[nodiscard]] status state() const noexcept { return status_; }
    [[nodiscard]] exposure_counts counts() const noexcept;
    /// For messages.
    [[nodiscard]] std::string pending() const;

  private:
    template <class Done>
    status until(int peer, Done done) noexcept;
    bool came(std::size_t n, int half, std::uint64_t epoch) noexcept;
    [[nodiscard]] bool completed(std::size_t& n) noexcept;

    exposure_options options_;
    std::unique_ptr<neighbourhood> near_;
    std::uint64_t posted_ = 0, waited_ = 0, started_ = 0, completed_ = 0; // epochs
    status status_ = status::ok;
};

} // namespace halocline::comm
