// SPDX-License-Identifier: Apache-2.0
// Large members of objects that all ranks make together.  Private to amg/.
#pragma once

#include <halocline/comm/job.hpp>

#include <optional>
#include <utility>

namespace halocline::amg {

/// What `make` returns on this rank; it needs no other rank. Collective.
/// Err: on every rank, if `make` threw on any: as comm::job::collectively(). So no rank waits for one without memory.
template <class Make>
auto collectively_made(const comm::job& j, const Make& make) {
    std::optional<decltype(make())> made;
    j.collectively([&] { made.emplace(make()); });
    return std::move(*made);
}

} // namespace halocline::amg
