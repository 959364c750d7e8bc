// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/detail/mpi_channel.hpp>

#include "mpi/world.hpp"
#include "network_channel_body.hpp"

#include <vector>

namespace halocline::comm {

template class network_channel<mpi_world, mpi_end>;

void mpi_channel::connect_all(mpi_world& world, std::span<mpi_channel> all, std::span<const std::string> peer_cards,
                              const std::function<void()>& check) {
    if (world.mode() == mpi_mode::one_sided) {
        std::vector<mpi_slots> slots(all.size());
        for (const mpi_channel& c : all) slots[c.end_->window] = {c.receive_, c.end_->receive_stride};
        const auto windows = world.expose(slots, check);
        for (mpi_channel& c : all) c.end_->windows = windows;
    }
    for (mpi_channel& c : all) c.connect(peer_cards[c.index()]);
}

const char* mpi_channel::path_taken() const noexcept { return end_->windows ? "one-sided" : path_name; }
int mpi_channel::tag() const noexcept { return end_->tag; }

} // namespace halocline::comm
