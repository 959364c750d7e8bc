// SPDX-License-Identifier: Apache-2.0
// What both kinds of window ends over networks share: the channel, and knowing when the peer's end may be written.
#pragma once

#include "connection_core.hpp"
#include "control/wire.hpp"
#include "job/job_core.hpp"
#include "network/worlds.hpp"
#include "window_way.hpp"

#include <halocline/comm/detail/copy_bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace halocline::comm {

/// Base of far_window_end and straight_window_end; with what those add, a window_way.
template <class Channel>
class network_window_end {
  public:
    network_window_end(const network_window_end&) = delete;
    network_window_end& operator=(const network_window_end&) = delete;

    void tell(wire_writer& card) const { card.text(channel_.card()); }
    void connect(wire_reader& card, int, std::uint32_t) {
        const std::string theirs = card.text();
        if constexpr (requires { channel_.connect(theirs); }) channel_.connect(theirs);
        if constexpr (waits_for_peer) connection_.send_letter(connected(request_.sends), number_, "");
    }
    void refuse() noexcept { channel_.refuse(); }
    /// Over verbs, once the peer has connected its end, too.
    [[nodiscard]] bool is_connected(status& state) noexcept {
        if (peer_connected_) return true;
        try {
            const std::string word = connection_.peers_key(connected(!request_.sends), number_);
            core_.windows.letters.collect(core_.setup_mail);
            if (core_.windows.letters.find(connection_.peer, word) == nullptr) return false;
            core_.windows.letters.forget(connection_.peer, word);
        } catch (const std::exception& e) {
            state = core_.lost(connection_.peer, e.what());
            return false;
        }
        return peer_connected_ = true;
    }

    [[nodiscard]] bool sent(std::uint64_t step) noexcept { return channel_.sent(step); }
    [[nodiscard]] bool has_token(std::uint64_t token) noexcept { return channel_.arrived(token); }
    void send_token(std::uint64_t step) noexcept { channel_.send(step, no_stamp); }
    void send_message(std::uint64_t step, std::size_t bytes) noexcept { channel_.send_part(step, no_stamp, bytes); }
    void step_begins(std::uint64_t) const noexcept {}
    void step_ended(std::uint64_t) const noexcept {}
    void look_for_peer(std::uint64_t, std::byte*, std::size_t) const noexcept {}
    void write(std::byte* to, const std::byte* from, std::size_t bytes) const noexcept { copy_bytes(to, from, bytes); }
    [[nodiscard]] bool is_copied(std::uint64_t, std::size_t) const noexcept { return true; }
    void help(std::uint64_t) const noexcept {}

  protected:
    /// Local.  `number`: among this connection's windows in this direction; `id`: the same at both ends.
    /// Lifetime: refers to `c` and `r`.
    network_window_end(connection_core& c, const window_request& r, std::uint32_t number, std::uint32_t id,
                       Channel channel)
        : connection_(c), request_(r), number_(number), core_(c.job.core()), channel_(std::move(channel)) {
        auto& world = world_of<Channel>(core_);
        if constexpr (requires { world.complete(id); }) world.complete(id);
    }
    ~network_window_end() {
        const closing_scope closing(core_.own_activity);
        if (core_.in_forked_child())
            leave_to_parent(channel_);
        else
            channel_.close();
    }

    [[nodiscard]] status explained(status s) noexcept {
        return s == status::peer_died ? core_.lost(connection_.peer, channel_.trouble()) : s;
    }
    void copy_counted(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
        copy_bytes(to, from, bytes);
        copied_ += bytes;
    }
    /// End of describe(): the bytes that this end has copied between the user's array and a buffer, in all steps.
    [[nodiscard]] std::string copied_here() const { return ", " + std::to_string(copied_) + " bytes copied here"; }
    [[nodiscard]] bool has_own_buffer() const noexcept { return request_.buffer == nullptr; }

    connection_core& connection_;
    const window_request& request_;
    std::uint32_t number_;
    job_core& core_;
    Channel channel_;

  private:
    /// Over verbs nothing may be written before the peer's queue pair is ready.
    static constexpr bool waits_for_peer = std::string_view(Channel::transport) == verbs_channel::transport;

    bool peer_connected_ = !waits_for_peer;
    std::uint64_t copied_ = 0;
};

} // namespace halocline::comm
