// SPDX-License-Identifier: Apache-2.0
// Gauge files with any extents on which solves converge.
#pragma once

#include <halocline/lattice/gauge_file.hpp>

#include <string>

namespace coarse_solve_test {

/// A smooth random configuration, as an ILDG file: links exp(h), h small and anti-Hermitian.
void write_smooth(const std::string& path, const halocline::lattice::coordinate& extents);

} // namespace coarse_solve_test
