// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/mpi_channel.hpp>

#include "mpi_library.hpp"
#include "wire.hpp"

#include <halocline/base/error.hpp>

#include <utility>
#include <vector>

namespace halocline::comm {

namespace {

/// Header and payload, rounded up to what the module counts in.
std::size_t message_bytes(std::size_t payload) {
    constexpr std::size_t unit = HALOCLINE_MPI_UNIT;
    return (sizeof(message_header) + payload + unit - 1) / unit * unit;
}

} // namespace

mpi_channel::mpi_channel(mpi_world& world, std::pmr::memory_resource& memory, std::size_t index, int peer,
                         std::uint32_t plan_id, std::size_t send_bytes, std::size_t receive_bytes)
    : world_(&world), memory_(&memory), send_bytes_(send_bytes), receive_bytes_(receive_bytes), index_(index),
      plan_id_(plan_id), peer_(peer) {
    const std::size_t out = message_bytes(send_bytes), in = message_bytes(receive_bytes);
    buffer_bytes_ = out + 2 * in;
    tag_ = world.take_tag();
    window_ = world.next_window(plan_id);
    try {
        buffer_ = static_cast<std::byte*>(memory.allocate(buffer_bytes_, alignof(message_header)));
    } catch (...) {
        world.return_tag(tag_);
        throw;
    }
    send_ = buffer_;
    receive_ = {buffer_ + out, buffer_ + out + in};
    for (std::byte* message : {send_, receive_[0], receive_[1]}) new (message) message_header;
}

std::string mpi_channel::card() const { return wire_writer().number(tag_).number(window_).take(); }

void mpi_channel::connect(const std::string& peer_card) {
    wire_reader reader(peer_card);
    const int peer_tag = reader.number<int>(), peer_window = reader.number<int>();
    const halocline_mpi_channel_spec spec{peer_,
                                          peer_tag,
                                          tag_,
                                          send_,
                                          {receive_[0], receive_[1]},
                                          message_bytes(send_bytes_),
                                          message_bytes(receive_bytes_),
                                          windows_ ? windows_->handle : nullptr,
                                          window_,
                                          peer_window};
    const auto& mpi = world_->module();
    int code = mpi.channel_open(world_->handle(), &spec, &requests_);
    if (code == HALOCLINE_MPI_OK) code = mpi.receive_start(requests_, 1);
    if (code != HALOCLINE_MPI_OK) {
        throw job_error("MPI: the channel to rank " + std::to_string(peer_) + " (" + std::to_string(send_bytes_) +
                        " bytes out, " + std::to_string(receive_bytes_) +
                        " bytes in) can't be made: " + world_->describe(code));
    }
    posted_ = 1;
}

void mpi_channel::connect_all(mpi_world& world, std::span<mpi_channel> all, std::span<const std::string> peer_cards,
                              const std::function<void()>& check) {
    if (world.mode() == mpi_mode::one_sided) {
        std::vector<mpi_slots> slots(all.size());
        for (const mpi_channel& c : all)
            slots[static_cast<std::size_t>(c.window_)] = {c.receive_, message_bytes(c.receive_bytes_)};
        const auto windows = world.expose(slots, check);
        for (mpi_channel& c : all) c.windows_ = windows;
    }
    for (mpi_channel& c : all) c.connect(peer_cards[c.index_]);
}

mpi_channel::mpi_channel(mpi_channel&& other) noexcept { swap(other); }

mpi_channel& mpi_channel::operator=(mpi_channel&& other) noexcept {
    mpi_channel(std::move(other)).swap(*this);
    return *this;
}

mpi_channel::~mpi_channel() {
    if (!buffer_) return;
    if (requests_) close();
    if (!requests_ || closed()) {
        release();
    } else {
        world_->keep(std::move(*this));
    }
}

void mpi_channel::release() noexcept {
    const bool clean = !requests_ || closed();
    const bool idle = world_->module().channel_close(requests_) != 0;
    // If not, a message may still come with this tag, or be read from this memory: they stay taken.
    if (clean && idle) world_->return_tag(tag_);
    if (idle) memory_->deallocate(buffer_, buffer_bytes_, alignof(message_header));
    if (clean && idle && windows_) --windows_->channels;
    windows_ = nullptr;
    buffer_ = nullptr;
    requests_ = nullptr;
}

void mpi_channel::swap(mpi_channel& other) noexcept {
    std::swap(world_, other.world_);
    std::swap(memory_, other.memory_);
    std::swap(requests_, other.requests_);
    std::swap(buffer_, other.buffer_);
    std::swap(buffer_bytes_, other.buffer_bytes_);
    std::swap(send_, other.send_);
    std::swap(receive_, other.receive_);
    std::swap(send_bytes_, other.send_bytes_);
    std::swap(receive_bytes_, other.receive_bytes_);
    std::swap(index_, other.index_);
    std::swap(posted_, other.posted_);
    std::swap(arrived_, other.arrived_);
    std::swap(started_, other.started_);
    std::swap(sent_, other.sent_);
    std::swap(plan_id_, other.plan_id_);
    std::swap(peer_, other.peer_);
    std::swap(tag_, other.tag_);
    std::swap(error_, other.error_);
    std::swap(window_, other.window_);
    std::swap(windows_, other.windows_);
    std::swap(farewell_sent_, other.farewell_sent_);
    std::swap(farewell_came_, other.farewell_came_);
}

bool mpi_channel::post(std::uint64_t epoch) noexcept {
    error_ = world_->module().receive_start(requests_, static_cast<int>(epoch & 1));
    if (!error_) posted_ = epoch;
    return !error_;
}

void mpi_channel::send_part(std::uint64_t epoch, std::uint64_t start_stamp, std::size_t bytes,
                            std::uint32_t field_index) noexcept {
    if (error_) return;
    auto& header = *std::launder(reinterpret_cast<message_header*>(send_));
    header.fill(plan_id_, field_index, bytes, start_stamp);
    header.epoch.store(epoch, std::memory_order_relaxed);
    // Slot (epoch + 1) & 1 held epoch - 1, which ends with this call: room for the peer's next message.
    if (!farewell_came_ && !post(epoch + 1)) return;
    const auto& mpi = world_->module();
    error_ = bytes == send_bytes_ ? mpi.send_start(requests_) : mpi.send_part_start(requests_, message_bytes(bytes));
    if (!error_) started_ = epoch;
}

bool mpi_channel::arrived(std::uint64_t epoch) noexcept {
    if (epoch <= arrived_ || error_ || farewell_came_) return true;
    if (epoch > posted_) return false;
    int done = 0;
    error_ = world_->module().receive_test(requests_, static_cast<int>(epoch & 1), &done);
    if (error_) return true;
    if (done) {
        arrived_ = epoch;
        farewell_came_ = header(epoch).epoch.load(std::memory_order_relaxed) == farewell;
    }
    return done != 0;
}

bool mpi_channel::sent(std::uint64_t epoch) noexcept {
    if (epoch <= sent_ || error_) return true;
    if (epoch > started_) return false;
    int done = 0;
    error_ = world_->module().send_test(requests_, &done);
    if (done) sent_ = epoch;
    return done || error_;
}

status mpi_channel::check(std::uint64_t epoch) const noexcept {
    const status s = check_part(epoch);
    return s == status::ok && header(epoch).bytes != receive_bytes_ ? status::wrong_data : s;
}

status mpi_channel::check_part(std::uint64_t epoch) const noexcept {
    if (error_ == HALOCLINE_MPI_TRUNCATED) return status::wrong_data;
    if (error_) return status::peer_died;
    if (farewell_came_ && epoch >= arrived_) return status::aborted;
    return header(epoch).is(plan_id_, epoch, header(epoch).bytes) ? status::ok : status::wrong_data;
}

void mpi_channel::close() noexcept {
    if (error_ || !requests_ || farewell_sent_) return;
    message_header header;
    header.plan_id = plan_id_;
    header.epoch.store(farewell, std::memory_order_relaxed);
    error_ = world_->module().farewell_start(requests_, &header);
    farewell_sent_ = !error_;
}

bool mpi_channel::closed() noexcept {
    if (error_ || !farewell_sent_) return false;
    // The peer may have sent an epoch more than this end did.
    while (!farewell_came_) {
        if (arrived_ == posted_ && !post(posted_ + 1)) return false;
        if (!arrived(arrived_ + 1) || error_) return false;
    }
    int done = 0;
    error_ = world_->module().farewell_test(requests_, &done);
    return !error_ && done && sent(started_);
}

std::string mpi_channel::trouble() const { return error_ ? world_->describe(error_) : std::string(); }

} // namespace halocline::comm
