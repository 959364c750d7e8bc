// SPDX-License-Identifier: Apache-2.0
// This rank's endpoint in the chosen provider, with its domain, completion queue and address vector.
#pragma once

#include "network/registration_cache.hpp"
#include "provider.hpp"
#include "registration.hpp"
#include "tags.hpp"
#include "world.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halocline::comm {

struct ofi_world::endpoint {
    /// `largest_write`: a limit below the provider's own.  Err: those of choose_ofi_provider(); job_error.
    endpoint(std::string_view wish, std::string_view address, std::size_t largest_write);
    ~endpoint();
    endpoint(const endpoint&) = delete;
    endpoint& operator=(const endpoint&) = delete;

    ofi_provider provider;
    fid_fabric* fabric = nullptr;
    fid_domain* domain = nullptr;
    fid_av* addresses = nullptr;
    fid_cq* completions = nullptr;
    fid_ep* ep = nullptr;
    std::vector<fi_addr_t> peers; ///< by rank
    std::size_t largest_write = 0;
    int error = 0;                                    ///< the endpoint's own
    bool is_cut = false;                              ///< nothing is posted, polled or cancelled any more
    registration_caches<ofi_registration> caches;     ///< for large messages
    std::uint64_t next_key = ofi_tags::most_ends + 1; ///< smaller keys belong to channels

    /// This endpoint's address, in the provider's format.
    [[nodiscard]] std::string address() const;
    /// The addresses of the peers; "" for ranks that it does not reach.
    void insert(std::span<const std::string> addresses, int own_rank);
    /// libfabric no longer touches this rank's memory. Over tcp the endpoint stays open until the process ends: it
    /// moves nothing unless polled, and closing it while a peer's write has half arrived kills the process
    /// (rxm_handle_comp_error() of libfabric 1.17 follows the context of that write, which has none).
    void cut() noexcept;
    /// Registers memory in this domain. Peers may write it, or without RMA send into it. `key`: see
    /// halocline::comm::register_memory(). If there is no room, registrations that are kept for later messages go first.
    [[nodiscard]] ofi_registration register_memory(std::span<std::byte> memory, std::uint64_t key) noexcept;
    /// Does memory have to be registered even if only this rank's own operations read or write it?
    [[nodiscard]] bool registers_local() const noexcept;
    /// Closes the endpoint, unless it was cut: after that nothing is written to this rank's memory.
    void close_unless_cut() noexcept;
    /// Err: job_error if that call's code is negative.
    void require(long code, const char* call) const;

  private:
    explicit endpoint(ofi_provider chosen) : provider(std::move(chosen)) {}
};

} // namespace halocline::comm
