// SPDX-License-Identifier: Apache-2.0
// What one rank's connections and their windows share.
#pragma once

#include "control/keyed_letters.hpp"

#include <halocline/comm/detail/work_driver.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace halocline::comm {

/// A window, as a wait of this rank sees it.
struct due_send {
    /// Sends what is due, as far as possible now. True if nothing is due any more: it leaves open_windows::due.
    virtual bool push_listed() noexcept = 0;

  protected:
    ~due_send() = default;
};

/// Long waits in connect() that ranks have told each other of (channels/circular_wait.hpp).
struct told_waits {
    struct other {
        std::uint32_t wait = 0, ranks = 0; ///< its number, and of how many ranks the hint tells
        std::uint64_t seen = 0;            ///< by the rank that it came from, of this rank's letters
        std::string waits{};               ///< what they wait for
        std::uint32_t passed_in = 0;       ///< this rank's wait in which it was last passed on
        std::uint64_t passed_seen = 0;     ///< what this rank then told of its own
    };
    std::uint32_t own = 0;                       ///< number of this rank's last
    std::map<std::pair<int, int>, other> others; ///< by the rank that waits and the one that the hint came from
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
    told_waits waits;
    std::size_t count = 0;      ///< existing windows
    std::size_t sending = 0;    ///< senders' windows between post() and wait()
    std::vector<due_send*> due; ///< windows that still have to send something

    /// Sends what is due on any window, as far as possible now.  Pre: called by the thread that drives them.
    void push_due() noexcept {
        std::erase_if(due, [](due_send* w) { return w->push_listed(); });
    }
    /// push_due() in a wait for something else; nothing if another thread drives the windows.
    void push_due_in_wait() noexcept {
        driver.work_in_wait([this] { push_due(); });
    }
    work_driver driver; ///< the thread that called a window last
};

} // namespace halocline::comm
