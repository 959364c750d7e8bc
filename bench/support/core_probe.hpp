// SPDX-License-Identifier: Apache-2.0
// How fast does a core work at the moment? On a virtual machine another guest may use the core's other hardware thread:
// whatever issues many instructions then takes up to twice as long, while flags and cache lines travel as before.
#pragma once

namespace halocline::bench {

/// Nanoseconds that a fixed piece of work takes on this core, which needs its registers and its first-level cache only:
/// the median of 51 pieces of about a microsecond each.
double core_ns();

} // namespace halocline::bench
