// SPDX-License-Identifier: Apache-2.0
// The immediate that comes with a write: what it is.
#pragma once

#include <cstdint>

namespace halocline::comm::verbs_tags {

constexpr std::uint32_t message = 0, greeting = 1, farewell = 2;

} // namespace halocline::comm::verbs_tags
