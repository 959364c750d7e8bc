// SPDX-License-Identifier: Apache-2.0
// A pragma for loops over sites.
#pragma once

// Tells the compiler that the iterations of the next loop are independent, which is the contract of a kernel.
#if defined(__clang__)
#define HALOCLINE_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define HALOCLINE_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#else
#define HALOCLINE_INDEPENDENT_ITERATIONS
#endif
