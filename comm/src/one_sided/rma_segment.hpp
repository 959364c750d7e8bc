// SPDX-License-Identifier: Apache-2.0
// Memory of each rank that its neighbours write (a segment, in the terms of GASNet and GASPI): a control line for each
// of them, and a payload. The two halves of a line hold two counts, whose meaning is up to the user (exposure,
// remote_calls). Neighbours that map each other's slabs write in place. Over a network they send what is to be written
// (far_link.hpp); large writes can go straight into the payload (rma_segment_direct.cpp).
#pragma once

#include "far_link.hpp"
#include "job/job_core.hpp"
#include "job/slab_block.hpp"
#include "job/waiting.hpp"
#include "network/bulk_link.hpp"

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/detail/claim_lines.hpp>
#include <halocline/comm/detail/control_line.hpp>
#include <halocline/comm/detail/streaming_watch.hpp>
#include <halocline/comm/one_sided.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halocline::comm {

/// a + b or, on overflow, the largest size, which no memory satisfies.
constexpr std::size_t sum_or_most(std::size_t a, std::size_t b) { return a + b < a ? ~std::size_t{0} : a + b; }

class rma_segment {
  public:
    /// A rank that writes here, and whose segment this rank writes.
    struct neighbour {
        int rank = 0;
        control_line* mine = nullptr;   // written by the neighbour
        control_line* theirs = nullptr; // written here; nullptr: over a network
        std::byte* payload = nullptr;   // the neighbour's; nullptr: over a network
        std::uint64_t payload_bytes = 0;
        std::uint64_t place = 0;            // this rank's, in the neighbour's list
        std::unique_ptr<far_link> far = {}; // over a network
        std::unique_ptr<bulk_link> bulk{};  // for large writes over a network, one at a time: record 0
        std::optional<bulk_ticket> open{};  // the payload, if the network writes it; otherwise it is received there
        bool receiving = false;             // a large write is arriving here
        streaming_watch streaming{};        // for large writes into memory that both share
    };
    /// Collective. `shape`: anything else that must be equal on all ranks. `direct_bytes`: writes over a network of
    /// that size or more are large ones; nullopt, on all ranks: there are none.
    /// Err: input_error; job_error: the payload can't be registered.
    rma_segment(const comm::job& j, const std::string& name, std::span<const int> ranks, std::size_t payload_bytes,
                std::string_view shape, std::optional<std::size_t> direct_bytes = {});
    ~rma_segment();
    rma_segment(const rma_segment&) = delete;
    rma_segment& operator=(const rma_segment&) = delete;

    /// Sets a count in the neighbour's line. Never waits: over a network it may arrive later, but before later writes.
    static void tell(const neighbour& peer, int half, std::uint64_t count) noexcept {
        if (peer.far) return peer.far->tell(half, count);
        peer.theirs->half[half].epoch.store(count, std::memory_order_release);
    }
    [[nodiscard]] static std::uint64_t told(const neighbour& peer, int half) noexcept {
        return peer.mine->half[half].epoch.load(std::memory_order_acquire);
    }
    /// True if the neighbour has said farewell; everything it reported before is then visible.
    [[nodiscard]] static bool left(const neighbour& peer) noexcept { return peer.mine->closed(); }

    /// Writes into the neighbour's payload. False: there is no room in frames now.
    /// Pre: far: bytes.size() <= far_link::most.
    bool try_write(neighbour& peer, std::size_t place, std::span<const std::byte> bytes) noexcept;
    /// try_write() for any size, which waits for room.
    status write(neighbour& peer, std::size_t place, std::span<const std::byte> bytes) noexcept;
    /// Adds 1 to the counter (std::atomic<std::uint64_t>) at that place of the neighbour's payload, after all writes.
    status add_one(const neighbour& peer, std::size_t place) noexcept;
    /// Waits until everything written and reported has left this rank.
    status flush(const neighbour& peer) noexcept;
    /// Waits for a neighbour (nullptr: any) until done(), or until the segment or the job fails. As long as a large
    /// write from it or to it moves on, that may take longer than the deadline.  Pre: done is noexcept.
    template <class Done>
    status wait_until(const neighbour* peer, Done done) noexcept;
    /// Takes in what has arrived over networks, and sends what was waiting for room.
    void poll() noexcept;
    /// Bad if a network failed.
    [[nodiscard]] status state() const noexcept { return state_; }
    [[nodiscard]] exposure_counts counts() const noexcept;

    comm::job job;

  private:
    slab_block block_; // before what is connected to it

  public:
    std::vector<neighbour> neighbours;
    std::byte* payload = nullptr;
    std::size_t payload_bytes = 0;

  private:
    void write_shared(neighbour& peer, std::byte* to, std::span<const std::byte> bytes) noexcept;
    /// Number of pieces of large writes from and to a neighbour (nullptr: all).
    [[nodiscard]] std::uint64_t moved(const neighbour* peer) const noexcept;
    /// wait_until() for a neighbour that must not leave meanwhile, unless also_left.
    template <class Try>
    status wait_unless_left(const neighbour& peer, Try done, bool also_left = false) noexcept;
    far_link::visited apply(neighbour& peer, const far_item& r, std::span<const std::byte> bytes) noexcept;
    void lay_out_block(std::size_t count);
    void meet(const std::string& name, std::string_view shape, std::span<const int> ranks);
    void connect_far(const std::string& name);
    // Large writes (rma_segment_direct.cpp).
    void connect_direct();
    /// nullopt if that memory can't be registered.
    std::optional<status> write_direct(const neighbour& peer, std::size_t place,
                                       std::span<const std::byte> bytes) noexcept;
    far_link::visited receive_direct(neighbour& peer, std::size_t place, std::size_t bytes) noexcept;
    void poll_direct(const neighbour& peer) noexcept;

    status state_ = status::ok;
    std::optional<std::size_t> direct_bytes_;
    exposure_counts counts_;
    bool over_network_ = false;       // to any neighbour
    std::size_t largest_claimed_ = 0; // for puts into memory that both share
    std::map<std::string, std::shared_ptr<const exposed_memory>, std::less<>> exposed_; // the payload, by transport
    channel_set channels_;                                                              // for all far neighbours
};

template <class Done>
status rma_segment::wait_until(const neighbour* peer, Done done) noexcept {
    status s = status::ok;
    std::uint64_t now = moved(peer);
    for (waiter waiting(job.core()); s == status::ok && !done();) {
        const std::uint64_t before = std::exchange(now, moved(peer));
        if (now != before) waiting.restart_deadline();
        s = waiting.again(peer != nullptr ? peer->rank : -1); // polls
        if (s == status::ok) s = state_;
    }
    return s;
}

template <class Try>
status rma_segment::wait_unless_left(const neighbour& peer, Try done, bool also_left) noexcept {
    if (state_ != status::ok) return state_;
    bool gone = false;
    const status s = wait_until(&peer, [&] {
        if (done()) return true;
        gone = !also_left && left(peer);
        return gone;
    });
    return gone ? job.core().left_by(peer.rank) : s;
}

} // namespace halocline::comm
