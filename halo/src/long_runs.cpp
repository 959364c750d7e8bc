// SPDX-License-Identifier: Apache-2.0
#include "long_runs.hpp"

#include <halocline/comm/detail/copy_bytes.hpp>

namespace halocline::halo {

const std::size_t long_run_bytes = comm::moves_skip_waits() ? 4096 : 8192;
const bool short_runs_are_gathered = comm::moves_skip_waits();

} // namespace halocline::halo
