// SPDX-License-Identifier: Apache-2.0
// What a messenger says of itself, and of a wait that failed.
#include "message_engine.hpp"

#include <limits>

namespace halocline::comm {

std::string message_engine::pending() const {
    std::string text = "'" + options_.name + "': " + (failed_.is_send ? "a send" : "a receive");
    if (!failed_.is_send && failed_.message_bytes > failed_.room) {
        text += " of up to " + std::to_string(failed_.room) + " bytes that got a message of " +
                std::to_string(failed_.message_bytes);
    }
    text += failed_.is_send ? " to " : " from ";
    text += failed_.peer == any_source ? std::string("any rank") : "rank " + std::to_string(failed_.peer);
    text += ", " + (failed_.tag == any_tag ? std::string("any tag") : "tag " + std::to_string(failed_.tag));
    if (status_ == status::misused)
        text += ": ranks are 0 to " + std::to_string(core_.ranks - 1) + ", tags not negative";
    if (failed_.more > 0) text += ", and " + std::to_string(failed_.more) + " more";
    return text;
}

std::string message_engine::describe() const {
    std::string text =
        "'" + options_.name + "': immediate to " + std::to_string(options_.immediate_bytes) +
        " bytes, synergistic from " + std::to_string(options_.synergistic_bytes) + ", direct between" +
        (options_.streamed_bytes == std::numeric_limits<std::size_t>::max()
             ? ""
             : ", past the cache from " + std::to_string(options_.streamed_bytes) + " where they go both ways") +
        "; room for " + std::to_string(options_.unexpected) + " unexpected messages per peer\n";
    for (const link& l : links_) {
        if (l.peer == core_.rank) continue;
        text += "  rank " + std::to_string(l.peer) + ": ";
        if (l.frames)
            text += "over " + core_.members[static_cast<std::size_t>(l.peer)].transport + ", frames of " +
                    std::to_string(l.frames->room) +
                    " bytes; messages that don't fit when their receive calls for them" + way_of_large(l);
        else if (l.same_process)
            text += "all memory directly (same process)";
        else if (l.readable)
            text += "slabs directly, other memory by process_vm_readv";
        else
            text += "slabs directly, other memory through copies in its slab (process_vm_readv: " + l.why_not_readable +
                    ")";
        if (!l.frames && l.pushed.streamed())
            text += "; past the sender's cache from " + std::to_string(least_pushed) + " bytes";
        if (!l.frames && l.pushed.watches())
            text += "; messages of " + std::to_string(least_pushed) + " bytes are " + l.pushed.describe();
        text += '\n';
    }
    return text;
}

} // namespace halocline::comm
