// SPDX-License-Identifier: Apache-2.0
// A number for the layout of everything that the ranks of a job share. Builds of one version may differ in it, and
// would then write to wrong places in each other's memory. So each card begins with it, and others are refused
// (business_card.hpp).
#pragma once

#include <cstdint>

namespace halocline::comm {

/// Raise it with every change to what one rank writes and another reads: cards and other set-up mail, frames on
/// sockets and over networks, control lines, labels, rings and records in slabs. comm.layout_test reports every size or
/// position that has changed.
inline constexpr std::uint32_t layout_number = 17;

} // namespace halocline::comm
