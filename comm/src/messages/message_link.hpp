// SPDX-License-Identifier: Apache-2.0
// All messages between this rank and one other: by one of three ways, and in the order in which they were sent.
#pragma once

#include "network_link.hpp"
#include "operation_list.hpp"
#include "self_link.hpp"
#include "shm_link.hpp"

#include <memory>
#include <optional>
#include <string>
#include <type_traits>

namespace halocline::comm {

struct message_link {
    explicit message_link(int rank) : peer(rank) {}

    int peer;
    operation_list queued; ///< sends for which there was no room yet; later ones wait behind them
    // Exactly one of these is set; which one was agreed at set-up.
    std::optional<shm_link> shm;
    std::unique_ptr<network_link> network;
    std::optional<self_link> self;

    void send_or_queue(message_operation& s) noexcept {
        if (queued.empty() && try_send(s)) return;
        s.state = operation_state::queued;
        queued.push(s);
    }
    /// Takes in what has arrived, and advances what is being sent.
    void progress() noexcept {
        if (shm) shm->progress();
        if (network) network->progress();
        while (!queued.empty()) {
            message_operation& s = *queued.first;
            queued.remove(s); // it may enter one of the link's lists
            if (try_send(s)) continue;
            s.state = operation_state::queued;
            queued.push_front(s);
            break;
        }
    }
    /// A receive meets a message that arrived before it.
    void receive_kept(message_operation& r, unexpected_message& m) noexcept {
        with([&](auto& way) { way.receive_kept(r, m); });
    }
    /// The sender of an unexpected message has withdrawn it, or left before all of it had come: it is discarded.  False:
    /// it has not, as far as is known.
    bool discard_if_withdrawn(unexpected_message& m) noexcept {
        return shm ? shm->discard_if_withdrawn(m) : network && network->discard_if_lost(m);
    }
    /// Takes back what has begun: neither what is queued here nor a posted receive.
    void withdraw(message_operation& o) noexcept {
        with([&](auto& way) { way.withdraw(o); });
    }
    /// The messenger ends: no operation is under way any more.
    void abandon() noexcept {
        with([](auto& way) { way.abandon(); });
    }
    [[nodiscard]] bool peer_has_left() const noexcept {
        return shm ? shm->peer_has_left() : network && network->peer_has_left();
    }
    /// The peer has left. Will this operation be done or fail all the same?
    [[nodiscard]] bool still_settles(const message_operation& o) const noexcept {
        return network && network->still_settles(o);
    }
    [[nodiscard]] std::string describe() const { return shm ? shm->describe() : network ? network->describe() : ""; }

  private:
    template <class Work>
    std::invoke_result_t<Work&, self_link&> with(Work&& work) noexcept {
        return shm ? work(*shm) : network ? work(*network) : work(*self);
    }
    /// Hands a send to its receiver: the message itself, or an announcement of it.  False: no room yet.
    bool try_send(message_operation& s) noexcept {
        return with([&](auto& way) { return way.try_send(s); });
    }
};

} // namespace halocline::comm
