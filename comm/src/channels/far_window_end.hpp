// SPDX-License-Identifier: Apache-2.0
// How a window's messages travel over a network: through the send buffer of a channel into the peer's slot.
#pragma once

#include "connection_core.hpp"
#include "control/wire.hpp"
#include "job/job_core.hpp"
#include "network/worlds.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>

namespace halocline::comm {

/// Has the same members as near_window_end, for the same callers.
template <class Channel>
class far_window_end {
  public:
    /// Local.  `number`: among this connection's windows in this direction.  Lifetime: refers to all arguments.
    far_window_end(connection_core& c, const window_request& r, std::uint32_t number, std::uint32_t id)
        : connection_(c), request_(r), number_(number), core_(c.job.core()),
          channel_(world_of(core_, static_cast<Channel*>(nullptr)), *core_.memory, 0, c.peer, id, r.bytes_out(),
                   r.bytes_in()) {
        if constexpr (requires { &Channel::complete; })
            Channel::complete(world_of(core_, static_cast<Channel*>(nullptr)), id);
    }
    ~far_window_end() {
        const closing_scope closing(core_.doing);
        if (core_.in_forked_child())
            leave_to_parent(channel_);
        else
            channel_.close();
    }
    far_window_end(const far_window_end&) = delete;
    far_window_end& operator=(const far_window_end&) = delete;

    void tell(wire_writer& card) const { card.text(channel_.card()); }
    void connect(wire_reader& card, int, std::uint32_t) {
        const std::string theirs = card.text();
        if constexpr (requires { channel_.connect(theirs); }) channel_.connect(theirs);
        if constexpr (waits_for_peer) connection_.send_letter(request_.sends ? 'S' : 'R', number_, "");
    }
    /// Whether the peer has connected its end, too. `state`: set to a bad status if that can no longer be found out.
    [[nodiscard]] bool is_connected(status& state) noexcept {
        if (peer_connected_) return true;
        try {
            const std::string word = connection_.peers_key(request_.sends ? 'R' : 'S', number_);
            core_.windows.letters.collect(core_.post);
            if (core_.windows.letters.find(connection_.peer, word) == nullptr) return false;
            core_.windows.letters.forget(connection_.peer, word);
        } catch (const std::exception& e) {
            state = core_.lost(connection_.peer, e.what());
            return false;
        }
        return peer_connected_ = true;
    }

    [[nodiscard]] Channel& channel() noexcept { return channel_; }
    [[nodiscard]] status check(std::uint64_t epoch) noexcept {
        const status s = channel_.check_part(epoch);
        return s == status::peer_died ? core_.lost(connection_.peer, "can't be reached: " + channel_.trouble()) : s;
    }
    [[nodiscard]] bool arrived(std::uint64_t step) noexcept { return channel_.arrived(step); }
    [[nodiscard]] std::uint64_t token_before(std::uint64_t step) const noexcept { return step - 1; }
    [[nodiscard]] std::byte* target(std::uint64_t step) noexcept { return channel_.target(step); }
    [[nodiscard]] bool lands_in_place() const noexcept { return false; }
    void step_begins(std::uint64_t) const noexcept {}
    void step_ended(std::uint64_t) const noexcept {}
    void look_for_peer(std::byte*, std::size_t, std::uint64_t) const noexcept {}
    void write(std::byte* to, const std::byte* from, std::size_t bytes) const noexcept { std::memcpy(to, from, bytes); }
    void copy(std::uint64_t step, std::size_t bytes) noexcept { write(target(step), request_.buffer, bytes); }
    [[nodiscard]] bool is_copied(std::uint64_t, std::size_t) const noexcept { return true; }
    void help(std::uint64_t) const noexcept {}

    [[nodiscard]] std::string describe() const {
        const bool own = request_.buffer == nullptr;
        return std::string(own ? "from" : "copied to") + " a send buffer, into the receiver's slot" +
               (request_.sends || own ? "" : ", copied from there");
    }

  private:
    /// Over verbs nothing may be written before the peer's queue pair is ready.
    static constexpr bool waits_for_peer = std::is_same_v<Channel, verbs_channel>;

    connection_core& connection_;
    const window_request& request_;
    std::uint32_t number_;
    job_core& core_;
    Channel channel_;
    bool peer_connected_ = !waits_for_peer;
};

} // namespace halocline::comm
