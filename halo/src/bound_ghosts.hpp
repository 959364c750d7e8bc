// SPDX-License-Identifier: Apache-2.0
// The fields of a shell_plan's binding, and their state when its ghosts were filled.
#pragma once

#include <halocline/halo/field_view.hpp>
#include <halocline/halo/region_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace halocline::halo {

struct bound_ghosts {
    std::vector<field_view> fields; // sources, then destinations
    std::size_t sources = 0;
    std::vector<std::uint64_t> versions;  // of the fields; allocated at set-up
    std::vector<std::size_t> overwritten; // bindings whose ghosts are gone once this one's are there
    const char* absent = not_filled;      // why its ghosts are not there; null: they are
    // With checks normal: checksums of the sites that were sent, and of the ghosts as they arrived.
    std::uint64_t sent_sum = 0, ghost_sum = 0;

    static constexpr const char* not_filled = "no finished exchange filled them";
    explicit bound_ghosts(const binding& b);
    [[nodiscard]] const field_view& destination(std::size_t i) const noexcept { return fields[sources + i]; }
    /// Does it put ghosts of another source where that binding has its own?
    [[nodiscard]] bool overwrites(const bound_ghosts& other) const noexcept;
    /// An exchange begins. Fields that get the ghosts of another one are marked.
    void note_versions() noexcept;
    /// A reverse exchange begins, which adds to the sources.
    void mark_sources() const noexcept;
    [[nodiscard]] bool was_marked() const noexcept;
    /// Are the ghosts there, of fields that can be marked and have not been since?
    [[nodiscard]] bool is_fresh() const noexcept;
    [[nodiscard]] std::uint64_t checksum_of_sent(std::span<const std::int32_t> sites) const noexcept;
    [[nodiscard]] std::uint64_t checksum_of_ghosts(std::span<const std::int32_t> sites) const noexcept;
    // With checks normal, of these sites.
    [[nodiscard]] bool sends_what_it_sent(std::span<const std::int32_t> sites) const noexcept {
        return checksum_of_sent(sites) == sent_sum;
    }
    [[nodiscard]] bool has_what_arrived(std::span<const std::int32_t> sites) const noexcept {
        return checksum_of_ghosts(sites) == ghost_sum;
    }
};

} // namespace halocline::halo
