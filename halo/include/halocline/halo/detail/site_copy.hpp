// SPDX-License-Identifier: Apache-2.0
// Copies of listed sites between two storages, planned once from the two lists and compiled for every SIMD target.
// Storage is [outer][component][lane]; a message is storage with one lane. So packing, unpacking and a copy straight
// into a neighbour's padded field are one operation. Sites that follow each other in both are copied together, and such
// runs at a constant distance (rows of a face) share one entry: a face of a box is one strip. Sites that share an outer
// index of a storage with lanes are packed and unpacked together, by transposing.
#pragma once

#include <halocline/comm/costs.hpp>
#include <halocline/halo/detail/position_list.hpp>
#include <halocline/halo/field_view.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace halocline::halo {

/// `count` runs of `sites` neighbours each, at constant distances. Positions count sites.
struct site_strip {
    std::int64_t from = 0, to = 0;               ///< position of the first site
    std::int64_t from_stride = 0, to_stride = 0; ///< distance to the next run
    std::int64_t first = 0;                      ///< number of sites of the list before this strip
    std::int32_t sites = 0, count = 0;
};

/// A list of sites as the kernels read it: plain data, the same for every SIMD target.
struct site_list {
    const site_strip* strips = nullptr; ///< null: site by site
    std::int64_t strip_count = 0;
    const std::int32_t* from = nullptr; ///< positions; null: 0, 1, 2, …
    const std::int32_t* to = nullptr;
    /// [outer index, for each lane the place in the list or -1]; null: site by site.
    const std::int32_t* groups = nullptr;
    std::int64_t group_count = 0;
    int from_lanes = 1, to_lanes = 1;
    std::int64_t components = 1;
    std::int64_t site_bytes = 0;
};

namespace kernels {

/// Copies sites [first, last) of a list from one storage to another.
using site_kernel = void (*)(const site_list& list, const std::byte* from, std::byte* to, std::int64_t first,
                             std::int64_t last);

/// Those for lists of one kind, chosen with the list, so that a copy is one indirect call.
struct table {
    std::array<site_kernel, 3> copy{};   ///< components of 2, 4, 8 bytes
    std::array<site_kernel, 3> groups{}; ///< copy of lists that have groups; null: no lanes
    site_kernel stream = nullptr;        ///< copy that bypasses the cache; null: the list has no runs
    std::array<site_kernel, 2> add{};    ///< float, double
    /// For a single run; null: the list has no runs.
    void (*run)(const std::byte* from, std::byte* to, std::size_t bytes) = nullptr;
};

} // namespace kernels

class site_copy {
  public:
    site_copy() = default;
    /// Site i goes from position from[i] of storage with `from_lanes` lanes to to[i] of storage with `to_lanes`.
    /// Pre: both lists have the same length; positions are below 2^31; lane widths are powers of 2 up to 16.
    /// Cost: O(runs), with lanes O(sites). Memory: 4 B per site and irregular side; none per site for faces of boxes
    /// without lanes; with lanes up to 12 B more.
    /// in_parts: copy() will be called for few sites at a time; sites that share an outer index are then not grouped,
    /// because each call would look at all groups.
    site_copy(const position_list& from, int from_lanes, const position_list& to, int to_lanes, bool in_parts = false);

