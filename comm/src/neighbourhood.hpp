// SPDX-License-Identifier: Apache-2.0
// Ranks that map each other's slabs and have a block each: one control line per neighbour, which that neighbour writes,
// and a payload. The two halves of a line hold two counts that the owner of the object gives a meaning.
#pragma once

#include "job_core.hpp"

#include <halocline/comm/control_line.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace halocline::comm {

class neighbourhood {
  public:
    struct member {
        int rank = 0;
        control_line* mine = nullptr;   // written by the neighbour
        control_line* theirs = nullptr; // written here
        std::byte* payload = nullptr;   // the neighbour's
        std::uint64_t payload_bytes = 0;
        std::uint64_t place = 0; // of this rank in the neighbour's list
    };
    /// Collective. `shape`: what else must be equal.  Err: input_error.
    neighbourhood(const job& j, const std::string& name, std::span<const int> neighbours, std::size_t payload_bytes,
                  std::string_view shape);
    ~neighbourhood();
    neighbourhood(const neighbourhood&) = delete;
    neighbourhood& operator=(const neighbourhood&) = delete;

    static void tell(const member& m, int half, std::uint64_t count) noexcept {
        m.theirs->half[half].epoch.store(count, std::memory_order_release);
    }
    [[nodiscard]] static std::uint64_t told(const member& m, int half) noexcept {
        return m.mine->half[half].epoch.load(std::memory_order_acquire);
    }
    /// Has the neighbour said farewell? What it told before is there then.
    [[nodiscard]] static bool left(const member& m) noexcept {
        return m.mine->half[1].end.load(std::memory_order_acquire) != 0;
    }

    job owner;
    std::vector<member> members;
    std::byte* payload = nullptr;
    std::size_t payload_bytes = 0;

  private:
    std::byte* block_ = nullptr;
    std::size_t block_bytes_ = 0;
};

} // namespace halocline::comm
