// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/halo/detail/sticky_status.hpp>

#include <memory>
#include <string>
#include <utility>

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

/// Move assignment of a plan, by way of the destructor, which says what no finish() said of the old one.
template <class Plan>
Plan& replace(Plan& old, Plan&& by) noexcept {
    if (&old == &by) return old;
    std::destroy_at(&old);
    return *std::construct_at(&old, std::move(by));
}

} // namespace halocline::halo
