// SPDX-License-Identifier: Apache-2.0
// This rank's endpoint in the chosen provider, with its domain, completion queue and address vector.
#pragma once

#include "network/registration_cache.hpp"
#include "provider.hpp"
#include "registration.hpp"
#include "tags.hpp"
#include "world.hpp"

#include <cstdint>
#include <memory>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halocline::comm {

struct ofi_world::endpoint {
    /// `largest_write`: if the provider's own is larger.  Err: those of choose_ofi_provider(); job_error.
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
    int error = 0;       ///< of the endpoint itself
    bool is_cut = false; ///< nothing is posted, polled or cancelled any more
    // Of large messages. Apart: what is to be sent must not wait for what is to come, for which the peer may wait.
    std::unique_ptr<registration_cache<ofi_registration>> targets, sources;
    std::uint64_t next_key = ofi_tags::most_ends + 1; ///< channels have those below

    /// The endpoint's own address, in the provider's format.
    [[nodiscard]] std::string address() const;
    /// "" of ranks that it does not reach.
    void insert(std::span<const std::string> addresses, int own_rank);
    /// libfabric does not touch this rank's memory any more. Over tcp the endpoint stays open until the process ends:
    /// it moves nothing unless it is polled, and to close it where a peer's write is half here kills the process
    /// (rxm_handle_comp_error() of libfabric 1.17 follows the context of that write, which has none).
    void cut() noexcept;
    /// Err: job_error if that call's code is negative.
    void require(long code, const char* call) const;

  private:
    explicit endpoint(ofi_provider chosen) : provider(std::move(chosen)) {}
};

} // namespace halocline::comm
