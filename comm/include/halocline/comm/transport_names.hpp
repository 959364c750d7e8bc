// SPDX-License-Identifier: Apache-2.0
// The names of the transports, as options spell them: for those who read options.
#pragma once

#include <string>
#include <vector>

namespace halocline::comm {

/// Names of all transports that exist, in this build or not.
[[nodiscard]] std::vector<std::string> transport_names();

} // namespace halocline::comm
