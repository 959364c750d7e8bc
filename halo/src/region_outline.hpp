// SPDX-License-Identifier: Apache-2.0
// What one end of a region_plan's message tells the other while the plan is made, and its encoding as bytes.
#pragma once

#include "region_transfers.hpp"

#include <halocline/halo/detail/position_list.hpp>
#include <halocline/halo/field_view.hpp>
#include <halocline/halo/message_format.hpp>
#include <halocline/halo/path.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace halocline::halo {

/// What prevents a direct message at one end.
enum class obstacle : std::uint8_t { none, changed, transport, streaming, outside_slab, scattered, not_registered };

/// The sites of one field that a direct message fills or carries, in message order.
struct placed_sites {
    int lanes = 1; ///< of the field's storage
    position_list positions;
};

struct region_outline {
    // What must match: where one end sends, the other must receive.
    std::vector<site_shape> shapes{}; ///< by field
    halo::path asked = path::automatic;
    bool adds = false, has_checksums = false;
    message_format format = message_format::as_stored;
    float scale = 1;
    sites_by_tag sends, receives;

    // The direct path is taken if both ends offer it. If either end alternates, only while cores are near each other:
    // while they are far apart, the message is packed.
    bool offers_direct = false, alternates = false;
    obstacle in_the_way = obstacle::none; ///< if it doesn't; none: it would not pay

    // If it does: where the other end may write.
    std::vector<std::vector<std::size_t>> targets{}; ///< [binding][field]: offset in this rank's slab
    std::vector<placed_sites> filled{};              ///< by field
    std::vector<placed_sites> sent{};                ///< by field, if both ends may copy (path joint); else empty
};

/// The outline as bytes, for a rank of the same program on a similar machine.
std::string encoded(const region_outline& o);
/// Err: error: these bytes are not an outline.
region_outline decoded(const std::string& bytes);

} // namespace halocline::halo
