// SPDX-License-Identifier: Apache-2.0
// Large messages over libfabric: fi_writedata into memory that the receiver has registered, in pieces that may overtake
// each other, so the receiver counts them. For providers without RMA: tagged messages, with receives posted there.
#pragma once

#include "endpoint.hpp"
#include "network/registered_transfer.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace halocline::comm {

class ofi_bulk_link final : public bulk_link {
  public:
    ofi_bulk_link(ofi_world& world, const slab& memory, int peer, std::uint32_t count);
    ~ofi_bulk_link() override;

    [[nodiscard]] std::string card() const override;
    void connect(const std::string& peer_card) override;
    [[nodiscard]] std::string describe() const override;
    opening receive(std::uint32_t record, std::span<std::byte> into, bulk_ticket& ticket) noexcept override;
    [[nodiscard]] bool received(std::uint32_t record) noexcept override;
    void give_up(std::uint32_t record) noexcept override;
    [[nodiscard]] opening send(std::uint32_t record, std::span<const std::byte> data,
                               const bulk_ticket& ticket) noexcept override;
    [[nodiscard]] bool sent(std::uint32_t record) noexcept override;
    void poll() noexcept override { world_.poll(); }
    void cut() noexcept override { world_.cut(); }
    [[nodiscard]] bool failed() const noexcept override { return error() != 0; }
    [[nodiscard]] std::string trouble() const override { return world_.describe(error()); }

    // Called by the world: a piece posted here is complete (error: negative), or the peer has written a piece.
    static void completed(ofi_operation& operation, int error) noexcept;
    void arrived(std::uint32_t record) noexcept { count_arrival(in_, record); }

  private:
    struct transfer;
    struct piece : ofi_operation {
        ofi_bulk_link* link = nullptr;
        transfer* of = nullptr;
        bool busy = false;
    };
    struct transfer : registered_transfer<ofi_registration> {
        static constexpr std::size_t at_once = 2;
        std::uint32_t record = 0;
        bool receives = false;
        bool given_up = false; ///< busy until libfabric has let go of its pieces
        bulk_ticket ticket;
        std::array<piece, at_once> operation;
    };

    [[nodiscard]] int error() const noexcept { return error_ != 0 ? error_ : endpoint_.error; }
    opening open(transfer& t, std::byte* data, std::size_t bytes, bool must_register) noexcept;
    /// Posts as many pieces as there is room for.
    void push(transfer& t) noexcept;
    int post(transfer& t, piece& operation) noexcept;
    void close(transfer& t) noexcept;
    void close_if_let_go(transfer& t) noexcept;
    /// Closes the transfer if all of its pieces are complete; true if so.
    bool closed_if_done(transfer& t) noexcept;
    [[nodiscard]] bool busy() const noexcept;

    ofi_world& world_;
    ofi_world::endpoint& endpoint_;
    int peer_;
    std::uint32_t id_ = 0, peer_id_ = 0;
    int error_ = 0;
    std::size_t piece_ = 0;          ///< bytes
    std::vector<transfer> in_, out_; ///< by record
};

} // namespace halocline::comm
