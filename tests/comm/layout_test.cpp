// SPDX-License-Identifier: Apache-2.0
// What the ranks of a job share has the layout of layout_number: builds with the same number understand each other.
#include "job/layout_number.hpp"

#include "channels/near_window_end.hpp"
#include "channels/small_window_end.hpp"
#include "channels/sum_label.hpp"
#include "control/socket_frames.hpp"
#include "job/business_card.hpp"
#include "measure/agreed_costs.hpp"
#include "messages/message_frames.hpp"
#include "messages/message_layout.hpp"
#include "network/bulk_link.hpp"
#include "node/node_slab.hpp"
#include "ofi/tags.hpp"
#include "one_sided/far_link.hpp"
#include "verbs/tags.hpp"

#include <halocline/comm/detail/control_line.hpp>
#include <halocline/comm/detail/joint_channel.hpp>
#include <halocline/comm/detail/line_pairs.hpp>
#include <halocline/comm/detail/message_slots.hpp>
#include <halocline/comm/detail/shared_copy.hpp>
#include <halocline/comm/detail/shm_channel.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace halocline::comm;

/// The layout of each number. Only append here: the meaning of a number never changes.
struct known_layout {
    std::uint32_t number;
    std::uint64_t fingerprint;
};
constexpr known_layout known[]{{1, 0x092f2f302f248ea6},  {2, 0x346c6f79324e38b2},  {3, 0xc5147cec20e3781f},
                               {4, 0x7a718f2675f72361},  {5, 0xee2977c8e55d87ac},  {6, 0x2537bf23d579736c},
                               {7, 0x1b6a2042a3dd8d51},  {8, 0x48b6b95407b336d7},  {9, 0x0da60f27804fbb2d},
                               {10, 0x10361473e44ff274}, {11, 0x10361473e44ff274}, {12, 0xf667c55988588f9f},
                               {13, 0x877e4399d4832884}, {14, 0x877e4399d4832884}, {15, 0xbdaf1b798b87cc06},
                               {16, 0xb7b437f7e92a8442}, {17, 0xb7b437f7e92a8442}};

