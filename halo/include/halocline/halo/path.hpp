// SPDX-License-Identifier: Apache-2.0
// How values travel to a peer.
#pragma once

#include <halocline/comm/path.hpp>

namespace halocline::halo {

using comm::path, comm::to_string;

} // namespace halocline::halo
