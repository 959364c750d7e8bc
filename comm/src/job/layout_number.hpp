// SPDX-License-Identifier: Apache-2.0
// The number of what the ranks of a job share. Two builds of one version may differ in it, and would then write each
// other's memory in wrong places; so each card begins with it, and another one is refused (business_card.hpp).
#pragma once

#include <cstdint>

namespace halocline::comm {

/// Raise it with every change to what one rank writes and another reads: cards and other set-up mail, frames on
/// sockets and over networks, control lines, labels, rings and records in slabs. comm.layout_test fails where a size or
/// a place has changed, and says so.
inline constexpr std::uint32_t layout_number = 1;

} // namespace halocline::comm
