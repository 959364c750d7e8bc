// SPDX-License-Identifier: Apache-2.0
// The options of a job as keys of config files and of the environment: [comm] and [faults]. job::from_environment()
// reads them itself; a program that has its own flags for some of them reads them here
// (docs/decisions/0042-configuration.md).
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/config/reader.hpp>

#include <string>
#include <vector>

namespace halocline::comm {

/// "comm.transports", "faults.deadline_ms", …
[[nodiscard]] const std::vector<config::key<job_options>>& option_keys();

/// Err: config_error that begins with `as_given`, if a name is not that of a transport.
void require_known_transports(const std::vector<std::string>& names, const std::string& as_given);

/// `options` with a deadline that clocks can add. What keys have read is in range; this is about what programs set.
/// Err: input_error: a value out of range.
[[nodiscard]] job_options within_ranges(job_options options);

/// `options` as changed first by the file that $HALOCLINE_CONFIG names, then by the variables HALOCLINE_NETWORK and
/// HALOCLINE_BOOTSTRAP, then by HALOCLINE_COMM_… and HALOCLINE_FAULTS_…, and then fixed: what the program sets
/// afterwards is not overridden. Options that are already fixed are returned unchanged. Local: a rank that gets an
/// error must call share_bad_input().
/// Err: config_error with file, line, column or variable, key and what would be right; input_error as within_ranges().
[[nodiscard]] job_options configured(job_options options = {});

} // namespace halocline::comm
