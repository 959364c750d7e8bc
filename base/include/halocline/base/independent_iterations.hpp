// SPDX-License-Identifier: Apache-2.0
// A pragma for loops over sites.
#pragma once

// Tells the compiler that the iterations of the next loop are independent, which is the contract of a kernel. Clang's
// pragma for that would also warn of every kernel, even a user's, that can't be vectorised.
#if defined(__GNUC__) && !defined(__clang__)
#define HALOCLINE_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#else
#define HALOCLINE_INDEPENDENT_ITERATIONS
#endif
