// SPDX-License-Identifier: Apache-2.0
// Two ranks that wait for each other in connect(), each for a window that the other has not made: wrong tags, or
// windows made after the first connect(). Neither wait would end before its deadline.
//
// A rank that has waited for a while numbers its wait and tells the peer of it; a rank that waits itself answers with
// that number. Letters arrive in order, and a waiting rank makes no windows. So a rank whose own number comes back knows
// that the peer began to wait before or while it does, that it has seen all that this rank made, and that it still
// waits for something else. Both learn so, and both refuse.
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
        if (own_ == 0) {
            own_ = ++core_.windows.waits;
            tell();
        }
        const std::string* const letter = core_.windows.letters.find(peer_, key);
        if (letter == nullptr) return;
        wire_reader reader(*letter);
        const auto theirs = reader.number<std::uint32_t>(), answer = reader.number<std::uint32_t>();
        if (theirs != answered_) {
            answered_ = theirs;
            tell();
        }
        if (answer == own_) {
            throw input_error(title_ + ": rank " + std::to_string(peer_) +
                              " has not made its other end, and waits for " + "the other end of " + reader.text() +
                              ", which this rank has not made; " + remedy);
        }
    }

  private:
    static constexpr const char* key = "waits"; // of letters that say so; a later one replaces the one before

    void tell() {
        const std::string body = wire_writer().number(own_).number(answered_).text(title_).take();
        core_.windows.letters.send(core_.setup_mail, core_.rank, peer_, key, body);
    }

    job_core& core_;
    int peer_;
    std::string title_;
    std::uint32_t own_ = 0, answered_ = 0; // numbers of this rank's wait and of the peer's; 0: none
};

} // namespace halocline::comm
