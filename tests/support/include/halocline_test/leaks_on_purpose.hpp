// SPDX-License-Identifier: Apache-2.0
// For tests in which the library rightly keeps memory for ever, such as what a device does not let go of.
#pragma once

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace halocline_test {

/// What this thread allocates while one exists is no leak.
class leaks_on_purpose {
  public:
#ifdef __SANITIZE_ADDRESS__
    leaks_on_purpose() { __lsan_disable(); }
    ~leaks_on_purpose() { __lsan_enable(); }
#else
    leaks_on_purpose() {} // not trivial: else compilers would warn of an unused variable
#endif
    leaks_on_purpose(const leaks_on_purpose&) = delete;
};

} // namespace halocline_test
