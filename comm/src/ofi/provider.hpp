// SPDX-License-Identifier: Apache-2.0
// Which of libfabric's providers a job uses, and at which address of this host.
#pragma once

#include "library.hpp"

#include <string>
#include <string_view>

namespace halocline::comm {

struct ofi_provider {
    ofi_info_list list;  ///< what fits; its first is in use
    bool tagged = false; ///< it has no RMA: tagged messages instead
    std::string name;    ///< "tcp;ofi_rxm"; with ",tagged" behind it if so
};

/// What is called `wish`, at `address` where it goes over IP. "": libfabric's own first choice that can do RMA, but `net`
/// instead of tcp;ofi_rxm. With ",tagged" behind its name: as if it could do no RMA.
/// Err: input_error: no library, no such provider, none that can do either, or not reached there; job_error.
[[nodiscard]] ofi_provider choose_ofi_provider(std::string_view wish, std::string_view address);
/// Does it need a socket or two for each peer?
[[nodiscard]] bool goes_over_ip(const fi_info& i);
/// Providers that would serve: "tcp;ofi_rxm, shm"; "none".
[[nodiscard]] std::string ofi_provider_names();

} // namespace halocline::comm
