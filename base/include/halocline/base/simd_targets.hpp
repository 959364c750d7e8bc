// SPDX-License-Identifier: Apache-2.0
// SIMD targets that the library's own kernels are compiled for: AVX-512, AVX2, SSE4 and Highway's portable fallback.
// The other x86 targets would only add compile time. Include before any Highway header.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSSE3)
