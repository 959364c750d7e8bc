// SPDX-License-Identifier: Apache-2.0
// Replaces client.cpp where PMIx's headers are missing.
#include "job/bootstrap.hpp"

namespace halocline::comm {

bool pmix_is_built() { return false; }
std::optional<bootstrap> pmix_bootstrap(const job_options&) { return std::nullopt; }

} // namespace halocline::comm
