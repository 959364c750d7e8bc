// SPDX-License-Identifier: Apache-2.0
// A messenger's description of itself, and of a wait that failed.
#include "message_engine.hpp"

#include <limits>

namespace halocline::comm {
namespace {

bool is_send(operation_state s) {
    switch (s) {
    case operation_state::queued:
    case operation_state::announced:
    case operation_state::framed:
    case operation_state::called_for:
    case operation_state::admitted:
    case operation_state::writing: return true;
    default: return false;
    }
}

} // namespace

void messenger_core::fail(status why, const message_operation& o, std::size_t more,
                          std::uint64_t message_bytes) noexcept {
    state = why;
    failed = {.is_send = is_send(o.state),
              .peer = o.peer,
              .tag = o.tag,
              .room = o.bytes,
              .message_bytes = message_bytes,
              .more = more,
              .queued = o.state == operation_state::queued};
}

std::string message_engine::pending() const {
    const failed_wait& failed = core_.failed;
    if (failed.is_settled) return "'" + core_.options.name + "': a wait for messages that were done";
    std::string text = "'" + core_.options.name + "': " + (failed.is_send ? "a send" : "a receive");
    if (!failed.is_send && failed.message_bytes > failed.room) {
        text += " of up to " + std::to_string(failed.room) + " bytes that got a message of " +
                std::to_string(failed.message_bytes);
    }
    text += failed.is_send ? " to " : " from ";
    text += failed.peer == any_source ? std::string("any rank") : "rank " + std::to_string(failed.peer);
    text += ", " + (failed.tag == any_tag ? std::string("any tag") : "tag " + std::to_string(failed.tag));
    if (failed.in_use)
        text += ", by a request that is under way already: it can be used again once it is done";
    else if (core_.state == status::misused)
        text += ": ranks are 0 to " + std::to_string(core_.job.ranks - 1) + ", tags not negative";
    if (failed.queued) text += ", for which there is no room until earlier ones are received";
    if (failed.more > 0) text += ", and " + std::to_string(failed.more) + " more";
    return text;
}

std::string message_engine::describe() const {
    const messenger_options& o = core_.options;
    std::string text =
        "'" + o.name + "': immediate to " + std::to_string(o.immediate_bytes) + " bytes, synergistic from " +
        std::to_string(o.synergistic_bytes) + ", direct between, of which streams are copied first up to " +
        std::to_string(most_freed) + ", what lies outside slabs up to " + std::to_string(most_copied) +
        (o.streamed_bytes == std::numeric_limits<std::size_t>::max()
             ? ""
             : ", past the cache from " + std::to_string(o.streamed_bytes) + " where they go both ways") +
        "; room for " + std::to_string(o.unexpected) + " unexpected messages per peer\n";
    for (const message_link& l : links_)
        if (!l.self) text += "  rank " + std::to_string(l.peer) + ": " + l.describe() + '\n';
    return text;
}

} // namespace halocline::comm
