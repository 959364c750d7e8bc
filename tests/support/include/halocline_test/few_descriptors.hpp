// SPDX-License-Identifier: Apache-2.0
// For tests that leave a process no file descriptors.
#pragma once

namespace halocline_test {

/// Whether such a test can't run in this build: where objects are checked before virtual calls (the vptr check of
/// UndefinedBehaviorSanitizer), each check takes a pipe, and without descriptors every object looks wrong.
inline constexpr bool checks_take_descriptors =
#ifdef __SANITIZE_ADDRESS__ // the build that has it has both
    true;
#else
    false;
#endif
inline constexpr const char* why_descriptors_are_needed = "the sanitizer of this build needs descriptors, too";

} // namespace halocline_test
