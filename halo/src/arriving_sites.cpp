// SPDX-License-Identifier: Apache-2.0
#include "arriving_sites.hpp"

#include <halocline/halo/detail/boundary_phases.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace halocline::halo {
namespace {

/// Passes sites [first, last) of a message through a buffer, in which they are multiplied.
/// fill(start, begin, end) copies sites [begin, end) to where they lie in a message that starts at `start`, and
/// empty(start, begin, end) takes them from there.
template <class Fill, class Empty>
void multiplied(const site_shape& shape, std::complex<double> phase, std::int64_t first, std::int64_t last, Fill&& fill,
                Empty&& empty) noexcept {
    alignas(64) std::byte buffer[phase_buffer_bytes];
    const std::size_t bytes = shape.bytes();
    const auto step = static_cast<std::int64_t>(phase_buffer_bytes / bytes);
    for (std::int64_t next = 0; first < last; first = next) {
        next = std::min(last, first + step);
        // Copies count from the start of a message, which lies before the buffer.
        auto* const start = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(buffer) -
                                                         static_cast<std::size_t>(first) * bytes);
        const std::int64_t reals = (next - first) * shape.components;
        fill(start, first, next);
        const auto multiply_as = [&]<class T>(T* values) { multiply(values, values, reals, phase); };
        if (shape.kind == scalar::float32)
            multiply_as(reinterpret_cast<float*>(buffer));
        else
            multiply_as(reinterpret_cast<double*>(buffer));
        empty(start, first, next);
    }
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

void place(const std::byte* message, const site_copy& in, const std::vector<phased_sites>& phased, bool add,
           const field_view& to, std::int64_t first, std::int64_t last) noexcept {
    const auto put = [&](const std::byte* from, std::int64_t begin, std::int64_t end) {
        if (add)
            in.add(from, to.data, to.shape, begin, end);
        else
            in.copy(from, to.data, to.shape, begin, end);
    };
    for_each_part(phased, first, last, [&](std::int64_t begin, std::int64_t end, const std::complex<double>* phase) {
        if (phase == nullptr) return put(message, begin, end);
        const std::size_t bytes = to.shape.bytes();
        const auto fill = [&](std::byte* start, std::int64_t from, std::int64_t till) {
            const std::size_t offset = static_cast<std::size_t>(from) * bytes;
            std::memcpy(start + offset, message + offset, static_cast<std::size_t>(till - from) * bytes);
        };
        multiplied(to.shape, *phase, begin, end, fill, put);
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
        multiplied(x.shape, *phase, begin, end, fill, empty);
    });
}

} // namespace halocline::halo
