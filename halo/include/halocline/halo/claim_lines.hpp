// SPDX-License-Identifier: Apache-2.0
// When cache lines that a peer has read are claimed before they are filled (docs/decisions/0010).
#pragma once

#include <halocline/comm/claim_lines.hpp>

#include <cstddef>

namespace halocline::halo {

using comm::claim_lines;

/// Is it worth it for an exchange that sends so many bytes into peers' memory? What comes from memory gains nothing: both
/// slots of all messages, or ghosts in a field and as much of its own that it sends, must still lie in the second-level
/// cache of the core that read them last.
bool claiming_pays(std::size_t send_bytes);

} // namespace halocline::halo
