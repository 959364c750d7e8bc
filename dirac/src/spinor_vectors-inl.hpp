// SPDX-License-Identifier: Apache-2.0
// Half-spinors of SIMD vectors: each component holds one lane per site. Included once per target (Highway's
// foreach_target).

// Per-target include guard
#if defined(HALOCLINE_DIRAC_SPINOR_VECTORS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HALOCLINE_DIRAC_SPINOR_VECTORS_INL
#undef HALOCLINE_DIRAC_SPINOR_VECTORS_INL
#else
#define HALOCLINE_DIRAC_SPINOR_VECTORS_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace halocline::dirac::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Constructors are written out because GCC compiles implicit ones for the baseline, where Arm's vectors have none.

template <class V>
struct complex_vector {
    HWY_INLINE complex_vector() {} // undefined, as V is
    HWY_INLINE complex_vector(V real, V imaginary) : re(real), im(imaginary) {}
    V re, im;
};
template <class V>
struct colour_vector {
    HWY_INLINE colour_vector() {}
    HWY_INLINE colour_vector(complex_vector<V> c0, complex_vector<V> c1, complex_vector<V> c2) : c{c0, c1, c2} {}
    complex_vector<V> c[3];
};
template <class V>
struct half_spinor {
    HWY_INLINE half_spinor() {}
    HWY_INLINE half_spinor(colour_vector<V> s0, colour_vector<V> s1) : s{s0, s1} {}
    colour_vector<V> s[2];
};

/// a + i^Power b
template <int Power, class V>
HWY_INLINE complex_vector<V> add_times_i(const complex_vector<V>& a, const complex_vector<V>& b) {
    if constexpr (Power % 4 == 0)
        return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
    else if constexpr (Power % 4 == 1)
        return {hn::Sub(a.re, b.im), hn::Add(a.im, b.re)};
    else if constexpr (Power % 4 == 2)
        return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
    else
        return {hn::Add(a.re, b.im), hn::Sub(a.im, b.re)};
}
template <int Power, class V>
HWY_INLINE colour_vector<V> add_times_i(const colour_vector<V>& a, const colour_vector<V>& b) {
    return {add_times_i<Power>(a.c[0], b.c[0]), add_times_i<Power>(a.c[1], b.c[1]), add_times_i<Power>(a.c[2], b.c[2])};
}

} // namespace halocline::dirac::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
