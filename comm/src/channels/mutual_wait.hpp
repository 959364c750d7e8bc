// SPDX-License-Identifier: Apache-2.0
// Two ranks that wait for each other in connect(), each for a window that the other has not made: wrong tags, or
// windows made after the first connect(). Neither wait would end before its deadline.
//
// A rank that has waited for a while numbers its wait and tells the peer of it; a rank that waits itself answers with
// that number. Letters arrive in order, and a waiting rank makes no windows. So a rank whose own number comes back knows
// that the peer began to wait before or while it does, that it has seen all that this rank made, and that it still
// waits for something else. Both learn so, and both refuse: each answers before it does. Every wait has a letter of its
// own, because one that says that a wait is in vain must not be replaced by what a rank that went on writes next.
#pragma once

#include "control/wire.hpp"
#include "job/job_core.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/clock.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace halocline::comm {

class mutual_wait {
  public:
    static constexpr const char* remedy = "one end's send tag is the other's receive tag, and both ranks make all "
                                          "connections and windows before their first connect()";

    /// `title`: the window whose other end this rank waits for, in error messages of both ranks.
    mutual_wait(job_core& core, int peer, std::string title) : core_(core), peer_(peer), title_(std::move(title)) {}

    /// To be called about once a millisecond in a wait that began at `since` (ticks), after collecting the letters that
    /// have come, if the other end is not among them.  Err: input_error: neither wait can end.
    void look(std::uint64_t since) {
        constexpr double patience = 0.1; // seconds; most waits end sooner, and nobody is told of them
        if (seconds(ticks() - since) < patience) return;
        open_windows::told_waits& told = core_.windows.waits[peer_];
        if (own_ == 0) {
            own_ = ++told.own;
            tell();
        }
        keyed_letters& letters = core_.windows.letters;
        while (const std::string* const letter = letters.find(peer_, key(told.peers))) {
            const bool is_over = letters.find(peer_, key(told.peers + 1)) != nullptr; // for good or in vain
            wire_reader reader(*letter);
            const bool in_vain = reader.number<std::uint32_t>() == own_;
            if ((in_vain || !is_over) && answered_ != told.peers) {
                answered_ = told.peers;
                tell();
            }
            if (in_vain) {
                throw input_error(title_ + ": rank " + std::to_string(peer_) +
                                  " has not made its other end, and waits " + "for the other end of " + reader.text() +
                                  ", which this rank has not made; " + remedy);
            }
            if (!is_over) return;
            letters.forget(peer_, key(told.peers++));
        }
    }

  private:
    /// Of the letter of a rank's n-th wait for the other one. Connections' keys are of another length.
    static std::string key(std::uint32_t n) { return "wait" + wire_writer().number(n).take(); }

    /// The number of the peer's wait that this one answers, 0 for none, and what this rank waits for.
    void tell() {
        const std::string body = wire_writer().number(answered_).text(title_).take();
        core_.windows.letters.send(core_.setup_mail, core_.rank, peer_, key(own_), body);
    }

    job_core& core_;
    int peer_;
    std::string title_;
    std::uint32_t own_ = 0, answered_ = 0; // numbers of this rank's wait and of the peer's; 0: none
};

} // namespace halocline::comm
