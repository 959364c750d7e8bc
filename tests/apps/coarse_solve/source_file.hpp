// SPDX-License-Identifier: Apache-2.0
// Sources in files, intact and damaged.
#pragma once

#include <halocline/lattice/spinor_file.hpp>

#include <string>

namespace coarse_solve_test {

/// Random numbers that depend only on the site, as stored in the file, times `factor`.
void write_source(const std::string& path, const halocline::lattice::coordinate& extents, double factor = 1);

/// Damaged copies of a source on 4.4.4.4 sites: truncated.lime, flipped.lime (a bit of site 0.0.0.0), nan.lime (at
/// 1.2.3.0, without a checksum), propagator.lime (spin 1).
void damage_sources(const std::string& source, const std::string& folder);

} // namespace coarse_solve_test
