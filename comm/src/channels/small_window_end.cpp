// SPDX-License-Identifier: Apache-2.0
#include "small_window_end.hpp"

#include "job/peer_memory.hpp"

#include <new>
#include <utility>

namespace halocline::comm {

small_window_end::small_window_end(job_core& core, const window_request& r, keyed_letters::name never_connected)
    : core_(core), request_(r), never_connected_(std::move(never_connected)),
      block_(core, sizeof(control_line) + (r.sends ? 0 : window_slots::block_bytes(r.bytes()))) {
    new (block_.start()) control_line;
    if (r.sends) return;
    slots_ = window_slots(block_.start() + sizeof(control_line), r.bytes());
    for (std::uint64_t n = 0; n < window_slots::count; ++n) new (&slots_.of(n)) window_slots::label;
}

small_window_end::~small_window_end() {
    if (core_.in_forked_child()) return;
    const closing_scope closing(core_.own_activity);
    if (remote_line_ != nullptr) remote_line_->say_farewell(last_ + 1);
    if (peer_never_connects_) return; // nobody will say farewell
    block_.park({.lines = {&line()}, .or_letter = std::move(never_connected_)});
}

void small_window_end::tell(wire_writer& card) const { card.number(place_of(core_, block_.start()).address); }

void small_window_end::connect(wire_reader& card, int peer, std::uint32_t id) {
    std::byte* const remote_block = core_.peer_base[peer] + card.number<std::uint64_t>();
    remote_line_ = reinterpret_cast<control_line*>(remote_block);
    if (request_.sends) slots_ = window_slots(remote_block + sizeof(control_line), request_.bytes());
    id_ = id;
}

std::string small_window_end::describe() const {
    std::string how = "into one of the receiver's slots";
    if (!request_.sends && request_.buffer != nullptr) how += ", copied from there";
    return how;
}

} // namespace halocline::comm
