// SPDX-License-Identifier: Apache-2.0
// The reason why a call on the data path is status::misused.
#pragma once

#include <halocline/comm/status.hpp>
#include <halocline/comm/team.hpp>

#include <atomic>
#include <string>

namespace halocline::comm {

/// What a member of a team did, or failed to do, so that the team can't continue.
struct team_fault {
    team member{};              ///< index -1: an unknown member
    const char* what = nullptr; ///< a literal that continues "member 1 of a team of 2"; null: no fault

    [[nodiscard]] explicit operator bool() const noexcept { return what != nullptr; }
};

/// Noted where nothing may allocate or throw; reported later. The implicit conversions are for arguments:
/// misuse("post() without init()").
class wrong_call {
  public:
    /// None.
    wrong_call() = default;
    /// `what` is a literal: "post() without init()".
    wrong_call(const char* what) noexcept : what_(what) {}
    /// A call by a thread with an invalid team index.
    wrong_call(team t) noexcept : what_(""), member_(t) {}
    /// What a member of a team did, or failed to do.
    wrong_call(team_fault f) noexcept : what_(f.what), member_(f.member), of_member_(true) {}

    /// Becomes `call` if `s` was ok; sets `s` to misused. If threads are refused at the same time, the first counts.
    void note_first(const wrong_call& call, status& s) noexcept {
        if (becomes_misused(s)) *this = call;
    }
    /// Sets `s` to misused if it was ok; true if so. If threads call this at the same time, one gets true.
    [[nodiscard]] static bool becomes_misused(status& s) noexcept {
        const std::atomic_ref now(s);
        status was = now.load(std::memory_order_acquire);
        return was == status::ok && now.compare_exchange_strong(was, status::misused, std::memory_order_acq_rel);
    }
    [[nodiscard]] explicit operator bool() const noexcept { return what_ != nullptr; }
    /// Pre: there is one.
    [[nodiscard]] std::string text() const {
        const std::string size = " of a team of " + std::to_string(member_.size);
        if (of_member_)
            return (member_.index < 0 ? "a member" : "member " + std::to_string(member_.index)) + size + " " + what_;
        if (member_.is_member()) return what_;
        return "it was called as member " + std::to_string(member_.index) + size +
               ": a team has 1 member or more, which count from 0";
    }

  private:
    const char* what_ = nullptr;
    team member_{};
    bool of_member_ = false; ///< what_ continues the member's name
};

} // namespace halocline::comm
