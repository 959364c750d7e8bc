// SPDX-License-Identifier: Apache-2.0
// Large messages over MPI: the receive is posted into the receiver's memory before its sender is invited, under a tag
// of its own, so that MPI never has to buffer what arrives.
#pragma once

#include "network/bulk_link.hpp"
#include "world.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace halocline::comm {

class mpi_bulk_link final : public bulk_link {
  public:
    /// Err: job_error: MPI has no more tags.
    mpi_bulk_link(mpi_world& world, int peer, std::uint32_t count);
    ~mpi_bulk_link() override;

    [[nodiscard]] std::string card() const override;
    void connect(const std::string& peer_card) override;
    [[nodiscard]] std::string describe() const override { return "MPI_Irecv of " + world_.version(); }
    opening receive(std::uint32_t record, std::span<std::byte> into, bulk_ticket& ticket) noexcept override;
    [[nodiscard]] bool received(std::uint32_t record) noexcept override { return move(in_[record]); }
    void give_up(std::uint32_t record) noexcept override;
    [[nodiscard]] opening send(std::uint32_t record, std::span<const std::byte> data,
                               const bulk_ticket& ticket) noexcept override;
    [[nodiscard]] bool sent(std::uint32_t record) noexcept override { return move(out_[record]); }
    void poll() noexcept override {}                 // each test polls
    void cut() noexcept override { world_.leave(); } // nobody can stop what MPI moves outside its calls
    [[nodiscard]] bool failed() const noexcept override { return error_ != HALOCLINE_MPI_OK; }
    [[nodiscard]] std::string trouble() const override { return world_.describe(error_); }

  private:
    /// Piece n has request n mod at_once; MPI keeps their order.
    struct transfer : bulk_transfer {
        static constexpr std::uint32_t at_once = 2;
        int tag = 0;
        bool receives = false;
        bool given_up = false; ///< a message may still come with this tag: no other receive may have it
        std::array<halocline_mpi_transfer, at_once> request{};
    };
    opening open(transfer& t, std::byte* data, std::size_t bytes) noexcept;
    void post(transfer& t) noexcept;
    /// True when all of it has been transferred.
    bool move(transfer& t) noexcept;

    mpi_world& world_;
    int peer_;
    int error_ = HALOCLINE_MPI_OK;
    std::vector<transfer> in_, out_; ///< by record
};

} // namespace halocline::comm
