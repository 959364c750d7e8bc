// SPDX-License-Identifier: Apache-2.0
#include "site_conversion.hpp"

#include "format_kernels.hpp"
#include "message_start.hpp"

#include <halocline/halo/detail/phase_arithmetic.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace halocline::halo {
namespace {

/// Passes sites [first, last) of a message through a buffer, some at a time.
/// fill(start, begin, end) brings sites [begin, end) to where they lie in a message as stored that starts at `start`,
/// change(reals, count) changes them, and empty(start, begin, end) takes them from there.
template <class Fill, class Change, class Empty>
void by_buffer(const site_shape& shape, std::int64_t first, std::int64_t last, Fill&& fill, Change&& change,
               Empty&& empty) noexcept {
    alignas(64) std::byte buffer[conversion_bytes];
    const std::size_t bytes = shape.bytes();
    const auto step = static_cast<std::int64_t>(conversion_bytes / bytes);
    for (std::int64_t next = 0; first < last; first = next) {
        next = std::min(last, first + step);
        std::byte* const start = message_start(buffer, first, bytes);
        const std::int64_t reals = (next - first) * shape.components;
        fill(start, first, next);
        if (shape.kind == scalar::float32)
            change(reinterpret_cast<float*>(buffer), reals);
        else
            change(reinterpret_cast<double*>(buffer), reals);
        empty(start, first, next);
    }
}

/// Changes nothing.
constexpr auto unchanged = [](auto*, std::int64_t) {};
/// Multiplies by a phase.
auto multiplied_by(std::complex<double> phase) {
    return [phase]<class T>(T* reals, std::int64_t count) { multiply(reals, reals, count, phase); };
}

/// Calls use(begin, end, phase) for the parts of [first, last), in order; phase: null for sites without one.
template <class Use>
void for_each_part(const std::vector<phased_sites>& phased, std::int64_t first, std::int64_t last, Use&& use) noexcept {
    for (const phased_sites& p : phased) {
        if (p.last <= first || first >= last) continue;
        if (const std::int64_t end = std::min(p.first, last); first < end) use(std::exchange(first, end), end, nullptr);
        if (const std::int64_t end = std::min(p.last, last); first < end) use(std::exchange(first, end), end, &p.phase);
    }
    if (first < last) use(first, last, nullptr);
}

} // namespace

void put_converted(const field_view& from, const site_copy& out, real_format as, std::byte* message, std::int64_t first,
                   std::int64_t last) noexcept {
    const auto fill = [&](std::byte* start, std::int64_t begin, std::int64_t end) {
        out.copy(from.data, start, from.shape, begin, end);
    };
    const auto empty = [&](const std::byte* start, std::int64_t begin, std::int64_t end) {
        const std::int64_t at = begin * from.shape.components;
        kernels::encode(as.format, reinterpret_cast<const float*>(start) + at, as.scale,
                        static_cast<std::size_t>((end - begin) * from.shape.components),
                        reinterpret_cast<std::uint16_t*>(message) + at);
    };
    by_buffer(from.shape, first, last, fill, unchanged, empty);
}

void place(const std::byte* message, real_format as, const site_copy& in, const std::vector<phased_sites>& phased,
           bool add, const field_view& to, std::int64_t first, std::int64_t last) noexcept {
    const auto put = [&](const std::byte* from, std::int64_t begin, std::int64_t end) {
        if (add)
            in.add(from, to.data, to.shape, begin, end);
        else
            in.copy(from, to.data, to.shape, begin, end);
    };
    const auto fill = [&](std::byte* start, std::int64_t begin, std::int64_t end) {
        const std::int64_t at = begin * to.shape.components;
        const auto reals = static_cast<std::size_t>((end - begin) * to.shape.components);
        if (as.converts())
            kernels::decode(as.format, reinterpret_cast<const std::uint16_t*>(message) + at, as.scale, reals,
                            reinterpret_cast<float*>(start) + at);
        else
            std::memcpy(start + static_cast<std::size_t>(at) * to.shape.component_bytes,
                        message + static_cast<std::size_t>(at) * to.shape.component_bytes,
                        reals * to.shape.component_bytes);
    };
    for_each_part(phased, first, last, [&](std::int64_t begin, std::int64_t end, const std::complex<double>* phase) {
        if (phase != nullptr) return by_buffer(to.shape, begin, end, fill, multiplied_by(*phase), put);
        if (as.converts()) return by_buffer(to.shape, begin, end, fill, unchanged, put);
        put(message, begin, end);
    });
}

void multiply_in_place(const site_copy& out, const site_copy& in, const std::vector<phased_sites>& phased,
                       const field_view& x, std::int64_t first, std::int64_t last) noexcept {
    for_each_part(phased, first, last, [&](std::int64_t begin, std::int64_t end, const std::complex<double>* phase) {
        if (phase == nullptr) return;
        const auto fill = [&](std::byte* start, std::int64_t from, std::int64_t till) {
            out.copy(x.data, start, x.shape, from, till);
        };
        const auto empty = [&](const std::byte* start, std::int64_t from, std::int64_t till) {
            in.copy(start, x.data, x.shape, from, till);
        };
        by_buffer(x.shape, begin, end, fill, multiplied_by(*phase), empty);
    });
}

} // namespace halocline::halo