std::uint64_t fingerprint_of(std::string_view bytes) { // FNV-1a
    std::uint64_t h = 0xcbf29ce484222325;
    for (const char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return h;
}

/// Sizes, positions and values, one per line.
class facts {
  public:
    void add(std::string_view what, std::uint64_t value) {
        text_ += std::string(what) + " " + std::to_string(value) + "\n";
    }
    template <class T, class... Members>
    void add_object(std::string_view what, const T& object, const Members&... members) {
        add(what, sizeof object);
        [[maybe_unused]] const auto start = reinterpret_cast<std::uintptr_t>(&object);
        (add("  a member at", reinterpret_cast<std::uintptr_t>(&members) - start), ...);
    }
    [[nodiscard]] const std::string& text() const { return text_; }

  private:
    std::string text_;
};

void add_slabs(facts& all) {
    const failure_record r;
    all.add_object("failure_record", r, r.state, r.ends[0], r.ends[1], r.awaited, r.awake, r.reported_by, r.reports_far,
                   r.awaited_epoch, r.unbegun_epoch);
    const job_end& e = r.ends[0];
    all.add_object("end_words", e, e.why, e.culprit, e.pid, e.host, e.text); // its name in the fingerprints
    const line_label l;
    all.add_object("line_label", l, l.epoch, l.plan_id, l.field_index, l.bytes, l.start_stamp, l.end, l.looked_at,
                   l.immediate);
    const control_line line;
    all.add_object("control_line", line, line.half[0], line.half[1]);
    for (const std::size_t payload : {std::size_t{16}, std::size_t{17}, std::size_t{1000}}) {
        alignas(128) static std::byte start[4096];
        const shm_channel::block b = shm_channel::block_at(start, payload);
        const std::size_t gap = payload > 16 ? shm_channel::gap_before_slots(payload, lines_come_in_pairs) : 0;
        all.add("shm_channel, without a gap", shm_channel::block_bytes(payload) - gap);
        all.add("  slots at", static_cast<std::uint64_t>(b.slots - start) - gap);
        all.add("  apart", b.stride);
    }
    for (const std::size_t payload : {std::size_t{17}, std::size_t{2048}, std::size_t{2049}})
        for (const bool pairs : {false, true}) all.add("  gap", shm_channel::gap_before_slots(payload, pairs));
    for (const std::size_t payload : {std::size_t{48}, std::size_t{49}, std::size_t{1000}}) {
        alignas(128) static std::byte start[window_slots::block_bytes(1000)];
        const window_slots slots(start, payload);
        all.add("window_slots", window_slots::block_bytes(payload));
        all.add("  first message at", static_cast<std::uint64_t>(slots.message(0) - start));
        all.add("  last message at", static_cast<std::uint64_t>(slots.message(window_slots::count - 1) - start));
        const window_slots::label& behind = slots.of(0);
        all.add_object("  label", behind, behind.bytes, behind.window_id, behind.step);
        all.add("  at", static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(&behind) - start));
    }
    all.add("shm_slotted_channel", shm_slotted_channel::block_bytes(1000));
    all.add("  slots at", shm_slotted_channel::slots_at);
    all.add("token interval", small_window_end::token_interval);
    const helped_copy h;
    all.add_object("helped_copy", h, h.offered.step, h.offered.bytes, h.offered.mended, h.next, h.received);
    const joint_copy j;
    all.add_object("joint_copy", j, j.half[0].epoch, j.half[0].next, j.half[0].source.component_bytes,
                   j.half[0].source.fields, j.half[0].source.places, j.half[1], j.copied);
    all.add("  behind a slot's block at", shm_joint_channel::copy_at(3000));
    all.add("  behind a direct channel's block at", shm_joint_direct_channel::copy_at(1000));
    const auto link = std::make_unique<link_layout>();
    all.add_object("link_layout", *link, link->farewell, link->cells_taken, link->slots_taken, link->ring.of(0),
                   link->ring.of(1), link->slot[0], link->slot[1], link->slot[1].cell, *link->slot[1].line(0));
    const ring_cell& in_ring = link->ring.of(0);
    const message_cell& c = in_ring;
    all.add_object("message_cell", c, c.number, c.tag, c.context, c.bytes, c.slots_taken, c.payload);
    all.add_object("ring_cell", in_ring, in_ring.line);
    all.add("message_cell kinds", message_cell::withdrawn);
    const announcement a;
    all.add_object("announcement", a, a.bytes, a.place.address, a.place.in_slab, a.generation, a.record);
    const auto box = std::make_unique<outbox>();
    const send_record& s = box->record[0];
    all.add_object("send_record", s, s.receiver.state, s.receiver.target, s.receiver.read, s.receiver.looked_at, s.next,
                   s.sender_pieces, s.staged);
    all.add("phases", send_record::phases * send_record::received + send_record::pushed);
    all.add("message_bell", sizeof(message_bell));
    all.add_object("outbox", *box, box->record[1], box->staging[1], box->copy[0], box->copy[1]);
    for (const std::uint64_t bytes : {10'000u, 1'000'000u, 10'000'000u}) all.add("piece", piece_bytes(bytes));
}

void add_networks(facts& all) {
    all.add("message slots", message_slots::payload_at + 1000 * message_slots::slot_bytes(65));
    all.add("frame channels", frame_stream::channels);
    const frame_head f;
    all.add_object("frame_head", f, f.credit, f.given_back);
    const frame_item i;
    all.add_object("frame_item", i, i.kind, i.record, i.tag, i.context, i.bytes);
    all.add("frame_item kinds", frame_item::recalled * 10 + frame_item::invite);
    const far_item p;
    all.add_object("far_item", p, p.kind, p.which, p.place, p.bytes);
    all.add("far_item kinds", far_item::sends * 10 + far_item::tell);
    all.add("far frames", far_link::frame_bytes);
    const bulk_ticket t;
    all.add_object("bulk_ticket", t, t.address, t.key);
    all.add("bulk pieces", bulk_link::piece_bytes + bulk_link::records);
    all.add("ofi", ofi_tags::farewell << ofi_tags::bits | ofi_tags::values);
    all.add("ofi, large", ofi_tags::bulk + ofi_tags::record_bits);
    all.add("verbs", verbs_tags::immediate(verbs_tags::values, 5));
    all.add("sum", sum_label(5, sum_word(3, true)).field_index());
}

/// A card after its mark and number, and a socket's frame of each kind.
void add_set_up(facts& all) {
    business_card c{.version = "version",
                    .options = "options",
                    .kernel = "kernel",
                    .network = "network",
                    .node = "node",
                    .pids = "pids",
                    .host = "host",
                    .socket_name = "socket",
                    .secret = "secret",
                    .trouble = "",
                    .address_room = 1,
                    .descriptor_room = 2,
                    .pid = 3,
                    .share = {},
                    .addresses = {{"eth0", "10.0.0.1", "10.0.0.0/8"}}};
    c.share.processors = {4, 5};
    c.share.threads = 6;
    c.share.quotas = {{"group", 7.5}};
    bootstrap start;
    std::string card;
    start.gather = [&](std::string_view mine) { return std::vector{card = mine}; };
    (void)swap_cards(start, c);
    all.add("card", fingerprint_of(std::string_view(card).substr(8)));

    std::string frames;
    for (const frame_kind kind :
         {frame_kind::message, frame_kind::letter, frame_kind::far_word, frame_kind::end_of_job, frame_kind::goodbye})
        append_frame(frames, kind, kind == frame_kind::goodbye ? "" : "body");
    all.add("frames", fingerprint_of(frames));
    all.add("measured costs", sizeof(measurement));
    all.add("status", static_cast<std::uint64_t>(status::misused));
    all.add("far_word", static_cast<std::uint64_t>(far_word::goes_on));
}

TEST(Layout, IsThatOfItsNumber) {
    facts all;
    add_slabs(all);
    add_networks(all);
    add_set_up(all);

    const known_layout& last = *std::ranges::max_element(known, {}, &known_layout::number);
    ASSERT_EQ(last.number, layout_number);
    EXPECT_EQ(fingerprint_of(all.text()), last.fingerprint)
        << "What ranks share has changed. Raise layout_number (comm/src/job/layout_number.hpp), and append the new "
           "number and fingerprint to known[] here.\n"
        << all.text();
}

} // namespace
