// SPDX-License-Identifier: Apache-2.0
// A file that ranks write in parts has another name until it is whole and on disk, so that nobody reads half of it.
#pragma once

#include <string>

namespace halocline::lattice {

/// That other name: `path`.partial. One that is there before the writing was left by a run that was killed while it
/// wrote, or belongs to one that still writes; writers replace it.
std::string partial_name(const std::string& path);

} // namespace halocline::lattice
