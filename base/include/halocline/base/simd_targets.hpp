// SPDX-License-Identifier: Apache-2.0
// SIMD targets that the library's own kernels are compiled for: AVX-512, AVX2, SSE4, on Arm NEON, and Highway's portable
// fallback. The other x86 targets would only add compile time. Vectors of SVE have no size known to the compiler, so they
// can't be members or elements of arrays, which ours are. Include before any Highway header.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
