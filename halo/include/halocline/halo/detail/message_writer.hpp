// SPDX-License-Identifier: Apache-2.0
// Fills one message of a halo plan, from fields or by a caller's function: through the cache, with or without claiming
// lines first, or bypassing the cache (path_watch.hpp). Message order: field by field, each with its sites in list
// order. For a seal it sums up what it writes, of streamed lines before they leave the cache.
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
    /// From now on what is written is summed up, for a seal.
    void sum_up() noexcept { sums_ = true; }
    /// Bytes of the writer's own memory in which what callers pack is assembled.
    [[nodiscard]] std::size_t staging_bytes() const noexcept {
        return staging_ ? staging_lines() * sizeof(cache_line) : 0;
    }

    /// Are copies prepared for fields in this order?
    [[nodiscard]] bool is_prepared_for(const lattice::site_order* order) const noexcept {
        return order == order_ || (order->is_lexicographic() && (!order_ || order_->is_lexicographic()));
    }
    /// Writes sites [first, last) of a field with site_bytes per site, as field number `field` of a message. A field in
    /// another order than the prepared one is copied site by site, many times slower.
    /// Returns the sum of what was written (message_sum.hpp), or 0 if it is not summed up.
    /// Pre: x.order is not null, unless the writer was made without one.
    std::uint64_t write(const source_field& x, std::size_t field, std::int64_t first, std::int64_t last,
                        std::byte* message) const noexcept {
        if (sums_ || !watch_.copies_plainly()) return write_otherwise(x, field * field_bytes(), first, last, message);
        copy(x, first, last, message + field * field_bytes());
        return 0;
    }
    /// Writes sites [first, last) of all fields by calling pack(start of a message). Returns as write().
    template <class Pack>
    std::uint64_t write_packed(Pack&& pack, std::int64_t first, std::int64_t last, std::byte* message) const noexcept {
        const bool streamed = watch_.streamed();
        if (!streamed && watch_.claims()) claim(first, last, message);
        std::byte* const packed = streamed ? staging_[0].bytes : message;
        pack(packed);
        const std::uint64_t sum = sums_ ? sum_of(first, last, packed) : 0;
        if (streamed) stream_staged(first, last, message);
        return sum;
    }

  private:
    void copy(const source_field& x, std::int64_t first, std::int64_t last, std::byte* target) const noexcept {
        if (is_prepared_for(x.order)) return copy_.copy(x.values, target, x.shape, first, last);
        copy_one_by_one(x, first, last, target);
    }
    /// write() that streams, claims, gathers or sums up. `at`: where the field's part of the message begins.
    std::uint64_t write_otherwise(const source_field& x, std::size_t at, std::int64_t first, std::int64_t last,
                                  std::byte* message) const noexcept;
    void copy_one_by_one(const source_field& x, std::int64_t first, std::int64_t last,
                         std::byte* target) const noexcept;
    void stream_staged(std::int64_t first, std::int64_t last, std::byte* message) const noexcept;
    /// Claims the lines of these sites of all fields.
    void claim(std::int64_t first, std::int64_t last, std::byte* message) const noexcept;
    /// The sum of these sites of all fields.
    [[nodiscard]] std::uint64_t sum_of(std::int64_t first, std::int64_t last, const std::byte* message) const noexcept;
    /// Calls use(offset in a message, bytes) for these sites of each field.
    template <class Use>
    void for_each_part(std::int64_t first, std::int64_t last, Use&& use) const noexcept {
        const std::size_t begin = static_cast<std::size_t>(first) * site_bytes_,
                          part = static_cast<std::size_t>(last - first) * site_bytes_;
        for (std::size_t at = begin; at < begin + bytes(); at += field_bytes()) use(at, part);
    }

    struct alignas(64) cache_line {
        std::byte bytes[64];
    };
    [[nodiscard]] std::size_t staging_lines() const noexcept { return bytes() / sizeof(cache_line) + 1; }

    std::span<const std::int32_t> sites_;
    const lattice::site_order* order_;
    std::size_t site_bytes_;
    int fields_;
    bool sums_ = false; // for a seal
    path_watch watch_;
    std::unique_ptr<cache_line[]> staging_; // what callers pack before it is streamed; only if watch_ may stream
    site_copy copy_;                        // for fields in order_
};

} // namespace halocline::halo
