// SPDX-License-Identifier: Apache-2.0
// What a region_plan knows about its message with one peer, once both ends agree on it: region_end is what this rank
// has, region_outline what it tells the peer, region_message the result.
#pragma once

#include "message_stores.hpp"
#include "region_paths.hpp"
#include "site_conversion.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline/comm/detail/channel_kind.hpp>
#include <halocline/comm/detail/direct_memory.hpp>
#include <halocline/halo/detail/path_watch.hpp>
#include <halocline/halo/detail/site_copy.hpp>
#include <halocline/halo/region_plan.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace halocline::halo {

/// How a direct message goes through a slot instead, while cores are far apart.
struct slot_way {
    std::vector<site_copy> out; ///< by field: source -> message
    path_watch watch;           ///< how the slot is written
    std::string costs;          ///< as region_message::costs
    path_watch distance;        ///< streamed() while they are
};

/// Everything between this rank and one peer, both directions. What is filled depends on the path:
///
/// * packed: out, in.
/// * direct: targets and out; over a network writes and `registered` instead of out. If some sites have a phase, also
///   in and read_back. By slot while cores are far apart: also by_slot and in. Joint, which is never by slot: also
///   from_peer.
struct region_message {
    int peer = 0;
    halo::path path = path::packed; ///< the same at both ends
    /// How this rank writes it: streamed, or through the cache, with or without claiming lines.
    path_watch watch;
    std::string why;       ///< the reason for that path
    std::string costs;     ///< through the cache and past it, if it can be streamed; see choose_writing()
    std::string why_joint; ///< see why_joint()
    std::int64_t send_sites = 0, receive_sites = 0;
    std::vector<std::size_t> out_at, in_at; ///< where each field's part of it starts (starts_of_parts())
    std::vector<site_copy> out; ///< by field: source -> message, or source -> the peer's destination (direct)
    /// By field: message -> destination (packed, or by slot; direct if some sites have a phase).
    std::vector<site_copy> in;
    std::vector<phased_sites> phased; ///< those of the sites that arrive that have a phase
    std::vector<site_copy> read_back; ///< by field: destination -> message (direct if some sites have a phase)
    std::vector<site_copy> from_peer; ///< by field: the peer's source -> destination (joint)
    std::optional<slot_way> by_slot;  ///< direct, but by slot while cores are far apart
    bool joint = false;               ///< direct, and both ends may copy
    bool offered = false;             ///< joint, and the peer may copy pieces of what this rank sends
    /// Direct: where the peer's destinations lie in its slab, [its binding][field].
    std::vector<std::vector<std::size_t>> targets;
    /// Direct over a network: the device's writes, and the fields registered with it (all destinations, then all
    /// sources), until the channels own these.
    std::vector<comm::direct_write> writes;
    std::shared_ptr<const comm::direct_memory> registered;
    std::size_t probed_byte = 0;        ///< offset of a sent byte, in the message or in the peer's first field
    std::vector<int> receives;          ///< indices in the plan's list of receives
    bool in_place = false;              ///< are this exchange's values in place?
    const std::byte* arrived = nullptr; ///< the message of this exchange, for adding

    /// Are sites of this shape assembled in a block before they are streamed? Those of a message are: how they lie in
    /// the field is irrelevant to its lines then.
    [[nodiscard]] bool is_assembled(const site_shape& shape) const noexcept {
        return path != halo::path::direct && shape.bytes() <= largest_assembled_site;
    }
    [[nodiscard]] comm::channel_kind channel_kind() const noexcept {
        using enum comm::channel_kind;
        if (path != halo::path::direct) return slots;
        return joint ? joint_direct : by_slot ? slotted_direct : direct;
    }
    /// Does the way this rank sends it depend on how far away its lines are?
    [[nodiscard]] bool is_watched() const noexcept { return send_sites > 0 && (by_slot || watch.watches()); }
    /// Does what this rank sends now go by slot?
    [[nodiscard]] bool goes_by_slot() const noexcept { return by_slot && by_slot->distance.streamed(); }
    /// How it travels now.
    [[nodiscard]] halo::path path_now() const noexcept {
        if (path != halo::path::direct) return path;
        if (goes_by_slot()) return halo::path::packed;
        return watch.streamed() ? halo::path::streamed : offered ? halo::path::joint : halo::path::direct;
    }
};

/// Where the part of each field starts in a message of so many sites, and where the message ends. Each starts at a
/// multiple of 8 bytes, so that its reals are aligned, whatever the field before it holds.
std::vector<std::size_t> starts_of_parts(const std::vector<field_view>& fields, message_format format,
                                         std::int64_t sites);
/// Makes the copies of a message whose path is packed.  Pre: its numbers of sites are known.
void make_packed(region_message& m, const region_end& end, const binding& fields, const region_plan_options& options);
/// Makes the copies of a message whose path is direct, or the writes of a network's device.
void make_direct(region_message& m, const region_end& end, const binding& fields, const region_outline& theirs);
/// Lets a message whose path is direct go by slot while cores are far apart.
void make_slot_way(region_message& m, const region_end& end, const binding& fields, const comm::costs& costs);
/// Lets both ends copy a message whose path is direct.
void make_joint(region_message& m, const region_end& end, const binding& fields, const region_outline& theirs);
/// Decides whether it is streamed, and if not, whether lines are claimed.  Pre: it has its copies; the peer's memory is
/// shared.
void choose_stores(region_message& m, path wish, const comm::costs& costs, const binding& fields,
                   const region_plan_options& options);
/// Decides whether what is written into a slot is gathered there.  Pre: as of choose_stores(), which comes first.
void choose_gathering(region_message& m, const binding& fields);

/// One message per peer that occurs in either list, by rank. Collective, see region_plan's constructor.
std::vector<region_message> make_messages(const comm::job& j, const std::vector<transfer>& sends,
                                          const std::vector<transfer>& receives, const std::vector<binding>& bindings,
                                          const region_plan_options& options);

} // namespace halocline::halo
