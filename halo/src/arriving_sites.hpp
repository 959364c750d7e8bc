// SPDX-License-Identifier: Apache-2.0
// The way of arrived sites into a field: stored or added, and some of them multiplied by a phase. The reference is the
// definition: y = phase * x, site by site.
#pragma once

#include <halocline/halo/detail/site_copy.hpp>
#include <halocline/halo/field_view.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace halocline::halo {

/// Sites [first, last) of a message, which are multiplied by a phase.
struct phased_sites {
    std::int64_t first = 0, last = 0;
    std::complex<double> phase = 1;
};

/// Sites are multiplied in a buffer of this size; at least one must fit.
inline constexpr std::size_t phase_buffer_bytes = 8192;

/// Stores sites [first, last) of a message in a field, or adds them to it, those of `phased` times their phase.
/// in: message -> field.  Pre: `phased` is ascending.
void place(const std::byte* message, const site_copy& in, const std::vector<phased_sites>& phased, bool add,
           const field_view& to, std::int64_t first, std::int64_t last) noexcept;
/// Multiplies those of the sites [first, last) of a message that are phased, where they lie already: in the field.
/// out: field -> message, in: message -> field.
void multiply_in_place(const site_copy& out, const site_copy& in, const std::vector<phased_sites>& phased,
                       const field_view& x, std::int64_t first, std::int64_t last) noexcept;

} // namespace halocline::halo
