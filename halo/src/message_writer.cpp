// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/detail/message_writer.hpp>

#include "message_stores.hpp"
#include "message_sum.hpp"

#include <halocline/comm/detail/claim_lines.hpp>
#include <halocline/comm/detail/stream_bytes.hpp>

#include <cstring>

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

comm::written_lines message_writer::lines() const noexcept { return {bytes(), fills_in_runs(copy_, site_bytes_)}; }

void message_writer::follow(const path_watch& watch) {
    watch_ = watch;
    if (gathering_pays(copy_, site_bytes_)) watch_.gather();
    staging_ = nullptr;
    if (watch.may_stream()) // allocates nothing before a caller packs
        staging_ = std::make_unique_for_overwrite<cache_line[]>(staging_lines());
}

std::uint64_t message_writer::write_otherwise(const source_field& x, std::size_t at, std::int64_t first,
                                              std::int64_t last, std::byte* message) const noexcept {
    std::uint64_t sum = 0;
    fill_sites(
        watch_, site_bytes_, first, last, message + at,
        [&](std::byte* start, std::int64_t begin, std::int64_t end) { copy(x, begin, end, start); },
        [&](const std::byte* written, std::size_t bytes, std::size_t offset) {
            if (sums_) sum += message_sum(written, bytes, at + offset);
        });
    if (watch_.streamed()) comm::finish_streams();
    return sum;
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

void message_writer::stream_staged(std::int64_t first, std::int64_t last, std::byte* message) const noexcept {
    const std::byte* const staged = staging_[0].bytes;
    for_each_part(first, last,
                  [&](std::size_t at, std::size_t bytes) { comm::stream_bytes(message + at, staged + at, bytes); });
    comm::finish_streams();
}

void message_writer::claim(std::int64_t first, std::int64_t last, std::byte* message) const noexcept {
    for_each_part(first, last,
                  [&](std::size_t at, std::size_t bytes) { comm::claim_lines(message + at, message + at + bytes); });
}

std::uint64_t message_writer::sum_of(std::int64_t first, std::int64_t last, const std::byte* message) const noexcept {
    std::uint64_t sum = 0;
    for_each_part(first, last, [&](std::size_t at, std::size_t bytes) { sum += message_sum(message + at, bytes, at); });
    return sum;
}

} // namespace halocline::halo
