// SPDX-License-Identifier: Apache-2.0
// The names of the transports, as options spell them, for code that reads options.
#pragma once

#include <string>
#include <vector>

namespace halocline::comm {

/// Names of all known transports, whether or not this build has them.
[[nodiscard]] std::vector<std::string> transport_names();

} // namespace halocline::comm
