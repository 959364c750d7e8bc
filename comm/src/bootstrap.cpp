// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/job.hpp>

namespace halocline::comm {

job job::from_environment(const job_options& options) { return single(options); }

} // namespace halocline::comm
