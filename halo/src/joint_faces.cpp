// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/detail/joint_faces.hpp>

#include "set_up_row.hpp"

#include <halocline/comm/slab.hpp>
#include <halocline/halo/detail/message_writer.hpp>

namespace halocline::halo {

joint_faces::joint_faces(const comm::job& j, std::size_t messages, const lattice::site_order* order,
                         std::int64_t volume, std::size_t site_bytes)
    : ends_(messages), slab_(j.memory().base()), slab_bytes_(j.memory().bytes()), site_bytes_(site_bytes) {
    const std::int64_t sites = order != nullptr ? order->outer_sites() * order->lane_width() : volume;
    field_bytes_ = static_cast<std::size_t>(sites) * site_bytes;
}

std::string joint_faces::join(std::size_t message, bool offered, std::span<const std::int32_t> sites,
                              const lattice::site_order* order) {
    any_ = true;
    ends_[message].joint = true;
    ends_[message].offered = offered;
    row_writer row;
    row.number(order != nullptr ? order->lane_width() : 1);
    row.positions(stored_positions(sites, order));
    return row.take();
}

void joint_faces::read(std::size_t message, const std::string& note) {
    row_reader row(note);
    int lanes = 1;
    position_list from;
    row.number(lanes);
    row.positions(from);
    row.end();
    ends_[message].in = site_copy(from, lanes, position_list::counted(from.size()), 1);
}

} // namespace halocline::halo
