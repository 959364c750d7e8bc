// SPDX-License-Identifier: Apache-2.0
#include "self_link.hpp"

#include <halocline/comm/detail/copy_bytes.hpp>

#include <cstring>

namespace halocline::comm {
namespace {

/// The send, which is all that is kept of a large message.
message_operation* send_of(unexpected_message& m) {
    message_operation* send = nullptr;
    std::memcpy(&send, m.payload(), sizeof send);
    return send;
}

} // namespace

bool self_link::try_send(message_operation& s) noexcept {
    const bool immediate = core_.is_immediate(s.bytes);
    const envelope m{core_.job.rank, s.tag, s.context, s.bytes};
    if (message_operation* const r = matching_.match(m)) {
        copy_bytes(r->data, s.data, core_.begin_receive(*r, m));
        ++(immediate ? core_.counts.immediate : core_.counts.direct);
        r->finish();
        s.finish();
        return true;
    }
    unexpected_message* const kept = matching_.keep(m);
    if (kept == nullptr) return false;
    if (immediate) {
        copy_bytes(kept->payload(), s.data, s.bytes);
        s.finish();
    } else {
        message_operation* const send = &s;
        std::memcpy(kept->payload(), &send, sizeof send);
        s.state = operation_state::announced;
        announced_.push(s);
    }
    return true;
}

void self_link::receive_kept(message_operation& r, unexpected_message& m) noexcept {
    if (core_.is_immediate(m.bytes)) return core_.deliver_immediate(r, m.what(), m.payload());
    message_operation& send = *send_of(m);
    copy_bytes(r.data, send.data, core_.begin_receive(r, m.what()));
    ++core_.counts.direct;
    announced_.remove(send);
    send.finish();
    r.finish();
}

void self_link::withdraw(message_operation& s) noexcept {
    announced_.remove(s);
    const auto is_it = [&](unexpected_message& m) { return !core_.is_immediate(m.bytes) && send_of(m) == &s; };
    if (unexpected_message* const m = matching_.find_kept(core_.job.rank, is_it)) matching_.remove(*m);
}

} // namespace halocline::comm
