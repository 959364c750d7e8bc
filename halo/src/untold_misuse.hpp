// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/halo/detail/sticky_status.hpp>

#include <string>

namespace halocline::halo {

/// In a plan's destructor: a start() was refused, so that all since then did nothing, and no finish() could say so.
/// `why()`: what finish_or_throw() would have said.
template <class Why>
void warn_of_untold_misuse(const comm::job& j, const sticky_status& s, Why&& why) noexcept {
    if (!s.is_untold_misuse()) return;
    try {
        j.warn(why() + "; since then nothing was exchanged, and finish(), which would have said so, was never called");
    } catch (...) { // no memory for it
    }
}

} // namespace halocline::halo
