// SPDX-License-Identifier: Apache-2.0
// Why a call on the data path is status::misused.
#pragma once

#include <halocline/comm/status.hpp>
#include <halocline/comm/team.hpp>

#include <atomic>
#include <string>

namespace halocline::comm {

/// Noted where nothing allocates or throws, told later.
class wrong_call {
  public:
    /// `what` is a literal: "post() without init()".
    void note(const char* what) noexcept { what_ = what; }
    /// A call of a member that its team does not have.
    void note(team t) noexcept {
        what_ = "";
        member_ = t;
    }
    /// The same if `s` was ok, which becomes misused. Threads may be refused at the same time: the first is noted.
    template <class Call>
    void note_first(Call call, status& s) noexcept {
        const std::atomic_ref now(s);
        status was = now.load(std::memory_order_acquire);
        if (was == status::ok && now.compare_exchange_strong(was, status::misused, std::memory_order_acq_rel))
            note(call);
    }
    [[nodiscard]] explicit operator bool() const noexcept { return what_ != nullptr; }
    /// Pre: a call was noted.
    [[nodiscard]] std::string text() const {
        if (member_.is_member()) return what_;
        return "it was called as member " + std::to_string(member_.index) + " of a team of " +
               std::to_string(member_.size) + ": a team has 1 member or more, which count from 0";
    }

  private:
    const char* what_ = nullptr;
    team member_{};
};

} // namespace halocline::comm
