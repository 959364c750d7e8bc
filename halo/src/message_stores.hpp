// SPDX-License-Identifier: Apache-2.0
// How a contiguous message is filled by copies that know nothing about the memory that they write: through the cache,
// with or without claiming lines first or gathering short runs, or bypassing the cache (path_watch.hpp).
#pragma once

#include "long_runs.hpp"
#include "message_start.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline/comm/detail/claim_lines.hpp>
#include <halocline/comm/detail/copy_bytes.hpp>
#include <halocline/comm/detail/stream_bytes.hpp>
#include <halocline/halo/detail/path_watch.hpp>
#include <halocline/halo/detail/site_copy.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace halocline::halo {

/// Larger sites don't fit into the block in which a message is assembled.
inline constexpr std::size_t largest_assembled_site = 8192;

/// Should what is written into a message in a peer's memory, so many bytes in so many runs, be assembled in blocks also
/// if it is not streamed? Long runs, small messages, and those that outgrow a second-level cache should not.
[[nodiscard]] inline bool gathering_pays(std::int64_t runs, std::size_t bytes, std::size_t site_bytes) noexcept {
    constexpr std::size_t too_large = std::size_t{256} << 10; // near, 384 KiB take 1.1 times as long, 768 KiB 1.5
    return short_runs_are_gathered && are_short(runs, bytes) && site_bytes <= largest_assembled_site &&
           bytes >= long_run_bytes && bytes < too_large;
}
/// Do so many runs fill a message in a peer's memory one by one, and are they short?
[[nodiscard]] inline bool fills_in_runs(std::int64_t runs, std::size_t bytes, std::size_t site_bytes) noexcept {
    return are_short(runs, bytes) && !gathering_pays(runs, bytes, site_bytes);
}
/// gathering_pays() for what this copy writes.
[[nodiscard]] inline bool gathering_pays(const site_copy& copy, std::size_t site_bytes) noexcept {
    return gathering_pays(copy.runs(), static_cast<std::size_t>(copy.sites()) * site_bytes, site_bytes);
}
[[nodiscard]] inline bool fills_in_runs(const site_copy& copy, std::size_t site_bytes) noexcept {
    return fills_in_runs(copy.runs(), static_cast<std::size_t>(copy.sites()) * site_bytes, site_bytes);
}

/// Fills sites [first, last) of a message by blocks that stay in the first-level cache and, if the site size allows it,
/// end with a line: copy(start, begin, end) writes sites [begin, end) of a message that begins at `start`, and
/// store(to, from, bytes) brings them to their place.
template <class Copy, class Store>
void fill_by_blocks(std::size_t site_bytes, std::int64_t first, std::int64_t last, std::byte* message, Copy&& copy,
                    Store&& store) noexcept {
    alignas(64) std::array<std::byte, largest_assembled_site> block;
    const auto room = static_cast<std::int64_t>(block.size() / site_bytes);
    const auto unit = static_cast<std::int64_t>(64 / std::gcd(std::size_t{64}, site_bytes));
    const std::int64_t sites = room >= unit ? room / unit * unit : room;
    for (std::int64_t next = 0; first < last; first = next) {
        next = std::min(last, (first / sites + 1) * sites);
        const std::size_t offset = static_cast<std::size_t>(first) * site_bytes;
        copy(message_start(block.data(), first, site_bytes), first, next);
        store(message + offset, block.data(), static_cast<std::size_t>(next - first) * site_bytes);
    }
}

/// Calls claim(begin, end) and copy(begin, end) for sites [first, last), by blocks of so many bytes: claimed lines are
/// still in the first-level cache when they are filled.
template <class Claim, class Copy>
void claim_by_blocks(std::size_t block_bytes, std::size_t site_bytes, std::int64_t first, std::int64_t last,
                     Claim&& claim, Copy&& copy) noexcept {
    const auto sites = static_cast<std::int64_t>(std::max(std::size_t{1}, block_bytes / site_bytes));
    for (std::int64_t next = 0; first < last; first = next) {
        next = std::min(last, first + sites);
        claim(first, next);
        copy(first, next);
    }
}

/// Fills sites [first, last) of a message by calling copy(start, begin, end): it writes sites [begin, end) of a message
/// that begins at `start`. If the message is streamed, the caller calls finish_streams(). All that is written is shown
/// to see(bytes, count, offset in the message) while it is in this core's cache, some of it or all together.
/// Pre: a streamed message has sites of at most largest_assembled_site bytes.
template <class Copy, class See>
void fill_sites(const path_watch& watch, std::size_t site_bytes, std::int64_t first, std::int64_t last,
                std::byte* message, Copy&& copy, See&& see) noexcept {
    const auto offset = [&](std::int64_t site) { return static_cast<std::size_t>(site) * site_bytes; };
    const auto copy_and_see = [&](std::int64_t begin, std::int64_t end) {
        copy(message, begin, end);
        see(message + offset(begin), offset(end - begin), offset(begin));
    };
    const auto assemble = [&](auto&& bring) {
        fill_by_blocks(site_bytes, first, last, message, copy,
                       [&](std::byte* to, const std::byte* from, std::size_t bytes) {
                           see(from, bytes, static_cast<std::size_t>(to - message));
                           bring(to, from, bytes);
                       });
    };
    // Runs that end inside a line don't matter then: streamed one by one, they would write such lines through the cache.
    if (watch.streamed()) return assemble(comm::stream_bytes);
    if (watch.claims())
        return claim_by_blocks(
            4096, site_bytes, first, last,
            [&](std::int64_t begin, std::int64_t end) {
                comm::claim_lines(message + offset(begin), message + offset(end));
            },
            copy_and_see);
    if (watch.gathers() && offset(last - first) >= long_run_bytes) return assemble(comm::copy_bytes);
    copy_and_see(first, last);
}

} // namespace halocline::halo
