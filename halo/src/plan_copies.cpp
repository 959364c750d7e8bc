// SPDX-License-Identifier: Apache-2.0
// How a halo plan's messages are filled from a field, through the cache or past it.
#include "checksum.hpp"

#include <halocline/comm/claim_lines.hpp>
#include <halocline/comm/stream_bytes.hpp>
#include <halocline/halo/plan.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace halocline::halo {

bool plan::fits(const lattice::site_order& order, const site_shape& shape) const noexcept {
    return shape.bytes() == options_.bytes_per_site && order.extents() == extents_;
}

void plan::copy_one_by_one(const std::byte* values, const lattice::site_order& order, const site_shape& shape,
                           std::size_t message, std::int64_t first, std::int64_t last,
                           std::byte* target) const noexcept {
    const std::size_t site_bytes = shape.bytes(), component_bytes = shape.component_bytes;
    const auto w = static_cast<std::size_t>(order.lane_width());
    const std::vector<std::int32_t>& sites = messages_[message].send_sites;
    target += static_cast<std::size_t>(first) * site_bytes;
    for (std::int64_t i = first; i < last; ++i) {
        const auto position = static_cast<std::size_t>(order.position(sites[static_cast<std::size_t>(i)]));
        const std::byte* source = values + position / w * w * site_bytes + position % w * component_bytes;
        for (int c = 0; c < shape.components; ++c, target += component_bytes, source += w * component_bytes)
            std::memcpy(target, source, component_bytes);
    }
}

void plan::fill_sites(const std::byte* values, const lattice::site_order* order, const site_shape& shape,
                      std::size_t message, std::int64_t first, std::int64_t last, std::byte* target) const noexcept {
    if (!claims(message)) return copy_sites(values, order, shape, message, first, last, target);
    constexpr std::size_t block_bytes = 4096;
    const std::size_t site_bytes = options_.bytes_per_site;
    const auto sites = static_cast<std::int64_t>(std::max(std::size_t{1}, block_bytes / site_bytes));
    for (std::int64_t next = 0; first < last; first = next) {
        next = std::min(last, first + sites);
        comm::claim_lines(target + static_cast<std::size_t>(first) * site_bytes,
                          target + static_cast<std::size_t>(next) * site_bytes);
        copy_sites(values, order, shape, message, first, next, target);
    }
}

std::uint64_t plan::checksum(const std::byte* values, const lattice::site_order& order,
                             const site_shape& shape) const noexcept {
    std::uint64_t sum = 0;
    for (const plan_message& m : messages_) sum = checksum_sites(sum, m.send_sites, values, order, shape);
    return sum;
}

void plan::stream_staged(std::size_t message, std::int64_t first, std::int64_t last, std::byte* target) const noexcept {
    const std::byte* staged = staging_[staged_at_[message]].bytes;
    const std::size_t begin = static_cast<std::size_t>(first) * options_.bytes_per_site,
                      bytes = static_cast<std::size_t>(last - first) * options_.bytes_per_site;
    for (int f = 0; f < options_.fields; ++f, target += field_bytes(message), staged += field_bytes(message))
        comm::stream_bytes(target + begin, staged + begin, bytes);
    comm::finish_streams();
}

void plan::stream_sites(const std::byte* values, const lattice::site_order* order, const site_shape& shape,
                        std::size_t message, std::int64_t first, std::int64_t last, std::byte* target) const noexcept {
    // By blocks that stay in the first-level cache and, where sites allow it, end with a line.
    alignas(64) std::array<std::byte, stream_block_bytes> block;
    const std::size_t site_bytes = options_.bytes_per_site;
    const auto room = static_cast<std::int64_t>(block.size() / site_bytes);
    const auto unit = static_cast<std::int64_t>(64 / std::gcd(std::size_t{64}, site_bytes));
    const std::int64_t sites = room >= unit ? room / unit * unit : room;
    for (std::int64_t next = 0; first < last; first = next) {
        next = std::min(last, (first / sites + 1) * sites);
        // Kernels count from the start of the message.
        auto* const start = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(block.data()) -
                                                         static_cast<std::size_t>(first) * site_bytes);
        copy_sites(values, order, shape, message, first, next, start);
        comm::stream_bytes(target + static_cast<std::size_t>(first) * site_bytes, block.data(),
                           static_cast<std::size_t>(next - first) * site_bytes);
    }
    comm::finish_streams();
}

} // namespace halocline::halo
