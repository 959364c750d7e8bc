// SPDX-License-Identifier: Apache-2.0
// Copies of listed sites between two storages, worked out once from the two lists. Storage is [outer][component][lane];
// a message is storage with one lane. Sites that follow each other in both are copied together, and such runs at a
// constant distance (rows of a face) share one entry: a face of a box takes an entry per plane or less, not one per site.
#pragma once

#include <halocline/halo/field_view.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace halocline::halo {

/// A list of storage positions in a short form: `count` runs of `sites` neighbours, `stride` positions apart.
struct position_run {
    std::int64_t first = 0, stride = 0;
    std::int32_t sites = 0, count = 0;
};
std::vector<position_run> runs_of(std::span<const std::int64_t> positions);
std::vector<std::int64_t> positions_of(std::span<const position_run> runs);

class site_copy {
  public:
    site_copy() = default;
    /// Site i goes from position from[i] of storage with `from_lanes` lanes to to[i] of storage with `to_lanes`.
    /// Pre: both lists have the same length.
    site_copy(std::span<const std::int64_t> from, int from_lanes, std::span<const std::int64_t> to, int to_lanes);

    [[nodiscard]] std::int64_t sites() const { return sites_; }
    /// Runs to copy: each costs a call or a few instructions beyond its bytes.
    [[nodiscard]] std::int64_t runs() const;
    /// to[...] = from[...].  Pre: the storages don't overlap in what is copied.
    void copy(const std::byte* from, std::byte* to, const site_shape& shape) const noexcept;
    /// to[...] += from[...], in the order of the list.  Pre: shape.scalar is real.
    void add(const std::byte* from, std::byte* to, const site_shape& shape) const noexcept;

  private:
    struct run {
        std::int64_t from = 0, to = 0;               ///< position of the first site
        std::int64_t from_stride = 0, to_stride = 0; ///< to the next repetition
        std::int32_t sites = 0, count = 0;
    };
    template <class Operation>
    void by_component(const std::byte* from, std::byte* to, const site_shape& shape, Operation operation) const noexcept;

    std::vector<run> runs_;
    std::int64_t sites_ = 0;
    int from_lanes_ = 1, to_lanes_ = 1;
};

} // namespace halocline::halo
