// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "message_layout.hpp"

#include <cstddef>
#include <cstdint>

namespace halocline::comm {

/// The numbers by which both ends identify the sends from this rank to one peer that take more than a word: a send has
/// one from its announcement until its peer has all of it.
class send_records {
  public:
    static constexpr std::uint32_t records = link_layout::records;
    send_records() noexcept {
        for (std::uint32_t i = 0; i < records; ++i) free_[i] = records - 1 - i;
    }
    [[nodiscard]] bool all_taken() const noexcept { return count_ == 0; }
    /// What take() will return.  Pre: !all_taken(), as for take().
    [[nodiscard]] std::uint32_t next() const noexcept { return free_[count_ - 1]; }
    std::uint32_t take() noexcept { return free_[--count_]; }
    void give_back(std::uint32_t record) noexcept { free_[count_++] = record; }

  private:
    std::size_t count_ = records;
    std::uint32_t free_[records];
};

} // namespace halocline::comm
