// SPDX-License-Identifier: Apache-2.0
// What a stencil's checks make of its kernel: one that is an error if it writes the field that it reads.
#pragma once

#include <halocline/base/check.hpp>
#include <halocline/base/error.hpp>
#include <halocline/halo/sequential.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

namespace halocline::halo {

/// Calls a kernel, and compares the values of its site before and after. They are in the cache anyway, so this costs no
/// memory traffic, and it finds the slip that is made: a kernel writes its own site, of the wrong field.
/// Lifetime: refers to its constructor's arguments.
template <class T, int Components, class Kernel>
class checked_kernel {
  public:
    /// `values`: of the field that the kernel reads. `stencil`: its name.
    checked_kernel(Kernel& kernel, const T* values, const std::string& stencil)
        : kernel_(kernel), values_(values), stencil_(stencil) {}

    /// Err: error if the kernel has changed the values of site n.index(); whatever the kernel throws.
    /// Not inlined, so that the loops without checks have as many calls of the kernel to inline as if there were none.
    template <class Neighbourhood>
    [[gnu::noinline]] void operator()(Neighbourhood&& n) const {
        const std::int64_t index = n.index();
        const T* const here = values_ + index * Components;
        std::array<std::byte, sizeof(T) * Components> before;
        std::memcpy(before.data(), here, before.size());
        kernel_(std::forward<Neighbourhood>(n));
        if (std::memcmp(before.data(), here, before.size()) != 0) [[unlikely]]
            throw_written(index);
    }

  private:
    [[noreturn, gnu::cold, gnu::noinline]] void throw_written(std::int64_t index) const {
        throw error("stencil '" + stencil_ +
                    "': the kernel wrote the field that it reads, which is being exchanged, at " + "index " +
                    std::to_string(index) + "; it must write another field");
    }

    Kernel& kernel_;
    const T* values_;
    const std::string& stencil_;
};

namespace detail {

template <class T, int Components, class Kernel>
inline constexpr bool is_sequential<checked_kernel<T, Components, Kernel>> = is_sequential<std::remove_const_t<Kernel>>;

} // namespace detail

/// Calls visit(kernel), or with checks visit(the checked_kernel). It is decided here, once, and not for each site. The
/// loops with checks are kept out of the caller, so that those without are compiled as if there were no others.
template <int Components, class T, class Kernel, class Visit>
[[gnu::always_inline]] inline void visit_with_checks(check_level checks, const std::string& stencil, const T* values,
                                                     Kernel& kernel, Visit&& visit) {
    if (checks < check_level::normal) return visit(kernel);
    const auto visit_checked = [&]() __attribute__((noinline, cold)) {
        const checked_kernel<T, Components, Kernel> checked(kernel, values, stencil);
        visit(checked);
    };
    visit_checked();
}

} // namespace halocline::halo
