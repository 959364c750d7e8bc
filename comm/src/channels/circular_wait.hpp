// SPDX-License-Identifier: Apache-2.0
// Ranks that wait in connect() in a circle, each for a window that the next one has not made: wrong tags, unlike numbers
// of windows at two ends, or windows made after the first connect(). None of these waits would end before its deadline.
//
// A rank that has waited for a while sends a hint to the rank that it waits for, which passes it on to the one that it
// waits for itself, and so on ("edge chasing", Chandy, Misra and Haas, ACM Trans. Comput. Syst. 1 (1983) 144). If its
// own hint comes back while it is in the same wait, nobody in the circle can go on. That holds because each hint says
// how many letters its sender has seen of the rank that gets it, and counts only if these are all: then its sender still
// waits, as a waiting rank makes no windows and is freed only by a letter. A rank that sees new letters of the one that
// it waits for, or waits for another one, tells all hints again.
//
// Letters between two ranks arrive in order, so each rank has passed on the hints of all others in the circle before it
// sees its own; it passes on what comes for a moment longer, and then refuses. So do the others.
#pragma once

#include "control/wire_format.hpp"
#include "job/job_core.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/clock.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace halocline::comm {

class circular_wait {
  public:
    static constexpr const char* remedy = "one end's send tag is the other's receive tag, and both ranks make all "
                                          "connections and windows before their first connect()";

    /// `title`: the window whose other end this rank waits for, in error messages of all ranks of a circle.
    circular_wait(job_core& core, int peer, std::string title) : core_(core), peer_(peer), title_(std::move(title)) {}

    /// To be called about once a millisecond in a wait that began at `since` (ticks), after collecting the letters that
    /// have come, if the other end is not among them.  Err: input_error: no wait of the circle can end.
    void look(std::uint64_t since) {
        constexpr double patience = 0.1; // seconds; most waits end sooner, and nobody is told of them
        constexpr double grace = 0.1;    // for the hints of the others
        if (seconds(ticks() - since) < patience) return;
        told_waits& told = core_.windows.waits;
        keyed_letters& letters = core_.windows.letters;
        const std::uint64_t seen = letters.seen_of(peer_);
        if (number_ == 0 || seen != told_seen_) {
            if (number_ == 0) number_ = ++told.own;
            told_seen_ = seen;
            send({core_.rank, number_, 0, ""});
            std::erase_if(told.others, [&](const auto& o) { return !still_waits(o.first.second, o.second.seen); });
            for (auto& [ranks, other] : told.others) pass_on(ranks.first, other);
        }
        while (auto letter = letters.take_hint()) receive(*letter);
        if (vain_since_ != 0 && seconds(ticks() - vain_since_) >= grace)
            throw input_error(title_ + ": rank " + std::to_string(peer_) + " has not made its other end, and " +
                              circle_ + ", which this rank has not made; " + remedy);
    }

  private:
    /// What goes around a circle: whose wait it is about, and what the ranks wait for through which it came.
    struct hint {
        int origin;
        std::uint32_t wait, ranks;
        std::string waits;
        std::uint64_t seen = 0; // letters of its reader that had come to its sender

        template <class Self, class Pass>
        static void fields(Self& h, Pass& pass) {
            pass(h.origin, h.wait, h.ranks, h.waits, h.seen);
        }
    };

    /// Does that rank still wait for this one, if it has seen so many of this one's letters?
    [[nodiscard]] bool still_waits(int rank, std::uint64_t seen) const {
        return core_.windows.letters.sent_to(rank) == seen;
    }

    void send(hint h) {
        h.seen = told_seen_;
        core_.windows.letters.send_hint(core_.setup_mail, core_.rank, peer_, to_wire(h));
    }

    void pass_on(int origin, told_waits::other& other) {
        constexpr std::uint32_t most_shown = 4;
        other.passed_in = number_;
        other.passed_seen = told_seen_;
        std::string waits = other.waits;
        if (other.ranks > 0 && other.ranks <= most_shown)
            waits += ", which rank " + std::to_string(core_.rank) + " has not made, which ";
        if (other.ranks < most_shown)
            waits += "waits for the other end of " + title_;
        else if (other.ranks == most_shown)
            waits += "waits, too, and so on";
        send({origin, other.wait, other.ranks + 1, std::move(waits)});
    }

    void receive(const letter& l) {
        auto [origin, wait, ranks, waits, seen] = from_wire<hint>(l.text);
        if (!still_waits(l.from, seen)) return;
        if (origin == core_.rank) {
            if (wait != number_ || vain_since_ != 0) return;
            vain_since_ = ticks();
            circle_ = std::move(waits);
            return;
        }
        told_waits::other& other = core_.windows.waits.others[{origin, l.from}];
        const bool known =
            other.wait == wait && other.seen == seen && other.passed_in == number_ && other.passed_seen == told_seen_;
        if (known) return;
        other = {wait, ranks, seen, std::move(waits)};
        pass_on(origin, other);
    }

    job_core& core_;
    int peer_;
    std::string title_;
    std::uint32_t number_ = 0;    // of this wait, once it is told
    std::uint64_t told_seen_ = 0; // letters of the peer that had come when it was told
    std::uint64_t vain_since_ = 0;
    std::string circle_; // what the others wait for, once that is known to be in vain
};

} // namespace halocline::comm
