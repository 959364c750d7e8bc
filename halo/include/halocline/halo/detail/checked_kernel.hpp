// SPDX-License-Identifier: Apache-2.0
// What a stencil's checks make of its kernel: one that is an error if it writes a field that it reads.
#pragma once

#include <halocline/base/check.hpp>
#include <halocline/base/error.hpp>
#include <halocline/halo/sequential.hpp>
#include <halocline/lattice/component.hpp>
#include <halocline/lattice/geometry.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace halocline::halo {

/// Calls a kernel, and compares the values of its site before and after. They are in the cache anyway, so this costs no
/// memory traffic, and it finds the slip that is made: a kernel writes its own site, of the wrong field.
/// Lifetime: refers to its constructor's arguments.
template <class T, int Components, class Kernel, class View>
class checked_kernel {
    using real = lattice::real_of<T>;

  public:
    /// `read`: the values of the fields that the kernel reads. `stencil`: its name. `box`: the sites of the fields.
    /// view(n): what the kernel sees of n.
    checked_kernel(Kernel& kernel, std::span<const T* const> read, const std::string& stencil, const lattice::box& box,
                   View& view)
        : kernel_(kernel), read_(read), stencil_(stencil), box_(box), view_(view) {}

    /// Err: error if the kernel has changed the values of site n.index(); whatever the kernel throws.
    /// Not inlined, so that the loops without checks have as many calls of the kernel to inline as if there were none.
    template <class Neighbourhood>
    [[gnu::noinline]] void operator()(Neighbourhood&& n) const {
        const std::int64_t index = n.index();
        const std::uint64_t before = sum(index);
        kernel_(view_(n));
        if (sum(index) != before) [[unlikely]]
            throw_written(index);
    }

  private:
    /// Over the values of a site in all fields. A single change alters it.
    [[nodiscard]] std::uint64_t sum(std::int64_t index) const {
        std::uint64_t sum = 0;
        for (const T* values : read_)
            for (int c = 0; c < Components * lattice::reals_of<T>; ++c) {
                std::uint64_t word = 0;
                std::memcpy(&word, reinterpret_cast<const real*>(values + index * Components) + c, sizeof(real));
                sum = (sum ^ word) * 0x9e3779b97f4a7c15u; // odd, hence invertible
                sum ^= sum >> 32;
            }
        return sum;
    }
    [[noreturn, gnu::cold, gnu::noinline]] void throw_written(std::int64_t index) const {
        throw error(
            "stencil '" + stencil_ + "': the kernel wrote " +
            (read_.size() == 1 ? "the field that it reads, which is" : "one of the fields that it reads, which are") +
            " being exchanged, at site " + lattice::to_string(box_.site(index)) + "; it must write another field");
    }

    Kernel& kernel_;
    std::span<const T* const> read_;
    const std::string& stencil_;
    const lattice::box& box_;
    View& view_;
};

namespace detail {

template <class T, int Components, class Kernel, class View>
inline constexpr bool is_sequential<checked_kernel<T, Components, Kernel, View>> =
    is_sequential<std::remove_const_t<Kernel>>;

} // namespace detail

/// Calls visit(kernel), or with checks visit(the checked_kernel). It is decided here, once, and not for each site. The
/// loops with checks are kept out of the caller, so that those without are compiled as if there were no others.
template <int Components, class T, class Kernel, class Visit, class View = std::identity>
[[gnu::always_inline]] inline void visit_with_checks(check_level checks, const std::string& stencil,
                                                     const lattice::box& box, std::span<const T* const> read,
                                                     Kernel& kernel, Visit&& visit, View&& view = {}) {
    if (checks < check_level::normal) return visit(kernel);
    const auto visit_checked = [&]() __attribute__((noinline, cold)) {
        const checked_kernel<T, Components, Kernel, std::remove_reference_t<View>> checked(kernel, read, stencil, box,
                                                                                           view);
        visit(checked);
    };
    visit_checked();
}

} // namespace halocline::halo
