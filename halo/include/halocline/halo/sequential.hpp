// SPDX-License-Identifier: Apache-2.0
// Kernels of stencils that are called for one site after the other.
#pragma once

#include <halocline/base/independent_iterations.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace halocline::halo {

/// What sequential() returns: it refers to a kernel that has a name, and contains any other.
template <class Kernel>
class sequential_kernel {
  public:
    explicit sequential_kernel(Kernel&& kernel) : kernel_(std::forward<Kernel>(kernel)) {}
    template <class Neighbourhood>
    void operator()(Neighbourhood&& n) {
        kernel_(std::forward<Neighbourhood>(n));
    }
    template <class Neighbourhood>
    void operator()(Neighbourhood&& n) const {
        kernel_(std::forward<Neighbourhood>(n));
    }

  private:
    Kernel kernel_;
};

/// For kernels that add to what several sites share, such as a histogram or a sum per time slice: stencils call them for
/// one site after the other. Other kernels the compiler may call for several sites at once, in vectors, and such sums
/// would lose values, if only with some flags, on some processors:
///
///     s.for_interior(halo::sequential([&](const auto& n) { ++histogram[bin_of(n.here())]; }));
///
/// Cost: of a kernel that could be called so, up to half of its speed.
template <class Kernel>
[[nodiscard]] sequential_kernel<Kernel> sequential(Kernel&& kernel) {
    return sequential_kernel<Kernel>(std::forward<Kernel>(kernel));
}

namespace detail {

template <class Kernel>
inline constexpr bool is_sequential = false;
template <class Kernel>
inline constexpr bool is_sequential<sequential_kernel<Kernel>> = true;

/// Calls kernel(site(i)) for i in [first, last).
template <class Kernel, class Site>
inline void visit_sites(std::int64_t first, std::int64_t last, Kernel& kernel, Site&& site) {
    if constexpr (is_sequential<std::remove_const_t<Kernel>>) {
        for (std::int64_t i = first; i < last; ++i) kernel(site(i));
    } else {
        HALOCLINE_INDEPENDENT_ITERATIONS
        for (std::int64_t i = first; i < last; ++i) kernel(site(i));
    }
}

} // namespace detail

} // namespace halocline::halo
