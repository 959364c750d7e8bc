// SPDX-License-Identifier: Apache-2.0
// The choice of a libfabric provider, and of its address on this host.
#pragma once

#include "library.hpp"

#include <string>
#include <string_view>

namespace halocline::comm {

struct ofi_provider {
    ofi_info_list list;  ///< those that fit; the first is in use
    bool tagged = false; ///< it has no RMA, so tagged messages are used instead
    std::string name;    ///< "tcp;ofi_rxm"; followed by ",tagged" if so
};

/// The provider called `wish`, at `address` if it uses IP. "": libfabric's own first choice that can do RMA, but `net`
/// instead of tcp;ofi_rxm. "net": tcp or tcp;ofi_rxm where there is none. A name followed by ",tagged" is treated as if
/// it could do no RMA.
/// Err: input_error: no library, no such provider, none that can do either, or not reached there; job_error.
[[nodiscard]] ofi_provider choose_ofi_provider(std::string_view wish, std::string_view address);
/// Does it need a socket or two for each peer?
[[nodiscard]] bool goes_over_ip(const fi_info& i);
/// Providers that would do: "tcp;ofi_rxm, shm"; "none".
[[nodiscard]] std::string ofi_provider_names();

} // namespace halocline::comm
