// SPDX-License-Identifier: Apache-2.0
// The transfer of a large message whose memory has to be registered with the network's library.
#pragma once

#include "bulk_link.hpp"
#include "registration_cache.hpp"

namespace halocline::comm {

template <class Region>
struct registered_transfer : bulk_transfer {
    registration_cache<Region>* cache = nullptr;
    typename registration_cache<Region>::place single{};
    typename registration_cache<Region>::place* registered = nullptr; ///< `single`, or one of the cache's

    using bulk_transfer::open; // without a registration
    /// make, drop: as for registration_cache::take().
    template <class Make, class Drop>
    bulk_link::opening open(std::byte* start, std::size_t size, std::size_t piece, Make&& make, Drop&& drop) noexcept {
        if (data != nullptr) return bulk_link::opening::busy;
        registered = cache->take(start, size, single, make, drop);
        if (registered == nullptr) return bulk_link::opening::refused;
        return open(start, size, piece);
    }
    template <class Drop>
    void close(Drop&& drop) noexcept {
        if (registered != nullptr) cache->give(*registered, drop);
        registered = nullptr;
        data = nullptr;
    }
};

} // namespace halocline::comm
