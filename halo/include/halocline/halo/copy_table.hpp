// SPDX-License-Identifier: Apache-2.0
// A list of (source site, target site), made once, and the copy along it, compiled for every SIMD target of the machine.
// A message is packed along (place in the field, 0, 1, …), unpacked along (0, 1, …, place in the field); a copy from a
// field straight into a padded neighbour is the same with places on both sides.
// Storage is [outer][component][W]; place = outer * W + lane, as lattice::site_order counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace halocline::halo {

/// One side of a copy: where its sites lie.
struct site_places {
    std::span<const std::int32_t> places{}; ///< of each site; empty: 0, 1, 2, … (a message)
    int lane_width = 1;                     ///< W
};

/// What the kernels read: plain data, the same for every SIMD target.
struct copy_pattern {
    /// `runs` runs of `sites` contiguous sites each, `stride` bytes from one to the next: a face of a box is one strip.
    struct strip {
        std::int64_t source, target; ///< offsets in bytes
        std::int64_t source_stride, target_stride;
        std::int64_t first;          ///< site of the list
        std::int32_t sites, runs;
    };
    const strip* strips = nullptr;        ///< null: site by site
    const std::int32_t* sources = nullptr; ///< null: 0, 1, 2, …
    const std::int32_t* targets = nullptr;
    std::int64_t strip_count = 0;
    std::int64_t site_bytes = 0;
    int source_lanes = 1, target_lanes = 1;
};

class copy_table {
  public:
    /// Pre: lane widths are powers of 2 up to 16; site_bytes > 0.
    /// Err: input_error when the sides name different numbers of sites.
    /// Cost: O(sites); 4 B per site and irregular side, nothing per site for a face of a box in lexicographic order.
    copy_table(std::int64_t sites, std::size_t site_bytes, site_places source, site_places target);
    copy_table(copy_table&&) = default; // vectors keep their places, which pattern_ points to
    copy_table& operator=(copy_table&&) = default;

    [[nodiscard]] std::int64_t sites() const { return sites_; }
    /// Copies sites [first, last) of the list. Both pointers are the start of storage, not of the range.
    /// Pre: component_bytes is 2, 4 or 8 and divides site_bytes; any value will do when both lane widths are 1.
    void copy(const std::byte* source, std::byte* target, std::int64_t first, std::int64_t last,
              std::size_t component_bytes) const noexcept {
        kernels_[component_bytes == 2 ? 0 : component_bytes == 4 ? 1 : 2](pattern_, source, target, first, last);
    }

  private:
    using kernel = void (*)(const copy_pattern&, const std::byte*, std::byte*, std::int64_t, std::int64_t);

    std::int64_t sites_;
    std::vector<std::int32_t> sources_, targets_;
    std::vector<copy_pattern::strip> strips_;
    copy_pattern pattern_;
    std::array<kernel, 3> kernels_{}; // by bytes per component: chosen here, so that a copy is one indirect call
};

} // namespace halocline::halo
