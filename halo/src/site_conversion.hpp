// SPDX-License-Identifier: Apache-2.0
// Sites on their way between a field and a message that are not only copied: in another format, or multiplied by a
// phase as they arrive. They pass through a small buffer on the stack.
#pragma once

#include <halocline/halo/detail/site_copy.hpp>
#include <halocline/halo/field_view.hpp>
#include <halocline/halo/message_format.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace halocline::halo {

/// How a message holds the reals of its fields.
struct real_format {
    message_format format = message_format::as_stored;
    float scale = 1; ///< for half and bfloat16: the message holds scale * value

    [[nodiscard]] bool converts() const { return format != message_format::as_stored; }
    /// Bytes of a site in the message.
    [[nodiscard]] std::size_t bytes(const site_shape& shape) const {
        return static_cast<std::size_t>(shape.components) * bytes_per_real(format, shape.component_bytes);
    }
};

/// Sites [first, last) of a message, which are multiplied by a phase.
struct phased_sites {
    std::int64_t first = 0, last = 0;
    std::complex<double> phase = 1;
};

/// The size of the buffer; a site of a field must fit.
inline constexpr std::size_t conversion_bytes = 8192;

/// Writes sites [first, last) of a message in another format.  out: field -> message.  Pre: as.converts().
void put_converted(const field_view& from, const site_copy& out, real_format as, std::byte* message, std::int64_t first,
                   std::int64_t last) noexcept;
/// Stores sites [first, last) of a message in a field, or adds them to it, those of `phased` times their phase.
/// in: message -> field.  Pre: `phased` is ascending.
void place(const std::byte* message, real_format as, const site_copy& in, const std::vector<phased_sites>& phased,
           bool add, const field_view& to, std::int64_t first, std::int64_t last) noexcept;
/// Multiplies those of the sites [first, last) of a message that are phased, where they lie already: in the field.
/// out: field -> message, in: message -> field.
void multiply_in_place(const site_copy& out, const site_copy& in, const std::vector<phased_sites>& phased,
                       const field_view& x, std::int64_t first, std::int64_t last) noexcept;

} // namespace halocline::halo
