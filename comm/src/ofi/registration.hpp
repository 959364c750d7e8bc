// SPDX-License-Identifier: Apache-2.0
// Memory that peers may write through libfabric, registered the way the provider's domain requires (fi_mr(3)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

namespace halocline::comm {

/// The supported modes of registration; a provider that requires others can't be used.
constexpr int served_mr_modes = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;

struct ofi_registration {
    fid_mr* region = nullptr;
    void* descriptor = nullptr; ///< for local writes from it; nullptr: not required
    std::uint64_t key = 0;      ///< for the peer
    std::uint64_t base = 0;     ///< how the peer addresses its first byte: by its address, or 0
    int error = 0;              ///< libfabric's, negative; then nothing is registered
    const char* call = nullptr; ///< the one that failed
};

/// Registers [start, start + bytes) for that access (FI_WRITE, FI_REMOTE_WRITE, ...). `modes`: the domain's. `key`: not
/// yet used in the domain, from 1, unless the provider chooses its own (FI_MR_PROV_KEY).
inline ofi_registration register_memory(fid_domain* domain, fid_ep* ep, int modes, std::uint64_t access, void* start,
                                        std::size_t bytes, std::uint64_t key) noexcept {
    ofi_registration r;
    const auto failed = [&](int code, const char* call) {
        if (code >= 0) return false;
        if (r.region != nullptr) fi_close(&r.region->fid);
        r = {.error = code, .call = call};
        return true;
    };
    if (failed(fi_mr_reg(domain, start, bytes, access, 0, (modes & FI_MR_PROV_KEY) ? 0 : key, 0, &r.region, nullptr),
               "fi_mr_reg"))
        return r;
    if (modes & FI_MR_ENDPOINT) { // the region belongs to an endpoint and has no key before it is enabled
        if (failed(fi_mr_bind(r.region, &ep->fid, 0), "fi_mr_bind")) return r;
        if (failed(fi_mr_enable(r.region), "fi_mr_enable")) return r;
    }
    r.descriptor = (modes & FI_MR_LOCAL) ? fi_mr_desc(r.region) : nullptr;
    r.key = fi_mr_key(r.region);
    r.base = (modes & FI_MR_VIRT_ADDR) ? reinterpret_cast<std::uintptr_t>(start) : 0;
    return r;
}

} // namespace halocline::comm
