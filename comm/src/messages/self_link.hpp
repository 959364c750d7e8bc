// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "matching.hpp"
#include "messenger_core.hpp"
#include "operation_list.hpp"

namespace halocline::comm {

/// Messages of a rank to itself: without a receive, an immediate one is kept with its bytes, a large one as its send,
/// which then lasts until it is received.
class self_link {
  public:
    self_link(messenger_core& core, matching& m) : core_(core), matching_(m) {}
    /// False: no room yet.
    [[nodiscard]] bool try_send(message_operation& s) noexcept;
    /// A receive meets a message that arrived before it.
    void receive_kept(message_operation& r, unexpected_message& m) noexcept;
    void withdraw(message_operation& s) noexcept;
    /// The messenger ends.
    void abandon() noexcept { announced_.finish_all(); }

  private:
    messenger_core& core_;
    matching& matching_;
    operation_list announced_; ///< large sends without a receive
};

} // namespace halocline::comm
