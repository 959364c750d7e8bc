// SPDX-License-Identifier: Apache-2.0
// One end of a channel over MPI: its requests, its tag, and which epochs were posted, started and done.
#pragma once

#include "network/network_end.hpp"

#include <cstdint>
#include <memory>

struct halocline_mpi_channel; // mpi_module.h

namespace halocline::comm {

struct mpi_windows; // world.hpp

struct mpi_end : network_end {
    halocline_mpi_channel* requests = nullptr;
    int tag = -1;                         ///< for what the peer sends here; no other end of this world has it
    int window = 0;                       ///< this end's among those of its plan
    std::shared_ptr<mpi_windows> windows; ///< nullptr: two-sided
    std::uint64_t posted = 0;             ///< receives of epochs <= this one were started
    std::uint64_t came = 0;               ///< and this many messages have arrived
    std::uint64_t sent = 0;               ///< sends of epochs <= this one are done

    [[nodiscard]] bool has(std::uint64_t epoch) const { return came >= epoch; }
    [[nodiscard]] bool over() const { return farewell_came; }
    [[nodiscard]] bool has_room() const { return sent == started; }
    [[nodiscard]] static bool greeting_done() { return true; }
};

} // namespace halocline::comm
