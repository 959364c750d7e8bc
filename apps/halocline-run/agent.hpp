// SPDX-License-Identifier: Apache-2.0
// halocline-run --agent: starts ranks of a host for a launcher elsewhere (frames.hpp), and ends them when it is gone.
#pragma once

namespace halocline::app {

/// Exit code of the process.
int run_agent();

} // namespace halocline::app
