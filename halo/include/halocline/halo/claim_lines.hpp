// SPDX-License-Identifier: Apache-2.0
// Whether cache lines that a peer has read should be claimed before they are filled (docs/decisions/0010).
#pragma once

#include <halocline/comm/claim_lines.hpp>

#include <cstddef>

namespace halocline::halo {

using comm::claim_lines;

/// Does claiming pay for an exchange that writes so many bytes into peers' memory? Only if the lines still lie in the
/// second-level cache of the core that read them last: lines that come from memory gain nothing. They are both slots of
/// all messages; or, with ghosts in a field, the ghosts and as many own sites.
bool claiming_pays(std::size_t send_bytes);

} // namespace halocline::halo