    [[nodiscard]] std::int64_t sites() const { return sites_; }
    /// Number of runs: each costs a few instructions in addition to its bytes.
    [[nodiscard]] std::int64_t runs() const { return runs_; }
    /// to[...] = from[...] for sites [first, last) of the list; both pointers are the start of a storage.
    /// Pre: components of 2, 4 or 8 bytes; any size if both storages have one lane. No overlap in what is copied.
    /// Cost: an indirect call, one read and one write of the bytes, and visits(first, last).
    void copy(const std::byte* from, std::byte* to, const site_shape& shape, std::int64_t first,
              std::int64_t last) const noexcept {
        if (kernels_.run != nullptr) {
            const auto bytes = static_cast<std::int64_t>(shape.bytes());
            return kernels_.run(from + (run_from_ + first) * bytes, to + (run_to_ + first) * bytes,
                                static_cast<std::size_t>((last - first) * bytes));
        }
        const auto& copies = is_by_group(first, last) ? kernels_.groups : kernels_.copy;
        copies[width_index(shape.component_bytes)](list(shape), from, to, first, last);
    }
    /// Number of entries of the list that copy() of these sites reads, if it has lanes: at most twice the sites,
    /// whatever part of the list they are.
    [[nodiscard]] std::int64_t visits(std::int64_t first, std::int64_t last) const noexcept {
        return is_by_group(first, last) ? group_count_ * from_lanes_ * to_lanes_ : last - first;
    }
    void copy(const std::byte* from, std::byte* to, const site_shape& shape) const noexcept {
        copy(from, to, shape, 0, sites_);
    }
    /// copy() that bypasses the cache (comm/stream_bytes.hpp): the caller calls finish_streams().  Pre: streams().
    void stream(const std::byte* from, std::byte* to, const site_shape& shape, std::int64_t first,
                std::int64_t last) const noexcept {
        kernels_.stream(list(shape), from, to, first, last);
    }
    /// Claims each cache line that copy() of the same sites is going to fill (claim_lines.hpp). Does nothing if sites
    /// go one by one to scattered places or lanes: there the look-up costs what claiming gains.
    void claim(std::byte* to, const site_shape& shape, std::int64_t first, std::int64_t last) const noexcept;
    /// True for lists of runs, the only ones that can be streamed.
    [[nodiscard]] bool streams() const { return kernels_.stream != nullptr; }
    /// What stream() of all sites writes to a storage that starts `offset` bytes after the start of a cache line. A
    /// line in which one run ends and the next begins counts once, as partly filled.  Pre: streams().  Cost: O(runs).
    [[nodiscard]] comm::written_lines lines(std::size_t offset, const site_shape& shape) const;
    /// to[...] += from[...], in the order of the list.  Pre: shape.kind is float32 or float64.
    void add(const std::byte* from, std::byte* to, const site_shape& shape, std::int64_t first,
             std::int64_t last) const noexcept {
        kernels_.add[shape.kind == scalar::float64](list(shape), from, to, first, last);
    }
    void add(const std::byte* from, std::byte* to, const site_shape& shape) const noexcept {
        add(from, to, shape, 0, sites_);
    }

  private:
    /// Groups hold sites from all parts of the list, so each part takes a look at all groups. Without groups a site
    /// takes about twice as long.
    [[nodiscard]] bool is_by_group(std::int64_t first, std::int64_t last) const noexcept {
        return group_count_ > 0 && 2 * (last - first) >= sites_;
    }
    static constexpr std::size_t width_index(std::size_t bytes) { return bytes == 2 ? 0 : bytes == 4 ? 1 : 2; }
    [[nodiscard]] site_list list(const site_shape& shape) const noexcept {
        return {.strips = strips_.empty() ? nullptr : strips_.data(),
                .strip_count = static_cast<std::int64_t>(strips_.size()),
                .from = from_.empty() ? nullptr : from_.data(),
                .to = to_.empty() ? nullptr : to_.data(),
                .groups = groups_.empty() ? nullptr : groups_.data(),
                .group_count = group_count_,
                .from_lanes = from_lanes_,
                .to_lanes = to_lanes_,
                .components = shape.components,
                .site_bytes = static_cast<std::int64_t>(shape.bytes())};
    }

    // Either strips_ lists all sites, or from_ and to_ do (an empty one means 0, 1, 2, …). Strips only without lanes.
    // groups_ only if one side has 4 lanes or more and the other 1, and few lanes are idle. kernels_.run only if strips_
    // is one run: all sites follow each other on both sides, as a face across the last dimension.
    std::int64_t sites_ = 0, runs_ = 0;
    std::int64_t run_from_ = 0, run_to_ = 0; // positions of that run's first site
    kernels::table kernels_;
    std::vector<site_strip> strips_;
    std::vector<std::int32_t> from_, to_; // positions
    std::vector<std::int32_t> groups_;    // as site_list::groups
    std::int64_t group_count_ = 0;
    int from_lanes_ = 1, to_lanes_ = 1;
};

} // namespace halocline::halo
