// SPDX-License-Identifier: Apache-2.0
#include "network_link.hpp"

#include <halocline/comm/detail/copy_bytes.hpp>

#include <cstring>
#include <utility>

namespace halocline::comm {

network_link::network_link(messenger_core& core, matching& m, int peer, std::size_t frame_bytes)
    : core_(core), matching_(m), frames_(core, m, peer, frame_bytes),
      whole_(std::make_unique_for_overwrite<std::byte[]>(whole_places * frames_.most_whole())), // not touched
      large_(core, frames_, records_) {}

bool network_link::try_send(message_operation& s) noexcept {
    const bool immediate = core_.is_immediate(s.bytes);
    const bool whole = !immediate && s.bytes <= frames_.most_whole() && !places_.all_taken();
    const bool announced = !immediate && !whole;
    if (!frames_.has_credit() || (announced && records_.all_taken())) return false;
    const std::uint32_t record = announced ? records_.next() : whole ? places_.next() : 0;
    if (!frames_.append({whole ? frame_item::whole : frame_item::message, record, s.tag, s.context, s.bytes}, s.data,
                        announced ? 0 : s.bytes))
        return false;
    frames_.use_credit();
    if (whole) sent_whole_.add(places_.take());
    if (announced)
        large_.announced(s, records_.take());
    else
        frames_.finish_with_frame(s);
    frames_.flush();
    return true;
}

void network_link::progress() noexcept {
    frames_.take([this](std::span<const std::byte> frame) { return read_frame(frame); });
    if (frames_.is_closed() && core_.broken == status::ok && !std::exchange(knows_peer_left_, true)) large_.peer_left();
    large_.progress();
    frames_.answer();
    frames_.flush();
}

// What came over the wire is not trusted unchecked: a wrong frame ends the job, not this process.
status network_link::read_frame(std::span<const std::byte> frame) noexcept {
    std::uint64_t given_back = 0;
    if (!frames_.read_head(frame, given_back) || !take_back(place_set(given_back))) return status::wrong_data;
    while (frame.size() >= sizeof(frame_item)) {
        frame_item i;
        std::memcpy(&i, frame.data(), sizeof i);
        frame = frame.subspan(sizeof i);
        const bool carries = i.kind == frame_item::piece || i.kind == frame_item::whole ||
                             (i.kind == frame_item::message && core_.is_immediate(i.bytes));
        const std::size_t payload = i.kind == frame_item::invite ? sizeof(bulk_ticket) : carries ? i.bytes : 0;
        const std::uint32_t records = i.kind == frame_item::whole ? whole_places : messenger_options::most_large;
        if (i.record >= records || !frame_stream::holds(frame.size(), payload)) return status::wrong_data;
        if (!read_item(i, frame.data())) return status::wrong_data;
        frame = frame.subspan(frame_stream::padded(payload));
    }
    return status::ok;
}

bool network_link::take_back(place_set given_back) noexcept {
    if (!given_back.is_within(sent_whole_)) return false;
    sent_whole_.remove(given_back);
    given_back.for_each([this](std::uint32_t place) { places_.give_back(place); });
    return true;
}

bool network_link::read_item(const frame_item& i, const std::byte* payload) noexcept {
    switch (i.kind) {
    case frame_item::whole:
    case frame_item::message: return read_message(i, payload);
    case frame_item::call: return large_.take_call(i.record, i.bytes);
    case frame_item::piece: return large_.take_piece(i.record, payload, i.bytes);
    case frame_item::invite: return large_.take_invitation(i.record, i.bytes, payload);
    case frame_item::decline: return large_.take_decline(i.record);
    case frame_item::withdrawn: large_.take_withdrawn(i.record); return true;
    case frame_item::recalled: read_recall(i.record); return true;
    default: return false;
    }
}

bool network_link::read_message(const frame_item& i, const std::byte* payload) noexcept {
    frames_.take_message();
    const envelope m{frames_.peer(), i.tag, i.context, i.bytes};
    const bool whole = i.kind == frame_item::whole, immediate = core_.is_immediate(i.bytes);
    if (whole && immediate) return false;
    if (message_operation* const r = matching_.match(m)) {
        if (immediate)
            core_.deliver_immediate(*r, m, payload);
        else if (whole)
            receive_whole(*r, m, i.record, payload);
        else
            large_.receive(*r, i.record, core_.begin_receive(*r, m));
        return true;
    }
    unexpected_message* const kept = matching_.keep(m);
    if (kept == nullptr) return false; // more than its credit allows
    if (immediate) {
        copy_bytes(kept->payload(), payload, i.bytes);
        return true;
    }
    const kept_message k{i.record, whole};
    std::memcpy(kept->payload(), &k, sizeof k);
    if (whole) copy_bytes(whole_message_at(i.record), payload, i.bytes);
    return true;
}

void network_link::read_recall(std::uint32_t record) noexcept {
    const auto is_it = [&](unexpected_message& m) {
        return !core_.is_immediate(m.bytes) && !kept_in(m).whole && kept_in(m).record == record;
    };
    unexpected_message* const m = matching_.find_kept(frames_.peer(), is_it);
    if (m == nullptr) return large_.take_recall(record);
    large_.call_in_vain(record);
    matching_.remove(*m);
    ++core_.counts.withdrawn;
}

bool network_link::discard_if_lost(unexpected_message& m) noexcept {
    if (!knows_peer_left_ || core_.is_immediate(m.bytes) || kept_in(m).whole) return false;
    matching_.remove(m);
    return true;
}

void network_link::receive_kept(message_operation& r, unexpected_message& m) noexcept {
    if (core_.is_immediate(m.bytes)) return core_.deliver_immediate(r, m.what(), m.payload());
    const kept_message k = kept_in(m);
    if (k.whole)
        receive_whole(r, m.what(), k.record, whole_message_at(k.record));
    else
        large_.receive(r, k.record, core_.begin_receive(r, m.what()));
}

void network_link::receive_whole(message_operation& r, const envelope& m, std::uint32_t place,
                                 const std::byte* payload) noexcept {
    copy_bytes(r.data, payload, core_.begin_receive(r, m));
    frames_.give_back(place);
    ++core_.counts.whole;
    r.finish();
}

void network_link::withdraw(message_operation& o) noexcept {
    if (o.state == operation_state::framed)
        frames_.withdraw(o);
    else
        large_.withdraw(o);
}

void network_link::abandon() noexcept {
    large_.abandon();
    frames_.abandon();
}

std::string network_link::describe() const {
    const std::string& transport = core_.job.members[frames_.peer()].transport;
    return "over " + transport + ", frames of " + std::to_string(frames_.frame_bytes()) +
           " bytes; messages that don't fit when their receive calls for them" + large_.describe();
}

} // namespace halocline::comm
