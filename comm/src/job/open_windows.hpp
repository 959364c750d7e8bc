// SPDX-License-Identifier: Apache-2.0
// What one rank's connections and their windows share.
#pragma once

#include "control/keyed_letters.hpp"

#include <halocline/comm/detail/thread_mark.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <tuple>
#include <vector>

namespace halocline::comm {

/// A window, as a wait of this rank sees it.
struct due_send {
    /// Sends what is due, as far as possible now. True if nothing is due any more: it leaves open_windows::due.
    virtual bool push_listed() noexcept = 0;

  protected:
    ~due_send() = default;
};

struct open_windows {
    keyed_letters letters; ///< through which the two ends of a connection or window find each other
    /// Takes in those that have arrived. A peer that can't be reached any more is the waits' business.
    void look_for_letters(mail* post) noexcept {
        try {
            letters.collect(post);
        } catch (const std::exception&) {
        }
    }
    /// Number of connections made, by peer, send tag and receive tag: both ends count them in the order of their
    /// making.
    std::map<std::tuple<int, int, int>, std::uint32_t> connections;
    /// Waits in connect() of which this rank and a peer have told each other, from 1 (channels/mutual_wait.hpp).
    struct told_waits {
        std::uint32_t own = 0;   ///< the last
        std::uint32_t peers = 1; ///< the last that was heard of, or the first to come
    };
    std::map<int, told_waits> waits; ///< by peer
    std::size_t count = 0;           ///< existing windows
    std::size_t sending = 0;         ///< senders' windows between post() and wait()
    std::vector<due_send*> due;      ///< windows that still have to send something

    /// Sends what is due on any window, as far as possible now.  Pre: called by the thread that drives them.
    void push_due() noexcept {
        std::erase_if(due, [](due_send* w) { return w->push_listed(); });
    }
    /// push_due() in a wait for something else; nothing if another thread drives the windows.
    void push_due_in_wait() noexcept {
        if (driver.load(std::memory_order_relaxed) == thread_mark()) push_due();
    }
    std::atomic<const void*> driver{nullptr}; ///< the thread that began or posted last
};

} // namespace halocline::comm
