// SPDX-License-Identifier: Apache-2.0
// What the channels of a transport with cards are made in: one line per transport.
#pragma once

#include "job_core.hpp"
#include "mpi_library.hpp"
#include "ofi_world.hpp"
#include "verbs_world.hpp"

#include <halocline/comm/mock_channel.hpp>
#include <halocline/comm/mpi_channel.hpp>
#include <halocline/comm/ofi_channel.hpp>
#include <halocline/comm/verbs_channel.hpp>

namespace halocline::comm {

inline verbs_world& world_of(const job_core& core, const verbs_channel*) { return *core.verbs; }
inline ofi_world& world_of(const job_core& core, const ofi_channel*) { return *core.ofi; }
inline mpi_world& world_of(const job_core& core, const mpi_channel*) { return *core.mpi; }
inline mock_world& world_of(const job_core&, const mock_channel*) {
    static mock_world nothing; // has no state
    return nothing;
}

} // namespace halocline::comm
