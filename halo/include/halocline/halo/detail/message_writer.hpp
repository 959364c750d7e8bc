// SPDX-License-Identifier: Apache-2.0
// Fills one message of a halo plan, from fields or by a caller's function: through the cache, with or without claiming
// lines first, or bypassing the cache (path_watch.hpp). Message order: field by field, each with its sites in list
// order.
#pragma once

#include <halocline/halo/detail/path_watch.hpp>
#include <halocline/halo/detail/site_copy.hpp>
#include <halocline/halo/field_view.hpp>
#include <halocline/lattice/site_order.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace halocline::halo {

/// Storage positions of these local lexicographic indices, in `order` (null: lexicographic).
[[nodiscard]] inline position_list stored_positions(std::span<const std::int32_t> sites,
                                                    const lattice::site_order* order) {
    return position_list::of([&](auto&& visit) {
        for (const std::int32_t site : sites) visit(order ? order->position(site) : site);
    });
}

class message_writer {
  public:
    /// Writes messages of `fields` fields with site_bytes per site. `sites` are local lexicographic indices. Copies are
    /// prepared for fields in `order` (null: lexicographic); both must outlive the writer.
    message_writer(std::span<const std::int32_t> sites, const lattice::site_order* order, std::size_t site_bytes,
                   int fields);

    [[nodiscard]] std::int64_t sites() const noexcept { return std::ssize(sites_); }
    /// Bytes of one field in the message.
    [[nodiscard]] std::size_t field_bytes() const noexcept { return sites_.size() * site_bytes_; }
    /// Bytes of the whole message.
    [[nodiscard]] std::size_t bytes() const noexcept { return field_bytes() * static_cast<std::size_t>(fields_); }

    /// The lines of the message, as the copies fill them unless they are streamed.
    [[nodiscard]] comm::written_lines lines() const noexcept;
    /// From now on the message is written as `watch` says, into memory shared with the peer.
    /// Pre: it may be streamed only if sites are small enough (message_stores.hpp).  Cost: may allocate.
    void follow(const path_watch& watch);
    [[nodiscard]] path_watch& watch() noexcept { return watch_; }
    /// Bytes of the writer's own memory in which what callers pack is assembled.
    [[nodiscard]] std::size_t staging_bytes() const noexcept {
        return staging_ ? staging_lines() * sizeof(cache_line) : 0;
    }

    /// Are copies prepared for fields in this order?
    [[nodiscard]] bool is_prepared_for(const lattice::site_order* order) const noexcept {
        return order == order_ || (order->is_lexicographic() && (!order_ || order_->is_lexicographic()));
    }
    /// Writes sites [first, last) of a field with site_bytes per site, whose part of the message starts at target. A
    /// field in another order than the prepared one is copied site by site, many times slower.
    /// Pre: x.order is not null, unless the writer was made without one.
    void write(const source_field& x, std::int64_t first, std::int64_t last, std::byte* target) const noexcept {
        if (watch_.copies_plainly()) return copy(x, first, last, target);
        write_otherwise(x, first, last, target);
    }
    /// Writes sites [first, last) of all fields by calling pack(start of a message).
    template <class Pack>
    void write_packed(Pack&& pack, std::int64_t first, std::int64_t last, std::byte* target) const noexcept {
        if (watch_.streamed()) {
            pack(staging_[0].bytes);
            stream_staged(first, last, target);
        } else {
            if (watch_.claims()) claim(first, last, target);
            pack(target);
        }
    }

  private:
    void copy(const source_field& x, std::int64_t first, std::int64_t last, std::byte* target) const noexcept {
        if (is_prepared_for(x.order)) return copy_.copy(x.values, target, x.shape, first, last);
        copy_one_by_one(x, first, last, target);
    }
    /// write() that streams, claims or gathers.
    void write_otherwise(const source_field& x, std::int64_t first, std::int64_t last,
                         std::byte* target) const noexcept;
    void copy_one_by_one(const source_field& x, std::int64_t first, std::int64_t last,
                         std::byte* target) const noexcept;
    void stream_staged(std::int64_t first, std::int64_t last, std::byte* target) const noexcept;
    /// Claims the lines of these sites of all fields.
    void claim(std::int64_t first, std::int64_t last, std::byte* target) const noexcept;

    struct alignas(64) cache_line {
        std::byte bytes[64];
    };
    [[nodiscard]] std::size_t staging_lines() const noexcept { return bytes() / sizeof(cache_line) + 1; }

    std::span<const std::int32_t> sites_;
    const lattice::site_order* order_;
    std::size_t site_bytes_;
    int fields_;
    path_watch watch_;
    std::unique_ptr<cache_line[]> staging_; // what callers pack before it is streamed; only if watch_ may stream
    site_copy copy_;                        // for fields in order_
};

} // namespace halocline::halo
