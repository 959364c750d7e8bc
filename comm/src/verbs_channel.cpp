// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/verbs_channel.hpp>

#include "verbs_world.hpp"

#include <utility>

namespace halocline::comm {

verbs_channel::verbs_channel(verbs_world& world, std::pmr::memory_resource& memory, std::size_t index, int peer,
                             std::uint32_t plan_id, std::size_t send_bytes, std::size_t receive_bytes)
    : world_(&world), end_(&world.open(memory, peer, plan_id, send_bytes, receive_bytes)), send_(end_->send_buffer()),
      slots_(end_->slots()), stride_(end_->receive_stride), index_(index), send_bytes_(send_bytes),
      receive_bytes_(receive_bytes), peer_(peer), plan_id_(plan_id) {}

void verbs_channel::complete(verbs_world& world, std::uint32_t plan_id) { world.complete(plan_id); }

std::string verbs_channel::card() const { return world_->card(*end_); }

void verbs_channel::connect(const std::string& peer_card) { world_->connect(*end_, peer_card); }

bool verbs_channel::connected() noexcept {
    if (!end_->greeting_said) world_->greet(*end_);
    world_->poll(*end_);
    return end_->error || (end_->greeted && end_->greeting_done);
}

verbs_channel::verbs_channel(verbs_channel&& other) noexcept { swap(other); }

verbs_channel& verbs_channel::operator=(verbs_channel&& other) noexcept {
    verbs_channel(std::move(other)).swap(*this);
    return *this;
}

verbs_channel::~verbs_channel() {
    if (!end_) return;
    close();
    world_->release(*end_);
}

void verbs_channel::swap(verbs_channel& other) noexcept {
    std::swap(world_, other.world_);
    std::swap(end_, other.end_);
    std::swap(send_, other.send_);
    std::swap(slots_, other.slots_);
    std::swap(stride_, other.stride_);
    std::swap(index_, other.index_);
    std::swap(send_bytes_, other.send_bytes_);
    std::swap(receive_bytes_, other.receive_bytes_);
    std::swap(peer_, other.peer_);
    std::swap(plan_id_, other.plan_id_);
}

void verbs_channel::send_part(std::uint64_t epoch, std::uint64_t start_stamp, std::size_t bytes,
                              std::uint32_t field_index) noexcept {
    if (end_->error) return;
    auto& header = *std::launder(reinterpret_cast<message_header*>(send_));
    header.fill(plan_id_, field_index, bytes, start_stamp);
    header.epoch.store(epoch, std::memory_order_relaxed);
    world_->send(*end_, epoch, sizeof(message_header) + bytes);
}

bool verbs_channel::arrived(std::uint64_t epoch) noexcept {
    const auto here = [&] { return end_->came >= epoch || end_->farewell_came || end_->error != 0; };
    if (here()) return true;
    world_->poll(*end_);
    return here();
}

bool verbs_channel::sent(std::uint64_t epoch) noexcept {
    if (end_->error) return true;
    if (epoch > end_->posted) return false;
    if (epoch < end_->posted || end_->has_room()) return true;
    world_->poll(*end_);
    return end_->has_room() || end_->error != 0;
}

status verbs_channel::check(std::uint64_t epoch) const noexcept {
    const status s = check_part(epoch);
    return s == status::ok && header(epoch).bytes != receive_bytes_ ? status::wrong_data : s;
}

status verbs_channel::check_part(std::uint64_t epoch) const noexcept {
    if (end_->came < epoch) return end_->error ? status::peer_died : status::aborted;
    if (!header(epoch).is(plan_id_, epoch, header(epoch).bytes)) return status::wrong_data;
    return end_->error ? status::peer_died : status::ok;
}

std::string verbs_channel::trouble() const { return end_->error ? world_->describe(*end_) : std::string(); }

std::uint64_t verbs_channel::writes() const noexcept { return end_->writes; }
std::uint64_t verbs_channel::receives() const noexcept { return end_->receives; }
std::uint64_t verbs_channel::completions() const noexcept { return end_->completions; }

void verbs_channel::close() noexcept {
    if (end_ && end_->joined && !end_->farewell_said && !end_->error) world_->say_farewell(*end_);
}

} // namespace halocline::comm
