// SPDX-License-Identifier: Apache-2.0
// What the components of a field consist of.
#pragma once

#include <complex>

namespace halocline::lattice {

/// The numbers in a component: two of R in a std::complex<R>, re before im, otherwise the component itself.
template <class T>
struct component {
    using real = T;
    static constexpr int reals = 1;
};
template <class R>
struct component<std::complex<R>> {
    using real = R;
    static constexpr int reals = 2;
};
template <class T>
using real_of = typename component<T>::real;
template <class T>
inline constexpr int reals_of = component<T>::reals;

} // namespace halocline::lattice
