// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/ofi_channel.hpp>

#include "ofi_world.hpp"
#include "wire.hpp"

#include <utility>

namespace halocline::comm {

ofi_channel::ofi_channel(ofi_world& world, std::pmr::memory_resource& memory, std::size_t index, int peer,
                         std::uint32_t plan_id, std::size_t send_bytes, std::size_t receive_bytes)
    : world_(&world), end_(&world.open(memory, peer, send_bytes, receive_bytes)), send_(end_->send_buffer()),
      slots_(end_->slots()), stride_(end_->receive_stride), index_(index), send_bytes_(send_bytes),
      receive_bytes_(receive_bytes), peer_(peer), plan_id_(plan_id) {}

std::string ofi_channel::card() const {
    return wire_writer().number(end_->id).number(end_->key).number(end_->base).take();
}

void ofi_channel::connect(const std::string& peer_card) {
    wire_reader reader(peer_card);
    end_->peer_id = reader.number<std::uint32_t>();
    end_->peer_key = reader.number<std::uint64_t>();
    end_->peer_base = reader.number<std::uint64_t>();
    end_->joined = end_->greeting_due = true;
    world_->push(*end_);
}

bool ofi_channel::connected() noexcept {
    world_->poll();
    return end_->error || (end_->greeted && end_->idle());
}

ofi_channel::ofi_channel(ofi_channel&& other) noexcept { swap(other); }

ofi_channel& ofi_channel::operator=(ofi_channel&& other) noexcept {
    ofi_channel(std::move(other)).swap(*this);
    return *this;
}

ofi_channel::~ofi_channel() {
    if (!end_) return;
    close();
    world_->release(*end_);
}

void ofi_channel::swap(ofi_channel& other) noexcept {
    std::swap(world_, other.world_);
    std::swap(end_, other.end_);
    std::swap(send_, other.send_);
    std::swap(slots_, other.slots_);
    std::swap(stride_, other.stride_);
    std::swap(index_, other.index_);
    std::swap(send_bytes_, other.send_bytes_);
    std::swap(receive_bytes_, other.receive_bytes_);
    std::swap(started_, other.started_);
    std::swap(peer_, other.peer_);
    std::swap(plan_id_, other.plan_id_);
}

void ofi_channel::send_part(std::uint64_t epoch, std::uint64_t start_stamp, std::size_t bytes,
                            std::uint32_t field_index) noexcept {
    if (end_->error) return;
    auto& header = *std::launder(reinterpret_cast<message_header*>(send_));
    header.fill(plan_id_, field_index, bytes, start_stamp);
    header.epoch.store(epoch, std::memory_order_relaxed);
    started_ = epoch;
    end_->start(epoch, sizeof(message_header) + bytes);
    world_->push(*end_);
}

bool ofi_channel::arrived(std::uint64_t epoch) noexcept {
    // Slot 1 gets the epochs 1, 3, 5, …, slot 0 gets 2, 4, 6, …
    const auto here = [&] { return end_->came[epoch & 1] >= (epoch + 1) / 2 || end_->ended() || end_->error != 0; };
    if (here()) return true;
    world_->poll();
    return here();
}

bool ofi_channel::sent(std::uint64_t epoch) noexcept {
    if (end_->error) return true;
    if (epoch > started_) return false;
    if (epoch < started_ || end_->idle()) return true;
    world_->poll();
    return end_->idle() || end_->error != 0;
}

status ofi_channel::check(std::uint64_t epoch) const noexcept {
    const status s = check_part(epoch);
    return s == status::ok && header(epoch).bytes != receive_bytes_ ? status::wrong_data : s;
}

status ofi_channel::check_part(std::uint64_t epoch) const noexcept {
    if (end_->came[epoch & 1] < (epoch + 1) / 2) {
        if (end_->error) return status::peer_died;
        return status::aborted;
    }
    if (!header(epoch).is(plan_id_, epoch, header(epoch).bytes)) return status::wrong_data;
    return end_->error ? status::peer_died : status::ok;
}

std::string ofi_channel::trouble() const { return end_->error ? world_->describe(end_->error) : std::string(); }

std::uint64_t ofi_channel::writes() const noexcept { return end_->writes; }

void ofi_channel::close() noexcept {
    if (!end_ || !end_->joined || end_->farewell_said || end_->error) return;
    end_->letters_out().messages_sent = started_;
    end_->farewell_said = end_->farewell_due = true;
    world_->push(*end_);
}

} // namespace halocline::comm
