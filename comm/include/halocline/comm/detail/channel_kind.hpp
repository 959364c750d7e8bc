// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace halocline::comm {

/// Where a channel's messages lie at their receiver, and who copies them. With the transport it decides the class of a
/// channel: each has its `kind`.
enum class channel_kind : std::uint8_t {
    slots,          ///< in slots of the channel
    joint_slots,    ///< in slots; both ends may copy (joint_channel.hpp). Over shm only.
    direct,         ///< in place, in the receiver's fields (direct_channel.hpp, network_direct_channel.hpp)
    joint_direct,   ///< in place; both ends may copy. Over shm only.
    slotted_direct, ///< in place or in slots, as the sender decides for each message. Over shm only.
};

/// Does each end write into the other's fields?
constexpr bool is_direct(channel_kind kind) noexcept {
    return kind != channel_kind::slots && kind != channel_kind::joint_slots;
}
/// May both ends copy?
constexpr bool is_joint(channel_kind kind) noexcept {
    return kind == channel_kind::joint_slots || kind == channel_kind::joint_direct;
}

/// How errors put it: "has slots".
constexpr std::string_view description_of(channel_kind kind) noexcept {
    switch (kind) {
    case channel_kind::slots: return "has slots";
    case channel_kind::joint_slots: return "has slots and is copied by both ends";
    case channel_kind::direct: return "is direct";
    case channel_kind::joint_direct: return "is direct and copied by both ends";
    case channel_kind::slotted_direct: return "is direct and has slots, too";
    }
    return "is of an unknown kind";
}

} // namespace halocline::comm
