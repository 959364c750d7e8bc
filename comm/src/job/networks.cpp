// SPDX-License-Identifier: Apache-2.0
#include "networks.hpp"

#include "mpi/world.hpp"
#include "ofi/world.hpp"
#include "verbs/world.hpp"

namespace halocline::comm {

void job_networks::poll() noexcept {
    if (mpi) mpi->poll();
    if (ofi) ofi->poll();
}

void job_networks::sweep() noexcept {
    if (verbs) verbs->sweep();
    if (ofi) ofi->sweep();
}

void job_networks::finish(const std::function<bool()>& ended, const std::function<bool()>& alone) noexcept {
    if (mpi) {
        mpi->finish(ended);
        mpi->tell_calls(nullptr);
    }
    if (verbs) verbs->finish(alone);
    if (ofi && !ended()) ofi->finish(alone);
    if (ofi && ended()) ofi->leave();
}

void job_networks::close() noexcept {
    ofi.reset();
    verbs.reset();
}

} // namespace halocline::comm
