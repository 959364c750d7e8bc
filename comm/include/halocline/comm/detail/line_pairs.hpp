// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace halocline::comm {

/// Does a core of this machine that misses a line also fetch the one beside it, which makes 128 aligned bytes? Intel's do:
/// then two ranks that use neighbouring lines take them from each other, as if they were one.
extern const bool lines_come_in_pairs;

} // namespace halocline::comm
