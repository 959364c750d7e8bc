// SPDX-License-Identifier: Apache-2.0
// Large messages over verbs: writes into memory that the receiver has registered, on a separate queue pair, so that
// they never hold up the messages of a plan.
#pragma once

#include "network/registered_transfer.hpp"
#include "port.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace halocline::comm {

/// The queue pair of a link. It outlives the link until both ends have said farewell: destroying a queue pair before it
/// has acknowledged the peer's last write makes that write fail.
struct verbs_world::bulk_pair {
    static constexpr std::uint32_t at_once = 2; ///< writes of one message
    static constexpr std::uint32_t depth = at_once * bulk_link::records;
    static constexpr std::uint32_t farewell = bulk_link::records; ///< in place of a record

    /// Err: job_error.
    bulk_pair(port& port_here, int peer);
    ~bulk_pair();
    bulk_pair(const bulk_pair&) = delete;
    bulk_pair& operator=(const bulk_pair&) = delete;

    /// Posts one write, whose completion identifies `record`, here and at the peer.
    void write(std::uint32_t record, ibv_sge from, std::uint64_t to, std::uint32_t key) noexcept;
    void poll() noexcept;
    /// When this returns, nothing is written from here or to here any more, unless the device refuses to destroy the
    /// queue pair; then the destructor tries again.
    void close() noexcept;
    [[nodiscard]] bool ended() const { return !joined || error != 0 || (farewell_came && farewell_delivered); }

    port& own_port;
    verbs_bulk_link* link = nullptr; ///< nullptr: gone
    ibv_cq* completions = nullptr;
    ibv_qp* queue_pair = nullptr;
    std::uint32_t first_psn = random_psn();
    bool joined = false, farewell_came = false, farewell_delivered = false;
    int error = 0; ///< the first, as for a verbs_end
    const char* failed_call = nullptr;
    std::uint32_t vendor_error = 0;

  private:
    void receive(std::uint32_t count) noexcept;
    void take(const ibv_wc& c) noexcept;
    void fail(int code, const char* call) noexcept;
};

class verbs_bulk_link final : public bulk_link {
  public:
    verbs_bulk_link(verbs_world& world, const slab& memory, int peer, std::uint32_t count);
    ~verbs_bulk_link() override;

    [[nodiscard]] std::string card() const override;
    void connect(const std::string& peer_card) override;
    [[nodiscard]] std::string describe() const override { return "RDMA writes of " + port_.name; }
    opening receive(std::uint32_t record, std::span<std::byte> into, bulk_ticket& ticket) noexcept override;
    [[nodiscard]] bool received(std::uint32_t record) noexcept override { return closed_if_done(in_[record]); }
    void give_up(std::uint32_t record) noexcept override { close(in_[record]); }
    [[nodiscard]] opening send(std::uint32_t record, std::span<const std::byte> data,
                               const bulk_ticket& ticket) noexcept override;
    [[nodiscard]] bool sent(std::uint32_t record) noexcept override { return closed_if_done(out_[record]); }
    void poll() noexcept override { pair_.poll(); }
    void cut() noexcept override { pair_.close(); }
    [[nodiscard]] bool failed() const noexcept override { return pair_.error != 0; }
    [[nodiscard]] std::string trouble() const override;

    // Called by the pair: the peer has written a piece here, or a piece of this end has been delivered.
    void arrived(std::uint32_t record) noexcept { count_arrival(in_, record); }
    void delivered(std::uint32_t record) noexcept;

  private:
    /// Counting pieces suffices: a queue pair delivers its writes in order.
    struct transfer : registered_transfer<verbs_registration> {
        bulk_ticket ticket;
    };
    opening open(transfer& t, std::byte* data, std::size_t bytes, int access) noexcept;
    void push(std::uint32_t record) noexcept;
    bool closed_if_done(transfer& t) noexcept;
    void close(transfer& t) noexcept;
    void deregister(const verbs_registration& r) noexcept;

    verbs_world::port& port_;
    verbs_world::bulk_pair& pair_;
    int peer_;
    std::size_t piece_;              ///< bytes; the same at both ends
    std::vector<transfer> in_, out_; ///< by record
};

} // namespace halocline::comm
