// SPDX-License-Identifier: Apache-2.0
// Kernels that count in an array that all sites share, compiled for processors with AVX-512.
#pragma once

#include <halocline/base/check.hpp>
#include <halocline/comm/job.hpp>

#include <cstdint>
#include <vector>

namespace halocline_test {

/// How many sites of 32.8.8.8, cut in t, this rank's stencil visits with each of the values 0 to 3. All sites have 1.
std::vector<std::int64_t> counted_by_stencil(const halocline::comm::job& j, halocline::check_level checks);
std::vector<std::int64_t> counted_by_box_stencil(const halocline::comm::job& j, halocline::check_level checks);

} // namespace halocline_test
