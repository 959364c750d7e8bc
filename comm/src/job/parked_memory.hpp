// SPDX-License-Identifier: Apache-2.0
// Memory of closed channels that peers may still write: parked until each of them has said farewell, because a
// destructor never waits.
#pragma once

#include "control/keyed_letters.hpp"
#include "node/node_slab.hpp"

#include <halocline/comm/detail/control_line.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace halocline::comm {

/// The block of a closed channel set, window, segment or messenger.
struct parked_block {
    void* start = nullptr;
    std::size_t bytes = 0;
    std::vector<const control_line*> lines{};           ///< on which the farewells arrive
    std::vector<const void*> pinned{};                  ///< other slab memory that peers may write until then
    std::vector<std::shared_ptr<const void>> exposed{}; ///< memory exposed over networks, until nobody else holds it
    std::optional<keyed_letters::name> or_letter{};     ///< by which a peer that knows no such line takes its leave
};

class parked_memory {
  public:
    void park(parked_block block) { blocks_.push_back(std::move(block)); }
    [[nodiscard]] bool expects_letters() const noexcept;
    /// Gives the slab back the blocks that nobody will write any more.
    void sweep(node_slab& slab, keyed_letters& letters) noexcept;
    /// Forgets the remaining blocks, which vanish with the slab when the job ends.
    void clear() noexcept { blocks_.clear(); }

  private:
    std::vector<parked_block> blocks_;
};

} // namespace halocline::comm
