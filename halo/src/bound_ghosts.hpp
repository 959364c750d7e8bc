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
    /// Checksums of the sites of a field that were sent, and of its ghosts as they arrived.
    struct checksums {
        std::uint64_t sent = 0, ghosts = 0;
    };
    std::vector<checksums> sums; // by field, with checks normal; allocated at set-up

    static constexpr const char* not_filled = "no finished exchange filled them";
    explicit bound_ghosts(const binding& b);
    [[nodiscard]] const field_view& destination(std::size_t i) const noexcept { return fields[sources + i]; }
    /// Does it put ghosts of another source where that binding has its own?
    [[nodiscard]] bool overwrites(const bound_ghosts& other) const noexcept;
    /// An exchange begins. Fields that get the ghosts of another one are marked.
    void note_versions() noexcept;
    /// A reverse exchange begins, which adds to the sources.
    void mark_sources() const noexcept;
    /// Was field i (a source, or its destination) marked since?
    [[nodiscard]] bool was_marked(std::size_t i) const noexcept;
    [[nodiscard]] bool was_marked() const noexcept;
    /// Are the ghosts there, of fields that can be marked and have not been since?
    [[nodiscard]] bool is_fresh() const noexcept;
    // With checks normal, of these sites.
    void note_sent(std::span<const std::int32_t> sites) noexcept;
    void note_arrived(std::span<const std::int32_t> sites) noexcept;
    [[nodiscard]] bool sends_what_it_sent(std::size_t i, std::span<const std::int32_t> sites) const noexcept;
    [[nodiscard]] bool has_what_arrived(std::size_t i, std::span<const std::int32_t> sites) const noexcept;
};

} // namespace halocline::halo
