// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/detail/message_writer.hpp>

#include <halocline/comm/detail/claim_lines.hpp>
#include <halocline/comm/detail/stream_bytes.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace halocline::halo {
namespace {

site_copy copies_of(std::span<const std::int32_t> sites, const lattice::site_order* order) {
    const position_list from = stored_positions(sites, order);
    return {from, order ? order->lane_width() : 1, position_list::counted(from.size()), 1};
}

} // namespace

message_writer::message_writer(std::span<const std::int32_t> sites, const lattice::site_order* order,
                               std::size_t site_bytes, int fields)
    : sites_(sites), order_(order), site_bytes_(site_bytes), fields_(fields), copy_(copies_of(sites, order)) {}

void message_writer::follow(const path_watch& watch) {
    watch_ = watch;
    staging_ = nullptr;
    if (watch.may_stream()) // allocates nothing before a caller packs
        staging_ = std::make_unique_for_overwrite<cache_line[]>(staging_lines());
}

void message_writer::write(const source_field& x, std::int64_t first, std::int64_t last,
                           std::byte* target) const noexcept {
    if (watch_.streamed()) return stream(x, first, last, target);
    if (!watch_.claims()) return copy(x, first, last, target);
    // By blocks, so that claimed lines are still in the first-level cache when they are filled.
    constexpr std::size_t block_bytes = 4096;
    const auto sites = static_cast<std::int64_t>(std::max(std::size_t{1}, block_bytes / site_bytes_));
    for (std::int64_t next = 0; first < last; first = next) {
        next = std::min(last, first + sites);
        comm::claim_lines(target + static_cast<std::size_t>(first) * site_bytes_,
                          target + static_cast<std::size_t>(next) * site_bytes_);
        copy(x, first, next, target);
    }
}

void message_writer::copy_one_by_one(const source_field& x, std::int64_t first, std::int64_t last,
                                     std::byte* target) const noexcept {
    const int lanes = x.order->lane_width();
    const std::size_t component_bytes = x.shape.component_bytes,
                      stride = static_cast<std::size_t>(lanes) * component_bytes;
    target += static_cast<std::size_t>(first) * x.shape.bytes();
    for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t position = x.order->position(sites_[i]);
        const std::byte* source = x.values + x.shape.offset(position, lanes);
        for (int c = 0; c < x.shape.components; ++c, target += component_bytes, source += stride)
            std::memcpy(target, source, component_bytes);
    }
}

void message_writer::stream(const source_field& x, std::int64_t first, std::int64_t last,
                            std::byte* target) const noexcept {
    // By blocks that stay in the first-level cache and, if the site size allows it, end with a line.
    alignas(64) std::array<std::byte, largest_streamed_site> block;
    const auto room = static_cast<std::int64_t>(block.size() / site_bytes_);
    const auto unit = static_cast<std::int64_t>(64 / std::gcd(std::size_t{64}, site_bytes_));
    const std::int64_t sites = room >= unit ? room / unit * unit : room;
    for (std::int64_t next = 0; first < last; first = next) {
        next = std::min(last, (first / sites + 1) * sites);
        // Kernels count from the start of the message.
        auto* const start = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(block.data()) -
                                                         static_cast<std::size_t>(first) * site_bytes_);
        copy(x, first, next, start);
        comm::stream_bytes(target + static_cast<std::size_t>(first) * site_bytes_, block.data(),
                           static_cast<std::size_t>(next - first) * site_bytes_);
    }
    comm::finish_streams();
}

void message_writer::stream_staged(std::int64_t first, std::int64_t last, std::byte* target) const noexcept {
    const std::byte* staged = staging_[0].bytes;
    const std::size_t begin = static_cast<std::size_t>(first) * site_bytes_,
                      bytes = static_cast<std::size_t>(last - first) * site_bytes_;
    for (int f = 0; f < fields_; ++f, target += field_bytes(), staged += field_bytes())
        comm::stream_bytes(target + begin, staged + begin, bytes);
    comm::finish_streams();
}

void message_writer::claim(std::int64_t first, std::int64_t last, std::byte* target) const noexcept {
    for (int f = 0; f < fields_; ++f, target += field_bytes())
        comm::claim_lines(target + static_cast<std::size_t>(first) * site_bytes_,
                          target + static_cast<std::size_t>(last) * site_bytes_);
}

} // namespace halocline::halo
