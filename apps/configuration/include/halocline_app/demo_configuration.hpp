// SPDX-License-Identifier: Apache-2.0
// The demo's own gauge configuration: 8.8.8.8, quenched Wilson action, beta = 6.0, from a fixed seed. The ranks of the
// job generate it if it does not exist yet; the file's bytes do not depend on their number.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/lattice/geometry.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace halocline::app {

inline constexpr lattice::coordinate demo_extents{8, 8, 8, 8};

/// Path of the configuration, an ILDG file in $HALOCLINE_DATA_DIR, else in ../share/halocline next to the program, else
/// in the user's cache folder: the first of these that is writable. Collective.
/// `tell` gets lines of progress while it is generated (about 10 s, once).  Err: file_error, job_error.
std::string demo_configuration(const comm::job& j, const std::function<void(std::string_view)>& tell);

/// The paths that demo_configuration() may return, whether or not the files exist.
std::vector<std::string> demo_configuration_paths();

} // namespace halocline::app
