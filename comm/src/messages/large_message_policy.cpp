// SPDX-License-Identifier: Apache-2.0
#include "large_message_policy.hpp"

#include "message_layout.hpp"

#include <halocline/comm/detail/copy_bytes.hpp>
#include <halocline/comm/detail/stream_bytes.hpp>

#include <algorithm>

namespace halocline::comm {
namespace {

/// Smallest copy in the sender's slab for which bypassing the cache pays.
constexpr std::size_t least_copied = 2048;
/// Smallest message of which it pays to announce such a copy although the receiver can read the original.
constexpr std::size_t least_detour = 4096;
/// Where copies are moved: above most_moved and below least_moved_again a send that waits for its receiver is sooner
/// there if the receiver reads the original.
constexpr std::size_t most_moved = 2048, least_moved_again = 8192;
/// Near, where copies are moved: the largest message that two of them take sooner than the kernel.
constexpr std::size_t most_staged_near = std::size_t{256} << 10;

streaming_watch watch_of(path wish, const costs& c, std::size_t bytes) {
    return {c, bytes, streaming_pays(wish, c, bytes)};
}
bool are_moved(path wish, const costs& c) { return leaves_streaming(wish) && c.moves_skip_waits; }

/// `what` bypass the cache, or may.
std::string describe_streams(const streaming_watch& watch, const char* what, std::size_t least) {
    const std::string from = std::string(what) + " from " + std::to_string(least) + " bytes on";
    std::string text;
    if (watch.streamed()) text += "; past the sender's cache: " + from;
    if (watch.watches()) text += "; " + from + " are " + watch.describe();
    return text;
}

} // namespace

// What is not pushed is pulled.
receiving_policy::receiving_policy(path wish, const costs& c, const messenger_options& o)
    : moved_(are_moved(wish, c)), leaves_choice_(wish != path::direct && wish != path::joint),
      synergistic_(o.synergistic_bytes), streamed_(o.streamed_bytes),
      least_shared_(std::min<std::uint64_t>({synergistic_, streamed_, least_pushed})),
      distance_(watch_of(wish, c.of_pulled(), least_pushed)) {}

large_message_way receiving_policy::way_of(std::uint64_t bytes, reach r, bool sends_too) const noexcept {
    using enum large_message_way;
    if (bytes == 0) return alone; // it has too little room, and the sender would copy all that it announced
    if (!r.source) return staged;
    const bool mapped = r.source_mapped && r.target_mapped;
    if (mapped && wants_push(bytes, sends_too)) return pushed;
    // Reading would bring all lines of the source here, and later back to the sender's core, or take longer than two
    // copies that are moved.
    if (!r.source_mapped && staging_pays(bytes)) return staged;
    // The kernel writes through the sender's cache. Where that is slow enough for messages to be streamed past it, the
    // receiver is sooner done alone.
    if (!mapped && distance_.streamed()) return alone;
    // If this rank sends to the peer, too, the peer is already copying.
    return bytes >= synergistic_ && !sends_too ? both : alone;
}

bool receiving_policy::wants_push(std::uint64_t bytes, bool sends_too) const noexcept {
    // Near, a large message in one direction takes two thirds of the time if both ends copy.
    const bool by_moves = moved_ && (sends_too || bytes < synergistic_);
    return (bytes >= least_pushed && (by_moves || distance_.streamed())) ||
           (bytes >= streamed_ && sends_too && leaves_choice_);
}

bool receiving_policy::staging_pays(std::uint64_t bytes) const noexcept {
    return bytes >= least_pushed && (distance_.streamed() || (moved_ && bytes <= most_staged_near));
}

std::string receiving_policy::describe() const {
    const std::string moves =
        moved_ ? "; messages from " + std::to_string(least_pushed) + " bytes on are moved by their senders" : "";
    return moves + describe_streams(distance_, "messages", least_pushed);
}

// All copies follow one size in the middle of those that are freed. In a stream, smaller ones gain more than the costs
// promise, which are of messages that come one by one.
sending_policy::sending_policy(path wish, const costs& c)
    : moved_(are_moved(wish, c)), unstreamed_(c.claims_pay() ? peer_stores::claimed : peer_stores::cached),
      distance_(moved_ ? streaming_watch::of_distance(c) : watch_of(wish, c, most_freed / 2)) {}

bool sending_policy::copying_pays(std::size_t bytes, bool is_waited_for) const noexcept {
    const bool ever_pays =
        moved_ ? !is_waited_for || bytes <= most_moved || bytes >= least_moved_again : bytes >= least_detour;
    return ever_pays && (distance_.streamed() || distance_.due(ticks()));
}

bool sending_policy::fill(std::byte* to, const std::byte* from, std::size_t bytes) const noexcept {
    const bool streamed = !moved_ && bytes >= least_copied && distance_.streamed();
    copy_to_peer(streamed ? peer_stores::streamed : unstreamed_, to, from, bytes);
    return streamed;
}

void sending_policy::push(std::byte* to, const std::byte* from, std::size_t bytes) const noexcept {
    if (moved_)
        copy_bytes(to, from, bytes);
    else
        stream_bytes(to, from, bytes);
}

std::string sending_policy::describe() const {
    if (!moved_) return describe_streams(distance_, "copies", least_copied);
    if (!distance_.watches()) return "";
    return "; copied first up to " + std::to_string(most_copied) + " bytes " + distance_.describe_times() +
           (distance_.streamed() ? ": now" : "");
}

} // namespace halocline::comm
